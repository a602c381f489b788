"""Versions of a documentation: parts of addresses such as /v1.2/, /2.x/ or /latest/, or stated by the pages.

An address without such a part is the current version.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

CURRENT = frozenset({"", "latest", "stable", "current"})
UNRELEASED = frozenset({"main", "master", "dev", "devel", "nightly", "next", "edge", "unreleased"})
LONGEST_KEPT = 300  # characters of an address whose parts are cached

# a bare number is a year or an id more often than a version
_NUMBER = r"v?(?P<number>\d+(?:\.(?:\d+|x))+)|v(?P<major>\d+)"
_PART = re.compile(
    rf"(?<=[^/:]/)(?:{_NUMBER}|(?P<name>{'|'.join(sorted((CURRENT - {''}) | UNRELEASED))}))(?:/|$)", re.IGNORECASE
)
_NAMED = re.compile(rf"(?<![\w.])(?:{_NUMBER})(?![\w]|\.\d)", re.IGNORECASE)
# one word: a text with spaces or braces is a sentence, or a template without its value
_SAID = re.compile(r"\w[\w.+-]{0,39}")


def split_version(url: str) -> tuple[str, str]:
    """The address without its version, and the version or an empty string. All versions of a page have the same first part."""
    return _kept_split(url) if len(url) <= LONGEST_KEPT else _split(url)


def _split(url: str) -> tuple[str, str]:
    found = _PART.search(url)
    if not found:
        return url, ""
    return url[: found.start()] + url[found.end() :], _plain(found)


_kept_split = lru_cache(maxsize=20_000)(_split)


def said_versions(url: str, said: str) -> tuple[str, ...]:
    """The versions that a page states, separated by commas; none if its address has another version than the current one."""
    if split_version(url)[1] not in CURRENT:
        return ()
    versions = (plain_version(part.strip()) for part in said.split(","))
    return tuple(dict.fromkeys(version for version in versions if _SAID.fullmatch(version)))


def plain_version(version: str) -> str:
    """The version in lower case and without the "v" before a number: "V1.2" becomes "1.2"."""
    return re.sub(r"^v(?=\d)", "", version.lower())


def named_versions(question: str) -> tuple[str, ...]:
    """The version numbers in a question, such as "1.28" or "v2"."""
    return tuple(dict.fromkeys(_plain(found) for found in _NAMED.finditer(question)))


def newness(version: str, asked: Iterable[str] = (), said: Iterable[str] = ()) -> tuple[bool, int, tuple[int, ...]]:
    """A sort key for versions of a page, best last: unreleased, released by number, current, and those asked for.

    `version` is that of the address. Versions that the page `said` matter only if they are asked for.
    """
    own = (version, *said)
    wanted = any(_same(known, one) for one in asked for known in own)
    rank = 2 if version in CURRENT else 0 if version in UNRELEASED else 1
    return wanted, rank, tuple(int(part) for part in version.split(".") if part.isdigit())


def _plain(found: re.Match[str]) -> str:
    parts = found.groupdict()
    return (parts["number"] or parts["major"] or parts.get("name") or "").lower()


def _same(version: str, asked: str) -> bool:
    short, long = sorted((version.removesuffix(".x"), asked), key=len)
    return bool(short) and (long == short or long.startswith(f"{short}."))
