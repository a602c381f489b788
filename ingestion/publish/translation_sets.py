"""Finds the pages that are translations of each other: by hreflang, or by their addresses where their content agrees."""

import asyncio
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from app.core.generation import split_version
from app.core.settings import Settings
from app.core.types import Page
from app.index.protocols import Draft
from app.text.marks import KEPT, hashed
from ingestion.crawl.language_tags import primary_language
from ingestion.report import TranslationPairs, TranslationReport
from ingestion.sources import NO_TRANSLATIONS, translations_of

Kind = Literal["folder", "ending", "host", "site", "parameter"]

FORMS: Mapping[Kind, str] = MappingProxyType(
    {
        "folder": "/{lang}/",
        "ending": ".{lang}",
        "host": "{lang}.",
        "site": "//{lang}/",
        "parameter": "?{name}={lang}",
    }
)

DEEPEST = 4  # folders from the top that may tell a language
PURE, COVERING = 0.75, 0.5
"""Shares of pages: a token belongs to a language if so many of its pages are in it; one that is no language's code also
needs so many of the language's pages."""
FEWEST = 3  # pages that a token needs which is no language's code

_TOKEN = re.compile(r"[A-Za-z]{2,12}(?:[-_][A-Za-z]{2,4})?")
_ENDINGS = (
    re.compile(r"[._-](?P<token>[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)(?P<rest>)$"),
    re.compile(r"[._-](?P<token>[A-Za-z]{2,3}(?:[-_][A-Za-z]{2,4})?)(?P<rest>\.[A-Za-z]{2,5})$"),
)


class Spot(NamedTuple):
    """The spot of a token in an address; `place` is what comes before it, the same for all pages of a site's part."""

    kind: Kind
    at: str
    place: str

    @property
    def form(self) -> str:
        """As the operator writes it."""
        return FORMS[self.kind].replace("{name}", self.at)


class Reading(NamedTuple):
    """An address read as if the token at a spot told its language; `rest` is the address without it."""

    spot: Spot
    token: str
    rest: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """The languages that tokens at a spot tell, and the pages there by the rest of their address."""

    spot: Spot
    tokens: Mapping[str, str]
    pages: Sequence[tuple[str, Page]]

    @property
    def home(self) -> str:
        """The rest of the address of a language's first page."""
        return f"//{self.spot.place}".rstrip("/")


def readings(url: str) -> Iterator[Reading]:
    """All ways to read the address."""
    parts = urlsplit(url)
    yield from _hosts(parts)
    yield from _folders(parts)
    for match in filter(None, (ending.search(parts.path) for ending in _ENDINGS)):
        path = parts.path[: match.start()] + match["rest"]
        yield Reading(Spot("ending", match["rest"], parts.netloc), match["token"], _plain(parts, path=path))
    pairs = [pair for pair in parts.query.split("&") if pair]
    for pair in pairs:
        name, _, value = pair.partition("=")
        others = "&".join(other for other in pairs if other is not pair)
        yield Reading(Spot("parameter", name, parts.netloc), value, _plain(parts, query=others))


def _hosts(parts: SplitResult) -> Iterator[Reading]:
    labels = parts.netloc.split(".")
    for number, label in enumerate(labels[:-1]):
        host = ".".join(labels[:number] + labels[number + 1 :])
        yield Reading(Spot("host", str(number), host), label, _plain(parts, netloc=host))
    yield Reading(Spot("site", "", ""), parts.netloc, _plain(parts, netloc=""))


def _folders(parts: SplitResult) -> Iterator[Reading]:
    segments = parts.path.split("/")
    for number, segment in enumerate(segments[1 : DEEPEST + 1], start=1):
        before = "/".join(segments[:number]) + "/"
        path = before + "/".join(segments[number + 1 :])
        yield Reading(Spot("folder", str(number), f"{parts.netloc}{before}"), segment, _plain(parts, path=path))


def _plain(parts: SplitResult, **changed: str) -> str:
    changed.setdefault("path", parts.path)
    return parts._replace(scheme="", fragment="", **{**changed, "path": changed["path"].rstrip("/")}).geturl()


def patterns(pages: Sequence[Page], form: str = "") -> list[Pattern]:
    """Returns the patterns that the addresses follow, the one with most pages first; of a `form` only where one is given."""
    at: dict[Spot, list[tuple[Reading, Page]]] = defaultdict(list)
    hosts: dict[str, list[tuple[str, Page]]] = defaultdict(list)
    for page in pages:
        url = split_version(page.url)[0]
        parts = urlsplit(url)
        hosts[parts.netloc].append((_plain(parts), page))
        for reading in readings(url):
            is_token = reading.spot.kind == "site" or _TOKEN.fullmatch(reading.token)
            if is_token and form in ("", reading.spot.form):
                at[reading.spot].append((reading, page))
    learnt = [
        _pattern(spot, read, _within(spot, hosts))
        for spot, read in at.items()
        if len({page.language for _, page in read}) > 1
        or any(primary_language(reading.token) == page.language for reading, page in read)
    ]
    return sorted((pattern for pattern in learnt if pattern), key=lambda pattern: (-len(pattern.pages), pattern.spot))


def _within(spot: Spot, hosts: Mapping[str, Sequence[tuple[str, Page]]]) -> list[tuple[str, Page]]:
    """The pages at the place of the spot, with a token there or without."""
    host = spot.place.partition("/")[0]
    return [(plain, page) for plain, page in hosts.get(host, ()) if f"{plain}/".startswith(f"//{spot.place}")]


def _pattern(spot: Spot, read: Sequence[tuple[Reading, Page]], within: Sequence[tuple[str, Page]]) -> Pattern | None:
    """Returns what the tokens at this spot tell; None if they don't tell two languages.

    Pages without a token are in the language that no token tells: usually the one that the site was written in.
    """
    language_of = {page.url: page.language for _, page in (*read, *within)}
    tokens = _tokens(read, Counter(language_of.values()))
    told = [(reading.rest, page) for reading, page in read if reading.token in tokens]
    having = {page.url for _, page in told}
    without = [(plain, page) for plain, page in within if page.url not in having]
    default = Counter(page.language for _, page in without).most_common(1)
    if tokens and default and default[0][0] not in tokens.values():
        return Pattern(spot, tokens, [*told, *without])
    return Pattern(spot, tokens, told) if len(set(tokens.values())) > 1 else None


def _tokens(read: Sequence[tuple[Reading, Page]], pages: Mapping[str, int]) -> dict[str, str]:
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for reading, page in read:
        counted[reading.token][page.language] += 1
    codes: dict[str, str] = {}
    words: dict[str, str] = {}
    for token, languages in counted.items():
        ((language, count),) = languages.most_common(1)
        if count < PURE * languages.total():
            continue
        if primary_language(token) == language:
            codes[token] = language
        elif count >= FEWEST and count >= COVERING * pages[language]:
            words[token] = language
    return codes or words


SOME_WEIGHT, SOME_SHARE = 2.0, 0.2
"""The least that two pages have in common whose addresses say already that they belong together."""

ENOUGH, HARDLY = 5.0, 0.05
"""Marks on both pages, by weight, from which on it says something that they have hardly one in common."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """Measure of what two pages share: its `weight`, its `share` (0..1) of all, and the weight of the lesser page."""

    weight: float
    share: float
    least: float

    @property
    def fits(self) -> bool:
        """True if it proves what the addresses say."""
        return self.weight >= SOME_WEIGHT and self.share >= SOME_SHARE

    @property
    def contradicts(self) -> bool:
        """True if it disproves what the site declares."""
        return self.least >= ENOUGH and self.share < HARDLY


class Proof:
    """Compares pages by their fingerprints. A mark weighs the less the more pages of a language have it."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self._marks = {page.url: hashed(page.fingerprint) for page in pages}
        self._last = {url: max(marks) if len(marks) >= KEPT else math.inf for url, marks in self._marks.items()}
        self._pages = Counter(page.language for page in pages)
        self._with: dict[str, Counter[int]] = defaultdict(Counter)
        for page in pages:
            self._with[page.language].update(self._marks[page.url])

    def likeness(self, one: Page, other: Page) -> Likeness:
        """Compares two pages. Of long ones, only the marks below the last that both have kept are compared."""
        last = min(self._last[one.url], self._last[other.url])
        first, second = ({mark for mark in self._marks[page.url] if mark <= last} for page in (one, other))
        weight = sum(
            min(self._rarity(mark, one.language), self._rarity(mark, other.language)) for mark in first & second
        )
        whole = sum(self._rarity(mark, one.language) for mark in first)
        other_whole = sum(self._rarity(mark, other.language) for mark in second)
        root = math.sqrt(whole * other_whole)
        return Likeness(weight, weight / root if root else 0.0, min(whole, other_whole))

    def _rarity(self, mark: int, language: str) -> float:
        return math.log((self._pages[language] + 1) / (self._with[language][mark] or 1))


Origin = Literal["hreflang", "address"]
TRUSTED = 0.5  # of the pairs that addresses make and whose content says anything: so many must be right


class Pair(NamedTuple):
    """Two pages that are translations of each other, and the evidence: the site itself, or their addresses and content."""

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


def translation_sets(pages: Iterable[Page], default_language: str) -> Found:
    """Finds pages that are translations of each other: of one collection and one version, each in another language.

    The id of a set is the address of its page in the default language, else of the first one.
    """
    taking_part: dict[tuple[str, str], list[Page]] = defaultdict(list)
    for page in pages:
        if (rule := translations_of(page.fetch.reading)) != NO_TRANSLATIONS:
            taking_part[page.collection, rule].append(page)
    joined = _Joined()
    pairs: dict[frozenset[str], Pair] = {}
    for (_, rule), group in sorted(taking_part.items()):
        if len({page.language for page in group}) > 1:
            for pair in _pairs(group, rule):
                if joined.add(pair):
                    pairs.setdefault(frozenset((pair.one.url, pair.other.url)), pair)
    ids: dict[str, str] = {}
    for of_languages in joined.groups():
        urls = {language: page.url for language, page in of_languages.items()}
        ids |= dict.fromkeys(urls.values(), urls.get(default_language) or min(urls.values()))
    return Found(ids, tuple(pairs.values()))


def _version(page: Page) -> tuple[str, tuple[str, ...]]:
    return split_version(page.url)[1], page.versions


class _Joined:
    """Pages joined pair by pair, the surest first; a set has one page of a language."""

    def __init__(self) -> None:
        self._group_of: dict[str, dict[str, Page]] = {}

    def add(self, pair: Pair) -> bool:
        """Join the two and what each is joined with; False where that would make two pages of one language."""
        first, other = (self._group_of.get(page.url, {page.language: page}) for page in pair[:2])
        if first is other:
            return True
        if not first.keys().isdisjoint(other):
            return False
        whole = first | other
        for page in whole.values():
            self._group_of[page.url] = whole
        return True

    def groups(self) -> Iterator[Mapping[str, Page]]:
        yield from {id(group): group for group in self._group_of.values()}.values()


def _pairs(pages: Sequence[Page], rule: str) -> list[Pair]:
    proof = Proof(pages)
    pairs = list(_declared(pages, proof))
    for pattern in patterns(pages, rule):
        pairs += _by_address(pattern, proof, said=bool(rule))
    return pairs


def _declared(pages: Sequence[Page], proof: Proof) -> Iterator[Pair]:
    """Yields pairs that the site declares: on both pages, or on one of them where nothing speaks against it."""
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
        (rest, first, other, proof.likeness(first, other))
        for (rest, _), versions in same.items()
        for first, other in combinations(versions.values(), 2)
    ]
    telling = [likeness.fits for *_, likeness in pairs if likeness.least >= ENOUGH]
    trusted = said or sum(telling) >= TRUSTED * len(telling)
    for rest, first, other, likeness in pairs:
        # the same name may mean different things in each language, but the home page is the home page
        named = trusted or rest == pattern.home
        if named and (likeness.fits or (said and not likeness.contradicts)):
            yield Pair(first, other, "address", pattern.spot.form, likeness.share)


SAMPLE = 3


async def assign_translation_sets(draft: Draft, settings: Settings) -> TranslationReport:
    """Change the draft's pages where their set is another one, and count what was found."""
    states = await draft.page_states()
    sets = Found({}, ())
    if len({page.language for page in states.values()}) > 1:
        sets = await asyncio.to_thread(translation_sets, list(states.values()), settings.default_language)
    await draft.touch(
        [
            replace(page, derived=replace(page.derived, translation_set=sets.of.get(url, "")))
            for url, page in states.items()
            if page.derived.translation_set != sets.of.get(url, "")
        ]
    )
    return _report(sets)


def _report(found: Found) -> TranslationReport:
    by_origin: Mapping[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in found.pairs:
        by_origin[pair.origin, pair.form].append(pair)
    translations = tuple(
        TranslationPairs(origin, form, len(pairs), tuple((pair.one.url, pair.other.url) for pair in pairs[:SAMPLE]))
        for (origin, form), pairs in by_origin.items()
    )
    return TranslationReport(len(set(found.of.values())), len(found.of), translations)
