"""API references of Sphinx, TypeDoc, JSDoc, Javadoc, Doxygen and rustdoc: each symbol is a section with its anchor, its
signature as code, and lists. A new generator is a row of `GENERATORS`. Of Sphinx, the symbols are definitions within each other.
"""

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from urllib.parse import unquote

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


def _returned(label: HtmlElement) -> None:
    """`Returns string` -> the word in bold, the type as code."""
    made, label.text = bold((label.text or "").strip()), None
    if told := signature_of(label):
        made[0].tail = " "
        made.append(E.code(told))
    replace(label, made)


def _parameter(entry: HtmlElement) -> None:
    """Make code of the name and type at the beginning of the entry, and put its flags and what is said of it on the same line."""
    for title in select(entry, "/h5|/h4"):
        title.tag = "span"
    if len(entry) and entry[0].tag == "span":
        flags = [text_of(flag) for flag in select(entry[0], "//code[{tsd-tag}]")]
        drop_all(entry[0], "//code[{tsd-tag}]")
        name = E.code(
            signature_of(entry[0]),
        )
        name.tail = f" ({', '.join(flags)})" if flags else None
        entry.replace(entry[0], name)
    for said in select(entry, "/*[{tsd-comment}][*[1][self::p]]"):
        said.tag = said[0].tag = "span"
        if (before := said.getprevious()) is not None:
            before.tail = (before.tail or "").rstrip() + " – "


def _inherited(member: HtmlElement) -> None:
    """Make an item of a member that another page of the site describes, with the link to it."""
    for source in select(member, "//*[{tsd-sources}]/p[starts-with(., 'Inherited from')]"):
        links = [link for link in source.iter("a") if "://" not in (link.get("href") or "://")]
        if links:
            entry = item(f"{signature_of(select(member, '/h3')[0])}()", "inherited from ")
            entry.append(E.a(text_of(source).removeprefix("Inherited from").strip(), href=links[-1].get("href")))
            list_items(member, [entry])
            return


def _typed(told: HtmlElement) -> None:
    """Make a list of the types that a method returns or throws, with what is said of each before it."""
    before = told.getprevious()
    outside = [before] if before is not None and before.get("class") == "param-desc" else []
    listing, said = E.ul(), " ".join(map(text_of, outside))
    for part in select(told, "//*[{param-desc} or {param-type}]"):
        if has_class(part, "param-type"):
            listing.append(item(text_of(part), said))
        said = text_of(part) if has_class(part, "param-desc") else ""
    for part in outside:
        drop(part)
    replace(told, listing)


def _deeper(title: HtmlElement) -> None:
    """Make a heading one of level 3, with the anchor that its permalink has."""
    title.tag = "h3"
    for link in select(title, "//*[{permalink}]//a[@href]"):
        title.set("data-anchor", link.get("href").rpartition("#")[2])


def _unlisted(outer: HtmlElement) -> None:
    outer.tag = "div"


def _overloaded(signature: HtmlElement) -> None:
    """Lead the title of the page of a function to its first signature."""
    for title in select(signature.getroottree().getroot(), "//h1[not(@data-anchor)]"):
        title.set("data-anchor", signature.get("id"))


def _packaged(package: HtmlElement) -> None:
    """Write the package before the name in the title: `Class lumora.Box`, `Struct lumora::Crate`."""
    title = package.getnext()
    kind, _, name = text_of(title).partition("<")[0].rpartition(" ")
    if kind and (path := text_of(package).split()):
        separator = "::" if has_class(package, "rustdoc-breadcrumbs") else "."
        text = f"{kind} {path[-1]}{separator}{name}{text_of(title)[len(f'{kind} {name}') :]}"
        for child in list(title):
            drop(child)
        title.text = text
        drop(package)


def _ended(line: HtmlElement) -> None:
    """Drop the list of the files that the page was made from."""
    drop(line.getnext())
    line.tail = None


Change = tuple[str, Callable[[HtmlElement], None]]
_NOTHING = "/self::*[false()]"


@dataclass(frozen=True, slots=True)
class Generator:
    """The selectors of a generator, by which it is known (`marks`, classes of which a page has one) and read.

    `changes` come first. `title` is the heading of a symbol; from it lead `whole` to the element with all that is said of the symbol,
    and `name` to its name, which is else the title without what is `aside`. From the whole lead `signature`, `flags` and `called`,
    which is there if the symbol takes parameters. A `value` is a symbol of which so little is `said` that it is an item of a list.
    A `summary` has rows that link to symbols of this page, which go, or of others. `code` is signatures that stay where they are.
    """

    marks: frozenset[str]
    language: str
    title: str
    changes: tuple[Change, ...] = ()
    whole: str = "/.."
    name: str = _NOTHING
    aside: str = _NOTHING
    signature: str = _NOTHING
    flags: str = _NOTHING
    called: str = _NOTHING
    value: str = _NOTHING
    said: str = _NOTHING
    summary: str = _NOTHING
    code: str = _NOTHING


_OWN = "[not(ancestor::section[1][{impl}])]"
GENERATORS = (
    Generator(
        marks=frozenset({"tsd-panel", "tsd-panel-group"}),
        language="typescript",
        changes=(
            ("//section[{tsd-member} and {tsd-is-inherited}][h3][not(*[{tsd-signature}])]", _inherited),
            ("//*[{tsd-breadcrumb} or {tsd-index-group} or {tsd-sources} or {tsd-anchor-icon}]", drop),
            ("//*[{tsd-navigation} or {site-menu}]", drop),
            ("//h4[{tsd-returns-title}]", _returned),
            ("//h4[not(@data-anchor)]|//*[{tsd-comment}]/div/h4", bold_paragraph),
            ("//ul[{tsd-parameter-list} or {tsd-type-parameter-list} or {tsd-parameters}]/li", _parameter),
            ("//*[{tsd-signature}]/ancestor::*[self::ul or self::li]", _unlisted),
            (
                "/*[{tsd-signatures}]//*[{tsd-signature}][@id]|/section/*[{tsd-signatures}]//*[{tsd-signature}][@id]",
                _overloaded,
            ),
        ),
        title="//section[{tsd-member}]/h3",
        aside="//code[{tsd-tag}]",
        signature="/*[{tsd-signature}]",
        flags="/h3/code[{tsd-tag}]",
        called="//*[{tsd-kind-call-signature}]",
        value="//section[{tsd-member}][*[{tsd-signature}]]",
        said="/*[not(self::h3) and not({tsd-signature})]",
        code="//*[{tsd-signature}]",
    ),
    Generator(
        marks=frozenset({"subsection-title", "container-overview"}),
        language="javascript",
        changes=(
            ("//dl[{details}]/*[{tag-source}]|//header/h2[.//*[{signature} or {type-signature}]]", drop),
            ("//dl[dt and not(ancestor::dl)][.//*[{param-type}]]", _typed),
            ("//div[{container-overview}]/h2", _deeper),
        ),
        title="//*[self::h3 or self::h4][{name}]",
        whole="/self::*",
        aside="//*[{signature} or {type-signature}]",
        signature="/self::*",
        called="//*[{signature}]",
    ),
    Generator(
        marks=frozenset({"member-signature", "class-description", "package-signature"}),
        language="java",
        changes=(
            ("//section/ancestor::*[self::ul or self::li]", _unlisted),
            ("//div[{inherited-list} or {inheritance} or {caption}]|//*[{summary-table}]/*[{table-header}]", drop),
            ("//section[contains(@id, '-summary')][not(.//div[{summary-table}])]", drop),
            ("//*[{sub-title}][following-sibling::*[1][self::h1]]", _packaged),
            ("//*[{sub-title}]", drop),
        ),
        title="//section[{detail}]/*[1][self::h3 or self::h4]",
        signature="/*[{member-signature}]",
        called="/*[{member-signature}][contains(., '(')]",
        value="//section[{detail}][*[{member-signature}][not(contains(., '('))]]",
        said="/*[position() > 1][not({member-signature})]",
        summary="//div[{summary-table}]",
        code="//div[{type-signature} or {package-signature}]",
    ),
    Generator(
        marks=frozenset({"memproto", "memberdecls"}),
        language="cpp",
        changes=(
            ("//hr[following-sibling::*[1][self::ul][not(following-sibling::*)]]", _ended),
            ("//h2[{memtitle}]", _deeper),
        ),
        title="//h3[{memtitle}]",
        whole="/following-sibling::*[1][{memitem}]",
        signature="/*[{memproto}]",
        flags="//*[{mlabel}]",
        summary="//table[{memberdecls}]",
    ),
    Generator(
        marks=frozenset({"code-header", "item-decl"}),
        language="rust",
        changes=(
            ("//*[{src} or {doc-anchor} or {hideme} or {rightside}]|//a[{anchor}]", drop),
            ("//rustdoc-toolbar|//*[@id='copy-path']", drop),
            ("//*[starts-with(@id, 'synthetic-impl') or starts-with(@id, 'blanket-impl')]", drop),  # of every type
            ("//*[{rustdoc-breadcrumbs}][following-sibling::*[1][self::h1]]", _packaged),
        ),
        title="//section/*[{code-header}][not(ancestor::li or ancestor::table)]",
        name=f"//a[{{fn}} or {{fnname}} or {{associatedtype}} or {{constant}}]{_OWN}",
        signature="/*[{code-header}]",
        called=f"//a[{{fn}} or {{fnname}}]{_OWN}",
        value="//span[{structfield} or {section-header}]"
        "|//section[{variant}][not(following-sibling::*[position() < 3][{sub-variant}])]",
        said="/following-sibling::*[1][{docblock}]",
    ),
)
_SPHINX = frozenset({"sig", "descname"})
_FLAGS = frozenset(
    {"abstract", "constexpr", "explicit", "inline", "optional", "protected", "readonly", "static", "virtual"}
)
"""Labels beside a declaration that a source has before it."""


def write_api_reference(root: HtmlElement, present: frozenset[str]) -> None:
    """Make sections of the symbols below `root`, and lists of what is said of their parameters.

    `present` are the classes in `root`.
    """
    keep_headings(root)
    found = [generator for generator in GENERATORS if not generator.marks.isdisjoint(present)]
    is_sphinx = not _SPHINX.isdisjoint(present)
    if is_sphinx:
        _write_sphinx(root)
    for generator in found:
        _write(root, generator)
    write_fields(root, present)
    if found or is_sphinx:
        settle_headings(root)
        for link in root.iter("a", "abbr"):  # its tooltip
            link.attrib.pop("title", None)


def _write(root: HtmlElement, generator: Generator) -> None:
    """Write the page as the generator's selectors say."""
    for path, change in generator.changes:
        for element in select(root, path):
            change(element)
    described = {unquote(title.get("data-anchor", "")) for title in select(root, generator.title)} - {""}
    for summary in select(root, generator.summary):
        _write_summary(summary, described)
    for value in select(root, generator.value):
        _write_value(value, generator)
    for title in select(root, generator.title):
        _write_symbol(title, generator)
    for signature in select(root, generator.code):
        replace(signature, code_block(signature_of(signature), generator.language))


def _write_symbol(title: HtmlElement, generator: Generator) -> None:
    """Make a section of a symbol."""
    whole = next(iter(select(title, generator.whole)), title)
    shown = select(whole, generator.signature)
    signatures = [_declared(one, whole, generator) for one in shown]
    called = bool(select(whole, generator.called))
    drop_all(title, generator.aside)
    named = select(title, generator.name)
    name = re.sub(r" \[\d+/\d+\]$", "", signature_of(named[0] if named else title))
    for one in shown:
        if one is not title:
            drop(one)
    section(title, name + ("()" if called else ""), signatures, generator.language)


def _declared(signature: HtmlElement, whole: HtmlElement, generator: Generator) -> str:
    """The signature with the flags beside it before it, where a source has them, and with the blanks of a source."""
    text = signature_of(signature)
    flags = [flag for one in select(whole, generator.flags) if (flag := text_of(one).lower()) in _FLAGS]
    if generator.language == "cpp":
        text = "\n".join(" ".join(line.split()) for line in text.split("\n"))
        text = re.sub(r"<([^<>]*)>", lambda given: f"<{given[1].strip()}>", text)
        text = re.sub(r" ?\( ?", "(", text.replace(" )", ")"))
        text = re.sub(r"([*&]) (?=\w)", r"\1", text)
    before, line, declared = text.partition("\n") if text.startswith("template") else ("", "", text)
    return before + line + " ".join([*flags, declared])


def _write_value(value: HtmlElement, generator: Generator) -> None:
    """Make an item of a list of a symbol of which little is said."""
    said = select(value, generator.said)
    if all(map(is_short, said)):
        signature = next(iter(select(value, generator.signature)), value)
        told = _declared(signature, value, generator)
        text = " ".join(map(text_of, said))
        for part in said:
            drop(part)
        list_items(value, [item(told, text)])


def _write_summary(summary: HtmlElement, described: AbstractSet[str]) -> None:
    """Make a list of the rows that link to other pages; without any, the summary goes with its heading."""
    items = list[HtmlElement]()
    for row in _rows(summary):
        links = [link for cell in row for link in cell.iter("a")]
        if described.isdisjoint(unquote(str(link.get("href")).rpartition("#")[2]) for link in links):
            made = E.li()
            for cell in filter(text_of, row):
                for block in cell.iter("div"):
                    block.tag = "span"
                if len(made) and has_class(cell, "col-last"):
                    made[-1].tail = " – "
                cell.tag, cell.tail = "span", " "
                made.append(cell)
            items += [made] if len(made) else []
    if not items:
        drop(next((outer for outer in summary.iterancestors("section") if "-summary" in outer.get("id", "")), summary))
        return
    for title in list(summary.iter("h2")):
        summary.addprevious(title)
    list_items(summary, items)


def _rows(summary: HtmlElement) -> Iterator[list[HtmlElement]]:
    """The cells of each row of a table, or of a grid, in which a class ends a row."""
    if summary.tag == "table":
        yield from (list(row) for row in summary.iter("tr") if not has_class(row, "heading"))
        return
    row = list[HtmlElement]()
    for cell in list(summary):
        row.append(cell)
        if has_class(cell, "col-last"):
            yield row
            row = []


_LANGUAGES = {"py": "python", "c": "c", "cpp": "cpp", "js": "javascript", "rst": "rst", "php": "php", "rb": "ruby"}
_VALUES = frozenset({"attribute", "data", "member", "var", "enumerator", "value", "field"})
"""Kinds of symbols without parameters."""

_TYPES = frozenset({"class", "exception", "struct", "union", "enum", "enum-struct", "type", "module", "namespace"})
"""Kinds of symbols that have parentheses but aren't called by their name alone."""


def _write_sphinx(root: HtmlElement) -> None:
    """Make sections of the symbols that have an id; the signature of others is a term in code."""
    around, known = 1, dict[HtmlElement, tuple[int, str]]()  # the level and full name of the symbol of a list
    for element in list(root.iter("dl", *HEADINGS)):
        outer = next((known[ancestor] for ancestor in element.iterancestors("div") if ancestor in known), None)
        if element.tag != "dl":
            around = int(element.tag[1]) if outer is None else around
        elif groups := list(_groups(element)):
            level, name = outer or (around, "")
            if outer is None or not _values(element, groups, name):
                known[element] = level + 1, _write_definitions(element, groups, level + 1, name)


def _groups(element: HtmlElement) -> Iterator[tuple[list[HtmlElement], HtmlElement | None]]:
    """The signatures that share a description, with it. Signatures without any id are made terms in code."""
    for term in select(element, "/dt[{sig}]"):  # to the parser, a list of parameters on several lines ends the term
        while (following := term.getnext()) is not None and following.tag not in ("dt", "dd"):
            term.append(following)
    terms: list[HtmlElement] = []
    for child in [*element, None]:
        if child is not None and child.tag == "dt":
            terms.append(child)
            continue
        if terms and all(has_class(term, "sig") or "descname" in class_names(term) for term in terms):
            if any(term.get("id") for term in terms):
                yield terms, child if child is not None and child.tag == "dd" else None
            else:
                for term in terms:
                    replace(term, E.dt(E.code(signature_of(term)), dict(term.attrib)))
        terms = []


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


def _write_definitions(
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
        anchor = next(str(term.get("id")) for term in terms if term.get("id"))
        for term in terms[1:]:
            drop(term)
        section(terms[0], ", ".join(dict.fromkeys(shown)), signatures, language, level, anchor)
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
