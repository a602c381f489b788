"""The text of a reStructuredText file -> HTML, by docutils."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from docutils import nodes
from docutils.core import publish_parts
from docutils.parsers.rst import directives, roles
from docutils.readers import standalone
from docutils.transforms import Transform

from ingestion.convert.document import SourceText
from ingestion.convert.rst.directives import directive_named
from ingestion.convert.rst.env import Env, env_of
from ingestion.convert.rst.files import Files, without_target
from ingestion.convert.rst.roles import role_named
from ingestion.convert.rst.write import Writer
from ingestion.convert.tree import Tree
from ingestion.errors import ConversionError

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
"""What is only indented when nothing else stands in a quotation."""

_OF_BUILD = ("|version|", "|release|", "|today|")
"""Substitutions whose values only a build of the documentation knows."""

_ROLE = re.compile(r"^:[\w:.+-]+:(?=`)|(?<=`):[\w:.+-]+:$")

MOST_UNCLOSED = 3_000
"""Starts of markup in a block that nothing ends. docutils searches the rest of the block for the end of each: 20,000 took 19 s."""

_BLOCK = re.compile(r"\n[ \t]*+\n")
_START = re.compile(r"(?<![^\W_])(?<![*`|])[*`|]++(?=\w)")
_END = re.compile(r"(?<![\s*`|])[*`|]++(?!\w)")


def html_of(source: SourceText) -> str:
    """The page as HTML without a theme, with the ids that Sphinx gives its sections.

    Raises `ConversionError` for a block that docutils would take too long for.
    """
    _require_closed_markup(source.text)
    env = Env(Files(source.file, Tree(source.root)))
    text = _with_surroundings(source.text.lstrip("\ufeff"), env)
    with _lookups(str(env.files.conf.get("default_role") or "")):
        parts = publish_parts(
            text,
            source_path=source.url,
            reader=_Reader(),
            parser="restructuredtext",
            writer=Writer(),
            settings_overrides={**_SETTINGS, "env": env},
        )
    return f'<html><body><div itemprop="articleBody">{parts["fragment"]}</div></body></html>'


def _require_closed_markup(text: str) -> None:
    for block in _BLOCK.split(text):
        unclosed = len(_START.findall(block)) - len(_END.findall(block))
        if unclosed > MOST_UNCLOSED:
            raise ConversionError(
                f"has a paragraph with {unclosed:,} starts of emphasis, code or substitutions (* ` |) that nothing ends: "
                f"more than {MOST_UNCLOSED:,} can't be read in time"
            )


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
    """What is left to do with the whole document before it is written."""

    default_priority = 860  # before the messages go

    def apply(self) -> None:
        """Ids in Sphinx's order, no metadata, no markup that leads nowhere, images by address only."""
        document = self.document
        _drop_metadata(document)
        labels = {document.nameids.get(name) for name, explicit in document.nametypes.items() if explicit}
        for section in document.findall(nodes.section):
            # numbered ids depend on all that Sphinx numbers, so nobody else knows them
            ids = [one for one in section["ids"] if not re.fullmatch(r"id\d+", one)]
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
