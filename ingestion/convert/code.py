"""Code blocks of highlighters and themes -> plain <pre><code class="language-x">, byte-equal to the source."""

from __future__ import annotations

import re
from functools import cache

from lxml.html import Element, HtmlElement
from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

from ingestion.convert.dom import drop, replace, select

_NO_CODE = (
    "//*[{linenos} or {linenodiv} or {lineno} or {line-number} or {linenumber} or {line-numbers-wrapper} or {copy}]"
    "|//*[{ln} or {lnt} or {gutter} or {rouge-gutter} or {line-numbers} or {hljs-ln-numbers} or {blob-num}]|//button"
)
_GUTTERED = (
    "//table[{highlighttable} or {rouge-table} or {rouge-line-table} or {hljs-ln} or {lntable} or {linenotable} or {CodeRay}]"
    "|//table[.//td[{gutter} or {linenos} or {blob-num} or {line-numbers}]]"
)
_GUTTER = (
    "//td[{linenos} or {gutter} or {rouge-gutter} or {line-numbers} or {hljs-ln-numbers} or {blob-num}]"
    "|//td[{lntd} and following-sibling::td]"
)
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-text-(?=html|xml)|highlight-|brush:\s*)([\w+#.-]+?)(?:-basic)?(?=[\s;]|$)"
)
_HIGHLIGHTERS = frozenset(
    {
        "hljs",
        "highlightjs",
        "sourceCode",
        "prettyprint",
        "highlight",
        "CodeRay",
        "rouge",
        "chroma",
        "shiki",
        "syntaxhighlighter",
    }
    | {"rust-example-rendered", "item-decl", "prism-code"}
)
"""Classes beside which a language may stand without a prefix."""

_NO_LANGUAGE = frozenset(
    {"", "default", "none", "notranslate", "plaintext", "source", "wrapper", "text-block", "output"}
)
_LINES = frozenset({"div", "li", "p"})


def rebuild_code(root: HtmlElement, present: frozenset[str]) -> None:
    """Replace every <pre> below `root` by a plain one, and what holds code beside line numbers.

    `present` are the classes in `root`.
    """
    for code in select(root, "//code[.//pre]"):  # no valid HTML, but parsers differ in what they make of it
        for pre in (*code.iter("pre"), *code.iterancestors("pre")):
            pre.set("data-language", _language(code))
        code.drop_tag()
    for table in select(root, _GUTTERED, present):
        _unwrap_table(table)
    for fragment in select(root, "//div[{fragment} and div[{line}]]", present):  # Doxygen
        fragment.tag = "pre"
    for pre in select(root, "//pre"):
        if pre.getparent() is not None and next(pre.iterancestors("pre"), None) is None:
            _rebuild(pre, present)


def _unwrap_table(table: HtmlElement) -> None:
    """Make one <pre> of a table with a column of line numbers, or only lines if it is in a <pre>."""
    language = _language(table)
    for element in select(table, _GUTTER):
        drop(element)
    for title in select(table, "//th[{filename}]"):  # mkdocs-material
        caption = Element("p")
        caption.text = title.text_content()
        table.addprevious(caption)
        drop(title)
    for element in list(table.iter("tbody", "thead", "tr", "td", "th", "pre")):
        element.tag = "div" if element.tag == "tr" else "span"
    table.tag = "div" if next(table.iterancestors("pre"), None) is not None else "pre"
    if language and table.tag == "pre":
        table.set("class", f"language-{language}")


def _rebuild(pre: HtmlElement, present: frozenset[str]) -> None:
    language = _language(pre)
    for element in select(pre, _NO_CODE, present):
        drop(element)
    for figure in pre.iterancestors("figure"):
        figure.tag = "div"  # in one, the converter changes code that looks like an image of Markdown
    for element in pre.iter("br"):
        element.tail = "\n" + (element.tail or "")
    _end_lines(pre)
    text = pre.text_content().replace("\u200b", "") or "\n"
    new, code = Element("pre"), Element("code")
    if language:
        code.set("class", f"language-{language}")
    code.text = text
    new.append(code)
    replace(pre, new)


def _end_lines(pre: HtmlElement) -> None:
    """Highlighters that make an element of each line need not write the line ends."""
    for line in pre.iter(*_LINES):
        if line is pre or line.getnext() is None or line.getnext().tag != line.tag:
            continue
        if not line.text_content().endswith("\n") and not (line.tail or "").startswith("\n"):
            line.tail = "\n" + (line.tail or "")


def _language(pre: HtmlElement) -> str:
    ancestors = list(pre.iterancestors())[:6]
    for element in (*pre.iter("code"), pre, *ancestors):
        named = element.get("data-lang") or element.get("data-language")
        match = _LANGUAGE.search(element.get("class") or "")
        language = (named or (match[1] if match else _bare(element))).strip().lower()
        if language not in _NO_LANGUAGE and re.fullmatch(r"[\w+#.-]+", language):
            return language
    return ""


def _bare(element: HtmlElement) -> str:
    """The one class that names a language, on an element of a highlighter or on <code> (`hljs python`, `sourceCode python`)."""
    classes = (element.get("class") or "").split()
    if element.tag == "pre" and "mermaid" in classes:
        return "mermaid"  # a diagram, which a script draws
    if element.tag != "code" and not _HIGHLIGHTERS.intersection(classes):
        return ""
    named = [name for name in classes if name.lower() in _known() and name not in _HIGHLIGHTERS]
    return named[0] if len(named) == 1 else ""


@cache
def _known() -> frozenset[str]:
    """The names of the languages that Pygments knows."""
    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)
