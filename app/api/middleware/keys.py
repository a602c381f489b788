"""API keys: what the key of a request may do."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr
from starlette.requests import Request

from app.api.access import Access, Role
from app.api.key_file import KeyTable, is_over, read_keys
from app.api.middleware.clients import network
from app.api.middleware.cors import is_among, is_shared
from app.api.middleware.failed_attempts import SECONDS_PER_FAILURE, FailedAttempts
from app.api.middleware.requestlog import info_of
from app.core.errors import RequestError, SettingsError, quoted
from app.core.settings import Settings, is_loopback
from app.core.settings_types import HASHED

log = logging.getLogger("app.api")

FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
_ACCESS = "docs_assistant.access"


@dataclass(frozen=True, slots=True)
class Key:
    """What a key allows, the pages that may use it, and its last day."""

    access: Access
    origins: frozenset[str] = frozenset()
    expires: date | None = None


class KeyFile:
    """The keys of the file that DOCS_KEYS names, by digest. It is read again when it changes.

    A changed file that can't be read is logged once; the keys that were read before stay. Raises `SettingsError` if the
    file can't be read at first.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._signature = self._look()
        self._keys = self._read()
        self.removed_origins = frozenset[str]()
        """The origins of keys that were removed since the start."""

    def current(self) -> dict[bytes, Key]:
        """The keys of the file as it is now."""
        if (signature := self._look()) != self._signature:
            self._signature = signature
            try:
                before, self._keys = self._keys, self._read()
            except SettingsError as error:
                log.error("%s The keys that were read before stay in use.", error)  # noqa: TRY400  # says enough
            else:
                self.removed_origins = self.removed_origins.union(*(key.origins for key in before.values()))
                log.info("read the keys of %s again: %d", self._settings.keys, len(self._keys))
        return self._keys

    def _look(self) -> tuple[int, ...]:
        try:
            found = Path(self._settings.keys).stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _read(self) -> dict[bytes, Key]:
        return {
            bytes.fromhex(table.hash.removeprefix(HASHED)): _key_of(table)
            for table in read_keys(self._settings.keys, self._settings)
        }


class Keys:
    """All keys that clients send as `Authorization: Bearer KEY`. Without any for readers, requests need none.

    Raises `SettingsError` if the file of keys is invalid.
    """

    def __init__(self, settings: Settings, failures: FailedAttempts | None = None) -> None:
        self._failures = failures or FailedAttempts()
        self._configured = {
            **dict(_configured(settings.api_keys, "reader")),
            **dict(_configured(settings.admin_keys, "admin")),
        }
        self._file = KeyFile(settings) if settings.keys else None
        self.required = bool(settings.api_keys or (settings.keys and not settings.open))
        self._admin_open = settings.admin_open and is_loopback(settings.host)

    @property
    def admins(self) -> bool:
        """Whether there is an admin key."""
        return any(key.access.role == "admin" for key in self._known().values())

    def origins(self) -> frozenset[str]:
        """The origins of all keys of widgets."""
        return (
            frozenset[str]().union(*(key.origins for key in self._file.current().values()))
            if self._file
            else frozenset()
        )

    def removed_origins(self) -> frozenset[str]:
        """The origins of all keys of widgets that were removed from the file since the start."""
        return self._file.removed_origins if self._file else frozenset()

    def access(self, request: Request) -> Access:
        """What the sender of this request may do.

        Raises `RequestError`: `invalid_api_key` without a valid key where one is required, `wrong_keys` after too many wrong
        ones, `origin_refused` and `key_refused` if a widget's key is used elsewhere.
        """
        known: Access | None = request.scope.get(_ACCESS)
        if known is None:
            known = request.scope[_ACCESS] = self._access(request, required=self.required)
        return known

    def admin(self, request: Request) -> Access:
        """The same for a route that needs an admin. Raises `RequestError` for anybody else."""
        access = self._access(request, required=True)
        if access.role != "admin":
            raise RequestError("This API key is valid, but an admin key is required here.", code="invalid_api_key")
        return access

    def is_open_to(self, request: Request) -> bool:
        """Whether this request may use admin routes without a key (DOCS_ADMIN_OPEN): it comes directly from this machine."""
        return self._admin_open and is_local(request)

    def _known(self) -> dict[bytes, Key]:
        return {**self._file.current(), **self._configured} if self._file else self._configured

    def _access(self, request: Request, *, required: bool) -> Access:
        if "authorization" not in request.headers:
            if self.is_open_to(request):
                return Access("admin")
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

    def _checked(self, request: Request, digest: bytes, key: Key | None) -> Access:
        address = network(request.scope)
        if key is None or not self._failures.accept(address, digest):
            if self._failures.blocked(address):
                raise RequestError(
                    f"Too many wrong API keys came from your address. Try again in {SECONDS_PER_FAILURE:.0f} s.",
                    code="wrong_keys",
                )
            self._failures.record_failure(address)
            raise RequestError("This API key is invalid.", code="invalid_api_key")
        info_of(request).fields["key"] = key.access.key
        if is_over(key.expires):
            raise RequestError(f"This API key expired: {key.expires} was its last day.", code="invalid_api_key")
        if key.access.role == "widget":
            _check_widget(request, key)
        return key.access


def _configured(keys: tuple[SecretStr, ...], role: Role) -> Iterator[tuple[bytes, Key]]:
    """The keys of a setting by digest. Their owner follows from their value, because their numbers change."""
    for number, secret in enumerate(keys, 1):
        value = secret.get_secret_value()
        hashed = value.startswith(HASHED)
        digest = bytes.fromhex(value.removeprefix(HASHED)) if hashed else sha256(value.encode()).digest()
        name = f"{'' if role == 'reader' else role}{number}"
        yield digest, Key(Access(role, name, owner=f"{HASHED}{digest.hex()[:16]}"))


def _key_of(table: KeyTable) -> Key:
    access = Access(
        table.role,
        table.name,
        table.name,
        frozenset(table.assistants),
        tuple(table.collections),
        table.rate,
        table.concurrency,
    )
    return Key(access, frozenset(table.origins), table.expires)


def _digest(request: Request) -> bytes:
    """The SHA-256 of the request's key; empty if it sends none as a bearer."""
    scheme, _, key = request.headers["authorization"].partition(" ")
    # Starlette decodes headers as Latin-1, but keys are UTF-8
    return sha256(key.strip().encode("latin-1")).digest() if scheme.lower() == "bearer" else b""


def _check_widget(request: Request, key: Key) -> None:
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
    """Whether the request comes from this machine, not through a proxy, and not from a page of another host."""
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
