"""Main content of an HTML page, made fit for conversion: no navigation, real code blocks, known anchors."""

from __future__ import annotations

from urllib.parse import urljoin

from lxml.html import HtmlElement

from ingestion.convert.code import rebuild_code
from ingestion.convert.dom import bold_paragraph, class_names, drop, has_class, select, text_of
from ingestion.convert.tabs import label_tabs, label_variants

_ROOTS = (
    "//article[{md-content__inner}]",  # mkdocs-material
    "//*[{vp-doc}]",  # VitePress
    "//*[{theme-doc-markdown}]",  # Docusaurus
    "//*[{sl-markdown-content}]",  # Starlight
    "//div[@itemprop='articleBody']",  # Sphinx, Read the Docs theme
    "//article[@role='main']",  # Sphinx, furo
    "//*[@role='main']",
    "//main//article",
    "//article",
    "//main",
    "//body",
)
_DROPPED = (
    "//script|//style|//noscript|//template|//button|//svg|//nav|//form|//input|//select|//object|//embed",
    "//*[{headerlink}]|//*[{header-anchor}]|//*[{hash-link}]|//*[{anchor-link}]|//a[{anchor} and not(normalize-space())]",
    "//*[{linenos} or {linenodiv} or {lineno} or {line-numbers-wrapper}]",
    "//*[{footnote-backref} or {fn-backref} or {backrefs}]|//img[starts-with(@src, 'data:')]",
    "//*[{md-content__button} or {md-source-file} or {md-feedback} or {md-tags}]",
    "//*[{theme-edit-this-page} or {pagination-nav} or {theme-doc-breadcrumbs} or {theme-doc-toc-mobile}]",
    "//*[{edit-this-page} or {edit-link} or {prev-next} or {breadcrumbs} or {wy-breadcrumbs} or {viewcode-link}]",
    "//*[{cookie-banner} or {cookie-consent} or {toc} or {table-of-contents} or {contents-local}]|//*[@id='toc']",
    "//span[{lang} and following-sibling::pre]|//*[{sr-only} or {visually-hidden}]",
    "//*[@role='navigation' or @role='search' or @role='contentinfo']",
)
_TITLES = (
    "//*[{admonition-title}]",  # mkdocs, Sphinx
    "//*[{custom-block-title}]",  # VitePress
    "//*[contains(@class, 'admonitionHeading')]",  # Docusaurus
    "//*[{starlight-aside__title}]",
    "//summary",
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LANDMARKS = frozenset({"header", "footer", "aside"})


def find_root(page: HtmlElement) -> HtmlElement:
    """The element that holds the page's own text."""
    present = class_names(page)
    for path in _ROOTS:
        if found := select(page, path, present):
            return found[0]
    return page


def clean_root(root: HtmlElement, base: str) -> None:
    """Change `root` in place until only content is left; relative links start from `base`."""
    note_anchors(root)  # first: the ids may sit on what is dropped
    present = class_names(root)
    label_tabs(root, present)
    label_variants(root)
    rebuild_code(root, present)
    for path in _DROPPED:
        for element in select(root, path, present):
            drop(element)
    if root.tag in ("body", "html", "main"):
        _drop_landmarks(root)
    for path in _TITLES:
        for element in select(root, path, present):
            bold_paragraph(element)
    write_anchors(root)
    _absolute_links(root, base)


def note_anchors(root: HtmlElement) -> None:
    """Note on each heading the id that a link to it needs."""
    first: dict[HtmlElement, HtmlElement | None] = {}
    for heading in root.iter(*_HEADINGS):
        if identifier := heading.get("id") or _inner_id(heading) or _section_id(heading, first):
            heading.set("data-anchor", identifier)


def write_anchors(root: HtmlElement) -> None:
    """Append ` {#id}` to each heading with a known id, and unwrap links around headings' text."""
    for heading in root.iter(*_HEADINGS):
        identifier = heading.get("data-anchor")
        for link in list(heading.iter("a")):
            link.drop_tag()
        if not identifier or not text_of(heading) or any(c in identifier for c in " {}[]"):
            continue
        last = heading[-1] if len(heading) else None
        if last is None:
            heading.text = f"{(heading.text or '').rstrip()} {{#{identifier}}}"
        else:
            last.tail = f"{(last.tail or '').rstrip()} {{#{identifier}}}"


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
        first[section] = next(iter(section.iter(*_HEADINGS)), None)
    return str(section.get("id") or "") if first[section] is heading else ""


def _drop_landmarks(root: HtmlElement) -> None:
    # without a main element, header and footer are those of the site, except where they hold the title
    for element in list(root.iter(*_LANDMARKS)):
        if element.getparent() is not None and next(element.iter("h1"), None) is None:
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


__all__ = ["clean_root", "find_root", "text_of"]
