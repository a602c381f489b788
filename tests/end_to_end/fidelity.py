"""How true the chunks of a page are to its HTML: code, links, units that must not be cut, copies.

The HTML is read here by other means than the converter's, so that a mistake of that doesn't hide itself.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from urllib.parse import unquote

import lxml.html
from lxml.html import HtmlElement
from markdown_it import MarkdownIt

from app.core.types import Chunk

LONGEST_UNIT = 400  # letters and digits of a box or row that a chunk must hold whole
LONGEST_CODE = 1000  # characters of a code block that a chunk must hold whole
BEGINNING = 40  # letters and digits of what must stand beside its label

_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_NO_TEXT = (
    "script, style, svg, template, button, nav, form, input, .headerlink, .header-anchor, .hash-link, .anchor, .sl-anchor-link, "
    ".sr-only, .visually-hidden, .viewcode-link, .tsd-anchor-icon, span.lang, .line-numbers-wrapper"
)
_NO_CODE = "button, .copy, .linenos, .lineno, .linenodiv, .line-numbers-wrapper, .lnt, .ln, .gutter, .sr-only"
_GUTTERS = "table.highlighttable, table.lntable, table.rouge-table, table.hdlist, .colist table, .hdlist table, .admonitionblock > table"
_TAB_SETS = (
    (".tabbed-set", ":scope > .tabbed-labels > label", ":scope > .tabbed-content > .tabbed-block"),
    (".vp-code-group", ":scope > .tabs label", ":scope > .blocks > div"),
    (".sd-tab-set", ":scope > label", ":scope > .sd-tab-content"),
    (".tabs-container", ":scope > ul > [role=tab]", ":scope > div > [role=tabpanel]"),
)
_BOXES = (
    ".admonition, .admonitionblock, .theme-admonition, .custom-block, .starlight-aside, .markdown-alert, .blockquote-tag, "
    "div.alert, .hextra-callout"
)
_TITLES = ".admonition-title, .custom-block-title, .starlight-aside__title, .markdown-alert-title, .blockquote-tag-title, .title"
_LEFT_OUT = (
    "ancestor::pre|self::pre[contains(@class, 'mermaid')]|ancestor::section[contains(@class, 'tsd-is-inherited')]"
)
"""Diagrams are indented by themes; TypeDoc links to what a symbol is inherited from."""

_TARGET = re.compile(r"\]\((?:<[^<>\n]*>|(?:[^()\s]|\([^()\s]*\))*)[^()\n]*\)")


@dataclass
class Fidelity:
    """What was right of how many, by measure; and examples of what was not, as (address, what)."""

    right: Counter[str] = field(default_factory=Counter)
    all: Counter[str] = field(default_factory=Counter)
    wrong: defaultdict[str, list[tuple[str, str]]] = field(default_factory=lambda: defaultdict(list))

    def count(self, measure: str, url: str, what: str, *, right: bool) -> None:
        """Count one more."""
        self.all[measure] += 1
        self.right[measure] += right
        if not right:
            self.wrong[measure].append((url, what))

    def page(self, url: str, html: str, main: str, chunks: Sequence[Chunk]) -> None:
        """Add the measures of a page."""
        page = lxml.html.document_fromstring(html.encode(), parser=lxml.html.HTMLParser(encoding="utf-8"))
        made = _Made(chunks)
        ids = {unquote(name) for name in page.xpath("//@id|//a/@name")}
        for chunk in chunks:
            for section in chunk.sections:
                if section.anchor:
                    self.count("anchors", url, section.anchor, right=unquote(section.anchor) in ids)
        for root in page.cssselect(main):
            if next(root.iterancestors(root.tag), None) is None or not set(root.iterancestors()) & set(
                page.cssselect(main)
            ):
                self._content(url, root, made)

    def _content(self, url: str, root: HtmlElement, made: _Made) -> None:
        self._code(url, root, made)
        for name, parameters in _parameters(root):
            if (named := made.named(parameters, name)) is not None:
                self.count("cuts", url, f"parameters of {name}", right=named)
        for kind, unit in _units(deepcopy(root)):
            place = made.place(unit)
            if place != "missing":
                self.count("cuts", url, f"{kind}: {unit[:80]}", right=place == "whole")

    def _code(self, url: str, root: HtmlElement, made: _Made) -> None:
        for pre in root.cssselect("pre"):
            text = code_of(pre)
            if not text.strip() or pre.xpath(_LEFT_OUT):
                continue
            whole, parts = made.has_code(text, in_cell=next(pre.iterancestors("td"), None) is not None)
            self.count("code", url, _clip(text), right=whole or parts)
            if parts and len(text) <= LONGEST_CODE:
                self.count("cuts", url, f"code: {_clip(text)}", right=False)

    def site(self, pages: Mapping[str, Sequence[Chunk]]) -> None:
        """Add what only a comparison of pages shows: chunks with the same text, which no author wrote twice on one page."""
        texts: dict[str, str] = {}
        for url, chunks in pages.items():
            for text in (_TARGET.sub("]", chunk.text) for chunk in chunks):
                first = texts.setdefault(text, url)
                self.count("copies", url, f"of {first}: {_clip(text)}", right=first == url)


class _Made:
    """The chunks of a page, as text that can be searched."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._shown = {chunk.id: _rendered(chunk.text) for chunk in chunks}
        self.text = "\n".join(self._shown.values())
        self._each = [_letters(text) for text in self._shown.values()]
        self._paths = [
            _letters(" ".join(name for section in chunk.sections for name in section.path)) for chunk in chunks
        ]
        self._whole = "".join(self._each)
        self._fences = [
            token.content.rstrip("\n")
            for chunk in chunks
            for token in _MARKDOWN.parse(chunk.text)
            if token.type in ("fence", "code_block")
        ]

    def place(self, unit: str) -> str:
        """Whether the letters are in one chunk, cut between two, or in none."""
        if any(unit in each for each in self._each):
            return "whole"
        return "cut" if unit in self._whole else "missing"

    def named(self, unit: str, name: str) -> bool | None:
        """Whether a chunk with the unit has the name in it or in its headings; None if no chunk has the unit."""
        beside = [path + each for path, each in zip(self._paths, self._each, strict=True) if unit in each]
        return any(_letters(name) in text for text in beside) if beside else None

    def has_code(self, text: str, *, in_cell: bool) -> tuple[bool, bool]:
        """(in one block, in blocks that follow each other)."""
        if text in self._fences or (in_cell and all(line.strip() in self.text for line in text.split("\n"))):
            return True, False
        lines = _full(text)
        for first, fence in enumerate(self._fences):
            joined = _full(fence)
            if not fence or lines[: len(joined)] != joined:
                continue
            for following in self._fences[first + 1 :]:
                joined += _full(following)
                if joined == lines:
                    return False, True
                if lines[: len(joined)] != joined:
                    break
        return False, False


def code_of(pre: HtmlElement) -> str:
    """The code that readers of the page see and copy."""
    if copied := pre.xpath("ancestor::figure[1]//button/@data-code"):  # Expressive Code
        return str(copied[0]).replace("\x7f", "\n").rstrip("\n")
    pre = deepcopy(pre)
    for element in pre.cssselect(_NO_CODE):
        element.drop_tree()
    for line in pre.iter("br"):
        line.tail = "\n" + (line.tail or "")
    text: str = pre.text_content().replace("\u200b", "")
    return text.removeprefix("\n").rstrip("\n")


def squeezed(element: HtmlElement) -> str:
    """The letters and digits of an element."""
    return _letters("".join(element.itertext("*")))


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()


def _full(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _rendered(markdown: str) -> str:
    html = _MARKDOWN.render(markdown).replace("<br", " <br")
    return "".join(lxml.html.fragment_fromstring(html or " ", create_parent="div").itertext())


def _clip(text: str) -> str:
    return " ".join(text.split())[:100]


def _parameters(root: HtmlElement) -> Iterator[tuple[str, str]]:
    """(symbol, letters of the first thing that is said of its parameters) of Sphinx and TypeDoc."""
    for term in root.cssselect("dt.sig"):
        names, body = term.cssselect(".descname"), term.getnext()
        fields = body.xpath("./dl[contains(@class, 'field-list')]/dd") if body is not None and names else []
        if fields and (text := squeezed(fields[0])[:BEGINNING]):
            yield names[-1].text_content(), text
    for member in root.cssselect("section.tsd-member"):
        names, fields = member.cssselect("h3 > span"), member.cssselect(".tsd-parameter-list > li")
        if names and fields:
            yield names[0].text_content(), squeezed(fields[0])[:BEGINNING]


def _tabs(root: HtmlElement) -> Iterator[tuple[str, str]]:
    """(label, letters of its panel) of each tab."""
    named = {element.get("id"): element for element in root.xpath(".//*[@id]")}
    for tab in root.cssselect("[role=tab][aria-controls]"):
        if (panel := named.get(tab.get("aria-controls"))) is not None:
            yield squeezed(tab), squeezed(panel)
    for sets, labels, panels in _TAB_SETS:
        for group in root.cssselect(sets):
            for label, panel in zip(group.cssselect(labels), group.cssselect(panels), strict=False):
                yield squeezed(label), squeezed(panel)


def _units(root: HtmlElement) -> Iterator[tuple[str, str]]:
    """(kind, letters) of what must stand in one chunk. Changes the element."""
    for element in root.cssselect(_NO_TEXT):
        if element.getparent() is not None and not element.cssselect("[role=tab]"):
            element.drop_tree()
    for short in root.cssselect("abbr[title]"):  # its long form is written behind it
        short.tail = f"{short.get('title')}{short.tail or ''}"
    yield from _definitions(root)
    yield from _rows(root)
    for label, panel in _tabs(root):
        if label and panel:
            yield "tab", label + panel[:BEGINNING]
    for box in root.cssselect(_BOXES):
        yield from _box(box)


def _definitions(root: HtmlElement) -> Iterator[tuple[str, str]]:
    for term in root.xpath(".//dt[following-sibling::*[1][self::dd[not(dl)]]][not(contains(@class, 'sig'))]"):
        said = term.getnext()
        head, tail = squeezed(term), squeezed(next(iter(said.cssselect("li, p")), said))
        if head and tail:
            yield "definition", head + tail[:BEGINNING]


def _rows(root: HtmlElement) -> Iterator[tuple[str, str]]:
    layout = set(root.cssselect(_GUTTERS))
    for row in root.xpath(".//tr[not(.//pre or .//table or .//ul or .//ol)]"):
        if next(row.iterancestors("table"), None) not in layout and 0 < len(text := squeezed(row)) <= LONGEST_UNIT:
            yield "row", text


def _box(box: HtmlElement) -> Iterator[tuple[str, str]]:
    for icon in box.cssselect("td.icon"):
        icon.drop_tree()
    titles = [title for title in box.cssselect(_TITLES) if squeezed(title)]
    head = squeezed(titles[0]) if titles else ""
    whole = squeezed(box)
    body = whole.removeprefix(head)
    if body and not box.cssselect("pre, table"):
        yield "admonition", head + (body if len(body) <= LONGEST_UNIT else body[:BEGINNING])
