"""Directives of Sphinx and its extensions: what readers see of each, without Sphinx and without running any code."""

import html
import posixpath
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.parsers.rst.directives.misc import Include
from docutils.parsers.rst.directives.tables import CSVTable
from docutils.statemachine import StringList

from plugins.formats.rst.files import Env, env_of, labelled, plain, sphinx_id, with_target

_OTHER_BUILDERS = frozenset({"latex", "man", "texinfo", "text", "epub", "xml", "gettext", "singlehtml", "pdf", "info"})
VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
    "deprecated-removed": "Deprecated since version",
}
LANGUAGES = {
    "ipython": "ipython", "testcode": "python", "doctest": "pycon", "prompt": "console", "console": "console",
    "graphviz": "dot", "digraph": "dot", "graph": "dot", "mermaid": "mermaid", "uml": "plantuml", "plantuml": "plantuml",
    "productionlist": "text", "testoutput": "text", "parsed-code": "",
}  # fmt: skip
"""The languages of directives that show code of one language only."""


class _AnyOption(dict[str, Callable[[str], str]]):
    def __bool__(self) -> bool:
        return True

    def __getitem__(self, key: str) -> Callable[[str], str]:
        return lambda text: text or ""


class Unknown(Directive):  # type: ignore[misc]
    """A directive that nobody knows: its argument and its content."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = _AnyOption()
    arguments: Any
    content: Any
    shown = "text"
    """How readers see the argument: as `text`, in `bold` or as `code` with its further lines as content, or not at all."""

    def run(self) -> list[nodes.Node]:
        node = nodes.container("")
        told = self.first_line() if self.shown != "text" else self.argument
        if told and self.shown == "code":
            node += nodes.paragraph("", "", nodes.literal("", told))
        elif told and self.shown:
            inline, _ = self.state.inline_text(told, self.lineno)
            node += nodes.paragraph("", "", *([nodes.strong("", "", *inline)] if self.shown == "bold" else inline))
        self.parse(node)
        return list(node.children)

    @property
    def argument(self) -> str:
        """The argument; docutils takes all lines up to a blank one for it."""
        return str(self.arguments[0]).strip() if self.arguments else ""

    def first_line(self) -> str:
        """The argument's first line; the others become content."""
        first, _, rest = self.argument.partition("\n")
        if rest:
            self.content = StringList([*rest.splitlines(), "", *self.content], source="")
        self.arguments = [first]
        return first

    def parse(self, node: nodes.Element, content: StringList | None = None) -> None:
        """Read the content, with sections in it."""
        self.state.nested_parse(self.content if content is None else content, self.content_offset, node, match_titles=1)


class Titled(Unknown):
    """Tabs, cards and the like: the title in bold above the content."""

    shown = "bold"


class Content(Unknown):
    """Directive that only arranges its content: its argument is a class or a number."""

    shown = ""


class Bare(Unknown):
    """Directive that only arranges its content, and has no argument."""

    optional_arguments = 0


class Nothing(Unknown):
    """Directive that says nothing to readers."""

    def run(self) -> list[nodes.Node]:
        return []


class Generated(Unknown):
    """Directive that Sphinx makes of code: the name alone."""

    shown = "code"


class Version(Unknown):
    """`versionadded` and its kin: the version in front of what is said of it."""

    def run(self) -> list[nodes.Node]:
        version, said = [*self.argument.split(maxsplit=1), "", ""][:2]
        node = nodes.container("")
        if said.strip():
            node += nodes.paragraph("", "", *self.state.inline_text(said, self.lineno)[0])
        self.parse(node)
        label = f"{VERSIONS[self.name]} {version}".strip()
        mark = nodes.emphasis("", f"{label}:" if node.children else f"{label}.")
        first = next(iter(node.children), None)
        if isinstance(first, nodes.paragraph):
            first.insert(0, [mark, nodes.Text(" ")])
        else:
            node.insert(0, nodes.paragraph("", "", mark))
        return list(node.children)


class SeeAlso(Unknown):
    """`seealso` and `todo`: a note with its kind as the title."""

    def run(self) -> list[nodes.Node]:
        title = nodes.title("", "See also" if self.name == "seealso" else "Todo")
        return [nodes.admonition("", title, *super().run(), classes=[self.name])]


class Only(Content):
    """Left out when it is for other builders than HTML."""

    def run(self) -> list[nodes.Node]:
        names = set(re.findall(r"\w+", self.first_line())) - {"and", "or"}
        if ("html" not in names and names & _OTHER_BUILDERS and "not" not in names) or names == {"not", "html"}:
            return []
        return super().run()


class Code(Unknown):
    """A block of code; the language is the argument, or that of the directive's name."""

    def run(self) -> list[nodes.Node]:
        language = LANGUAGES.get(self.name, "")
        words = self.argument.split(maxsplit=1)
        label = self.options.get("caption", "")
        if self.name == "code-tab" and len(words) > 1:
            label = words[1]
        elif self.name == "code-tab" and words:
            label = words[0]
        block = nodes.literal_block("", "\n".join(self.content), classes=["code"] if words or language else [])
        block["language"] = language or (words[0] if words else "")
        return [*([labelled(plain(label))] if label else []), block]


class Glossary(Unknown):
    """Terms and definitions; several terms may share one."""

    def run(self) -> list[nodes.Node]:
        definitions = nodes.definition_list("")
        terms: list[str] = []
        body: list[tuple[int, str]] = []
        for at, line in enumerate([*self.content, ""]):
            last = at == len(self.content)
            if (last or line[:1].strip()) and body:
                self._add(definitions, terms, body)
                terms, body = [], []
            if line.startswith(".. "):
                continue
            if line[:1].strip():
                terms.append(line.split(" : ")[0].strip())
            elif terms and (line.strip() or body):
                body.append((at, line))
        if terms:
            self._add(definitions, terms, body)
        return [definitions]

    def _add(self, made: nodes.definition_list, terms: list[str], body: list[tuple[int, str]]) -> None:
        item = nodes.definition_list_item("")
        for term in terms:
            inline, _ = self.state.inline_text(term, self.lineno)
            item += nodes.term("", "", *inline, ids=[sphinx_id("term", plain(term))])
        definition = nodes.definition("")
        lines = [line for _, line in body]
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        self.parse(definition, StringList([line[indent:] for line in lines], source=""))
        made += item
        item += definition


class Highlight(Unknown):
    """The language of the blocks of code that follow without one."""

    def run(self) -> list[nodes.Node]:
        return [nodes.comment("", "", highlight=self.argument)]


_CODE = frozenset(
    {"function", "class", "method", "attribute", "data", "exception", "classmethod", "staticmethod", "property"}
    | {"decorator", "decoratormethod", "type", "macro", "struct", "union", "enum", "enumerator", "member", "var"}
    | {"concept", "alias", "namespace", "directive", "role", "directive:option", "interface", "trait", "typealias"}
)
_NAMED = frozenset(
    {"option", "cmdoption", "envvar", "confval", "describe", "object", "setting", "opcode", "rst:directive"}
)
OBJECTS = _CODE | _NAMED
_OWNERS = frozenset({"class", "exception", "struct", "union", "enum", "interface", "trait"})
_PY = re.compile(r"(?s)^([\w.]*\.)?+(\w++)(?:\s*+\[[^()]*\])?(?:\s*+(?=\())?+(\(.*\))?(\s*+(?:->|:).*)?$")
_NAME = re.compile(r"(?<![\w:~.$])((?:::)?+[\w~.$]++(?:::?+[\w~.$]++)*+)\s*+(?:\(|\[|$|=|:\s)")
_PARAMETER = frozenset({"param", "parameter", "arg", "argument", "key", "keyword", "kwarg", "kwparam"})
_VARIABLE = frozenset({"var", "ivar", "cvar"})
_RAISES = frozenset({"raises", "raise", "except", "exception", "throws"})
_LABELS = {"param": "Parameters", "var": "Variables", "raises": "Raises", "returns": "Returns", "yields": "Yields"}


class CurrentModule(Content):
    """The module that the following symbols are in."""

    def run(self) -> list[nodes.Node]:
        env_of(self.state.document).module = "" if self.argument == "None" else self.argument
        return [nodes.paragraph("", self.options.get("synopsis", "")), *super().run()]


class Program(Nothing):
    """The program whose options follow."""

    def run(self) -> list[nodes.Node]:
        name = "-".join(self.argument.split())
        env_of(self.state.document).program = "" if name == "None" else name
        return super().run()


class Described(Unknown):
    """A symbol: a signature in each line of the argument, and what is said of it."""

    def run(self) -> list[nodes.Node]:
        env = env_of(self.state.document)
        domain, _, kind = self.name.lower().rpartition(":")
        domain = domain or ("std" if kind in _NAMED else "py")
        lines = re.sub(r"\\\n\s*", "", self.argument).splitlines()
        names: list[str] = []
        terms = "".join(self._term(line.strip(), domain, kind, env, names) for line in lines if line.strip())
        if kind in _OWNERS and names:
            env.outer.append(names[0])
        body = nodes.container("")
        self.parse(body)
        if kind in _OWNERS and names:
            env.outer.pop()
        for fields in [child for child in body.children if isinstance(child, nodes.field_list)]:
            _group(fields)
        opening = f'<dl class="{domain} {kind}">{terms}<dd>'
        return [_raw(opening), *self._facts(), *body.children, _raw("</dd></dl>")]

    def _facts(self) -> list[nodes.Node]:
        options = [(name, self.options[name]) for name in ("type", "default", "value") if self.options.get(name)]
        if self.name.rpartition(":")[2] in ("attribute", "data", "property"):
            return []  # in the signature
        inline = [(name, self.state.inline_text(text, self.lineno)[0]) for name, text in options]
        return [nodes.paragraph("", "", nodes.Text(f"{name.capitalize()}: "), *told) for name, told in inline]

    def _term(self, line: str, domain: str, kind: str, env: Env, names: list[str]) -> str:
        if domain == "std":
            prefix = {"option": "cmdoption", "cmdoption": "cmdoption"}.get(kind, kind)
            first = re.split(r"[\s,=\[]", line, maxsplit=1)[0]
            if prefix == "cmdoption" and env.program:
                prefix = f"{prefix}-{env.program}"
            anchor = "" if kind in ("describe", "object") else sphinx_id(prefix, first)
            return _dt(anchor, f'<span class="sig-name descname">{html.escape(line)}</span>', domain)
        line += "".join(
            f"{mark}{self.options[name]}" for name, mark in (("type", ": "), ("value", " = ")) if self.options.get(name)
        )
        if domain == "py" and (match := _PY.match(line)):
            return self._python(match, kind, env, names)
        named = _NAME.search(line)
        name = named[1] if named else line
        names.append(name)
        before, _, after = line.partition(name)
        anchor = {"c": f"c.{name}", "js": name, "py": name}.get(domain, "")
        return _dt(anchor, _named(html.escape(before), name, after), domain)

    def _python(self, match: re.Match[str], kind: str, env: Env, names: list[str]) -> str:
        prefix, name, arguments, after = (part or "" for part in match.groups())
        outer = env.outer[-1] if env.outer else ""
        full = prefix + name if not outer or (prefix + name).startswith(f"{outer}.") else f"{outer}.{prefix}{name}"
        module = self.options.get("module") or env.module
        names.append(full)
        shown = prefix if outer else (f"{module}." if module and not prefix else prefix)
        words = {"classmethod": "classmethod ", "staticmethod": "static ", "property": "property ", "class": "class "}
        flags = [key for key in ("async", "abstractmethod", "classmethod", "staticmethod") if key in self.options]
        before = "".join(f"{'static' if key == 'staticmethod' else key} " for key in flags) + words.get(kind, "")
        before += "exception " if kind == "exception" else ""
        mark = f'{before}<span class="sig-prename descclassname">{html.escape(shown)}</span>' if shown else before
        rest = arguments + after
        if not arguments and kind in ("function", "method", "classmethod", "staticmethod"):
            rest = f"(){after}"
        anchor = "" if {"noindex", "no-index"} & self.options.keys() else f"{module}.{full}" if module else full
        return _dt(anchor, _named(mark, name, rest), "py")


def _named(before: str, name: str, after: str) -> str:
    opened = re.sub(r"^\(", '<span class="sig-paren">(</span>', html.escape(after))
    return f'{before}<span class="sig-name descname">{html.escape(name)}</span>{opened}'


def _dt(anchor: str, inner: str, domain: str) -> str:
    identifier = f' id="{html.escape(anchor)}"' if anchor else ""
    return f'<dt class="sig sig-object {domain}"{identifier}>{inner}</dt>'


def _raw(text: str) -> nodes.raw:
    return nodes.raw("", text, format="html")


def _group(fields: nodes.field_list) -> None:
    """`:param x:`, `:type x:` and their kin as lists under one label each, as Sphinx shows them."""
    types: dict[str, str] = {}
    groups: dict[str, list[tuple[str, nodes.Element]]] = {}
    others: list[nodes.Node] = []
    for field in fields.children:
        name, _, argument = field[0].astext().partition(" ")
        name, body = name.lower(), field[1]
        kind = next(
            (key for key, known in (("param", _PARAMETER), ("var", _VARIABLE), ("raises", _RAISES)) if name in known),
            "",
        )
        if name in ("type", "vartype", "kwtype", "rtype"):
            types[argument if name != "rtype" else "returns"] = body.astext()
        elif kind:
            written, _, last = argument.rpartition(" ")
            if written and kind != "raises":
                types[last] = written
            groups.setdefault(kind, []).append((argument if kind == "raises" else last, body))
        elif name in ("return", "returns", "yield", "yields"):
            groups.setdefault("yields" if name.startswith("yield") else "returns", []).append(("", body))
        elif name != "meta":
            others.append(field)
    if "returns" in types and "returns" not in groups:
        groups["returns"] = [("", nodes.field_body(""))]
    fields.children = []
    fields.extend([*(_field(key, entries, types) for key, entries in groups.items()), *others])


def _field(key: str, entries: list[tuple[str, nodes.Element]], types: dict[str, str]) -> nodes.field:
    items = [nodes.list_item("", *_entry(name, body, types.get(name or key, ""))) for name, body in entries]
    return nodes.field("", nodes.field_name("", _LABELS[key]), nodes.field_body("", nodes.bullet_list("", *items)))


def _entry(name: str, body: nodes.Element, kind: str) -> Iterator[nodes.Node]:
    """The name with its type in front of what is said of it."""
    blocks = list(body.children)
    first: Any = blocks.pop(0) if blocks and isinstance(blocks[0], nodes.paragraph) else nodes.paragraph("")
    head: list[nodes.Node] = [nodes.strong("", name)] if name else []
    if kind and name:
        head += [nodes.Text(" ("), nodes.emphasis("", kind), nodes.Text(")")]
    elif kind:
        head = [nodes.literal("", kind)]
    if head and first.children:
        head.append(nodes.Text(" \N{EN DASH} "))
    yield nodes.paragraph("", "", *head, *first.children)
    yield from blocks


def listing(text: str, options: Mapping[str, str]) -> str:
    """The lines that the options choose."""
    lines = text.expandtabs(8).splitlines()
    if options.get("lines"):
        lines = _numbered(lines, options["lines"])
    lines = _between(lines, options)
    chosen = "\n".join(lines)
    if "dedent" in options:
        count = options["dedent"].strip()
        chosen = textwrap.dedent(chosen) if not count.isdecimal() else "\n".join(line[int(count) :] for line in lines)
    return chosen


def _numbered(lines: list[str], spec: str) -> list[str]:
    """Lines by their numbers: `1,3-5,20-`."""
    chosen: list[str] = []
    for part in spec.split(",")[:1000]:
        first, dash, last = part.strip().partition("-")
        if (first.isdecimal() or not first) and (last.isdecimal() or not last) and len(part) < 20:
            start = int(first or 1)
            chosen += lines[start - 1 : (int(last) if last else len(lines)) if dash else start]
    return chosen


def _between(lines: list[str], options: Mapping[str, str]) -> list[str]:
    for name, beside in (("start-at", 0), ("start-after", 1), ("end-at", 1), ("end-before", 0)):
        if wanted := options.get(name):
            at = next((number for number, line in enumerate(lines) if wanted in line), None)
            if name.startswith("start"):
                lines = lines[at + beside :] if at is not None else []
            elif at is not None:
                lines = lines[: at + beside]
    return lines


class Listing(Unknown):
    """`literalinclude`: the lines of a file below the source's root."""

    def run(self) -> list[nodes.Node]:
        text = listing(env_of(self.state.document).files.read(self.argument), self.options)
        if not text.strip():
            return []
        block = nodes.literal_block("", text, classes=["code"], language=self.options.get("language", ""))
        caption = plain(self.options.get("caption", ""))
        return [*([labelled(caption)] if caption else []), block]


_WITHOUT_PARSER = {key: value for key, value in Include.option_spec.items() if key != "parser"}


class Included(Include):  # type: ignore[misc]
    """`include` of a file below the source's root."""

    option_spec = _WITHOUT_PARSER

    def run(self) -> list[nodes.Node]:
        files, settings = env_of(self.state.document).files, self.state.document.settings
        if not files.read(self.arguments[0]):
            return []
        self.arguments[0] = str(files.tree.place(files.path(self.arguments[0])))
        settings.file_insertion_enabled = True
        try:
            return list(super().run())
        finally:
            settings.file_insertion_enabled = False


class Table(CSVTable):  # type: ignore[misc]
    """`csv-table`, also of a file below the source's root; never from the web."""

    def run(self) -> list[nodes.Node]:
        if "url" in self.options:
            return []
        if name := self.options.pop("file", ""):
            text = env_of(self.state.document).files.read(name)
            if not text:
                return []
            self.content = StringList(text.splitlines(), source=name)
        return list(super().run())


class Toctree(Unknown):
    """Links to the pages that it lists, with their titles."""

    def run(self) -> list[nodes.Node]:
        if "hidden" in self.options:
            return []
        files = env_of(self.state.document).files
        items: list[nodes.Node] = []
        for line in filter(None, (line.strip() for line in self.content)):
            title, target = with_target(line)
            if "://" in target:
                items.append(_item(title or target, target))
            elif "*" in target:
                wanted = posixpath.join(files.top if target.startswith("/") else files.folder, target.lstrip("/"))
                paths = [path for path in files.titles.pages if fnmatchcase(posixpath.splitext(path)[0], wanted)]
                items += [_item(files.title(files.titles.pages[path]) or path, files.link(path)) for path in paths]
            elif page := files.page(target.removesuffix(".rst")):
                items.append(_item(title or files.title(files.titles.pages.get(page, "")) or target, files.link(page)))
        caption = self.options.get("caption", "")
        listed: list[nodes.Node] = [nodes.bullet_list("", *items)] if items else []
        return [labelled(plain(caption)), *listed] if caption and listed else listed


def _item(title: str, address: str) -> nodes.list_item:
    return nodes.list_item("", nodes.paragraph("", "", nodes.reference("", title, refuri=address)))


_BY_CLASS: Mapping[type[Directive], str] = {
    Code: "code-block sourcecode code code-tab tabs-code highlight-code " + " ".join(LANGUAGES),
    Content: "rst-class cssclass tab-set grid card-carousel tab-set-code panels div grid-item container",
    Bare: "tabs hlist acks content-tabs compound ifconfig-content",
    Titled: "tab tab-item group-tab dropdown card grid-item-card details collapse topic-box content-tab rubric-box centered",
    Nothing: "raw contents sectnum section-numbering header footer meta index tabularcolumns sectionauthor codeauthor "
    "moduleauthor testsetup testcleanup target-notes title default-domain local-toc sidebar-links tags "
    "inheritance-diagram currentlibrary autosummary-hidden",
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
_DIRECTIVES = {name: class_ for class_, names in _BY_CLASS.items() for name in names.split()}


def directive_named(original: Callable[..., Any]) -> Callable[..., Any]:
    """The look-up of directives: those here first, then docutils' own; any other keeps its content."""

    def lookup(name: str, language: Any, document: nodes.document) -> tuple[type[Directive], list[Any]]:
        domain, _, short = name.lower().rpartition(":")
        if directive := _DIRECTIVES.get(short):
            return directive, []
        if short in OBJECTS and (domain or short not in ("role", "directive")):
            return Described, []
        directive, _ = original(name, language, document)
        return directive or (Generated if short.startswith(("auto", "doxygen")) else Unknown), []

    return lookup
