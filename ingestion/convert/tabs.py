"""Tabs of the documentation generators: each panel gets its label as a bold paragraph before it."""

from __future__ import annotations

from lxml.html import HtmlElement

from ingestion.convert.dom import bold, drop, select, text_of

_SETS = (
    # where the set is, its labels, its panels
    ("//*[{tabbed-set}]", "/*[{tabbed-labels}]/label", "/*[{tabbed-content}]/*[{tabbed-block}]"),  # mkdocs-material
    ("//*[{vp-code-group}]", "/*[{tabs}]//label", "/*[{blocks}]/*"),  # VitePress
    ("//*[{sd-tab-set}]", "/label[{sd-tab-label}]", "/*[{sd-tab-content}]"),  # sphinx-design
    ("//*[*[@role='tablist']]", "/*[@role='tablist']//*[@role='tab']", "//*[@role='tabpanel']"),  # Docusaurus, ARIA
)


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
