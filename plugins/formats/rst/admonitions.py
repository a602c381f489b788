"""Directives whose text stays: notes, code, tabs, glossaries, and any that nobody knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.parsers.rst.directives.admonitions import BaseAdmonition
from docutils.statemachine import StringList

from plugins.formats.rst.files import labelled, plain, sphinx_id

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
    """Every option is allowed."""

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

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        node = nodes.container("")
        if told := self.head():
            inline, _ = self.state.inline_text(told, self.lineno)
            node += self.title(inline)
        self.parse(node)
        return list(node.children)

    def head(self) -> str:
        """The argument; docutils takes all lines up to a blank one for it."""
        return str(self.arguments[0]).strip() if self.arguments else ""

    def first_line(self) -> str:
        """The argument's first line; the others become content."""
        first, _, rest = self.head().partition("\n")
        if rest:
            self.content = StringList([*rest.splitlines(), "", *self.content], source="")
        return first

    def title(self, inline: list[nodes.Node]) -> nodes.Node:
        """Returns the paragraph that the argument becomes."""
        return nodes.paragraph("", "", *inline)

    def parse(self, node: nodes.Element, content: StringList | None = None) -> None:
        """Read the content, with sections in it."""
        self.state.nested_parse(self.content if content is None else content, self.content_offset, node, match_titles=1)


class Titled(Unknown):
    """Tabs, cards and the like: the title in bold above the content."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        self.arguments = [self.first_line()]
        return super().run()

    def title(self, inline: list[nodes.Node]) -> nodes.Node:
        """See docutils."""
        return nodes.paragraph("", "", nodes.strong("", "", *inline))


class Content(Unknown):
    """Directive that only arranges its content: its argument is a class or a number."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        self.first_line()
        self.arguments = []
        return super().run()


class Bare(Unknown):
    """Directive that only arranges its content, and has no argument."""

    optional_arguments = 0


class Nothing(Unknown):
    """Directive that says nothing to readers."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        return []


class Generated(Unknown):
    """Directive that Sphinx makes of code: the names alone."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        paragraphs: list[nodes.Node] = [
            nodes.paragraph("", "", nodes.literal("", argument)) for argument in self.arguments
        ]
        names = [line.strip().lstrip("~") for line in self.content if line.strip()] if "summary" in self.name else []
        if names:
            items = [nodes.list_item("", nodes.paragraph("", "", nodes.literal("", name))) for name in names]
            return [*([] if "summary" in self.name else paragraphs), nodes.bullet_list("", *items)]
        node = nodes.container("")
        self.parse(node) if "summary" not in self.name else None
        return [*paragraphs, *node.children]


class Version(Unknown):
    """`versionadded` and its kin: the version in front of what is said of it."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        version, said = [*(self.arguments or [""])[0].split(maxsplit=1), "", ""][:2]
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


class SeeAlso(BaseAdmonition):  # type: ignore[misc]
    """`seealso` and `todo`: a note with its kind as the title."""

    node_class = nodes.admonition
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOption()

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        node = nodes.admonition("", nodes.title("", "See also" if self.name == "seealso" else "Todo"))
        node["classes"] = [self.name]
        if self.arguments:
            node += nodes.paragraph("", "", *self.state.inline_text(self.arguments[0], self.lineno)[0])
        self.state.nested_parse(self.content, self.content_offset, node)
        return [node]


class Only(Unknown):
    """Left out when it is for other builders than HTML."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        names = set(re.findall(r"\w+", self.first_line())) - {"and", "or"}
        self.arguments = []
        if ("html" not in names and names & _OTHER_BUILDERS and "not" not in names) or names == {"not", "html"}:
            return []
        return super().run()


class Code(Unknown):
    """A block of code; the language is the argument, or that of the directive's name."""

    def run(self) -> list[nodes.Node]:
        """See docutils."""
        language = LANGUAGES.get(self.name, "")
        words = (self.arguments or [""])[0].split(maxsplit=1)
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
        """See docutils."""
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
        """See docutils."""
        return [nodes.comment("", "", highlight=(self.arguments or [""])[0].strip())]
