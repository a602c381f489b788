"""Code blocks of highlighters and themes -> plain <pre><code class="language-x">, byte-equal to the source."""

from __future__ import annotations

import re

from lxml.html import Element, HtmlElement

from ingestion.convert.dom import drop, replace, select

_NO_CODE = "//*[{linenos} or {linenodiv} or {lineno} or {line-number} or {line-numbers-wrapper} or {copy}]|//button"
_LANGUAGE = re.compile(r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-)([\w+#.-]+)")
_NO_LANGUAGE = frozenset({"", "default", "none", "notranslate", "plaintext", "source", "wrapper", "text-block"})
_LINES = frozenset({"div", "li", "p"})


def rebuild_code(root: HtmlElement, present: frozenset[str]) -> None:
    """Replace every <pre> below `root` by a plain one, and unwrap the tables that only hold line numbers.

    `present` are the classes in `root`.
    """
    for code in select(root, "//code[.//pre]"):  # no valid HTML, but parsers differ in what they make of it
        code.drop_tag()
    for table in select(root, "//table[{highlighttable} or {rouge-table} or {hljs-ln}]", present):
        _unwrap_table(table)
    for pre in select(root, "//pre"):
        if pre.getparent() is not None and next(pre.iterancestors("pre"), None) is None:
            _rebuild(pre, present)


def _unwrap_table(table: HtmlElement) -> None:
    for element in select(table, "//*[{linenos} or {gutter} or {rouge-gutter}]"):
        drop(element)
    for element in [e for e in table.iter("tbody", "thead", "tr", "td", "th") if e is not table]:
        element.tag = "div"
    table.tag = "div"


def _rebuild(pre: HtmlElement, present: frozenset[str]) -> None:
    language = _language(pre)
    for element in select(pre, _NO_CODE, present):
        drop(element)
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
        language = (named or (match[1] if match else "")).strip().lower()
        if language not in _NO_LANGUAGE and re.fullmatch(r"[\w+#.-]+", language):
            return language
    return ""
