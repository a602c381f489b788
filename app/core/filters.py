"""Limits of what a search may return, and their intersection."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass

from app.core.generation import plain_version


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits of what a search may return. An empty field sets no limit; the values of one field are alternatives.

    `url_prefixes` are beginnings of addresses; `sections` are paths on any site with everything below them, such as
    "/docs/platform"; `versions` are parts of the path ("1.2" matches /1.2/ and /v1.2/), or stated by the page.
    """

    collections: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    url_prefixes: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    @property
    def section_pattern(self) -> str:
        """A regular expression for RE2 and Python that matches addresses in the sections; empty without a limit."""
        # the path begins after the name of the site
        if not self.sections or not all(section.strip("/") for section in self.sections):
            return ""
        return _in_path("", [section.strip("/") for section in self.sections], "($|[/.?])")

    @property
    def version_pattern(self) -> str:
        """The same for versions. A page that states one of `said_versions` needn't have it in its address."""
        return _in_path("(.*/)?v?", self.versions, "($|/)") if self.versions else ""

    @property
    def said_versions(self) -> tuple[str, ...]:
        """The versions in the form in which the index has those that pages state."""
        return tuple(dict.fromkeys(map(plain_version, self.versions)))

    def admits(self, url: str, collection: str, languages: Collection[str], versions: Collection[str] = ()) -> bool:
        """True if a search could return a chunk of the page at this address, with chunks in these languages.

        `versions` are those that the page states.
        """
        return (
            (not self.collections or collection in self.collections)
            and (not self.languages or not set(self.languages).isdisjoint(languages))
            and (not self.url_prefixes or url.startswith(self.url_prefixes))
            and bool(re.search(self.section_pattern, url))
            and (bool(re.search(self.version_pattern, url)) or not set(self.said_versions).isdisjoint(versions))
        )

    def within(self, collections: tuple[str, ...]) -> Filters:
        """Returns the filters limited to the collections."""
        return self.narrowed(Filters(collections=collections))

    def narrowed(self, limits: Filters) -> Filters:
        """The intersection of these filters and `limits`. If they have nothing in common in a field, nothing is found."""
        return Filters(
            collections=_common(self.collections, limits.collections),
            languages=_common(self.languages, limits.languages),
            url_prefixes=_common(self.url_prefixes, limits.url_prefixes, _nested),
            sections=_common(_paths(self.sections), _paths(limits.sections), _nested),
            versions=_common(self.versions, limits.versions, _same_version),
        )


NOTHING = (" ",)
"""Matches no page, because no name or address is a space; an empty tuple would match every page."""


def _in_path(before: str, values: Collection[str], after: str) -> str:
    return f"^[^/]+//[^/]+/{before}({'|'.join(map(re.escape, values))}){after}"


def _paths(sections: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"/{section.strip('/')}/" if section.strip("/") else "/" for section in sections)


def _common(
    asked: tuple[str, ...], allowed: tuple[str, ...], fits: Callable[[str, str], bool] = operator.eq
) -> tuple[str, ...]:
    """The narrower value of each pair that fits."""
    if not allowed or not asked:
        return asked or allowed
    both = [max(wanted, other, key=len) for other in allowed for wanted in asked if fits(wanted, other)]
    return tuple(dict.fromkeys(both)) or NOTHING


def _nested(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def _same_version(one: str, other: str) -> bool:
    return one.removeprefix("v") == other.removeprefix("v")
