"""Records of a generation of the index, and the versions of documentation that addresses and questions name."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any


@dataclass(frozen=True, slots=True)
class RepeatedBlock:
    """A block that most pages of a source repeat around their own text, so that it is left out of all of them.

    - `kind`: `text`, the same on all pages, or `links`, which differ at the same place of all pages
    - `key`: stands for its place and text, or is the place of the links
    - `example`: its text on one of the pages
    - `selector`: a CSS selector that finds it on that page
    - `share`: the percentage of the compared pages that have it
    """

    kind: str
    key: str
    example: str = field(default="", compare=False)
    selector: str = field(default="", compare=False)
    share: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source that an index was made from, so that a later run can read it again.

    - `options`: the fields of `ingestion.sources.Source` that differ from their defaults, without secrets
    - `roots`: the values that `Page.source` has in its pages
    - `unreadable`: why it can't be read again from this record; empty if it can
    - `demo`: True for this product's own documentation, which gives way to other sources
    - `repeated`: what most of its pages repeat, by a comparison of `compared` pages
    """

    options: Mapping[str, Any]
    roots: tuple[str, ...]
    unreadable: str = ""
    demo: bool = False
    repeated: tuple[RepeatedBlock, ...] = ()
    compared: int = field(default=0, compare=False)

    @property
    def url(self) -> str:
        """The address that the operator gave."""
        return str(self.options["url"])

    @property
    def collection(self) -> str:
        """The collection that its pages are in."""
        return str(self.options["collection"])


@dataclass(frozen=True, slots=True)
class Recipe:
    """Way in which an index was built. Two indexes can share chunks only if all fields are equal.

    `summaries` and `questions` identify the prompts of both; they are empty without them.
    """

    embedder: str
    dimension: int
    splitter: str
    analyzer: str
    summaries: str = ""
    questions: str = ""


def kept_after(live: Recipe | None, new: Recipe, keep: int) -> int:
    """Returns the generations to keep after one with this recipe. One more if it differs from that of the live one: a run that
    only builds the index anew, as with another embedder, takes away no way back.
    """
    return keep + (keep > 1 and live not in (None, new))


@dataclass(frozen=True, slots=True)
class GenerationInfo:
    """Facts about one published state of an index; `built_at` is ISO 8601 in UTC."""

    id: int
    recipe: Recipe
    built_at: str
    languages: tuple[str, ...]
    pages: int
    chunks: int
    sources: tuple[SourceRecord, ...] = ()

    @property
    def built(self) -> float | None:
        """`built_at` in Unix seconds; None if it can't be parsed."""
        try:
            then = datetime.fromisoformat(self.built_at)
        except ValueError:
            return None
        return (then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp()

    @property
    def age(self) -> float | None:
        """Seconds since it was built; None if that can't be parsed."""
        return None if (built := self.built) is None else max(0.0, time.time() - built)

    @classmethod
    def stored(cls, entry: Mapping[str, Any]) -> GenerationInfo:
        """The info in this value of `stored_entry`. Raises `TypeError` or `LookupError` for other values."""
        values = entry["info"]
        repeated = dict(enumerate(entry.get("repeated", ())))
        sources = (_source(source, repeated.get(number, {})) for number, source in enumerate(entry.get("sources", ())))
        recipe, languages = Recipe(**values["recipe"]), tuple(values["languages"])
        return cls(**{**values, "recipe": recipe, "languages": languages, "sources": tuple(sources)})


def stored_entry(values: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of a store's list of generations, from the `dataclasses.asdict` of an object with an `info`.

    The sources are beside the info, and what their pages repeat beside the sources: to a release that knows none, an info with one
    more field is a damaged index, and its next run would build the index anew from its own sites alone.
    """
    info = dict(values["info"])
    sources = [dict(source) for source in info.pop("sources")]
    repeated = [{name: source.pop(name) for name in ("repeated", "compared")} for source in sources]
    return {**values, "sources": sources, "repeated": repeated, "info": info}


def _source(values: Mapping[str, Any], found: Mapping[str, Any]) -> SourceRecord:
    repeated = tuple(RepeatedBlock(**block) for block in found.get("repeated", ()))
    compared = int(found.get("compared", 0))
    return SourceRecord(**{**values, "roots": tuple(values["roots"])}, repeated=repeated, compared=compared)


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
    match = _PART.search(url)
    if not match:
        return url, ""
    return url[: match.start()] + url[match.end() :], _plain(match)


_kept_split = lru_cache(maxsize=20_000)(_split)


def said_versions(url: str, said: str) -> tuple[str, ...]:
    """The versions that a page states, separated by commas; none if its address has another version than the current one."""
    if split_version(url)[1] not in CURRENT:
        return ()
    versions = (plain_version(part.strip()) for part in said.split(","))
    return tuple(dict.fromkeys(version for version in versions if _SAID.fullmatch(version)))


def page_versions(url: str, said: Sequence[str]) -> Sequence[str]:
    """The versions of the page at this address: those that it `said`, else the one in its address; empty without any."""
    return said or [version for version in (split_version(url)[1],) if version]


def plain_version(version: str) -> str:
    """The version in lower case and without the "v" before a number: "V1.2" becomes "1.2"."""
    return re.sub(r"^v(?=\d)", "", version.lower())


def named_versions(question: str) -> tuple[str, ...]:
    """The version numbers in a question, such as "1.28" or "v2"."""
    return tuple(dict.fromkeys(_plain(match) for match in _NAMED.finditer(question)))


def newness(version: str, asked: Iterable[str] = (), said: Iterable[str] = ()) -> tuple[bool, int, tuple[int, ...]]:
    """A sort key for versions of a page, best last: unreleased, released by number, current, and those asked for.

    `version` is that of the address. Versions that the page `said` matter only if they are asked for.
    """
    own = (version, *said)
    wanted = any(_same(known, version_asked) for version_asked in asked for known in own)
    rank = 2 if version in CURRENT else 0 if version in UNRELEASED else 1
    return wanted, rank, tuple(int(part) for part in version.split(".") if part.isdigit())


def _plain(found: re.Match[str]) -> str:
    parts = found.groupdict()
    return (parts["number"] or parts["major"] or parts.get("name") or "").lower()


def _same(version: str, asked: str) -> bool:
    short, long = sorted((version.removesuffix(".x"), asked), key=len)
    return bool(short) and (long == short or long.startswith(f"{short}."))
