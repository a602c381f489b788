"""How a site's addresses tell their language: a folder, an ending, a part of the host or a parameter, learnt from them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit

from app.core.types import Page
from app.core.versions import split_version
from ingestion.language_tags import primary_language

Kind = Literal["folder", "ending", "host", "parameter"]

FORMS: Mapping[Kind, str] = MappingProxyType(
    {"folder": "/{lang}/", "ending": ".{lang}", "host": "{lang}.", "parameter": "?{name}={lang}"}
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
    """Where in an address a token stands; `place` is what comes before it, the same for all pages of a site's part."""

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
    for found in filter(None, (ending.search(parts.path) for ending in _ENDINGS)):
        path = parts.path[: found.start()] + found["rest"]
        yield Reading(Spot("ending", found["rest"], parts.netloc), found["token"], _plain(parts, path=path))
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
    """Those that the addresses follow, the one with most pages first; of a `form` only where one is given."""
    at: dict[Spot, list[tuple[Reading, Page]]] = defaultdict(list)
    hosts: dict[str, list[tuple[str, Page]]] = defaultdict(list)
    for page in pages:
        url = split_version(page.url)[0]
        parts = urlsplit(url)
        hosts[parts.netloc].append((_plain(parts), page))
        for reading in readings(url):
            if _TOKEN.fullmatch(reading.token) and form in ("", reading.spot.form):
                at[reading.spot].append((reading, page))
    telling = {
        spot: read for spot, read in at.items() if len({page.language for _, page in read}) > 1 or _has_code(read)
    }
    learnt = [_pattern(spot, read, _within(spot, hosts)) for spot, read in telling.items()]
    return sorted((one for one in learnt if one), key=lambda pattern: (-len(pattern.pages), pattern.spot))


def _within(spot: Spot, hosts: Mapping[str, Sequence[tuple[str, Page]]]) -> list[tuple[str, Page]]:
    """The pages at the place of the spot, with a token there or without."""
    host = spot.place.partition("/")[0]
    return [(plain, page) for plain, page in hosts.get(host, ()) if f"{plain}/".startswith(f"//{spot.place}")]


def _pattern(spot: Spot, read: Sequence[tuple[Reading, Page]], within: Sequence[tuple[str, Page]]) -> Pattern | None:
    """What the tokens at this spot tell; None if they don't tell two languages.

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
    """The languages that tokens belong to."""
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


def _has_code(read: Sequence[tuple[Reading, Page]]) -> bool:
    return any(primary_language(reading.token) == page.language for reading, page in read)
