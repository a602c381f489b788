"""Masks passwords in addresses, for messages, reports and logs."""

from __future__ import annotations

import re

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
    """Whether this name of an argument, or a name in this JSON, is that of a secret."""
    return _SECRET.search(text) is not None


def names_token(name: str) -> bool:
    """Whether a parameter of an address is a token, a password or a signature by its name."""
    return _TOKEN.search(name) is not None


def masked(text: str) -> str:
    """The text without the passwords and tokens of its addresses; the `user:password@` of our own hints stays."""
    return _PARAMETER.sub(_without_token, _USERINFO.sub(_without, text))


def _without_token(match: re.Match[str]) -> str:
    return f"{match['name']}=…" if names_token(match["name"]) else match[0]


def _without(match: re.Match[str]) -> str:
    # a user name without a password is likely a token
    return f"{match['user']}:…@" if match["secret"] else "…@"
