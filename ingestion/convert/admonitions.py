"""Notes and warnings of the generators: a bold line with their kind and title, and their content below it."""

from __future__ import annotations

import re
from itertools import islice

from lxml.html import HtmlElement

from ingestion.convert.dom import bold, drop, has_class, select, text_of

KINDS = frozenset(
    [
        "note",
        "tip",
        "hint",
        "info",
        "important",
        "warning",
        "caution",
        "danger",
        "attention",
        "error",
        "success",
        "failure",
        "bug",
        "example",
        "question",
        "abstract",
        "todo",
    ]
)
_BOXES = frozenset(
    {
        "admonition",  # mkdocs, Sphinx, mdbook-admonish
        "admonitionblock",  # Asciidoctor
        "theme-admonition",  # Docusaurus
        "custom-block",  # VitePress
        "starlight-aside",
        "markdown-alert",  # GitHub, mdBook
        "blockquote-tag",  # mdBook
        "alert",  # Bootstrap: Docsy, Antora
        "callout",
        "notice",
        "hint",
    }
)
_BARE = frozenset({"note", "tip", "important", "warning", "caution", "danger"})
"""Kinds that make a box of an element with no other class for it (rustdoc, mkdocs' `details`)."""

_TAGS = ("div", "aside", "blockquote", "details", "section")
_KIND = re.compile(r"(?:^|(?:alert|aside|callout|admonish|theme-admonition|blockquote-tag|notice|hint)-{1,2})(\w+)$")
_TITLE = re.compile(r"title|head(?:ing|er)|label", re.IGNORECASE)
_COMPONENTS = frozenset({"Callout", "Aside", "Admonition", "Alert"})
_TYPE = re.compile(r"\b(?:type|kind|variant|severity)=[{\"'`]*+(\w++)")
_NEAR = 12
"""Elements from the start of a box among which its title may be."""

_WORD = 15
"""Characters of the longest title that may be just the word for the kind, in a language other than English."""


def label_admonitions(root: HtmlElement, present: frozenset[str]) -> None:
    """Write `**Warning: Title**` above the content of each; the title alone where it only names the kind."""
    if _BOXES.isdisjoint(present) and _BARE.isdisjoint(present):
        return
    english = (root.getroottree().getroot().get("lang") or "en").lower().startswith("en")
    for box in list(root.iter(*_TAGS)):
        classes = (box.get("class") or "").split()
        if _BOXES.isdisjoint(classes) and _BARE.isdisjoint(classes):
            continue
        kind, title = _unwrapped(box) if "admonitionblock" in classes else (_kind(box, classes), _title(box))
        if text := label(kind, text_of(title) if title is not None else "", chosen=english):
            box.insert(0, bold(text))
            box[0].tail, box.text = box.text, None
        if title is not None:
            drop(title)
        box.tag = "div"  # neighbouring quotes would become one, and an aside may be taken for the theme's


def label(kind: str, title: str, *, chosen: bool = True) -> str:
    """The text of the bold line; empty when there is neither. A title that wasn't `chosen` may be the word for the kind."""
    if not title or not kind or title.lower() == kind.lower():
        return kind.capitalize() or title
    if kind.lower() in title.lower() or title.lower() in KINDS or not (chosen or " " in title or len(title) > _WORD):
        return title
    return f"{kind.capitalize()}: {title}"


def component_kind(name: str, attributes: str) -> str:
    """The kind of admonition that a component of MDX shows (`<Callout type="warn">`, `<Note>`); empty if it is none."""
    if name.lower() in KINDS or name not in _COMPONENTS:
        return name.lower() if name.lower() in KINDS else ""
    kinds = (found.lower() for found in _TYPE.findall(attributes))
    return next((full for kind in kinds if (full := "warning" if kind == "warn" else kind) in KINDS), "")


def _kind(box: HtmlElement, classes: list[str]) -> str:
    names = [box.get("data-callout") or "", *(found[1] for name in classes if (found := _KIND.search(name)))]
    return next((name.lower() for name in names if name.lower() in KINDS), "")


def _title(box: HtmlElement) -> HtmlElement | None:
    """The element with the title, if the box starts with it."""
    if (box.text or "").strip():
        return None
    for element in islice(box.iter("*"), 1, _NEAR):
        role, classes = element.get("role"), element.get("class") or ""
        if element.tag == "summary" or role == "heading" or (element.tag != "svg" and _TITLE.search(classes)):
            return element
        if (element.text or "").strip():
            return None
    return None


def _unwrapped(box: HtmlElement) -> tuple[str, HtmlElement | None]:
    """(kind, title) of Asciidoctor's, which are tables: the icon, or its text, names the kind in the page's language."""
    kind = ""
    for icon in select(box, "/table//td[{icon}]"):
        image = next(icon.iter("i", "img"), None)
        kind = kind or text_of(icon) or (image.get("title") or image.get("alt") or "" if image is not None else "")
        drop(icon)
    titles = select(box, "/table//td[{content}]/*[{title}]")
    for part in select(box, "/table|/table/tbody|/table/tr|/table/tbody/tr|/table//td[{content}]"):
        if has_class(part, "content"):
            part.tag = "div"
        else:
            part.drop_tag()
    return kind, titles[0] if titles else None
