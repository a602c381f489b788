"""The pages of an index -> sets of translations, each pair with its evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

from app.core.types import Page
from app.core.versions import split_version
from ingestion.source_fields import NO_TRANSLATIONS
from ingestion.translation_sets.patterns import Pattern, patterns
from ingestion.translation_sets.proof import ENOUGH, Proof

Origin = Literal["hreflang", "address", "content"]
TRUSTED = 0.5  # of the pairs that addresses make and whose content says anything: so many must be right


class Pair(NamedTuple):
    """Two pages that are translations of each other, and the evidence: the site itself, their addresses, or their content alone."""

    one: Page
    other: Page
    origin: Origin
    form: str = ""
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Found:
    """The id of the set of each translated page, by address, and the pairs that it consists of."""

    of: Mapping[str, str]
    pairs: Sequence[Pair]


def translation_sets(pages: Iterable[Page], default_language: str, rule_of: Callable[[Page], str]) -> Found:
    """Which pages are translations of each other: of one collection and one version, each in another language.

    `rule_of` gives what the operator says of a page's source: a form of addresses, `NO_TRANSLATIONS`, or nothing. The id of a set is
    the address of its page in the default language, else of the first one.
    """
    taking_part: dict[tuple[str, str], list[Page]] = defaultdict(list)
    for page in pages:
        if (rule := rule_of(page)) != NO_TRANSLATIONS:
            taking_part[page.collection, rule].append(page)
    joined = _Joined()
    kept: dict[frozenset[str], Pair] = {}
    for (_, rule), group in sorted(taking_part.items()):
        if len({page.language for page in group}) > 1:
            for pair in _pairs(group, rule):
                if joined.add(pair):
                    kept.setdefault(frozenset((pair.one.url, pair.other.url)), pair)
    ids = {page.url: _id(group, default_language) for group in joined.groups() for page in group.values()}
    return Found(ids, tuple(kept.values()))


def _version(page: Page) -> tuple[str, tuple[str, ...]]:
    return split_version(page.url)[1], page.versions


def _id(group: Mapping[str, Page], default_language: str) -> str:
    first = group.get(default_language)
    return first.url if first else min(page.url for page in group.values())


class _Joined:
    """Pages joined pair by pair, the surest first; a set has one page of a language."""

    def __init__(self) -> None:
        self._group_of: dict[str, dict[str, Page]] = {}

    def add(self, pair: Pair) -> bool:
        """Join the two and what each is joined with; False where that would make two pages of one language."""
        one, other = (self._group_of.get(page.url, {page.language: page}) for page in pair[:2])
        if one is other:
            return True
        if not one.keys().isdisjoint(other):
            return False
        whole = one | other
        for page in whole.values():
            self._group_of[page.url] = whole
        return True

    def groups(self) -> Iterator[Mapping[str, Page]]:
        """The pages of each set by language."""
        yield from {id(group): group for group in self._group_of.values()}.values()


def _pairs(pages: Sequence[Page], rule: str) -> list[Pair]:
    """Of one collection, the surest first."""
    proof = Proof(pages)
    found = list(_declared(pages, proof))
    for pattern in patterns(pages, rule):
        found += _by_address(pattern, proof, said=bool(rule))
        found += _by_content(pattern, proof, found)
    return found


def _declared(pages: Sequence[Page], proof: Proof) -> Iterator[Pair]:
    """What the site says: both pages of each other, or one of them where nothing speaks against it."""
    by_address = {page.url.rstrip("/"): page for page in pages}
    named = {page.url: _named(page, by_address) for page in pages}
    naming: dict[tuple[str, str], int] = defaultdict(int)  # how many pages of a language name one
    for page in pages:
        for other in named[page.url].values():
            naming[page.language, other.url] += 1
    one_sided: list[Pair] = []
    for page in pages:
        for other in named[page.url].values():
            back = named[other.url].get(page.language)
            if back is page and page.url < other.url:
                yield Pair(page, other, "hreflang")
            elif back is None and naming[page.language, other.url] == 1:
                one_sided.append(Pair(page, other, "hreflang"))
    yield from (pair for pair in one_sided if not proof.likeness(*pair[:2]).contradicts)


def _named(page: Page, by_address: Mapping[str, Page]) -> dict[str, Page]:
    """The pages that a page names as its versions, by their languages.

    Of regional variants (en-US, en-GB) it is the one for everybody: that of x-default, else that of the plain language.
    """
    everybody = page.alternates.get("x-default", "")
    codes = sorted(page.alternates, key=lambda code: (page.alternates[code] == everybody, "-" not in code))
    named = [by_address.get(page.alternates[code].rstrip("/")) for code in codes if code != "x-default"]
    return {
        other.language: other
        for other in named
        if other and other.language != page.language and _version(other) == _version(page)
    }


def _by_address(pattern: Pattern, proof: Proof, *, said: bool) -> Iterator[Pair]:
    """Pages whose addresses are the same but for the language; where the operator `said` so, unless they contradict."""
    same: dict[tuple[str, tuple[str, tuple[str, ...]]], dict[str, Page]] = defaultdict(dict)
    for rest, page in pattern.pages:
        same[rest, _version(page)].setdefault(page.language, page)
    pairs = [
        (rest, one, other, proof.likeness(one, other))
        for (rest, _), versions in same.items()
        for one, other in combinations(versions.values(), 2)
    ]
    telling = [likeness.fits for *_, likeness in pairs if likeness.least >= ENOUGH]
    trusted = said or sum(telling) >= TRUSTED * len(telling)
    for rest, one, other, likeness in pairs:
        # the same name may mean different things in each language, but the home page is the home page
        named = trusted or rest == pattern.home
        if named and (likeness.fits or (said and not likeness.contradicts)):
            yield Pair(one, other, "address", pattern.spot.form, likeness.share)


def _by_content(pattern: Pattern, proof: Proof, found: Sequence[Pair]) -> list[Pair]:
    """Pages with translated addresses, without those `found`: of the same part of the site, and alike as no other."""
    has = {(page.url, other.language) for pair in found for page, other in (pair[:2], pair[1::-1])}
    left: dict[tuple[str, tuple[str, ...]], dict[str, list[Page]]] = defaultdict(lambda: defaultdict(list))
    for _, page in pattern.pages:
        left[_version(page)][page.language].append(page)
    matches: list[Pair] = []
    for languages in left.values():
        for one, other in combinations(sorted(languages), 2):
            pages = [page for page in languages[one] if (page.url, other) not in has]
            others = [page for page in languages[other] if (page.url, one) not in has]
            matches += (
                Pair(page, match, "content", pattern.spot.form, like.share)
                for page, match, like in proof.matches(pages, others)
            )
    return sorted(matches, key=lambda pair: (-pair.share, pair.one.url))
