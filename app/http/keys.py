"""API keys: reads those of the settings and of the file, and tells what the key of a request may do."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Annotated, Literal, Protocol, TypeVar, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator
from starlette.requests import Request

from app.core.errors import RequestError, SettingsError, did_you_mean, quoted
from app.core.settings import Settings, is_loopback
from app.core.settings_types import EXAMPLE, HASH, HASHED, Rates, Url, web_origin
from app.core.tables import Name, Table, WatchedFile, parsed, read_file
from app.http.door import info_of, network
from app.http.request_check import is_among, is_shared

log = logging.getLogger("app.http")

PERSON = "person:"
"""The beginning of owners that are people who have signed in."""
Role = Literal["reader", "widget", "admin"]
"""A `widget` key is public, because it stands in web pages, and asks and searches only; an `admin` may do everything."""


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of a request. `key` is the name of its key, as logs show it; empty without a key.

    `owner` is who owns what the request stores: it stays the same while keys are added and removed, and is empty without
    a key. Empty `assistants` or `collections`, an empty `rate` and a `concurrency` of 0 mean that the key sets no limit.
    Pages of `origins` may use the key of a widget, until the day `expires` is over.
    """

    role: Role = "reader"
    key: str = ""
    owner: str = ""
    assistants: frozenset[str] = frozenset()
    collections: tuple[str, ...] = ()
    rate: str = ""
    concurrency: int = 0
    origins: frozenset[str] = frozenset()
    expires: date | None = None


ROLES = get_args(Role)


class KeyTable(Table):
    """One key. The descriptions say in error messages what a value must be."""

    name: str = Field(
        pattern=r"^[A-Za-z][\w.-]{0,63}$", description="letters, digits, . _ and -, the first one a letter"
    )
    hash: str = Field(
        pattern=f"^{HASH}$", repr=False, description='"sha256:" and 64 hexadecimal digits, as key new prints it'
    )
    role: Role = Field(description=f"one of {', '.join(ROLES)}")
    assistants: list[Name] = Field([], description='a list of assistants, as ["docs"]; leave it out for all')
    collections: list[Name] = Field([], description='a list of collections, as ["docs"]; leave it out for all')
    origins: list[Annotated[str, AfterValidator(web_origin)]] = Field(
        [], description='a list of origins, as ["https://docs.example.org"]'
    )
    rate: Rates = Field("", description=f"a rate, such as {EXAMPLE}")
    concurrency: int = Field(0, ge=1, description="a number of answers at the same time, at least 1")
    expires: date | None = Field(None, description="a date without quotation marks, as 2027-01-31")
    made: date | None = Field(None, description="the date on which it was made, as 2026-12-31")
    note: str = Field("", description="a text")

    @property
    def version(self) -> str:
        """What differs as soon as anything about the key does."""
        return sha256(self.model_dump_json().encode()).hexdigest()[:16]

    @property
    def expired(self) -> bool:
        """True if the last day on which the key works is over."""
        return is_over(self.expires)

    @model_validator(mode="after")
    def _is_complete(self) -> KeyTable:
        for name in ("assistants", "collections", "origins"):
            if name in self.model_fields_set and not getattr(self, name):
                raise ValueError(f"{name} is empty, which would mean no limit: name some, or leave it out")
        if (self.role == "widget") != bool(self.origins):
            raise ValueError(
                "a widget key is public: it needs origins, the sites whose pages may use it"
                if self.role == "widget"
                else f'origins belong to a key with role = "widget", but this one is of a {self.role}'
            )
        return self


def _with_openid(scopes: list[str]) -> list[str]:
    if "openid" not in scopes:
        raise ValueError("openid is missing, without which there is no ID token")
    return scopes


class SignInTable(Table):
    """The OpenID Connect provider by which people sign in, as [sign_in]. `admins` and `readers` are values of the claim."""

    issuer: Url = Field(min_length=1, description="the address of the provider")
    client_id: str = Field(min_length=1, description="the name of this service at the provider")
    client_secret: SecretStr = Field(
        min_length=16, repr=False, description="the secret of the client, of 16 characters at least"
    )
    scopes: Annotated[list[str], AfterValidator(_with_openid)] = Field(
        ["openid", "email", "profile"], description="a list of scopes, with openid"
    )
    roles_claim: str = Field("roles", min_length=1, description="a claim, such as groups or realm_access.roles")
    admins: list[str] = Field([], description="a list of roles that make an operator")
    readers: list[str] = Field([], description="a list of roles that may ask; leave it out for everybody")
    hours: int = Field(12, ge=1, le=720, description="hours from 1 to 720 until one signs in again")
    renew_minutes: int = Field(
        60, ge=1, le=720, description="minutes from 1 to 720 until the provider is asked for the roles again"
    )


class KeysDocument(Table):
    """The whole file."""

    keys: list[KeyTable] = Field([], alias="key", description="written as [[key]]")
    sign_in: SignInTable | None = Field(None, repr=False, description="written as [sign_in]")


def read_keys(path: str, assistants: Collection[str]) -> list[KeyTable]:
    """The keys of the file, which may name these assistants. Raises `SettingsError` that lists what is wrong in it."""
    return _read_document(path, assistants).keys


def _read_document(path: str, assistants: Collection[str]) -> KeysDocument:
    return _document(read_file("DOCS_KEYS", path, " docs-assistant key new NAME makes it."), path, assistants)


def parse_keys(text: str, path: str, assistants: Collection[str]) -> list[KeyTable]:
    """The same for the text of the file at this path."""
    return _document(text, path, assistants).keys


def _document(text: str, path: str, assistants: Collection[str]) -> KeysDocument:
    document = parsed(KeysDocument, text, path)
    keys = document.keys
    _check_doubled(path, keys)
    for key in keys:
        for name in (name for name in key.assistants if name not in assistants):
            hint = f"{did_you_mean(name, assistants)} Available: {', '.join(assistants)}."
            raise SettingsError(f"{path}: key {key.name!r}: there is no assistant {name!r}.{hint}")
    return document


def is_over(last: date | None) -> bool:
    """True if this last day is over, by the date in UTC, so that it doesn't depend on the machine. None never ends."""
    return last is not None and last < datetime.now(UTC).date()


def _check_doubled(path: str, keys: Collection[KeyTable]) -> None:
    for field in ("name", "hash"):
        seen = set[str]()
        for key in keys:
            if (value := getattr(key, field).lower()) in seen:
                raise SettingsError(f"{path}: key {key.name!r}: another key has the same {field}. Each needs its own.")
            seen.add(value)


MAX_FAILURES = 10
SECONDS_PER_FAILURE = 6.0
"""An address may send MAX_FAILURES wrong keys at once, then one every SECONDS_PER_FAILURE seconds."""
MAX_TRACKED = 4096
AnyKey = TypeVar("AnyKey")
Value = TypeVar("Value")


class FailedAttempts:
    """Tracks wrong keys by address. A blocked address may still use keys that it used successfully before.

    So one attacker behind a proxy that isn't in DOCS_TRUSTED_PROXIES doesn't lock out the other clients behind it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unblocked_at: OrderedDict[str, float] = OrderedDict()
        self._accepted: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def record_failure(self, address: str) -> None:
        """Record a wrong key from this address."""
        now = self._clock()
        later = max(self._unblocked_at.get(address, 0.0), now) + SECONDS_PER_FAILURE
        _remember(self._unblocked_at, address, min(later, now + MAX_FAILURES * SECONDS_PER_FAILURE))

    def accept(self, address: str, digest: bytes) -> bool:
        """True if to accept a valid key; False while its address is blocked and the key is new to it."""
        if (address, digest) not in self._accepted and self.blocked(address):
            return False
        _remember(self._accepted, (address, digest), None)
        return True

    def blocked(self, address: str) -> bool:
        """True if this address has sent too many wrong keys."""
        return self._unblocked_at.get(address, 0.0) > self._clock() + (MAX_FAILURES - 1) * SECONDS_PER_FAILURE


def _remember(values: OrderedDict[AnyKey, Value], key: AnyKey, value: Value) -> None:
    values[key] = value
    values.move_to_end(key)
    if len(values) > MAX_TRACKED:
        values.popitem(last=False)


FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
_ACCESS = "docs_assistant.access"


class KeyFile:
    """The keys of the file that DOCS_KEYS names, by digest, and its `sign_in`. It is read again when it changes (`WatchedFile`)."""

    def __init__(self, path: str, assistants: Callable[[], Collection[str]]) -> None:
        self._path, self._assistants = path, assistants
        self._file = WatchedFile(path, self._read)

    def current(self) -> dict[bytes, Access]:
        """The keys of the file as it is now."""
        return self._file.current()[0]

    @property
    def sign_in(self) -> SignInTable | None:
        """The provider by which people sign in, None without one."""
        return self._file.current()[1]

    def _read(self) -> tuple[dict[bytes, Access], SignInTable | None]:
        document = _read_document(self._path, self._assistants())
        keys = {
            bytes.fromhex(table.hash.removeprefix(HASHED)): Access(
                table.role, table.name, table.name, frozenset(table.assistants), tuple(table.collections),
                table.rate, table.concurrency, frozenset(table.origins), table.expires,
            )
            for table in document.keys
        }  # fmt: skip
        return keys, document.sign_in


class People(Protocol):
    """Who has signed in."""

    @property
    def operators(self) -> bool:
        """True if some of those who sign in are operators."""

    def access(self, request: Request) -> Access | None:
        """Returns what the person who sends this request may do; None if nobody has signed in."""

    def name(self, request: Request) -> str:
        """The person's name for their own eyes; empty if nobody has signed in."""

    def renewal(self, request: Request) -> str:
        """Returns the address that asks the provider for the roles again and leads back to this page; empty if it needn't be asked."""


class Keys:
    """All keys that clients send as `Authorization: Bearer KEY`. Without any for readers, requests need none.

    `assistants` returns the names of all assistants. Raises `SettingsError` if the file of keys is invalid.
    """

    def __init__(
        self, settings: Settings, assistants: Callable[[], Collection[str]], failures: FailedAttempts | None = None
    ) -> None:
        self._failures = failures or FailedAttempts()
        self._configured = {
            **dict(_configured(settings.api_keys, "reader")),
            **dict(_configured(settings.admin_keys, "admin")),
        }
        self._file = KeyFile(settings.keys, assistants) if settings.keys else None
        self.required = bool(settings.api_keys or (settings.keys and not settings.open))
        self.people: People | None = None
        """Set by what lets people sign in."""
        self._admin_open = settings.admin_open and is_loopback(settings.host)

    @property
    def admins(self) -> bool:
        """True if there is an admin key, or operators sign in."""
        return (self.people is not None and self.people.operators) or any(
            key.role == "admin" for key in self._known().values()
        )

    @property
    def sign_in(self) -> SignInTable | None:
        """The provider by which people sign in, as the file has it now; None without one."""
        if not self._file:
            return None
        self._file.current()
        return self._file.sign_in

    def configured(self) -> Collection[Access]:
        """The keys of the settings."""
        return self._configured.values()

    def names(self) -> Sequence[str]:
        """The names of all keys, sorted."""
        return sorted(key.key for key in self._known().values())

    def origins(self) -> frozenset[str]:
        """The origins of all keys of widgets."""
        keys = self._file.current().values() if self._file else ()
        return frozenset[str]().union(*(key.origins for key in keys))

    def access(self, request: Request) -> Access:
        """Returns what the sender of this request may do.

        Raises `RequestError`: `invalid_api_key` without a valid key where one is required, `wrong_keys` after too many wrong
        ones, `origin_refused` and `key_refused` if a widget's key is used elsewhere.
        """
        known: Access | None = request.scope.get(_ACCESS)
        if known is None:
            known = request.scope[_ACCESS] = self._access(request, required=self.required)
        return known

    def admin(self, request: Request) -> Access:
        """The same for a route that needs an admin, which may be open to this machine. Raises `RequestError` for anybody else."""
        if "authorization" not in request.headers and self.is_open_to(request):
            return Access("admin")
        access = self._access(request, required=True)
        if access.role != "admin":
            raise RequestError("This API key is valid, but an admin key is required here.", code="invalid_api_key")
        return access

    def is_open_to(self, request: Request) -> bool:
        """True if this request may use admin routes without a key (DOCS_ADMIN_OPEN): it comes directly from this machine."""
        return self._admin_open and is_local(request)

    def _known(self) -> dict[bytes, Access]:
        return {**self._file.current(), **self._configured} if self._file else self._configured

    def _access(self, request: Request, *, required: bool) -> Access:
        if "authorization" not in request.headers:
            if self.people and (signed_in := self.people.access(request)):
                info_of(request).fields["key"] = signed_in.key
                return signed_in
            if required:
                raise RequestError(
                    "An API key is required: send the header 'Authorization: Bearer KEY'.", code="invalid_api_key"
                )
            return Access()
        digest = _digest(request)
        # the times of a look-up tell nothing about a key, only about its hash
        key = self._configured.get(digest) or (self._file.current().get(digest) if self._file else None)
        if key is None and not required and self._file is None:
            return Access()  # many clients always send some key
        return self._checked(request, digest, key)

    def _checked(self, request: Request, digest: bytes, key: Access | None) -> Access:
        address = network(request.scope)
        if key is None or not self._failures.accept(address, digest):
            if self._failures.blocked(address):
                raise RequestError(
                    f"Too many wrong API keys came from your address. Try again in {SECONDS_PER_FAILURE:.0f} s.",
                    code="wrong_keys",
                )
            self._failures.record_failure(address)
            raise RequestError("This API key is invalid.", code="invalid_api_key")
        info_of(request).fields["key"] = key.key
        if is_over(key.expires):
            raise RequestError(f"This API key expired: {key.expires} was its last day.", code="invalid_api_key")
        if key.role == "widget":
            _check_widget(request, key)
        return key


def _configured(keys: tuple[SecretStr, ...], role: Role) -> Iterator[tuple[bytes, Access]]:
    """The keys of a setting by digest. Their owner follows from their value, because their numbers change."""
    for number, secret in enumerate(keys, 1):
        value = secret.get_secret_value()
        hashed = value.startswith(HASHED)
        digest = bytes.fromhex(value.removeprefix(HASHED)) if hashed else sha256(value.encode()).digest()
        name = f"{'' if role == 'reader' else role}{number}"
        yield digest, Access(role, name, owner=f"{HASHED}{digest.hex()[:16]}")


def _digest(request: Request) -> bytes:
    """The SHA-256 of the request's key; empty if it sends none as a bearer."""
    scheme, _, key = request.headers["authorization"].partition(" ")
    # Starlette decodes headers as Latin-1, but keys are UTF-8
    return sha256(key.strip().encode("latin-1")).digest() if scheme.lower() == "bearer" else b""


def _check_widget(request: Request, key: Access) -> None:
    origin = request.headers.get("origin", "").lower()
    if not origin and request.headers.get("sec-fetch-site") == "same-origin":
        # browsers leave Origin out of GET requests to the page's own host
        origin = f"{request.url.scheme}://{request.headers.get('host', '').lower()}"
    if not is_among(origin, key.origins):
        raise RequestError(
            f"This API key isn't for pages of {quoted(origin)}."
            if origin
            else "This API key is for web pages only: the header 'Origin' is missing.",
            code="origin_refused",
        )
    if not is_shared(request.scope):
        raise RequestError("This API key is for asking and searching in web pages only.", code="key_refused")


def is_local(request: Request) -> bool:
    """True if the request comes from this machine, not through a proxy, and not from a page of another host."""
    headers, host = request.headers, request.headers.get("host", "").lower()
    origin = headers.get("origin")
    return (
        request.client is not None
        and is_loopback(request.client.host)
        and not any(name in headers for name in FORWARDED)
        # without settings, nginx sends no such header and this machine as the host; but up to 1.29, it speaks HTTP/1.0
        and request.scope.get("http_version") != "1.0"
        and _is_local_name(host)
        and (origin is None or origin.lower().partition("://")[2] == host)
    )


def _is_local_name(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return is_loopback(name) or name.endswith(".localhost")
