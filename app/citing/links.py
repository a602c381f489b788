"""Addresses and HTML that an answer may have: removes unknown links and images, and records what was removed from a model's text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from html import unescape
from typing import ClassVar
from urllib.parse import quote, unquote

from app.citing.citations import Citations
from app.citing.markdown import (
    Edit,
    Reading,
    Span,
    Words,
    applied,
    begins_anew,
    escaping,
    escaping_open_brackets,
    fenced,
    read,
    with_marks,
)
from app.core.turn import Removal, RemovalKind
from app.core.types import Chunk
from app.text.analysis import normalized
from app.text.blocks import FENCE, named, plain_title

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
    def _found(self) -> tuple[str, ...]:  # most answers have no addresses to check
        """The addresses of the texts, each also without its fragment and last slash."""
        whole = (address_in(match) for text in self._texts for match in _ALL.findall(text))
        found = (form for address in whole for form in (address, address.partition("#")[0]))
        return tuple(dict.fromkeys(form for address in found for form in (address, address.rstrip("/"))))

    @cached_property
    def _written(self) -> frozenset[str]:
        """The addresses as an answer can have them, and as a parser reads them."""
        read = {form for address in self._found for form in (address, unescape(address))}
        return frozenset(read | {quote(address, safe=_SAFE) for address in read})

    @cached_property
    def _known(self) -> Mapping[str, str]:
        return {_plain(address): unescape(address) for address in reversed(self._found)}

    def __contains__(self, address: str) -> bool:
        """True if an answer may link to the address as it is."""
        return address in self._written or bool(_PLACEHOLDER.match(address))

    def known_as(self, address: str) -> str:
        """The address as a text has it, without a fragment that no text has; empty if no text has the address.

        Whatever a model may choose of a link carries words of the conversation to the site: its fragment, but also which
        letters are large, and which are written with percent signs.
        """
        return self._known.get(_plain(address)) or self._known.get(_plain(address.partition("#")[0]), "")

    def shows(self, address: str) -> bool:
        """True if clients may load an image from the address, as the texts have it."""
        return host_of(address) in {host_of(page) for page in self._pages} - {""} and bool(self.known_as(address))


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
    """The address for comparisons: decoded, in small letters, without the last slash of its path."""
    path, sign, fragment = normalized("NFC", unquote(unescape(address))).partition("#")
    return f"{path.rstrip('/')}{sign}{fragment}".casefold()


def markdown_link(name: str, url: str) -> str:
    """A Markdown link; no sign in the name or address can break it."""
    return f"[{escaped(name)}]({quote(url, safe=_SAFE)})"


@lru_cache(maxsize=500)  # titles and headings, which answers repeat
def escaped(name: str) -> str:
    """Plain text as Markdown on one line, with all signs escaped."""
    return _SIGN.sub(r"\\\g<0>", " ".join(name.split()))


@lru_cache(maxsize=500)
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
AS_KNOWN = "shown as the passages have it: none has this fragment or spelling"
_NO_LINK = "clients could read this link in different ways"
_OWN_LINK = "the citation in front of it gets our link"
_PICTURE = "pictures are shown from the documentation's own hosts alone"
_AS_TEXT = "shown as text: only plain tags within a line, such as <br>, may stay"
_ENTITY = "shown as text: it could be a part of an address"
_CELL = "the table has no column for it"
_NEUTRAL = "shown with all its signs: clients could read its Markdown in different ways"
_SOURCES = "the list of sources is made from the citations"
_TAG_BEGIN = re.compile(r"<[^<>\s]*>?")
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
            if start < done or (start in ends and not written):
                continue  # within another removal, or the second half of a link's
            done = end
            if span := begun.get(start):
                self._span(text, span)
            elif span := ends.get(start) or ends.get(start - 1):
                self._add("address", span.target, AS_KNOWN if start in ends else _OWN_LINK)
            elif reading and (start, end) in reading.surplus:
                self._add("table cell", text[start:end].strip(), _CELL)
            else:
                self._part(text, start, end, written)

    def _part(self, text: str, start: int, end: int, written: str) -> None:
        """Records an address that isn't a link's, or a tag."""
        if address := text[start:end].strip(_AROUND) if end - start > len(written) else "":
            known = bool(written) and written == self._addresses.known_as(address)
            self._add("address", address, AS_KNOWN if known else UNKNOWN)
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

    def forget(self, after: int) -> None:
        """Deletes the removals after so many, because they aren't made."""
        del self._removed[after:]

    def neutral(self, text: str) -> None:
        """Records text whose signs are all escaped."""
        self._add("markup", text.strip(), _NEUTRAL)

    def _add(self, kind: RemovalKind, text: str, reason: str) -> None:
        self._removed.append(Removal(kind, text, reason))


LONGEST = 20_000  # characters of a block
_MOST_BRACKETS = 300  # of a block: the parser needs quadratic time to find their ends
_ROUNDS = 8  # removing one thing can uncover another
TAG = re.compile(r"</?(?:b|br|code|del|em|i|ins|kbd|mark|s|small|strong|sub|sup|u) ?/?>", re.IGNORECASE)
SCHEME = re.compile(r"https?://|ftps?://|www\.", re.IGNORECASE)
_RUN = re.compile(r"[^\s<]*")
_WHOLE_RUN = re.compile(r"\S{0,2000}+")
_CALL = re.compile(r"[\w ,=*-]*")  # the parentheses of `items[i](x)`
_BRACKETS = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]{0,80}\]){0,80}\]|【[^】]{0,80}】")
_VALUES = re.compile(r"[\[\]\d\s,;.-]+")
_SLASHES = re.compile(r"(?<![:/])//")
_WITHOUT_SCHEME = re.compile(r"//(?=[^\s/]*(?:[.:\u3002\uff0e\uff61]\w|@))[^\s<>]*")
_TARGET = re.compile(r"(?:(?<=[(\"'=<])|(?<=\]:\s))\s*[^\s<>\"')]+(?<!`)")  # a backtick ends the code
_LEADS_OUT = re.compile(
    r"(?:https?|ftps?):/*[\w-]|//[\w-]+[.:@\u3002\uff0e\uff61]\w|(?:javascript|vbscript):", re.IGNORECASE
)
_LIVE = re.compile(r"<(?=[a-z/!?])(?!www\.)|!(?=\[)", re.IGNORECASE)
_ALIVE = re.compile(r"<[a-z/!?]|!\[|\][(:\[]|https?:|www\.|@", re.IGNORECASE)
_RISKY = re.compile(r"[\]<&!`\\|【]|~~~|//|www\.|:", re.IGNORECASE)  # a text without these signs is safe
_WEB = re.compile(r"<(?:https?|ftps?|mailto|javascript|vbscript|data|file):", re.IGNORECASE)
_ENTITY_SIGNS = frozenset("<>&\"'|*_#`[]{}()!~\\ $^+")
_TITLE = re.compile(r"[<>\[\]`&\\]|//|www\.", re.IGNORECASE)
_SWALLOWED = frozenset("`\\[]!&")
_LINE_END = re.compile(r"\n[ \t>]*")
_DEFINES = re.compile(r"(?<=\]):")
_SURROUNDING = frozenset({"()", "<>"})
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~【]")
_BRACKET = re.compile(r"\[[^\[\]]{0,80}\]|【[^】]{0,80}】")
_SIMPLE = re.compile(
    r"(?P<code>(`{1,20})(?!`)[^`\n|]{1,300}(?<!`)\2(?!`))"
    r"|(?P<link>\[[^\[\]`<\\&!\n|:【]{0,80}\]\([^\s()<>\\&`|\"'【\[]{1,2000}\))"
    r"|(?P<cited>(?:\[[^\[\]`<\\&!\n|:【]{0,80}\]){1,20}(?![\[(])|【[^】\[\]`<\\&!\n|:]{0,80}】(?!\())"
    r"|(?P<tag></?[a-z][a-z\d-]{0,30} ?/?>)|(?P<entity>&(?:[a-z][a-z\d]{1,31}|#\d{1,7}|#x[\da-f]{1,6});)"
    r"|(?P<address>(?:https?|ftps?)://|www\.)"
    r"|(?P<kept>\\(?:[!-/:-@\[-`{-~]|(?=\s|\Z))|<(?![a-z/!?])|&(?![#a-z])|&(?=[a-z]{1,31}[^a-z\d;])|!(?!\[)|//(?=\s|\Z))"
    r"|[`\[<\\&!|【]|//",
    re.IGNORECASE,
)
"""A sign that can mean something, with what it means if only that is possible, whatever follows."""


class Sanitizer:
    """Rewrites whole blocks. Without `citations`, numbers stay unchanged. `removals` collects what is removed."""

    def __init__(
        self, addresses: Addresses, citations: Citations | None = None, removals: Removals | None = None
    ) -> None:
        self.addresses, self._citations, self._removals = addresses, citations, removals

    def safe(self, text: str, before: str = "") -> str:
        """The text, safe for readers. `before` is what they already got of the same blocks."""
        if not _RISKY.search(text):
            return text
        so_far = self._removals.count if self._removals else 0
        shown = self._judged(text, before) if text.count("[") <= _MOST_BRACKETS else None
        if shown is not None:
            return shown
        if self._removals:
            self._removals.forget(so_far)
        apart = "" if not before or before[-1].isspace() else " "
        return f"{apart}{self.neutral(text)}"

    def neutral(self, text: str) -> str:
        """The text with all signs escaped."""
        if self._removals:
            self._removals.neutral(text)
        lines = [" ".join(line.split()) for line in text.split("\n")]
        return _PUNCTUATION.sub(r"\\\g<0>", "\n".join(lines)).replace("\\【", "【")

    def count(self, listed: str) -> None:
        """Counts hidden citations, and those of a model's own list of sources if nothing else cites."""
        if self._citations:
            self._citations.count_hidden()
            if listed and not self._citations.any:
                Sanitizer(self.addresses, self._citations).safe(listed)
        if listed and self._removals:
            self._removals.source_list(listed)

    def simple(self, text: str, at: int, *, begins: bool) -> str | None:
        """The text, safe for readers; None if only its whole block shows what it means.

        It is a part of a line, whose words begin at `at` if it `begins` the line.
        """
        if not _RISKY.search(text):
            return text
        first, edits = at, list[Edit]()
        while found := _SIMPLE.search(text, at):
            at, kind = found.end(), found.lastgroup or ""
            if kind == "address":
                written, at = self._address(text, found.start())
            else:
                written = self._MEANS[kind](self, text, found) if kind in self._MEANS else None
            if written is None or (begins and written and written[0].start <= first):
                return None
            edits += written
        if self._removals:
            cited = [edit for edit in edits if text[edit.start] in "[【"]
            self._removals.citations(text[edit.start : edit.end] for edit in cited)
            self._removals.edits(text, [edit for edit in edits if edit not in cited])
        return applied(text, edits)

    def _address(self, text: str, at: int) -> tuple[list[Edit] | None, int]:
        """The edits of an address in a simple text, and where it ends."""
        edit, end = self.bare(text, at, len(text))
        if edit and edit.text != " " and (edit.start == edit.end or not _is_apart(text, edit.start, edit.end)):
            return None, end
        return [edit] if edit else [], end

    def _simple_code(self, text: str, found: re.Match[str]) -> list[Edit] | None:
        return None if next(self.in_code(text, found.start(), found.end()), None) else []

    def _simple_link(self, text: str, found: re.Match[str]) -> list[Edit] | None:
        words, target = found[0][1:-1].split("](", 1)
        plain = not SCHEME.search(words) and "//" not in words and self.bracket(f"[{words}]") is None
        return [] if plain and not is_joined(text, found.start()) and target in self.addresses else None

    def _simple_numbers(self, text: str, found: re.Match[str]) -> list[Edit] | None:
        """The edits of brackets; None if what is around them matters."""
        if SCHEME.search(found[0]) or "//" in found[0]:
            return None
        edits, joined = list[Edit](), is_joined(text, found.start())
        for bracket in _BRACKET.finditer(text, *found.span()):
            written = self.bracket(bracket[0], joined=joined)
            if written is not None:
                edits.append(Edit(*bracket.span(), written))
        return edits if _is_apart(text, *found.span()) or all(edit.text for edit in edits) else None

    def _simple_tag(self, _: str, found: re.Match[str]) -> list[Edit]:
        return [] if TAG.fullmatch(found[0]) else [Edit(found.start(), found.start(), "\\")]

    def _simple_entity(self, _: str, found: re.Match[str]) -> list[Edit] | None:
        return [] if harmless(found[0]) else None

    def _judged(self, text: str, before: str) -> str | None:
        """The safe text; None if edits can't make it safe."""
        first = before + text
        for _ in range(_ROUNDS):
            whole = before + text
            reading = read(whole)
            edits = with_marks(whole, reading, self._edits(whole, reading))
            if reading.odd or any(block.indent < 0 and _ALIVE.search(block.code) for block in reading.indented):
                return None
            if edits and edits[0].start < len(before):
                return None
            if not edits:
                return None if _opens_fence(first, whole) else self._numbered(whole, reading, len(before))
            if self._removals:
                self._removals.edits(whole, edits, reading)
            text = applied(whole, edits)[len(before) :]
        return None

    def code(self, text: str) -> str:
        """Text of a block of code, without addresses that no passage has."""
        edits = sorted(self.in_code(text, 0, len(text)))
        if self._removals:
            self._removals.edits(text, edits)
        return applied(text, edits)

    def _numbered(self, whole: str, reading: Reading, start: int) -> str | None:
        if self._citations is None:
            return whole[start:]
        ranges = sorted(words for words in reading.texts if words.end > start)
        edits = [edit for words in ranges for edit in self._cited(whole, max(words.start, start), words.end)]
        if self._removals:
            self._removals.citations(whole[edit.start : edit.end] for edit in edits)
        text = applied(whole, with_marks(whole, reading, edits))
        if any(not edit.text for edit in edits):  # the text around a removed citation may now form something else
            reading = read(text)
            if reading.odd or next(self._edits(text, reading), None) or _opens_fence(whole, text):
                return None
        return text[start:]

    def _cited(self, whole: str, start: int, end: int) -> Iterator[Edit]:
        at = start
        while found := _BRACKETS.search(whole, at, end):
            at = found.end()
            joined = is_joined(whole, found.start())
            written = self.bracket(found[0], joined=joined)
            if written is None:
                if not _VALUES.fullmatch(found[0]):
                    at = found.start() + 1
            elif written != found[0]:
                if found[0][0] == "【" and written and whole.startswith((":", "("), at):
                    written += "\\"  # else it might define a link, or be one
                yield Edit(found.start(), at, written)

    def bracket(self, bracket: str, *, joined: bool = False) -> str | None:
        """The replacement for the brackets and their content; None if they are no citation."""
        if self._citations is None or joined:
            return None
        words = bracket[1:-1]
        if (cited := self._citations.cited(words)) is None and words[:1] + words[-1:] == "[]":
            cited = self._citations.cited(words[1:-1])
        return cited

    # ---- what isn't allowed ---------------------------------------------------------------------

    def _edits(self, text: str, reading: Reading) -> Iterator[Edit]:
        for span in reading.spans:
            if span.kind == "html_inline" and span.start in reading.line_starts:
                yield Edit(span.start, span.start, "\\")  # it could begin a block of HTML
            elif rule := self._RULES.get(span.kind):
                yield from rule(self, text, span)
        last_code = max((span.start for span in reading.spans if span.kind == "backticks"), default=0)
        for words in reading.texts:
            yield from self._plain(text, words, code_follows=words.start < last_code)
        for block in reading.indented:  # other clients can read it as a paragraph
            if _ALIVE.search(block.code):
                yield fenced(block)
        for start, end in reading.code:
            yield from self.in_code(text, start, end)
        yield from (Edit(start, end) for start, end in reading.surplus)

    def _link(self, text: str, span: Span) -> Iterator[Edit]:
        words = text[span.inner[0] : span.inner[1]]
        call = is_joined(text, span.start) and _CALL.fullmatch(text, span.inner[1] + 2, span.end - 1)
        cited = self.bracket(f"[{words}]") is not None and not call
        if cited:
            yield Edit(span.inner[1] + 1, span.end)
        elif not call:
            yield from self._led(span, words, self._instead(span.target))

    def _image(self, text: str, span: Span) -> Iterator[Edit]:
        shown = self.addresses.shows(span.target)
        yield from self._led(span, text[slice(*span.inner)], self._instead(span.target) if shown else "")

    def _instead(self, address: str) -> str | None:
        """None if the address may stay, else what readers get in its place; empty if no passage has it."""
        return None if address in self.addresses else self.addresses.known_as(address)

    def _led(self, span: Span, words: str, instead: str | None) -> Iterator[Edit]:
        """The edits for a link or image whose address is replaced by `instead`."""
        if not self._leads(span, words, instead != ""):
            yield Edit(span.start, span.inner[0])
            yield Edit(span.inner[1], span.end)
        elif instead:
            yield Edit(span.inner[1], span.end, f"]({quote(instead, safe=_SAFE).replace('&', '&amp;')})")

    @staticmethod
    def _leads(span: Span, words: str, allowed: bool) -> bool:
        """True if it is allowed, and all clients read it as we do."""
        return allowed and words.count("`") % 2 == 0 and not _TITLE.search(span.title)

    def _autolink(self, text: str, span: Span) -> Iterator[Edit]:
        written = text[span.start : span.end]
        if not _WEB.match(written):
            if ":" in written:
                yield Edit(span.start, span.start, "\\")
        elif instead := self._instead(written[1:-1]):
            yield Edit(span.start + 1, span.end - 1, instead)
        elif instead == "":
            yield Edit(span.start, span.end)

    def _tag(self, text: str, span: Span) -> Iterator[Edit]:
        if not TAG.fullmatch(text, span.start, span.end):
            yield Edit(span.start, span.start, "\\")

    def _entity(self, text: str, span: Span) -> Iterator[Edit]:
        if not harmless(text[span.start : span.end]):
            yield Edit(span.start, span.start, "\\")

    def _span(self, text: str, span: Span) -> Iterator[Edit]:
        # other clients can see the beginning of a block behind a line end
        for found in _LINE_END.finditer(text, span.start, span.end):
            yield Edit(found.start(), found.end(), " ")
        yield from self.in_code(text, span.start, span.end)

    def in_code(self, text: str, start: int, end: int) -> Iterator[Edit]:
        """Removes addresses that no passage has, because other clients may not read this as code."""
        for found in ADDRESS.finditer(text, start, end):
            address = address_in(found[0])
            if (instead := self._instead(address)) is not None:
                yield Edit(found.start(), found.start() + len(address), instead)
        for found in _TARGET.finditer(text, start, end):
            leads_out = _LEADS_OUT.match(unescape(found[0].strip()).replace("\\", "/"))
            if leads_out and self._instead(address_in(found[0].strip())) == "":
                yield Edit(found.start(), found.end())

    def _plain(self, text: str, words: Words, *, code_follows: bool) -> Iterator[Edit]:
        """Plain text: removes unknown addresses, and escapes signs that other clients read differently."""
        start, end, bracketed = words
        at = start
        while found := SCHEME.search(text, at, end):
            edit, at = self.bare(text, found.start(), end)
            if edit:
                yield edit
        for slashes in _SLASHES.finditer(text, start, end):
            if found := _WITHOUT_SCHEME.match(
                text, slashes.start()
            ):  # some clients find the host in what follows the words
                yield Edit(found.start(), min(found.end(), end))
        yield from escaping(_LIVE, text, start, end)
        if bracketed:  # it would define a link
            yield from escaping(_DEFINES, text, start, end)
        if code_follows or bracketed:
            yield from escaping_open_brackets(text, start, end)

    def bare(self, text: str, at: int, end: int) -> tuple[Edit | None, int]:
        """The edit for the address here, if it needs one, and where it ends; clients can read more as the address than we do."""
        scheme = SCHEME.match(text, at)
        run = _RUN.match(text, at)
        assert scheme is not None
        assert run is not None
        found = ADDRESS.match(text, at, end)
        if found is None:
            behind = text[scheme.end() : run.end()]
            login = "@" in _WHOLE_RUN.match(text, scheme.end())[0]  # type: ignore[index]  # it matches anywhere
            if login or (behind and (":" not in scheme[0] or unicodedata.category(behind[0])[0] not in "PZC")):
                # some clients see an address within a word, or with other signs as host
                sign = at + (scheme[0].find(":") if ":" in scheme[0] else 3)
                return Edit(sign, sign, "\\"), scheme.end()
            return None, scheme.end()
        address = address_in(found[0])
        stop = at + max(len(address), len(scheme[0]))
        behind = text[at + len(address) : run.end()]
        if address in self.addresses and "@" not in behind:
            # behind a word, some clients find a host in that; behind another sign, only the address within this one
            before = text[at - 1 : at]
            if before.isalnum() or (before.strip() and SCHEME.search(address, len(scheme[0]))):
                return Edit(at, at, " "), stop
            # some clients' links end at a blank, and include a sign that would begin code or an escape
            swallows = not _SWALLOWED.isdisjoint(behind) or text[run.end() : run.end() + 1] == "<"
            return (Edit(stop, stop, " ") if swallows else None), stop
        if len(address) <= len(scheme[0]):
            return None, stop
        known = "" if "@" in behind else self.addresses.known_as(address)
        around = not known and text[at - 1 : at] + text[stop : stop + 1] in _SURROUNDING
        return Edit(at - around, stop + around, known), stop + around

    # of the class, because methods kept in an object keep the object until the garbage collector runs
    _RULES: ClassVar[Mapping[str, Callable[[Sanitizer, str, Span], Iterator[Edit]]]] = {
        "link": _link, "image": _image, "autolink": _autolink, "html_inline": _tag, "entity": _entity, "backticks": _span,
    }  # fmt: skip
    _MEANS: ClassVar[Mapping[str, Callable[[Sanitizer, str, re.Match[str]], list[Edit] | None]]] = {
        "code": _simple_code, "link": _simple_link, "cited": _simple_numbers, "tag": _simple_tag, "entity": _simple_entity, "kept": lambda *_: [],
    }  # fmt: skip


def _opens_fence(first: str, text: str) -> bool:
    """True if a block leaves a fence open that it did not open as the model wrote it."""
    return bool(FENCE.search(text)) and not _is_closed(text) and _is_closed(first)


def _is_closed(text: str) -> bool:
    return begins_anew(f"{text}\n\n", "")


def is_joined(text: str, at: int) -> bool:
    """True if brackets here are an index: right after a word, or after up to ten such brackets."""
    for _ in range(10):
        if text[at - 1 : at] != "]" or (opening := text.rfind("[", 0, at)) < 0:
            break
        at = opening
    before = text[at - 1 : at] if at else ""
    return before.isalnum() or before == "_"


def _is_apart(text: str, start: int, end: int) -> bool:
    """True if a blank stands before or behind this part; one does where the text begins and ends."""
    return not (text[start - 1 : start].strip() if start else "") or not text[end : end + 1].strip()


def harmless(entity: str) -> bool:
    """True if the entity is one of a sign that needs escaping, not of a part of an address."""
    sign = unescape(entity)
    return sign in _ENTITY_SIGNS or not sign.isascii()
