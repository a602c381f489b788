"""Tabs of the documentation generators: each panel gets its label as a bold paragraph before it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice

from lxml.html import HtmlElement

from ingestion.convert.dom import bold, drop, select, text_of

_SETS = (
    # what a browser script makes of them isn't in the page: where the set is, its labels, its panels
    ("//*[{tabbed-set}]", "/*[{tabbed-labels}]/label", "/*[{tabbed-content}]/*[{tabbed-block}]"),  # mkdocs-material
    ("//*[{vp-code-group}]", "/*[{tabs}]//label", "/*[{blocks}]/*"),  # VitePress
)
_PANELS = "//*[@role='tabpanel']|//*[{tabpanel} or {tab-pane}]"
_MARKS = frozenset({"tabpanel", "tab-pane"})
_TABS = (
    "//*[@role='tab']|//*[@data-toggle='tab' or @data-bs-toggle='tab' or @data-toggle='pill' or @data-bs-toggle='pill']"
)
_CONTROLS = ("aria-controls", "data-bs-target", "data-target", "href")
_RADIOS = "//input[@type='radio' and @id=following-sibling::*[1][self::label]/@for]"  # tabs without a script
_FAR = 8
"""Elements from a panel up to the one that holds its row of tabs, too."""

_ROWS = frozenset({"li", "ul", "ol", "div", "nav"})
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})


def label_tabs(root: HtmlElement, present: frozenset[str]) -> None:
    """Write every tab's label above its panel and remove the row of labels."""
    roles = frozenset(root.xpath(".//@role", smart_strings=False))
    pairs = [*(_linked(root, present) if _MARKS & (roles | present) else ()), *_radios(root)]
    paired = {panel for _, panel in pairs}
    for sets, labels, panels in _SETS:
        for group in select(root, sets, present):
            pairs += zip(select(group, labels), select(group, panels), strict=False)
    if "tablist" in roles:
        pairs += [(tab, panel) for tab, panel in _in_order(root) if panel not in paired]
    for label, panel in pairs:
        if text := text_of(label):
            panel.insert(0, bold(text))
            # text before the first child would otherwise stand above the label
            panel[0].tail, panel.text = panel.text, None
    for label in {label for label, _ in pairs}:
        _drop_with_row(label)


def _linked(root: HtmlElement, present: frozenset[str]) -> list[tuple[HtmlElement, HtmlElement]]:
    """Tabs with the panels that they, or that name each other (WAI-ARIA, Bootstrap, asciidoctor-tabs)."""
    if not (panels := list(dict.fromkeys(select(root, _PANELS, present)))):
        return []
    tabs = {
        (tab.get(name) or "").rpartition("#")[2]: tab for tab in select(root, _TABS) for name in reversed(_CONTROLS)
    }
    named = {element.get("id"): element for element in select(root, "//*[@id]")}
    pairs = []
    for panel in panels:
        by = panel.get("aria-labelledby") or panel.get("aria-labelled-by") or ""
        tab = tabs.get(panel.get("id") or by) if panel.get("id") else None
        tab = named.get(by) if tab is None else tab
        if tab is not None and panel not in tab.iterancestors():
            pairs.append((tab, panel))
    return pairs


def _radios(root: HtmlElement) -> list[tuple[HtmlElement, HtmlElement]]:
    """Labels of radio buttons with the block behind each (mkdocs, sphinx-design, sphinx-inline-tabs)."""
    labels = [radio.getnext() for radio in select(root, _RADIOS)]
    behind = ((label, label.getnext()) for label in labels)
    return [(label, panel) for label, panel in behind if panel is not None and panel.tag == "div"]


def _in_order(root: HtmlElement) -> Iterator[tuple[HtmlElement, HtmlElement]]:
    """The tabs of rows with the panels beside each row, which nothing links (Docusaurus)."""
    tabs: defaultdict[HtmlElement, list[HtmlElement]] = defaultdict(list)  # by what holds their row and its panels
    for row in select(root, "//*[@role='tablist']"):
        if (beside := row.getparent()) is not None:
            tabs[beside] += select(row, "//*[@role='tab']")
    panels: defaultdict[HtmlElement, list[HtmlElement]] = defaultdict(list)
    for panel in select(root, "//*[@role='tabpanel']") if tabs else ():
        for above in islice(panel.iterancestors(), _FAR):
            if above in tabs:
                panels[above].append(panel)
            if above in tabs or above.get("role") == "tabpanel":
                break
    for beside, labels in tabs.items():
        yield from zip(labels, panels[beside], strict=False)


def _drop_with_row(label: HtmlElement) -> None:
    row = label.getparent()
    drop(label)
    while row is not None and row.tag in _ROWS and not len(row) and not (row.text or "").strip():
        label, row = row, row.getparent()
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
