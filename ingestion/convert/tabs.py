"""Tabs of the documentation generators: each panel gets its label as a bold paragraph before it."""

from __future__ import annotations

from collections import Counter

from lxml.html import HtmlElement

from ingestion.convert.dom import bold, drop, select, text_of

_SETS = (
    # where the set is, its labels, its panels
    ("//*[{tabbed-set}]", "/*[{tabbed-labels}]/label", "/*[{tabbed-content}]/*[{tabbed-block}]"),  # mkdocs-material
    ("//*[{vp-code-group}]", "/*[{tabs}]//label", "/*[{blocks}]/*"),  # VitePress
    ("//*[{sd-tab-set}]", "/label[{sd-tab-label}]", "/*[{sd-tab-content}]"),  # sphinx-design
    ("//*[*[@role='tablist']]", "/*[@role='tablist']//*[@role='tab']", "//*[@role='tabpanel']"),  # Docusaurus, ARIA
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def label_tabs(root: HtmlElement, present: frozenset[str]) -> None:
    """Write every tab's label above its panel and remove the row of labels."""
    for sets, labels, panels in _SETS:
        for group in select(root, sets, present):
            found = select(group, labels)
            for label, panel in zip(found, select(group, panels), strict=False):
                if text := text_of(label):
                    panel.insert(0, bold(text))
                    # text before the first child would otherwise stand above the label
                    panel[0].tail, panel.text = panel.text, None
            for label in found:
                drop(label)


def label_variants(root: HtmlElement) -> None:
    """Write of which variant a text is above a block, below its heading, and behind words of a sentence.

    Variants are elements side by side, more than once in a page, whose classes end alike: `options-api`,
    `composition-api`.
    """
    pairs = Counter(pair for element in root.iter("div", "span") if (pair := _beside(element)))
    variants = {name for pair, times in pairs.items() if times > 1 for name in pair}
    for element in [one for one in root.iter("div", "span") if one.get("class") in variants and text_of(one)]:
        label = str(element.get("class")).replace("-", " ")
        if element.tag == "div":
            place = 1 if len(element) and element[0].tag in _HEADINGS else 0
            element.insert(place, bold(label))
            if not place:
                element[0].tail, element.text = element.text, None
            continue
        _append(element, f" ({label})")
        if _beside(element):
            element.tail = " / "


def _beside(element: HtmlElement) -> tuple[str, str] | None:
    """The classes of the element and the next one, in order, where they may be variants."""
    other = element.getnext()
    if other is None or other.tag != element.tag or (element.tail or "").strip():
        return None
    one, two = sorted((element.get("class") or "", other.get("class") or ""))
    alike = "-" in one and one.rpartition("-")[2] == two.rpartition("-")[2] and " " not in one + two
    return (one, two) if one != two and alike and next(element.iterancestors("pre", "code"), None) is None else None


def _append(element: HtmlElement, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
