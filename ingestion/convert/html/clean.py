"""Main content of an HTML page, made fit for conversion: no navigation, real code blocks, known anchors."""

import re
from collections.abc import Collection, Sequence
from urllib.parse import quote, urljoin

from lxml.html import HtmlElement
from lxml.html.builder import E

from app.core.generation import RepeatedBlock
from ingestion.convert.api_reference.generators import write_api_reference
from ingestion.convert.boilerplate.blocks import remove_repeated
from ingestion.convert.html.blocks import rebuild_code, write_cells, write_definitions
from ingestion.convert.html.boxes import label_admonitions, label_tabs
from ingestion.convert.html.dom import (
    HEADINGS,
    append_text,
    bold_paragraph,
    class_names,
    drop,
    has_class,
    mark_text,
    select,
    text_of,
    write_powers,
)
from ingestion.convert.html.hidden import drop_hidden

_ROOTS = (
    "//article[{md-content__inner}]",  # mkdocs-material
    "//*[{vp-doc}]",  # VitePress
    "//*[{theme-doc-markdown}]",  # Docusaurus
    "//*[{sl-markdown-content}]",  # Starlight
    "//div[{contents} and ../div[{header}]]",  # Doxygen
    "//div[@id='main' and .//h4[{name}]]",  # JSDoc
    "//div[{col-content}]",  # TypeDoc
    "//div[@itemprop='articleBody']",  # Sphinx, Read the Docs theme
    "//article[@role='main']",  # Sphinx, furo
    "//*[@role='main']//article",
    "//*[@role='main']",
    "//main//article",
    "//article",
    "//main",
    "//body",
)
_DROPPED = (
    "//script|//style|//noscript|//template|//button|//svg|//nav|//form|//input|//select|//object|//embed",
    "//textarea|//datalist|//canvas|//progress|//meter|//noembed",
    "//*[{linenos} or {linenodiv} or {lineno} or {line-numbers-wrapper}]",
    "//*[{footnote-backref} or {fn-backref} or {backrefs}]|//img[starts-with(@src, 'data:')]",
    "//*[{md-content__button} or {md-source-file} or {md-feedback} or {md-tags}]",
    "//*[{theme-edit-this-page} or {pagination-nav} or {theme-doc-breadcrumbs} or {theme-doc-toc-mobile}]",
    "//*[{edit-this-page} or {edit-link} or {prev-next} or {breadcrumbs} or {wy-breadcrumbs} or {viewcode-link}]",
    "//*[{cookie-banner} or {cookie-consent} or {toc} or {table-of-contents} or {contents-local}]|//*[@id='toc']",
    "//span[{lang} and following-sibling::pre]|//*[{sr-only} or {visually-hidden}]",
    "//*[@role='navigation' or @role='search' or @role='contentinfo' or @role='menu' or @role='menubar' or @role='toolbar']",
    "//*[@role='dialog' or @role='alertdialog']",
)
_TITLES = (
    "//*[{admonition-title}]",
    "//*[{topic-title} or {sidebar-title}]|//p[{rubric}]",  # Sphinx
    "//div[{title} and (parent::*[contains(@class, 'block')] or ../parent::*[{sidebarblock} or {exampleblock}])]",  # Asciidoctor
    "//p[{hx:font-medium}]",  # Hextra
)
_MARK = re.compile(r"[#¶§🔗⚓∞☍↩↵↑⇧⬆^\ufe0f\ue000-\uf8ff]*")  # also those of icon fonts
_DEMO = re.compile(r"(?:^|[\s_-])(?:demo|card|playground|live-?example)s?(?=[\s_-]|$)", re.IGNORECASE)
_LANDMARKS = frozenset({"header", "footer", "aside"})


def find_root(page: HtmlElement) -> HtmlElement:
    """The element that holds the page's own text."""
    present = class_names(page)
    for path in _ROOTS:
        if roots := select(page, path, present):
            return _with_siblings(roots) if path.endswith("article") else roots[0]
    return page


def _with_siblings(articles: list[HtmlElement]) -> HtmlElement:
    """The first article; where others are beside it, an element that holds them all."""
    beside = [article for article in articles if article.getparent() is articles[0].getparent()]
    if len(beside) == 1:
        return articles[0]
    whole = E.div()
    articles[0].addprevious(whole)
    whole.extend(beside)
    return whole


def clean_root(
    root: HtmlElement, base: str, repeated: Sequence[RepeatedBlock] = (), kept: Collection[HtmlElement] = ()
) -> None:
    """Change `root` in place until only content is left, and what is `kept`; relative links start from `base`.

    Blocks that are `repeated` on most pages of the site are no content.
    """
    note_anchors(root)  # first: the ids may sit on what is dropped
    drop_hidden(root, kept)
    remove_repeated(root, repeated, kept)
    present = class_names(root)
    label_tabs(root, present)
    label_admonitions(root, present)
    rebuild_code(root, present)
    write_api_reference(root, present)
    write_task_marks(root)
    write_powers(root)
    for path in _DROPPED:
        for element in select(root, path, present):
            if element not in kept:
                drop(element)
    _drop_marks(root, base)
    _drop_second_title(root)
    _flatten_demos(root)
    if root.tag in ("body", "html", "main"):
        _drop_landmarks(root, kept)
    for path in _TITLES:
        for element in select(root, path, present):
            bold_paragraph(element)
    write_definitions(root, present)
    write_cells(root)
    write_anchors(root)
    _absolute_links(root, base)
    mark_text(root)


def write_task_marks(root: HtmlElement) -> None:
    """Write `[x]` or `[ ]` where an item of a task list has a checkbox, or an icon that shows one (Asciidoctor)."""
    for box in select(
        root, "//input[@type='checkbox'][ancestor::li]|//i[{fa-check-square-o} or {fa-square-o}][ancestor::li]"
    ):
        done = "checked" in box.attrib or has_class(box, "fa-check-square-o")
        mark, tail = f"[{'x' if done else ' '}] ", (box.tail or "").lstrip()
        box.tail = mark + tail
        if next(box.iterancestors("li")).text_content().lstrip().startswith(mark):
            drop(box)
        else:
            box.tail = tail


def note_anchors(root: HtmlElement) -> None:
    """Note on each heading the id that a link to it needs."""
    first: dict[HtmlElement, HtmlElement | None] = {}
    for heading in root.iter(*HEADINGS):
        if identifier := heading.get("id") or _inner_id(heading) or _section_id(heading, first):
            heading.set("data-anchor", identifier)


def write_anchors(root: HtmlElement) -> None:
    """Append ` {#id}` to each heading with a known id, and unwrap links around headings' text."""
    for heading in root.iter(*HEADINGS):
        for line_break in list(heading.iter("br")):
            line_break.tail = f" {line_break.tail or ''}"
            drop(line_break)
        identifier = heading.get("data-anchor")
        for link in list(heading.iter("a")):
            link.drop_tag()
        if not identifier or not text_of(heading):
            continue
        identifier = re.sub(r"[\s<>{}\[\]`\"\\]", lambda found: quote(found[0]), identifier)
        append_text(heading, f" {{#{identifier}}}")


def _inner_id(heading: HtmlElement) -> str:
    for element in heading.iter("a", "span"):
        if identifier := element.get("id") or (element.get("name") if element.tag == "a" else None):
            return str(identifier)
    return ""


def _section_id(heading: HtmlElement, first: dict[HtmlElement, HtmlElement | None]) -> str:
    """Sphinx puts the id on the section; it is the heading's own only when it is the section's `first` one."""
    section = heading.getparent()
    if section is None or not (section.tag == "section" or (section.tag == "div" and has_class(section, "section"))):
        return ""
    if section not in first:
        first[section] = next(iter(section.iter(*HEADINGS)), None)
    return str(section.get("id") or "") if first[section] is heading else ""


def _drop_marks(root: HtmlElement, base: str) -> None:
    """Drop links without text, links to a place of the page itself with nothing but a mark such as # or ¶, and those beside
    a heading's text.
    """
    own = {"", base, base.rpartition("/")[2]}
    for link in list(root.iter("a")):
        page, _, target = (link.get("href") or "").partition("#")
        text, here = text_of(link), bool(target) and page in own
        if not text or (here and _MARK.fullmatch(text)):
            if next(link.iter("img", "picture", "video", "iframe"), None) is None:
                drop(link)
        elif here and _is_beside(link, text, target):
            drop(link)


def _drop_second_title(root: HtmlElement) -> None:
    """Drop a heading that no link leads to, if one with the same text follows, as where pages are made for printing, too."""
    titles = list(root.iter("h1"))
    for number, title in enumerate(titles[:-1]):
        if not title.get("data-anchor") and text_of(title) in (text_of(other) for other in titles[number + 1 :]):
            drop(title)


def _flatten_demos(root: HtmlElement) -> None:
    """Make bold lines of headings in demos and cards that no link leads to: the text after these isn't theirs.

    What holds the page's first heading is the page itself, whatever it is called.
    """
    first = next(root.iter(*HEADINGS), None)
    page = set(first.iterancestors()) if first is not None else set()
    inside = set[HtmlElement]()
    for element in list(root.iter("*")):
        if element.getparent() in inside or (element not in page and _DEMO.search(element.get("class") or "")):
            inside.add(element)
    for heading in [element for element in inside if element.tag in HEADINGS]:
        if not heading.get("data-anchor"):
            bold_paragraph(heading)


def _is_beside(link: HtmlElement, text: str, target: str) -> bool:
    """True for a link to the heading that it is in, if the heading's text is beside it."""
    heading = next((heading for heading in link.iterancestors(*HEADINGS) if heading.get("data-anchor") == target), None)
    return heading is not None and re.search(r"\w", text_of(heading).replace(text, "", 1)) is not None


def _drop_landmarks(root: HtmlElement, kept: Collection[HtmlElement]) -> None:
    # without a main element, header and footer are those of the site, except where they hold the title
    for element in list(root.iter(*_LANDMARKS)):
        if element.getparent() is not None and element not in kept and next(element.iter("h1"), None) is None:
            drop(element)


def _absolute_links(root: HtmlElement, base: str) -> None:
    for name, tags in (("href", ("a", "area")), ("src", ("img", "video", "audio", "source", "iframe"))):
        for element in root.iter(*tags):
            target = (element.get(name) or "").strip()
            if not target:
                continue
            if target.lower().startswith(("javascript:", "data:")):
                element.attrib.pop(name)
                continue
            try:
                element.set(name, urljoin(base, target))
            except ValueError:  # not a valid address
                element.attrib.pop(name)
