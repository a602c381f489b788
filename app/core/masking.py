"""Masks passwords in addresses, for messages, reports and logs."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"""(?<=://)(?P<user>[^/\s:@?#"'<>]*)(?P<secret>:(?!password@)[^/\s?#"'<>]*)?@""")

_SECRET = re.compile(
    r"key|token|secret|passw|passphrase|pwd|credential|auth|bearer|cookie|session|(?<![a-z])(?:pat|sas)(?![a-z])",
    re.IGNORECASE,
)


def names_secret(text: str) -> bool:
    """Whether this name of an argument, or a name in this JSON, is that of a secret."""
    return _SECRET.search(text) is not None


def masked(text: str) -> str:
    """The text without the passwords and tokens of its addresses; the `user:password@` of our own hints stays."""
    return _USERINFO.sub(_without, text)


def _without(match: re.Match[str]) -> str:
    # a user name without a password is likely a token
    return f"{match['user']}:…@" if match["secret"] else "…@"
