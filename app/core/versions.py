"""Versions of a documentation, as its addresses tell them: /v1.2/, /2.x/, /latest/, or no such part for the current one.

Where they tell none, pages may say theirs themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

CURRENT = frozenset({"", "latest", "stable", "current"})
UNRELEASED = frozenset({"main", "master", "dev", "devel", "nightly", "next", "edge", "unreleased"})
LONGEST_KEPT = 300  # characters of an address whose parts are remembered

# a bare number is a year or an id more often than a version
_NUMBER = r"v?(?P<number>\d+(?:\.(?:\d+|x))+)|v(?P<major>\d+)"
_PART = re.compile(
    rf"(?<=[^/:]/)(?:{_NUMBER}|(?P<name>{'|'.join(sorted((CURRENT - {''}) | UNRELEASED))}))(?:/|$)", re.IGNORECASE
)
_NAMED = re.compile(rf"(?<![\w.])(?:{_NUMBER})(?![\w]|\.\d)", re.IGNORECASE)
# one word: what has spaces or braces is a sentence, or a template that nobody filled
_SAID = re.compile(r"\w[\w.+-]{0,39}")


def split_version(url: str) -> tuple[str, str]:
    """The address without its version, which is the same for all versions of a page, and the version; empty for none."""
    return _kept_split(url) if len(url) <= LONGEST_KEPT else _split(url)


def _split(url: str) -> tuple[str, str]:
    found = _PART.search(url)
    if not found:
        return url, ""
    return url[: found.start()] + url[found.end() :], _plain(found)


_kept_split = lru_cache(maxsize=20_000)(_split)


def said_versions(url: str, said: str) -> tuple[str, ...]:
    """The versions, with commas between, that a page says it is of; none where its address names one that isn't the current."""
    if split_version(url)[1] not in CURRENT:
        return ()
    versions = (plain_version(part.strip()) for part in said.split(","))
    return tuple(dict.fromkeys(version for version in versions if _SAID.fullmatch(version)))


def plain_version(version: str) -> str:
    """The version in small letters and without the "v" before a number: "V1.2" is "1.2"."""
    return re.sub(r"^v(?=\d)", "", version.lower())


def named_versions(question: str) -> tuple[str, ...]:
    """The version numbers that a question names, as "1.28" or "v2"."""
    return tuple(dict.fromkeys(_plain(found) for found in _NAMED.finditer(question)))


def newness(version: str, asked: Iterable[str] = (), said: Iterable[str] = ()) -> tuple[bool, int, tuple[int, ...]]:
    """Orders the versions of a page: those asked for, then the current one, released ones by number, unreleased ones.

    `version` is that of the address; those that the page has `said` only count as asked for.
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
