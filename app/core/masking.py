"""Masks passwords in addresses, for messages, reports and logs."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"""(?<=://)(?P<user>[^/\s:@?#"'<>]*)(?P<secret>:(?!password@)[^/\s?#"'<>]*)?@""")


def masked(text: str) -> str:
    """The text without the passwords and tokens of its addresses; the `user:password@` of our own hints stays."""
    return _USERINFO.sub(_without, text)


def _without(match: re.Match[str]) -> str:
    # a user name without a password is likely a token
    return f"{match['user']}:…@" if match["secret"] else "…@"
