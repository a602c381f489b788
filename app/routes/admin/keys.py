"""GET and POST /v1/admin/keys: the keys of the settings and of the file of DOCS_KEYS; makes, limits and revokes those of the file,
of which the rest stays as people wrote it.
"""

import asyncio
import json
import logging
import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.assistants.file import assistant_names
from app.core.errors import RequestError, SettingsError, did_you_mean
from app.core.log_message import LogMessage
from app.core.process import locked
from app.core.settings import Settings
from app.core.settings_types import HASHED, Rates
from app.core.tables import parsed
from app.http.bodies import MAX_INT, Body, ExactModel, Name, Names, Places, filled, unstored
from app.http.keys import KeysDocument, KeyTable, Role, parse_keys, read_keys
from app.routes.runs import started_by
from app.routes.service import Service

log = logging.getLogger("app.http")


class NewKey(ExactModel):
    """A key to make, as in the file of DOCS_KEYS."""

    name: Name
    role: Role
    assistants: Names = Field([])
    collections: Names = Field([])
    origins: Places = Field([])
    rate: Rates = ""
    concurrency: int = Field(0, ge=0, le=MAX_INT)
    expires: Name = Field("", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    note: Name = ""


class KnownKey(ExactModel):
    """A key of the file to revoke. The `version` is as in the list, so that what somebody changed meanwhile stays."""

    name: Name
    version: Name


class KeyLimits(KnownKey):
    """A key of the file with its new limits; an empty rate and a concurrency of 0 are none."""

    rate: Rates
    concurrency: int = Field(ge=0, le=MAX_INT)


class KeyBody(TypedDict):
    """A key, without its secret."""

    name: str
    role: Role
    assistants: list[str]
    collections: list[str]
    origins: list[str]
    rate: str
    concurrency: int
    expires: str | None
    made: str | None
    note: str
    version: Annotated[str, Field(description="Empty for keys of the settings, which stay as they are.")]


class KeyList(TypedDict):
    """All keys, those of the settings first. `key` is the one that was made, which is shown only now, else empty."""

    object: Literal["list"]
    file: Annotated[str, Field(description="DOCS_KEYS.")]
    data: list[KeyBody]
    key: str


@dataclass(frozen=True)
class AdminKeys:
    """The handlers of the routes. After a change, they answer with the list."""

    service: Service

    async def list_keys(self) -> Response:
        """All keys."""
        return self._listed("")

    def _listed(self, made: str) -> Response:
        path = self.service.settings.keys
        none = {"assistants": (), "origins": (), "made": None, "note": "", "version": ""}
        data = [filled(KeyBody, one, name=one.key, **none) for one in self.service.keys.configured()]
        try:
            data += [
                filled(KeyBody, key)
                for key in (read_keys(path, assistant_names(self.service.settings)) if path else ())
            ]
        except SettingsError as error:
            raise RequestError(str(error), code="key_file_refused") from error
        return unstored(KeyList(object="list", file=path, data=data, key=made))

    async def make(self, request: Request) -> Response:
        """With the key, which is shown only here."""
        return await self._do(request, NewKey, "key made", add_key)

    async def limit(self, request: Request) -> Response:
        """A change of rate and concurrency."""
        return await self._do(request, KeyLimits, "key limited", change_key)

    async def revoke(self, request: Request) -> Response:
        """The next request with the key is refused."""
        used, last = self.service.keys.admin(request).owner, bool(self.service.settings.admin_keys)
        return await self._do(request, KnownKey, "key revoked", partial(change_key, used=used, last_admin=last))

    async def _do(self, request: Request, kind: type[Body], said: str, change: Callable[..., str | None]) -> Response:
        by = started_by(self.service, request)
        given = (await self.service.read(request, kind)).model_dump(exclude_defaults=True)
        made = await asyncio.to_thread(change, self.service.settings, given)
        log.info(LogMessage(said, **given, by=by))
        return self._listed(made or "")


PREFIX = "da_"
"""So that people, and programs that look for secrets in files, see what the key is for."""
COLUMNS = ("name", "role", "assistants", "collections", "origins", "rate", "concurrency", "expires", "made", "note")
_HEAD = re.compile(r"[ \t]*\[\[[ \t]*key[ \t]*\]\]")
_LINE = re.compile(
    r"([ \t]*(\w+)[ \t]*=[ \t]*)(\"[^\"]*\"|'[^']*'|[+\w]+)(.*)", re.DOTALL
)  # a value of one line, and the rest
Tables = list[KeyTable]


def new_entry(settings: Settings, given: Mapping[str, Any]) -> tuple[str, str]:
    """A new key, and its `[[key]]`, which has only its hash. Raises `RequestError` if a value is wrong."""
    key = PREFIX + secrets.token_urlsafe(32)
    values = {"name": given["name"], "hash": HASHED + sha256(key.encode()).hexdigest()}
    known = {**given, "made": datetime.now(UTC).date()}
    values |= {name: known[name] for name in COLUMNS[1:] if known.get(name) not in (None, ())}
    lines = (  # JSON's texts, lists and numbers are also TOML's; a date has no quotation marks there
        f"{name} = {value if name in ('expires', 'made') else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )
    entry = "\n".join(["[[key]]", *lines, ""])
    try:
        parse_keys(entry, settings.keys or "keys.toml", assistant_names(settings))
    except SettingsError as error:
        raise RequestError(str(error)) from error
    return key, entry


def add_key(settings: Settings, given: Mapping[str, Any]) -> str:
    """Add a key with these values to the file; the key. Raises `RequestError`."""
    key, entry = new_entry(settings, given)

    def added(text: str, _: Tables) -> tuple[str, Tables]:
        text += f"\n{entry}" if text.endswith("\n") else f"\n\n{entry}" if text else entry
        return text, parse_keys(text, settings.keys, assistant_names(settings))

    _rewrite(settings, added)
    return key


def change_key(settings: Settings, given: Mapping[str, Any], *, used: str = "", last_admin: bool = True) -> None:
    """Give the key its new limits, of which an empty one is none; without any given, remove it.

    Raises `RequestError`, also if it isn't the given `version`, is the `used` key, or the `last_admin` and that may not go.
    """
    limits = {name: given[name] for name in ("rate", "concurrency") if name in given}

    def changed(text: str, keys: Tables) -> tuple[str, Tables]:
        at, lines, entry = _found(given["name"], given.get("version"), text, keys)
        others = [*keys[:at], *keys[at + 1 :]]
        if limits:
            lines[entry] = _limited(lines[entry], limits)
            others.insert(at, keys[at].model_copy(update=limits))
        else:
            admins = [key.role == "admin" and not key.expired for key in (keys[at], *others)]
            if given["name"] == used or (admins[0] and not (last_admin or any(admins[1:]))):
                raise RequestError("You use this key yourself, or it is the last admin key.", code="key_needed")
            del lines[entry]
            before = max(entry.start - 1, 0)
            if not "".join(lines[before : entry.start + 1]).strip():  # one empty line is enough
                del lines[before : before + 1]
        return "\n".join(lines), others

    _rewrite(settings, changed)


def _found(name: str, version: str | None, text: str, keys: Tables) -> tuple[int, list[str], slice]:
    """Which key it is, the lines of the file, and those of its entry, without the comments below it."""
    known, lines = [key.name for key in keys], text.split("\n")
    if name not in known:
        hint = f"{did_you_mean(name, known)} The file has: {', '.join(known) or 'none'}."
        raise RequestError(f"name: there is no key {name!r}.{hint}", param="name", code="key_not_found")
    at, begins = known.index(name), [number for number, line in enumerate(lines) if _HEAD.match(line)]
    if version not in (None, keys[at].version):
        raise RequestError(f"The key {name!r} was changed meanwhile: look again.", code="version_outdated")
    if len(begins) != len(keys):
        raise SettingsError(BY_HAND)
    tables = (number for number in range(begins[at] + 1, len(lines)) if lines[number].lstrip().startswith("["))
    end = next(tables, len(lines))
    while not lines[end - 1].partition("#")[0].strip():
        end -= 1
    return at, lines, slice(begins[at], end)


def _limited(lines: list[str], limits: Mapping[str, Any]) -> list[str]:
    """The lines of an entry with these limits, without the empty ones. A comment behind a limit stays."""
    kept, missing = list[str](), {name: value for name, value in limits.items() if value}
    for line in lines:
        if (match := _LINE.match(line)) and match[2] in limits:
            value = missing.pop(match[2], None)
            kept += filter(None, [f"{match[1]}{json.dumps(value)}{match[4]}" if value else match[4].strip()])
        else:
            kept.append(line)
    return [*kept, *(f"{name} = {json.dumps(value)}" for name, value in missing.items())]


NO_FILE = "There is no file of keys: set DOCS_KEYS to the path of one. docs-assistant key new makes keys."
BY_HAND = "it isn't written as key new writes it. Change it by hand."


def _rewrite(settings: Settings, change: Callable[[str, Tables], tuple[str, Tables]]) -> None:
    """Replace the file, after all other writers, by the text of `change`, if that says these keys. Mode and owner stay."""
    if not settings.keys:
        raise RequestError(NO_FILE, code="key_file_refused")
    path = Path(settings.keys).resolve()  # a link stays one
    new = path.with_name(f"{path.name}.new")
    try:
        with ExitStack() as stack:
            stack.enter_context(locked(path.parent))
            stack.callback(new.unlink, missing_ok=True)
            old = stack.enter_context(path.open("r+b"))  # refuses a file that may not be written
            before, stat = old.read(), os.fstat(old.fileno())
            read = parsed(KeysDocument, before.decode(), settings.keys)
            text, keys = change(before.decode(), read.keys)
            if parsed(KeysDocument, text, settings.keys) != read.model_copy(update={"keys": keys}):
                raise SettingsError(BY_HAND)  # noqa: TRY301  # said with the others below
            with os.fdopen(os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
                os.fchown(file.fileno(), stat.st_uid, stat.st_gid)
                os.fchmod(file.fileno(), stat.st_mode & 0o7777)
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            if path.read_bytes() != before:  # an editor takes no lock
                raise RequestError("The file of DOCS_KEYS was changed meanwhile.", code="version_outdated")
            new.replace(path)
    except (OSError, SettingsError, UnicodeError) as error:
        raise RequestError(f"DOCS_KEYS={settings.keys} can't be changed: {error}", code="key_file_refused") from error
