"""Sphinx: `dl > dt.sig[id]` with the description in `dd`, symbols in symbols."""

from __future__ import annotations

from collections.abc import Iterator

from lxml.html import HtmlElement

from ingestion.convert.api_reference.symbols import (
    DEEPEST,
    HEADINGS,
    code,
    heading,
    is_short,
    item,
    list_items,
    section,
    signature_of,
)
from ingestion.convert.html.dom import class_names, drop, has_class, select, text_of

_LANGUAGES = {"py": "python", "c": "c", "cpp": "cpp", "js": "javascript", "rst": "rst", "php": "php", "rb": "ruby"}
_VALUES = frozenset({"attribute", "data", "member", "var", "enumerator", "value", "field"})
"""Kinds of symbols without parameters."""

_TYPES = frozenset({"class", "exception", "struct", "union", "enum", "enum-struct", "type", "module", "namespace"})
"""Kinds of symbols that have parentheses but aren't called by their name alone."""


def write_sphinx(root: HtmlElement) -> None:
    """Make sections of the symbols that have an id; the signature of others is a term in code."""
    around, levels, names = 1, dict[HtmlElement, int](), dict[HtmlElement, str]()
    for element in list(root.iter("dl", *HEADINGS)):
        outer = next((ancestor for ancestor in element.iterancestors("div") if ancestor in levels), None)
        if element.tag != "dl":
            around = int(element.tag[1]) if outer is None else around
            continue
        _mend(element)
        groups = list(_groups(element))
        if not groups:
            continue
        if outer is not None and _values(element, groups, names[outer]):
            continue
        levels[element] = (around if outer is None else levels[outer]) + 1
        names[element] = _write(element, groups, levels[element], names.get(outer, "") if outer is not None else "")


def _mend(element: HtmlElement) -> None:
    """Put a signature of several lines together: to the parser, the list of its parameters ends the term."""
    for term in [child for child in element if child.tag == "dt" and has_class(child, "sig")]:
        while (following := term.getnext()) is not None and following.tag not in ("dt", "dd"):
            term.append(following)


def _groups(element: HtmlElement) -> Iterator[tuple[list[HtmlElement], HtmlElement | None]]:
    """The signatures that share a description, with it. Signatures without any id are made terms in code."""
    terms: list[HtmlElement] = []
    for child in [*element, None]:
        if child is not None and child.tag == "dt":
            terms.append(child)
            continue
        if terms and all(has_class(term, "sig") or "descname" in class_names(term) for term in terms):
            if _anchor(terms):
                yield terms, child if child is not None and child.tag == "dd" else None
            else:
                for term in terms:
                    _coded(term)
        terms = []


def _anchor(terms: list[HtmlElement]) -> str:
    return next((str(term.get("id")) for term in terms if term.get("id")), "")


def _coded(term: HtmlElement) -> None:
    text = signature_of(term)
    for child in list(term):
        drop(child)
    term.text = None
    term.append(code(text))


def _values(element: HtmlElement, groups: list[tuple[list[HtmlElement], HtmlElement | None]], outer: str) -> bool:
    """Write attributes and constants of a symbol as items of its list, where all of them are short."""
    kinds = set((element.get("class") or "").split())
    if not kinds & _VALUES or not all(is_short(body) for _, body in groups):
        return False
    items = [
        item(", ".join(map(signature_of, terms)), text_of(body) if body is not None else "") for terms, body in groups
    ]
    list_items(element, items, outer)
    return True


def _write(
    element: HtmlElement, groups: list[tuple[list[HtmlElement], HtmlElement | None]], level: int, outer: str
) -> str:
    """The full name of the (last) symbol, of which a section was made."""
    classes = (element.get("class") or "").split()
    language = next((_LANGUAGES[name] for name in classes if name in _LANGUAGES), "")
    called = not _TYPES.intersection(classes)
    full = ""
    for terms, body in groups:
        signatures = [signature_of(term) for term in terms]
        if "std" in classes:
            shown = list(signatures)
        else:
            shown = [_name(term, "" if level <= DEEPEST else outer, bool(outer)) for term in terms]
            full = f"{outer}.{_own(terms[0])}" if outer else shown[0]
            shown = [f"{name}{_parentheses(term) if called else ''}" for name, term in zip(shown, terms, strict=True)]
        head = heading(level, ", ".join(dict.fromkeys(shown)), _anchor(terms))
        for term in terms[1:]:
            drop(term)
        section(terms[0], head, signatures, language)
        if body is not None:
            body.tag = "div"
    element.tag = "div"
    element.set("data-body", "")
    return full


def _own(term: HtmlElement) -> str:
    names = select(term, "//*[{descname}]")
    return text_of(names[-1]) if names else signature_of(term)


def _name(term: HtmlElement, outer: str, inside: bool) -> str:
    """The name as readers call it: of a symbol of its own with its package, which its id tells where the page doesn't."""
    names = select(term, "//*[{descname}]")
    own = _own(term)
    if inside:
        return f"{outer}.{own}" if outer else own
    before = names[-1].getprevious() if names else None
    if before is not None and has_class(before, "descclassname"):
        own = text_of(before).replace(" ", "") + own
    anchor = str(term.get("id") or "")
    return anchor if anchor.endswith(f".{own}") and not has_class(term, "c") else own


def _parentheses(term: HtmlElement) -> str:
    return "()" if select(term, "//*[{sig-paren}]") else ""
