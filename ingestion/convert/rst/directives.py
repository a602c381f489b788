"""The directives of Sphinx and its extensions by their names: what they say stays, what they only arrange goes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

from ingestion.convert.rst.kept import (
    LANGUAGES,
    VERSIONS,
    Bare,
    Code,
    Content,
    Generated,
    Glossary,
    Highlight,
    Nothing,
    Only,
    SeeAlso,
    Titled,
    Unknown,
    Version,
)
from ingestion.convert.rst.objects import OBJECTS, CurrentModule, Described, Program
from ingestion.convert.rst.others import Included, Listing, Table, Toctree

_BY_CLASS: Mapping[type[Directive], str] = {
    Code: "code-block sourcecode code code-tab tabs-code highlight-code " + " ".join(LANGUAGES),
    Content: "rst-class cssclass tab-set grid card-carousel tab-set-code panels div grid-item container",
    Bare: "tabs hlist acks content-tabs compound ifconfig-content",
    Titled: "tab tab-item group-tab dropdown card grid-item-card details collapse topic-box content-tab rubric-box centered",
    Nothing: "raw contents sectnum section-numbering header footer meta index tabularcolumns sectionauthor codeauthor "
    "moduleauthor testsetup testcleanup target-notes title default-domain local-toc sidebar-links tags "
    "inheritance-diagram currentlibrary autosummary-hidden",
    Generated: "automodule autoclass autofunction autoexception automethod autodata autoattribute autodecorator "
    "autoproperty autosummary autoenum autopydantic_model autopydantic_settings doxygenclass doxygenfunction doxygenfile "
    "doxygenstruct doxygenenum doxygengroup doxygentypedef doxygenvariable doxygenindex argparse click autoprogram "
    "autoclasstree autojsonschema autoflask",
    Version: " ".join(VERSIONS),
    SeeAlso: "seealso todo",
    Only: "only",
    Listing: "literalinclude",
    Included: "include",
    Table: "csv-table",
    Toctree: "toctree",
    Glossary: "glossary",
    Highlight: "highlight highlightlang",
    CurrentModule: "module currentmodule",
    Program: "program",
}
_NAMED = {name: made for made, names in _BY_CLASS.items() for name in names.split()}


def directive_named(original: Callable[..., Any]) -> Callable[..., Any]:
    """The look-up of directives: those here first, then docutils' own; any other keeps its content."""

    def lookup(name: str, language: Any, document: nodes.document) -> tuple[type[Directive], list[Any]]:
        domain, _, short = name.lower().rpartition(":")
        if found := _NAMED.get(short):
            return found, []
        if short in OBJECTS and (domain or short not in ("role", "directive")):
            return Described, []
        found, _ = original(name, language, document)
        return found or Unknown, []

    return lookup
