"""Addresses that an answer may have, and the record of what was removed from a model's text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from html import unescape
from urllib.parse import quote, unquote

from app.citing.citations import Citations
from app.citing.markdown import Reading, Span
from app.core.turn import Removal, RemovalKind
from app.core.types import Chunk
from app.text.analysis import normalized
from app.text.plain import named, plain_title

_CHARACTERS = r"[^\s<>\"'`|\\^{}\[\]\u2018-\u201f«»]{1,2000}"
ADDRESS = re.compile(rf"(?:https?://|(?<![^\W_])(?:ftps?://|www\.)){_CHARACTERS}", re.IGNORECASE)
_ALL = re.compile(rf"(?=({ADDRESS.pattern}|mailto:{_CHARACTERS}))", re.IGNORECASE)
_NEXT = re.compile(r"[,;(](?=(?:https?|ftps?)://)", re.IGNORECASE)
_PARENTHESIS = re.compile(r"[()]")
_TRAILING = ".,;:!?*_…"
_PLACEHOLDER = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|(?:[\w-]+\.)*example\.(?:com|org|net)|\$\w+)(?::\d*)?(?=[/?#]|\Z)(?!.*(?://|www\.))",
    re.IGNORECASE,
)
_HOST = re.compile(r"https?://([\w.-]+)(?::\d+)?(?=[/?#]|\Z)", re.IGNORECASE)


class Addresses:
    """The addresses in texts, and placeholders such as localhost. Images may come from the hosts of `pages` only."""

    def __init__(self, texts: Iterable[str], pages: Iterable[str] = ()) -> None:
        self._texts, self._pages = tuple(texts), tuple(pages)

    @cached_property
    def _known(self) -> frozenset[str]:  # most answers have no addresses to check
        return frozenset(_plain(address_in(match)) for text in self._texts for match in _ALL.findall(text))

    def __contains__(self, address: str) -> bool:
        """True if an answer may link to the address."""
        return self._knows(address) or bool(_PLACEHOLDER.match(address))

    def _knows(self, address: str) -> bool:
        plain = _plain(address)
        whole = [plain, f"https://{plain}", f"http://{plain}"] if plain.startswith("www.") else [plain]
        return any(address in self._known for address in whole)

    def shows(self, address: str) -> bool:
        """True if clients may load an image from the address."""
        return host_of(address) in {host_of(page) for page in self._pages} - {""} and self._knows(address)


def host_of(address: str) -> str:
    """The host of a web address in lower case; empty if browsers could read another one."""
    match = _HOST.match(address)
    return match[1].lower() if match else ""


def address_in(run: str) -> str:
    """The address without what follows it in a sentence or list: punctuation, a closing parenthesis, another address."""
    if following := _NEXT.search(run):
        run = run[: following.start()]
    depth = 0
    for match in _PARENTHESIS.finditer(run):
        depth += 1 if match[0] == "(" else -1
        if depth < 0:
            run = run[: match.start()]
            break
    return run.rstrip(_TRAILING)


def _plain(address: str) -> str:
    """The address for comparisons: decoded, without fragment and last slash."""
    read = normalized("NFC", unquote(unescape(address)))
    return read.partition("#")[0].rstrip("/").casefold()


def markdown_link(name: str, url: str) -> str:
    """A Markdown link; no sign in the name or address can break it."""
    return f"[{escaped(name)}]({quote(url, safe=_SAFE)})"


def escaped(name: str) -> str:
    """Plain text as Markdown on one line, with all signs escaped."""
    return _SIGN.sub(r"\\\g<0>", " ".join(name.split()))


def untagged(name: str) -> str:
    """Plain text without HTML tags: their angle brackets become single quotation marks."""
    return _TAG.sub(lambda found: found[0].translate(_ANGLES), plain_title(name))


def page_title(chunk: Chunk) -> str:
    """The title of the page of a chunk, as plain text; the words of its address if the title says nothing."""
    tops = {section.path[0] for section in chunk.sections if section.path}
    return untagged(named(chunk.title, chunk.url, tuple(tops) if len(tops) == 1 else ()))


_SIGN = re.compile(
    r"[\\`\[\]<|*]|&(?=#|\w+;)|!(?=\[)|_(?=\W|\Z)|(?<!\w)_|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.", re.IGNORECASE
)
_ANGLES = {ord("<"): 0x2039, ord(">"): 0x203A}
_TAG = re.compile(r"<(?=[a-z/!?])[^<>]*>?", re.IGNORECASE)
_SAFE = "%/:=&?~#+!$,;'@*"  # signs that Markdown and browsers don't change; brackets and spaces are encoded


UNKNOWN = "no passage has this address"
_NO_LINK = "clients could read this link in different ways"
_OWN_LINK = "the citation in front of it gets our link"
_PICTURE = "pictures are shown from the documentation's own hosts alone"
_AS_TEXT = "shown as text: only plain tags within a line, such as <br>, may stay"
_ENTITY = "shown as text: it could be a part of an address"
_CELL = "the table has no column for it"
_NEUTRAL = "shown with all its signs: clients could read its Markdown in different ways"
_SOURCES = "the list of sources is made from the citations"
_TAG_BEGIN = re.compile(r"<[^<>\s]*")
_AROUND = " \t\n()<>\"'="


class Removals:
    """Appends removals to `removed`, which the turn shares."""

    def __init__(self, removed: list[Removal], addresses: Addresses, citations: Citations) -> None:
        self._removed, self._addresses, self._citations = removed, addresses, citations

    @property
    def count(self) -> int:
        """The number of removals so far."""
        return len(self._removed)

    def edits(self, text: str, edits: Iterable[tuple[int, int, str]], reading: Reading | None = None) -> None:
        """Records what sorted edits remove from the text. Escaped signs aren't removals."""
        spans = reading.spans if reading else ()
        begun = {span.start: span for span in spans if span.kind not in {"backticks", "escape"}}
        ends = {span.inner[1]: span for span in spans if span.kind in {"link", "image"}}
        done = 0
        for start, end, written in edits:
            if start < done or start in ends:
                continue  # within another removal, or the second half of a link's
            done = end
            if span := begun.get(start):
                self._span(text, span)
            elif span := ends.get(start - 1):
                self._add("address", span.target, _OWN_LINK)
            elif reading and (start, end) in reading.surplus:
                self._add("table cell", text[start:end].strip(), _CELL)
            elif address := text[start:end].strip(_AROUND) if end - start > len(written) else "":
                self._add("address", address, UNKNOWN)
            elif start == end and (match := _TAG_BEGIN.match(text, start)):
                self._add("html", match[0], _AS_TEXT)

    def _span(self, text: str, span: Span) -> None:
        written, led = text[span.start : span.end], f"{span.target} {span.title}".strip()
        if span.kind == "image":
            known = span.target in self._addresses
            shown = self._addresses.shows(span.target)
            self._add("image", led, _NO_LINK if shown else _PICTURE if known else UNKNOWN)
        elif span.kind == "link":
            self._add("address", led, _NO_LINK if span.target in self._addresses else UNKNOWN)
        elif span.kind == "autolink":
            self._add("address", written.strip("<>"), UNKNOWN)
        else:
            self._add("html", written, _ENTITY if span.kind == "entity" else _AS_TEXT)

    def citations(self, brackets: Iterable[str]) -> None:
        """Records the citations that have a number without a passage."""
        for bracket in brackets:
            if invented := self._citations.invented(bracket.strip("[]【】")):
                numbers = ", ".join(map(str, invented))
                self._add("citation", bracket, f"there is no passage {numbers} among {len(self._citations.pages)}")

    def tag(self, tag: str) -> None:
        """Records a tag that is shown as text."""
        self._add("html", tag, _AS_TEXT)

    def source_list(self, text: str) -> None:
        """Records the model's own list of sources."""
        self._add("source list", text.strip(), _SOURCES)

    def neutral(self, text: str, so_far: int) -> None:
        """Records text whose signs are all escaped. Deletes its removals, after the first `so_far`, since they aren't made."""
        del self._removed[so_far:]
        self._add("markup", text.strip(), _NEUTRAL)

    def _add(self, kind: RemovalKind, text: str, reason: str) -> None:
        self._removed.append(Removal(kind, text, reason))
