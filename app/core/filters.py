"""What a search may return, and how two such limits become one; what has nothing in common finds nothing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search may return; an empty field doesn't restrict, and what is named in one field is joined by "or".

    `url_prefixes` are whole-string prefixes, as of a site; `sections` are paths on any site ("/docs/platform", with all
    below it); `versions` are parts of the path ("1.2" is /1.2/ and /v1.2/ too).
    """

    collections: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    url_prefixes: tuple[str, ...] = ()
    sections: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()

    def within(self, collections: tuple[str, ...]) -> Filters:
        """The same, never reaching beyond these collections; where both have none in common, nothing is found."""
        return self.narrowed(Filters(collections=collections))

    def narrowed(self, limits: Filters) -> Filters:
        """The same, never reaching beyond `limits` in any field; what they have nothing of in common finds nothing."""
        return Filters(
            collections=_common(self.collections, limits.collections),
            languages=_common(self.languages, limits.languages),
            url_prefixes=_overlap(self.url_prefixes, limits.url_prefixes),
            sections=_overlap(_paths(self.sections), _paths(limits.sections)),
            versions=_common(self.versions, limits.versions),
        )


NOTHING = (" ",)
"""Restricts to nothing, since no page has such a name or address; an empty tuple wouldn't restrict at all."""


def _common(asked: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
    if not allowed or not asked:
        return asked or allowed
    return tuple(name for name in allowed if name in asked) or NOTHING


def _paths(sections: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"/{section.strip('/')}/" if section.strip("/") else "/" for section in sections)


def _overlap(asked: tuple[str, ...], allowed: tuple[str, ...]) -> tuple[str, ...]:
    if not allowed or not asked:
        return asked or allowed
    both = [max(one, other, key=len) for one in asked for other in allowed if _nested(one, other)]
    return tuple(dict.fromkeys(both)) or NOTHING


def _nested(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
