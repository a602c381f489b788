"""Lines of the log: an event with its fields, the id of the request, and addresses without their secrets."""

import re
import secrets
from contextvars import ContextVar
from typing import Any

MAX_FIELD_CHARS = 200
LONG = frozenset({"error", "message", "text"})  # fields that may be ten times as long
_WORD = re.compile(rf"[!#-&(-<>-~]{{1,{MAX_FIELD_CHARS}}}")  # ASCII without quotation marks and =
_UNQUOTED = re.compile(r"[^\s\"'=]+")


class LogMessage:
    """The message of one log call, such as `log.info(LogMessage("ingest ended", run="r1", state="done"))`.

    As text it is `ingest ended run=r1 state=done`. Values that aren't one word are quoted, so that they can't forge lines
    or fields. `app.core.logs` writes `fields` as JSON.
    """

    __slots__ = ("fields", "text")

    def __init__(self, text: str, /, **fields: Any) -> None:
        self.text = text
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.text, *(f"{name}={_printable(name, value)}" for name, value in self.fields.items())])


def shortened(name: str, text: str) -> str:
    """The text of the field with this name, cut if it is too long."""
    most = MAX_FIELD_CHARS * 10 if name in LONG else MAX_FIELD_CHARS
    return text if len(text) <= most else f"{text[:most]}…"


def _printable(name: str, value: object) -> str:
    if isinstance(value, int | float) or (isinstance(value, str) and _WORD.fullmatch(value)):  # most of them
        return str(value)
    text = shortened(name, str(value))
    return text if _UNQUOTED.fullmatch(text) and text.isprintable() else repr(text)


REQUEST_ID: ContextVar[str] = ContextVar("request_id", default="")
"""Empty outside a request."""


def upstream_headers() -> dict[str, str]:
    """The header `x-request-id` for a call to another server: the id of the request with a suffix.

    A request makes several calls at the same time, and clients may repeat an id, but vLLM fails when two running requests
    have the same one.
    """
    id_ = REQUEST_ID.get()
    return {"x-request-id": f"{id_}-{secrets.token_hex(4)}"} if id_ else {}


_USERINFO = re.compile(r"""(?<=://)(?P<user>[^/\s:@?#"'<>]*)(?P<secret>:(?!password@)[^/\s?#"'<>]*)?@""")

_TOKEN = re.compile(
    r"token|secret|passw|pwd|credential|signature|api[_-]?key|^(?:sig|auth|authorization)$", re.IGNORECASE
)
_PARAMETER = re.compile(r"""(?<=[?&])(?P<name>[^=&?\s"'<>#]{1,80})=(?:[^&\s"'<>#\\]|\\[^"'\s])+""")
"""A backslash before a quotation mark isn't a part of the value: in JSON, it keeps the text from ending there."""
_SECRET = re.compile(
    r"key|token|secret|passw|passphrase|pwd|credential|auth|bearer|cookie|session|(?<![a-z])(?:pat|sas)(?![a-z])",
    re.IGNORECASE,
)


def names_secret(text: str) -> bool:
    """True if this name of an argument, or a name in this JSON, is that of a secret."""
    return _SECRET.search(text) is not None


def names_token(name: str) -> bool:
    """True if a parameter of an address is a token, a password or a signature by its name."""
    return _TOKEN.search(name) is not None


def masked(text: str) -> str:
    """The text without the passwords and tokens of its addresses; the `user:password@` of our own hints stays."""
    # a user name without a password is likely a token
    text = _USERINFO.sub(lambda match: f"{match['user']}:…@" if match["secret"] else "…@", text)
    return _PARAMETER.sub(lambda match: f"{match['name']}=…" if names_token(match["name"]) else match[0], text)
