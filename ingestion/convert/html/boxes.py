"""Notes, warnings and tabs of the generators: a bold line with their kind, title or label, and their content below it."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice

from lxml.html import HtmlElement
from lxml.html.builder import E

from ingestion.convert.document import KINDS
from ingestion.convert.html.dom import ROWS, drop, drop_all, has_class, put_label, select, text_of

_BOXES = frozenset(
    {
        "admonition",  # mkdocs, Sphinx, mdbook-admonish
        "admonitionblock",  # Asciidoctor
        "theme-admonition",  # Docusaurus
        "custom-block",  # VitePress
        "starlight-aside",
        "confluence-information-macro",
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
_KIND = re.compile(
    r"(?:^|(?:alert|aside|information-macro|callout|admonish|theme-admonition|blockquote-tag|notice|hint)-{1,2})(\w+)$"
)
_TITLE = re.compile(r"title|head(?:ing|er)|label", re.IGNORECASE)
_COMPONENTS = frozenset({"Callout", "Aside", "Admonition", "Alert"})
_TYPE = re.compile(r"\b(?:type|kind|variant|severity)=[{\"'`]*+(\w++)")
_NEAR = 12
"""Elements from the start of a box among which its title may be."""

_WORD = 15
"""Characters of the longest title that may be just the word for the kind, in a language other than English."""


def label_admonitions(root: HtmlElement, present: frozenset[str]) -> None:
    """Write `**Warning: Title**` above the content of each; the title alone where it only names the kind."""
    english = (root.getroottree().getroot().get("lang") or "en").lower().startswith("en")
    boxed = not (_BOXES.isdisjoint(present) and _BARE.isdisjoint(present))
    for box in list(root.iter("table", *(_TAGS if boxed else ()))):
        classes = (box.get("class") or "").split()
        named = not (_BOXES.isdisjoint(classes) and _BARE.isdisjoint(classes))
        kind, title = _kind(box, classes) if named else "", None
        if (table := _table_of_note(box, named)) is not None:
            said, title = _unwrapped(table)
            kind = said or kind
        elif named and box.tag != "table":
            title = _title(box)
        else:
            continue
        if text := label(kind, text_of(title) if title is not None else "", chosen=english):
            put_label(box, text)
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
    kinds = (kind.lower() for kind in _TYPE.findall(attributes))
    return next((full for kind in kinds if (full := "warning" if kind == "warn" else kind) in KINDS), "")


def _kind(box: HtmlElement, classes: list[str]) -> str:
    names = [box.get("data-callout") or "", *(match[1] for name in classes if (match := _KIND.search(name)))]
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


def _table_of_note(box: HtmlElement, named: bool) -> HtmlElement | None:
    """The table that the box is, or holds alone, if its text stands beside an icon or in one cell (Asciidoctor, DocBook, Confluence)."""
    table = box if box.tag == "table" else box[0] if len(box) == 1 and box[0].tag == "table" else None
    cells = select(table, f"{ROWS}/*") if table is not None else []
    if not 0 < len(cells) < 4 or len(select(table, ROWS)) > 2:
        return None
    first = cells[0]
    if named and (len(cells) == 1 or has_class(first, "icon") or not text_of(first)):
        return table
    return table if len(cells) > 1 and _icon(first).lower() in KINDS else None


def _icon(cell: HtmlElement) -> str:
    """What the cell says, or its picture: its title, description or file name. The words are in the page's language."""
    image = next(cell.iter("img", "i"), E.i())
    file = (image.get("src") or "").rpartition("/")[2].partition(".")[0]
    said = (text_of(cell), image.get("title"), image.get("alt"), file)
    return next((text for one in said if (text := (one or "").strip("[]:! "))), "")


def _unwrapped(table: HtmlElement) -> tuple[str, HtmlElement | None]:
    """(kind, title) of a note that is a table, which becomes plain elements."""
    cells, kind = select(table, f"{ROWS}/*"), ""
    if len(cells) > 1:
        kind = _icon(cells[0])
        drop(cells.pop(0))
    titles = [cell for cell in cells if cell.tag == "th"] or [
        one for cell in cells for one in select(cell, "/*[{title}]")
    ]
    drop_all(table, "/colgroup|/col")
    for wrapper in (*select(table, ROWS), *select(table, "/thead|/tbody|/tfoot")):
        wrapper.drop_tag()
    for part in (table, *cells):
        part.tag = "div"
    return kind, titles[0] if titles else None


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
            put_label(panel, text)
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
