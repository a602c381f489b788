"""What a search may return, and how two such limits become one; what has nothing in common finds nothing."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from app.core.versions import plain_version


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search may return; an empty field doesn't restrict, and what is named in one field is joined by "or".

    `url_prefixes` are whole-string prefixes, as of a site; `sections` are paths on any site ("/docs/platform", with all
    below it); `versions` are parts of the path ("1.2" is /1.2/ and /v1.2/ too), or what the page says of itself.
    """

    collections: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    url_prefixes: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def section_pattern(self) -> str:
        """What sections ask of an address: an expression of RE2 and Python, to be found in it; empty for nothing."""
        # a path begins after the site's name, whatever that is
        if not self.sections or not all(section.strip("/") for section in self.sections):
            return ""
        return _in_path("", [section.strip("/") for section in self.sections], "($|[/.?])")

    @property
    def version_pattern(self) -> str:
        """The same of versions; a page that says one of `said_versions` needn't have it in its address."""
        return _in_path("(.*/)?v?", self.versions, "($|/)") if self.versions else ""

    @property
    def said_versions(self) -> tuple[str, ...]:
        """The versions as pages are indexed with those that they say."""
        return tuple(dict.fromkeys(map(plain_version, self.versions)))

    def admits(self, url: str, collection: str, languages: Collection[str], versions: Collection[str] = ()) -> bool:
        """Whether a search could return something of the page at this address with texts in these languages.

        `versions` are those that the page says.
        """
        return (
            (not self.collections or collection in self.collections)
            and (not self.languages or not set(self.languages).isdisjoint(languages))
            and (not self.url_prefixes or url.startswith(self.url_prefixes))
            and bool(re.search(self.section_pattern, url))
            and (bool(re.search(self.version_pattern, url)) or not set(self.said_versions).isdisjoint(versions))
        )

    def within(self, collections: tuple[str, ...]) -> Filters:
        """The same, never reaching beyond these collections; where both have none in common, nothing is found."""
        return self.narrowed(Filters(collections=collections))

    def narrowed(self, limits: Filters) -> Filters:
        """The same, never reaching beyond `limits` in any field; what they have nothing of in common finds nothing."""
        return Filters(
            collections=_common(self.collections, limits.collections),
            languages=_common(self.languages, limits.languages),
            url_prefixes=_common(self.url_prefixes, limits.url_prefixes, _nested),
            sections=_common(_paths(self.sections), _paths(limits.sections), _nested),
            versions=_common(self.versions, limits.versions, _same_version),
        )


NOTHING = (" ",)
"""Restricts to nothing, since no page has such a name or address; an empty tuple wouldn't restrict at all."""


def _in_path(before: str, values: Collection[str], after: str) -> str:
    return f"^[^/]+//[^/]+/{before}({'|'.join(map(re.escape, values))}){after}"


def _paths(sections: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"/{section.strip('/')}/" if section.strip("/") else "/" for section in sections)


def _common(
    asked: tuple[str, ...], allowed: tuple[str, ...], fits: Callable[[str, str], bool] = operator.eq
) -> tuple[str, ...]:
    """The narrower one of each two that fit together."""
    if not allowed or not asked:
        return asked or allowed
    both = [max(one, other, key=len) for other in allowed for one in asked if fits(one, other)]
    return tuple(dict.fromkeys(both)) or NOTHING


def _nested(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _same_version(one: str, other: str) -> bool:
    return one.removeprefix("v") == other.removeprefix("v")
