"""Passwords in addresses are for their servers, not for people who read messages, reports and logs."""

from __future__ import annotations

import re

_USERINFO = re.compile(r"""(?<=://)(?P<user>[^/\s:@?#"'<>]*)(?P<secret>:(?!password@)[^/\s?#"'<>]*)?@""")


def masked(text: str) -> str:
    """The text with what proves who one is left out of all addresses in it; our own hints (user:password@) stay."""
    return _USERINFO.sub(_without, text)


def _without(match: re.Match[str]) -> str:
    # a name without a password is rather a token
    return f"{match['user']}:…@" if match["secret"] else "…@"
