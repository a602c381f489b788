"""API references of documentation generators: each symbol is a section with its anchor, its signature as code, and lists.

Called by `clean`. A new generator is one function in `GENERATORS`.
"""

from __future__ import annotations

from collections.abc import Callable

from lxml.html import HtmlElement

from ingestion.convert.api_reference.compiled import write_doxygen, write_javadoc, write_rustdoc
from ingestion.convert.api_reference.fields import write_fields
from ingestion.convert.api_reference.javascript import write_jsdoc, write_typedoc
from ingestion.convert.api_reference.sphinx import write_sphinx
from ingestion.convert.api_reference.symbols import keep_headings, settle_headings

GENERATORS: tuple[tuple[frozenset[str], Callable[[HtmlElement], None]], ...] = (
    (frozenset({"sig", "descname"}), write_sphinx),
    (frozenset({"tsd-panel", "tsd-panel-group"}), write_typedoc),
    (frozenset({"subsection-title", "container-overview"}), write_jsdoc),
    (frozenset({"member-signature", "class-description", "package-signature"}), write_javadoc),
    (frozenset({"memproto", "memberdecls"}), write_doxygen),
    (frozenset({"code-header", "item-decl"}), write_rustdoc),
)
"""By classes of which a page of the generator has one."""


def write_api_reference(root: HtmlElement, present: frozenset[str]) -> None:
    """Make sections of the symbols below `root`, and lists of what is said of their parameters.

    `present` are the classes in `root`.
    """
    keep_headings(root)
    writers = [write for classes, write in GENERATORS if not classes.isdisjoint(present)]
    for write in writers:
        write(root)
    write_fields(root, present)
    if writers:
        settle_headings(root)
        for link in root.iter("a", "abbr"):  # its tooltip
            link.attrib.pop("title", None)
