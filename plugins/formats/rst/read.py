"""The text of a reStructuredText file -> HTML, by docutils, with the directives of Sphinx and its extensions."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from docutils import nodes
from docutils.core import publish_parts
from docutils.parsers.rst import directives, roles
from docutils.readers import standalone
from docutils.transforms import Transform
from docutils.utils import unescape
from docutils.writers import html5_polyglot

from ingestion.convert.document import SourceText
from ingestion.convert.files import Tree
from plugins.formats.rst.directives import directive_named
from plugins.formats.rst.files import Env, Files, env_of, with_target, without_target


class Translator(html5_polyglot.HTMLTranslator):  # type: ignore[misc]
    """HTML whose blocks of code carry their language."""

    def visit_literal_block(self, node: nodes.literal_block) -> None:
        """A block of code; the language is an attribute, or the class behind `code`."""
        classes = [name for name in node["classes"] if name != "code"]
        self._code(node.astext(), node.get("language") or (classes[0] if classes and "code" in node["classes"] else ""))

    def visit_literal(self, node: nodes.literal) -> None:
        """Code in a line."""
        self.body.append(f"<code>{self.encode(node.astext())}</code>")
        raise nodes.SkipNode

    def visit_doctest_block(self, node: nodes.doctest_block) -> None:
        """A session of Python."""
        self._code(node.astext(), "pycon")

    def _code(self, text: str, language: str) -> Any:
        self.body.append(
            f'<pre><code class="language-{self.attval(language or "none")}">{self.encode(text)}\n</code></pre>\n'
        )
        raise nodes.SkipNode


Role = Callable[..., tuple[list[nodes.Node], list[nodes.Node]]]

_PLAIN = frozenset({"term", "guilabel", "abbr", "any", "eq", "index", "dfn", "numref", "menuselection", "sub-ref"})
_CALLED = frozenset({"func", "meth", "method", "function"})
_CODE = frozenset(
    {"class", "attr", "mod", "module", "data", "exc", "obj", "const", "type", "file", "command", "option", "envvar"}
    | {"program", "kbd", "samp", "keyword", "token", "makevar", "manpage", "mimetype", "newsgroup", "regexp", "confval"}
    | {"macro", "member", "struct", "enum", "enumerator", "union", "var", "expr", "property", "prop", "decorator"}
    | {"deco", "download", "setting", "opcode", "cmdoption", "source", "src", "cfunc", "texpr", "concept", "dir", "rst"}
    | {"role"}
)
_UNSEEN = frozenset({"raw", "index-entry"})


def role_named(original: Callable[..., Any], default: str = "") -> Callable[..., Any]:
    """The look-up of roles: docutils' own and the document's first, then those here, which know every name."""

    def lookup(name: str, language: Any, line: int, reporter: Any) -> tuple[Role, list[Any]]:
        short = name.lower().rpartition(":")[2]
        if short in _UNSEEN:
            return _nothing, []
        if not name and default:
            return lambda _, *rest, **more: _shown(default, *rest, **more), []
        role, _ = original(name, language, line, reporter)
        return role or _shown, []

    return lookup


def _nothing(*_: Any, **__: Any) -> tuple[list[nodes.Node], list[nodes.Node]]:
    return [], []


_nothing.options = {"format": str}  # type: ignore[attr-defined]  # of a role that is derived from it


def _shown(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any, **__: Any
) -> tuple[list[nodes.Node], list[nodes.Node]]:
    env = env_of(inliner.document)
    whole = unescape(text)
    title, target = with_target(whole)
    short = name.lower().rpartition(":")[2]
    node = _linked(short, title, target.strip(), env) or _extlink(short, title, target, env)
    if node is None:
        node = _as_text(name, short, title, whole)
    node.source, node.line = rawtext, lineno
    return [node], []


def _linked(short: str, title: str, target: str, env: Env) -> nodes.Node | None:
    """A link to another page or section of the directory; its title where the text gives none."""
    if short == "doc":
        page = env.files.page(target)
        shown = title or env.files.title(env.files.titles.pages.get(page, "")) or target.strip("/").rpartition("/")[2]
        return _reference(shown, env.files.link(page)) if page else nodes.inline("", shown)
    if short not in ("ref", "numref"):
        return None
    file, anchor, of_section = env.files.titles.labels.get(" ".join(target.lower().split()), ("", "", ""))
    of_section = env.files.title(of_section)
    shown = title.replace("%s", "").replace("{name}", of_section).replace("{number}", "").strip()
    shown = shown or of_section or target.lstrip("~!")
    return _reference(shown, f"{env.files.link(file)}#{anchor}") if file else nodes.inline("", shown)


def _extlink(short: str, title: str, target: str, env: Env) -> nodes.Node | None:
    """`extlinks` of conf.py: a role that writes an address."""
    known = env.files.conf.get("extlinks")
    entry = known.get(short) if isinstance(known, Mapping) else None
    if not isinstance(entry, Sequence) or isinstance(entry, str) or not entry or not isinstance(entry[0], str):
        return None
    caption = entry[1] if len(entry) > 1 and isinstance(entry[1], str) else ""
    shown = title or (caption.replace("%s", target) if "%s" in caption else caption + target)
    return _reference(shown, entry[0].replace("%s", target))


def _reference(text: str, address: str) -> nodes.reference:
    return nodes.reference("", text, refuri=address)


def _as_text(name: str, short: str, title: str, given: str) -> nodes.Node:
    shown = title or given
    if short == "menuselection":
        return nodes.inline("", shown.replace("-->", "\N{TRIANGULAR BULLET}").replace("&", ""))
    if short == "guilabel":
        return nodes.strong("", shown.replace("&", ""))
    if short in _PLAIN:
        return nodes.inline("", given if short == "abbr" else shown)
    if short == "samp":
        return nodes.literal("", shown.replace("{", "").replace("}", ""))
    if short in _CALLED | _CODE or ":" in name or short.startswith("code"):
        shown = shown.lstrip("!")
        if shown.startswith("~") and not title:
            shown = shown.lstrip("~").rpartition(".")[2]
        called = short in _CALLED and not title and not shown.endswith(")")
        return nodes.literal("", shown.lstrip("~") + ("()" if called else ""))
    return nodes.inline("", shown)


_SETTINGS = {
    "_disable_config": True,  # docutils.conf of the working directory or the user
    "raw_enabled": False,
    "file_insertion_enabled": False,
    "report_level": 5,
    "halt_level": 5,
    "warning_stream": False,
    "doctitle_xform": False,
    "docinfo_xform": False,
    "sectsubtitle_xform": False,
    "initial_header_level": 1,
    "auto_id_prefix": "id",
    "syntax_highlight": "none",
    "math_output": "LaTeX",
    "toc_backlinks": False,
    "footnote_backlinks": False,
    "section_self_link": False,
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "output_encoding": "unicode",
    "line_length_limit": 100_000,
}
_NOT_QUOTED = (nodes.bullet_list, nodes.enumerated_list, nodes.definition_list, nodes.literal_block, nodes.table)
"""Nodes that are only indented when nothing else stands in a quotation."""

_OF_BUILD = ("|version|", "|release|", "|today|")
"""Substitutions whose values only a build of the documentation knows."""

_ROLE = re.compile(r"^:[\w:.+-]+:(?=`)|(?<=`):[\w:.+-]+:$")


def html_of(source: SourceText) -> str:
    """The page as HTML without a theme, with the ids that Sphinx gives its sections."""
    env = Env(Files(source.file, Tree(source.root)))
    text = _with_surroundings(source.text.lstrip("\ufeff"), env)
    writer = html5_polyglot.Writer()
    writer.translator_class = Translator
    with _lookups(str(env.files.conf.get("default_role") or "")):
        parts = publish_parts(
            text,
            source_path=source.url,
            reader=_Reader(),
            parser="restructuredtext",
            writer=writer,
            settings_overrides={**_SETTINGS, "env": env},
        )
    return f'<html><body><div itemprop="articleBody">{parts["fragment"]}</div></body></html>'


def _with_surroundings(text: str, env: Env) -> str:
    """The text between prolog and epilog of conf.py, with the substitutions that Sphinx makes of it."""
    conf = env.files.conf
    prolog, epilog = (str(conf.get(name, "")) for name in ("rst_prolog", "rst_epilog"))
    known = prolog + text + epilog
    defined = [
        f".. |{name}| replace:: {said}" for name, said in env.files.substitutions.items() if f".. |{name}|" not in known
    ]
    return "\n\n".join(part for part in (prolog, text, epilog, "\n".join(defined)) if part.strip()) + "\n"


@contextmanager
def _lookups(default_role: str) -> Iterator[None]:
    """Directives and roles of Sphinx, and any other, are found; those that a document defines end with it."""
    own: Any = roles._roles  # noqa: SLF001  # its registry has no way to forget
    before, saved = (directives.directive, roles.role), dict(own)
    directives.directive, roles.role = directive_named(before[0]), role_named(before[1], default_role)
    try:
        yield
    finally:
        directives.directive, roles.role = before
        own.clear()
        own.update(saved)


class _Reader(standalone.Reader):  # type: ignore[misc]
    def get_transforms(self) -> list[type[Transform]]:
        return [*super().get_transforms(), _Finish]


class _Finish(Transform):  # type: ignore[misc]
    """Transform that does the rest with the whole document before it is written."""

    default_priority = 860  # before the messages go

    def apply(self) -> None:
        """Ids in Sphinx's order, no metadata, no markup that leads nowhere, images by address only."""
        document = self.document
        _drop_metadata(document)
        labels = {document.nameids.get(name) for name, explicit in document.nametypes.items() if explicit}
        for section in document.findall(nodes.section):
            # numbered ids depend on all that Sphinx numbers, so nobody else knows them
            ids = [id_ for id_ in section["ids"] if not re.fullmatch(r"id\d+", id_)]
            section["ids"] = sorted(ids, key=lambda one: one not in labels)
        for problem in list(document.findall(nodes.problematic)):
            text = "" if problem.astext() in _OF_BUILD else _ROLE.sub("", problem.astext()).strip("`_|")
            problem.parent.replace(problem, nodes.Text(without_target(text)))
        for image in document.findall(nodes.image):
            for name in ("scale", "loading", "width", "height"):
                image.attributes.pop(name, None)
        for quote in list(document.findall(nodes.block_quote)):
            if all(isinstance(child, _NOT_QUOTED) for child in quote.children):
                quote.parent.replace(quote, quote.children)
        _highlight(document)


def _highlight(document: nodes.document) -> None:
    """Give blocks of code without a language the one that the file, or conf.py, sets."""
    language = str(env_of(document).files.conf.get("highlight_language") or "")
    for node in document.findall(lambda one: isinstance(one, nodes.comment | nodes.literal_block)):
        if isinstance(node, nodes.comment):
            language = node.get("highlight", language)
        elif not node.get("language") and "code" not in node["classes"]:
            node["language"] = language


def _drop_metadata(document: nodes.document) -> None:
    """A list of fields before the title says things of the page to Sphinx."""
    for node in document.children:
        if isinstance(node, nodes.field_list):
            document.remove(node)
            return
        if not isinstance(node, nodes.comment | nodes.substitution_definition | nodes.target | nodes.system_message):
            return
