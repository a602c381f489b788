"""API references of Sphinx, TypeDoc, JSDoc, Javadoc, Doxygen and rustdoc: each symbol is a section with its anchor, its
signature as code, and lists. A new generator is one function in `GENERATORS`.
"""

import re
from collections.abc import Callable, Collection, Iterator

from lxml.html import HtmlElement
from lxml.html.builder import E

from ingestion.convert.api_reference.symbols import (
    DEEPEST,
    is_short,
    item,
    keep_headings,
    list_items,
    section,
    settle_headings,
    signature_of,
    unwrap_lists,
    write_fields,
)
from ingestion.convert.html.blocks import code_block
from ingestion.convert.html.dom import (
    HEADINGS,
    bold,
    bold_paragraph,
    class_names,
    drop,
    drop_all,
    has_class,
    replace,
    select,
    text_of,
)

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
    term.append(E.code(text))


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
            marks = ["()" if called and select(term, "//*[{sig-paren}]") else "" for term in terms]
            shown = [f"{name}{mark}" for name, mark in zip(shown, marks, strict=True)]
        for term in terms[1:]:
            drop(term)
        section(terms[0], ", ".join(dict.fromkeys(shown)), signatures, language, level, _anchor(terms))
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


def write_jsdoc(root: HtmlElement) -> None:
    """Make sections of the members of a page, and lists of what they take, return and throw."""
    drop_all(root, "//dl[{details}]/*[{tag-source}]|//header/h2[.//*[{signature} or {type-signature}]]")
    for title in select(root, "//div[{container-overview}]/h2"):
        title.tag = "h3"  # as of the other kinds of members, which would stand below it
    for mark in select(root, "//*[{signature-attributes}]"):
        mark.text = "?" if "opt" in text_of(mark) else ""
    for title in select(root, "//*[self::h3 or self::h4][{name}]"):
        _jsdoc_member(title)
    for told in select(root, "//dl[dt and not(ancestor::dl)][.//*[{param-type}]]"):
        _typed(told)


def _jsdoc_member(title: HtmlElement) -> None:
    told = signature_of(title).replace("…", "...")
    drop_all(title, "//*[{type-signature}]")
    called = select(title, "//*[{signature}]")
    for part in called:
        drop(part)
    name = signature_of(title) + ("()" if called else "")
    section(title, name, [told], "javascript")


def _typed(told: HtmlElement) -> None:
    """The types that a method returns or throws, with what is said of each."""
    listing = E.ul()
    said = ""
    for part in select(told, "//*[{param-desc} or {param-type}]"):
        if "param-desc" in (part.get("class") or "").split():
            said = text_of(part)
            continue
        listing.append(item(text_of(part), said))
        said = ""
    before = told.getprevious()
    if len(listing) and before is not None and before.get("class") == "param-desc" and not listing[0][0].tail:
        listing[0][0].tail = f" – {text_of(before)}"
        drop(before)
    replace(told, listing)


_TYPEDOC_DROPPED = "//*[{tsd-breadcrumb} or {tsd-index-group} or {tsd-sources} or {tsd-anchor-icon} or {tsd-navigation} or {site-menu}]"
_ENTRIES = "//ul[{tsd-parameter-list} or {tsd-type-parameter-list} or {tsd-parameters}]/li"
_LABELS = "//h4[not(@data-anchor)]|//*[{tsd-comment}]/div/h4"


def write_typedoc(root: HtmlElement) -> None:
    """Make sections of the members of a class, and of functions; short properties are items of a list."""
    inherited = dict(filter(None, map(_inherited, select(root, "//section[{tsd-member} and {tsd-is-inherited}]"))))
    drop_all(root, _TYPEDOC_DROPPED)
    for title in select(root, "//h4[{tsd-returns-title}]"):
        _returns(title)
    for label in select(root, _LABELS):
        bold_paragraph(label)
    for entry in select(root, _ENTRIES):
        _parameter(entry)
    for member in select(root, "//section[{tsd-member}]"):
        _typedoc_member(member, inherited.get(member))
    _function(root)
    for signature in select(root, "//*[{tsd-signature}]"):
        unwrap_lists(signature)
        replace(signature, code_block(signature_of(signature), "typescript"))


def _function(root: HtmlElement) -> None:
    """The page of a function: its title leads to the first of its signatures."""
    for title in select(root, "//h1[not(@data-anchor)]"):
        if overloads := select(
            root, "/ul[{tsd-signatures}]//*[{tsd-signature}][@id]|/section/ul//*[{tsd-signature}][@id]"
        ):
            title.set("data-anchor", overloads[0].get("id"))


def _returns(title: HtmlElement) -> None:
    """`Returns string` -> the word as a label, the type as code."""
    label = (title.text or "").strip()
    word = bold(label)
    title.text = None
    if told := signature_of(title):
        word[0].tail = " "
        word.append(E.code(told))
    replace(title, word)


def _parameter(entry: HtmlElement) -> None:
    for title in select(entry, "/h5|/h4"):
        title.tag = "span"
    if len(entry) and entry[0].tag == "span":
        flags = [text_of(flag) for flag in select(entry[0], "//code[{tsd-tag}]")]
        drop_all(entry[0], "//code[{tsd-tag}]")
        name = E.code(signature_of(entry[0]))
        name.tail = f" ({', '.join(flags)})" if flags else None
        entry.replace(entry[0], name)
    for comment in select(entry, "/*[{tsd-comment}]"):
        if len(comment) and comment[0].tag == "p":
            comment.tag = comment[0].tag = "span"
            before = comment.getprevious()
            if before is not None:
                before.tail = (before.tail or "").rstrip() + " – "


def _inherited(member: HtmlElement) -> tuple[HtmlElement, HtmlElement] | None:
    """The member, and the link to the page of the site that describes it for the class that it is inherited from."""
    for source in select(member, "//*[{tsd-sources}]/p"):
        links = [link for link in source.iter("a") if "://" not in (link.get("href") or "://")]
        if links and text_of(source).startswith("Inherited from"):
            links[-1].text = text_of(source).removeprefix("Inherited from").strip()
            return member, links[-1]
    return None


def _typedoc_member(member: HtmlElement, inherited: HtmlElement | None) -> None:
    """A member with a signature of its own is a value, one with a list of them is called."""
    title = next(iter(select(member, "/h3")), None)
    if title is None:
        return
    values = select(member, "/*[{tsd-signature}]")
    if not values and inherited is not None:
        entry = item(f"{signature_of(title)}()", "inherited from ")
        inherited.tail = None
        entry.append(inherited)
        list_items(member, [entry])
        return
    if not values:
        _headed(title, "()" if select(member, "//*[{tsd-kind-call-signature}]") else "")
        return
    flags = [text_of(flag).lower() for flag in select(title, "//code[{tsd-tag}]")]
    told = " ".join([*flags, signature_of(values[0])])
    said = [part for part in member if part is not title and part is not values[0]]
    if all(map(is_short, said)):
        list_items(member, [item(told, " ".join(map(text_of, said)))])
        return
    replace(values[0], code_block(told, "typescript"))
    _headed(title, "")


def _headed(title: HtmlElement, parentheses: str) -> None:
    drop_all(title, "//code[{tsd-tag}]")
    section(title, signature_of(title) + parentheses, (), "typescript")


_SPECIFIERS = frozenset({"static", "explicit", "virtual", "inline", "constexpr"})
"""Labels beside a declaration that the source has before it."""


def write_doxygen(root: HtmlElement) -> None:
    """Make sections of the members of a page; tables that only list these go."""
    described = {str(link.get("href")).rpartition("#")[2] for link in select(root, "//*[{permalink}]//a[@href]")}
    for table in select(root, "//table[{memberdecls}]"):
        _without_described(table, described)
    for title in select(root, "//h2[{memtitle}]"):
        _doxygen_member(title)
    for line in select(root, "/hr[following-sibling::*[1][self::ul][not(following-sibling::*)]]"):
        drop(line.getnext())  # the names of the files that the page was made from
        line.tail = None


def _without_described(table: HtmlElement, described: set[str]) -> None:
    """Take from the table what has a section of its own below, and the whole table when that is all."""
    remaining = 0
    for row in list(table.iter("tr")):
        links = [str(link.get("href")).rpartition("#")[2] for link in select(row, "//a[@href]")]
        if described.intersection(links) or not row.text_content().strip():
            drop(row)
        else:
            remaining += not has_class(row, "heading")
    if remaining:
        _doxygen_listed(table)
    else:
        drop(table)


def _doxygen_listed(table: HtmlElement) -> None:
    """The rest as a heading and a list, with the links to the other pages."""
    for title in list(table.iter("h2")):
        table.addprevious(title)
    items = list[HtmlElement]()
    for row in table.iter("tr"):
        item = E.li()
        for cell in row:
            if text_of(cell):
                cell.tag, cell.tail = "span", " "
                item.append(cell)
        if len(item) and not has_class(row, "heading"):
            items.append(item)
    list_items(table, items)


def _doxygen_member(title: HtmlElement) -> None:
    links = select(title, "//*[{permalink}]//a[@href]")
    anchor = str(links[0].get("href")).rpartition("#")[2] if links else ""
    name = re.sub(r" \[\d+/\d+\]$", "", signature_of(title))
    details = title.getnext()
    signatures = list[str]()
    if details is not None and has_class(details, "memitem"):
        for declared in select(details, "/*[{memproto}]"):
            signatures.append(_declaration(declared))
            drop(declared)
    section(title, name, signatures, "cpp", 3, anchor)


def _declaration(declared: HtmlElement) -> str:
    """Returns what a table of parameters says as one line, with the blanks of the source."""
    labels = [signature_of(label) for label in select(declared, "//*[{mlabel}]")]
    drop_all(declared, "//*[{mlabels-right}]")
    lines = [signature_of(line) for line in select(declared, "//*[{memtemplate}]")]
    drop_all(declared, "//*[{memtemplate}]")
    said = " ".join(label for label in labels if label in _SPECIFIERS)
    lines.append(f"{said} {' '.join(signature_of(declared).split())}".strip())
    text = re.sub(r"<([^<>]*)>", lambda given: f"<{given[1].strip()}>", "\n".join(lines))
    text = re.sub(r" ?\( ?", "(", text.replace(" )", ")"))
    return re.sub(r"([*&]) (?=\w)", r"\1", text)


def write_javadoc(root: HtmlElement) -> None:
    """Make sections of the members of a class; summaries of members that the page describes go."""
    _javadoc_title(root)
    drop_all(root, "//div[{inherited-list} or {inheritance} or {caption}]")
    for signature in select(root, "//div[{type-signature} or {package-signature}]"):
        replace(signature, code_block(signature_of(signature), "java"))
    described = {section.get("id") for section in root.iter("section")}
    for summary in select(root, "//section[contains(@id, '-summary')]"):
        _summary(summary, described)
    for table in select(root, "//div[{summary-table}]"):
        _listed(table)
    for title in select(root, "//section[{details} or contains(@class, '-details')]/h2"):
        unwrap_lists(title)
    for member in select(root, "//section[{detail}]"):
        _javadoc_member(member)


def _javadoc_title(root: HtmlElement) -> None:
    """`Class Box` of the package `lumora` -> `Class lumora.Box`."""
    titles = select(root, "//h1[@title]")
    packages = select(root, "//*[{sub-title}]")
    if not titles or not packages or not len(packages[-1]):
        return
    package = text_of(packages[-1][-1])
    kind = (titles[0].get("title") or "").rpartition(" ")[0]
    text = text_of(titles[0])
    if package and kind and text.startswith(f"{kind} "):
        for child in list(titles[0]):
            drop(child)
        titles[0].text = f"{kind} {package}.{text[len(kind) + 1 :]}"
        for element in packages:
            drop(element)


def _summary(summary: HtmlElement, described: Collection[str | None]) -> None:
    """Drop a summary of what the page describes in full, and one of nothing."""
    title = next(iter(select(summary, "/h2")), None)
    if title is not None:
        unwrap_lists(title)
    details = str(summary.get("id")).removesuffix("-summary") + "-detail"
    if details in described or not select(summary, "//div[{summary-table}]"):
        outer = summary.getparent()
        drop(outer if outer is not None and outer.tag == "li" and len(outer) == 1 else summary)


def _listed(table: HtmlElement) -> None:
    """A summary of what other pages describe as a list, with the links to them."""
    drop_all(table, "/*[{table-header}]")
    items, item = list[HtmlElement](), E.li()
    for cell in list(table):
        for block in cell.iter("div"):
            block.tag = "span"
        if has_class(cell, "col-last"):
            if len(item) and text_of(cell):
                item[-1].tail = " – "
            items, item = [*items, _with(item, cell)], E.li()
        else:
            _with(item, cell)
    list_items(table, items)


def _with(made: HtmlElement, cell: HtmlElement) -> HtmlElement:
    cell.tail = " "
    made.append(cell)
    return made


def _javadoc_member(member: HtmlElement) -> None:
    signatures = select(member, "/*[{member-signature}]")
    title = next(iter(member), None)
    if title is None or title.tag not in ("h3", "h4"):
        return
    called = any(select(signature, "//*[{parameters}]") or "(" in text_of(signature) for signature in signatures)
    told = [signature_of(signature) for signature in signatures]
    for signature in signatures:
        drop(signature)
    said = [part for part in member if part is not title]
    if told and not called and all(map(is_short, said)):
        unwrap_lists(title)
        list_items(member, [item(told[0], " ".join(map(text_of, said)))])
        return
    name = text_of(title) + ("()" if called else "")
    section(title, name, told, "java")


_RUSTDOC_DROPPED = (
    "//*[{src} or {doc-anchor} or {hideme} or {rightside}]|//a[{anchor}]|//rustdoc-toolbar|//*[@id='copy-path']"
    "|//*[@id='synthetic-implementations' or @id='synthetic-implementations-list']"
    "|//*[@id='blanket-implementations' or @id='blanket-implementations-list']"
)
"""Among them what the compiler implements for every type."""

_NAME = re.compile(r"\b(?:fn|type|const|static|macro_rules!)\s+([\w:]+)")


def write_rustdoc(root: HtmlElement) -> None:
    """Make sections of methods and implementations; fields and variants are items of a list."""
    drop_all(root, _RUSTDOC_DROPPED)
    _title(root)
    for field in select(root, "//span[{structfield}]|//span[{section-header}]"):
        _value(field)
    for variant in select(root, "//section[{variant}]"):
        _value(variant)
    for title in select(root, "//section/*[{code-header}]"):
        _rustdoc_member(title)


def _title(root: HtmlElement) -> None:
    """`Struct Crate` of the module `lumora` -> `Struct lumora::Crate`."""
    for crumbs in select(root, "//*[{rustdoc-breadcrumbs}]"):
        path = text_of(crumbs).replace(" ", "")
        title = crumbs.getnext()
        if title is not None and title.tag == "h1" and len(title):
            title[0].text = f"{path}::{title[0].text or ''}"
            drop(crumbs)


def _value(element: HtmlElement) -> None:
    """A field or variant with the text after it; one of which more is said is a section."""
    body = element.getnext()
    if body is None or not has_class(body, "docblock"):
        body = None
    after = body.getnext() if body is not None else element.getnext()
    inner = after is not None and has_class(after, "sub-variant")
    if is_short(body) and not inner:
        said = text_of(body) if body is not None else ""
        if body is not None:
            drop(body)
        list_items(element, [item(signature_of(element), said)])


def _rustdoc_member(title: HtmlElement) -> None:
    outer = title.getparent()
    if outer is None or next(title.iterancestors("li", "table"), None) is not None:
        return
    for toggle in title.iterancestors("summary", "details"):
        toggle.tag = "div"
    for where in select(title, "//*[{where}]"):
        where.text = f" {where.text or ''}"
    told = signature_of(title)
    named = _NAME.search(told)
    name = named[1] + ("()" if "fn " in told[: named.end()] else "") if named else signature_of(title)
    level = int(title.tag[1]) if title.tag[1:].isdecimal() else 4
    section(title, name, [told] if named else [], "rust", level, str(outer.get("id") or ""))


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
