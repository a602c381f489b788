"""Which known name a mistyped one probably means, for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most similar, or an empty string if none is similar. Upper and lower case are the same."""
    spellings = {one.lower(): one for one in known}
    found = get_close_matches(name.lower(), spellings, n=1)
    return spellings[found[0]] if found else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean X?`, to append to an error about an unknown name; empty if no known name is similar."""
    found = nearest(name, known)
    return f" Did you mean {found}?" if found else ""
