"""Parts that a file needs of the others of its source (text that it includes, titles and labels that it links to, conf.py),
and the state of reading it, which its directives and roles share.
"""

import ast
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote

from docutils import nodes
from docutils.nodes import make_id

from ingestion.convert.files import Tree

MOST_FILES = 20_000
MOST_INCLUDED = 100
"""Files that a page may include, each time counted: includes in includes could grow without end."""

_PAGES = (".rst", ".md", ".txt")
_SUBSTITUTIONS = ("version", "release", "project", "copyright", "author")
_DEFINED = re.compile(r"(?m)^\.\. \|([^|\n]++)\| replace:: *+(\S.*+)$")
_SUBSTITUTION = re.compile(r"\|([^|\s][^|\n]*)\|")
_LABEL = re.compile(r"[ \t]*\.\. _(?:`([^`\n]+)`|([^`:\n]+)):[ \t]*$")
_RULE = re.compile(r"([!-/:-@[-`{-~])\1{2,}[ \t]*$")
_MARKUP = re.compile(
    r"(?<![\w+.-]):[\w+.-]++(?::[\w+.-]++)*+:`([^`]++)`|(?<!`)`++([^`]++)`++_{0,2}|\*{1,2}+([^*]++)\*{1,2}"
)


@dataclass(frozen=True, slots=True)
class Titles:
    """By label: (file, anchor, title of its section); and the titles of files, by their paths."""

    labels: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    pages: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Files:
    """The files that the page at the path `file` may read: those of its source's tree."""

    file: str
    tree: Tree
    _included: int = 0

    @property
    def folder(self) -> str:
        """The folder of the page."""
        return posixpath.dirname(self.file)

    @cached_property
    def top(self) -> str:
        """The start of Sphinx's paths with a leading slash: the folder of conf.py, else the source's."""
        folder = self.folder
        while folder:
            if self.tree.place(f"{folder}/conf.py"):
                return folder
            folder = posixpath.dirname(folder)
        return ""

    @cached_property
    def conf(self) -> Mapping[str, Any]:
        """The values of conf.py that are written out in it; it is never run."""
        return _literals(self.tree.text(posixpath.join(self.top, "conf.py")))

    @cached_property
    def substitutions(self) -> Mapping[str, str]:
        """The texts that conf.py defines for all pages."""
        texts = {name: self.conf[name] for name in _SUBSTITUTIONS if isinstance(self.conf.get(name), str)}
        surroundings = f"{self.conf.get('rst_prolog', '')}\n{self.conf.get('rst_epilog', '')}"
        return {
            **{name: text for name, text in texts.items() if text.strip() and "\n" not in text},
            **dict(_DEFINED.findall(surroundings)),
        }

    def title(self, of: str) -> str:
        """The title with its substitutions made."""
        return _SUBSTITUTION.sub(lambda found: self.substitutions.get(found[1], found[1]), of)

    @cached_property
    def titles(self) -> Titles:
        """The labels and titles of all files."""
        return _titles(self.tree)

    def path(self, written: str) -> str:
        """The path of the file that a page calls so; empty if it isn't there."""
        start = self.top if written.startswith("/") else self.folder
        path = posixpath.normpath(posixpath.join(start, written.lstrip("/")))
        return path if self.tree.place(path) else ""

    def read(self, written: str) -> str:
        """The text of that file; empty if it may not be read."""
        self._included += 1
        return self.tree.text(self.path(written)) if self._included <= MOST_INCLUDED else ""

    def page(self, written: str) -> str:
        """The path of the page that Sphinx calls so, without its suffix."""
        return next((path for end in _PAGES if (path := self.path(written + end))), "")

    def link(self, target: str) -> str:
        """The relative address of another file."""
        return quote(posixpath.relpath(target, self.folder or "."))


@lru_cache(maxsize=8)
def _literals(text: str) -> Mapping[str, Any]:
    values: dict[str, Any] = {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    for line in tree.body:
        if isinstance(line, ast.Assign) and len(line.targets) == 1 and isinstance(line.targets[0], ast.Name):
            try:
                values[line.targets[0].id] = ast.literal_eval(line.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                continue
    return values


@lru_cache(maxsize=4)
def _titles(tree: Tree) -> Titles:
    labels: dict[str, tuple[str, str, str]] = {}
    pages: dict[str, str] = {}
    for path in tree.paths(_PAGES, MOST_FILES):
        lines = tree.text(path).splitlines()
        if path.endswith(".md"):
            pages[path] = next((plain(line[2:]) for line in lines if line.startswith("# ")), "")
            continue
        pages[path] = next((title for at in range(len(lines)) if (title := _title(lines, at))), "")
        for name, title in _labels(lines):
            labels.setdefault(name, (path, make_id(name), title))
    return Titles(labels, pages)


def _labels(lines: list[str]) -> Iterable[tuple[str, str]]:
    """Each label with the title of the section that it names."""
    for at, line in enumerate(lines):
        if match := _LABEL.match(line):
            yield " ".join((match[1] or match[2]).lower().split()), _title_after(lines, at + 1)


def _title_after(lines: list[str], at: int) -> str:
    """The title that follows; other labels may stand between."""
    while at < len(lines) and (not lines[at].strip() or _LABEL.match(lines[at])):
        at += 1
    return _title(lines, at)


def _title(lines: list[str], at: int) -> str:
    """The section title that begins in this line, or empty."""
    first, second, third = [*lines[at : at + 3], "", "", ""][:3]
    if _RULE.match(first):
        return plain(second) if second.strip() and _RULE.match(third) and third[0] == first[0] else ""
    return plain(first) if first[:1].strip() and _RULE.match(second) and len(second) >= len(first.rstrip()) - 1 else ""


def plain(text: str) -> str:
    """A line without inline markup."""
    shown = _MARKUP.sub(lambda found: without_target(next(filter(None, found.groups()), "")), text)
    return " ".join(shown.split())


def with_target(text: str) -> tuple[str, str]:
    """(title, target) of `title <target>`; the title is empty if there is no target in angle brackets."""
    title, opened, target = text.removesuffix(">").rpartition("<")
    if not (text.endswith(">") and opened and title.strip() and ">" not in target):
        return "", text
    return title.rstrip(), target


def without_target(text: str) -> str:
    """The title of `title <target>`, or the text."""
    title, target = with_target(text)
    return title or target


@dataclass
class Env:
    """`outer` are the symbols around the one that is read, `module` and `program` those that its name belongs to."""

    files: Files
    outer: list[str] = field(default_factory=list)
    module: str = ""
    program: str = ""


def env_of(document: nodes.document) -> Env:
    """The state of the document."""
    env: Env = document.settings.env
    return env


def sphinx_id(prefix: str, name: str) -> str:
    """The anchor that Sphinx gives an option, a term or another named thing."""
    return re.sub(r"[^a-zA-Z0-9._]+", "-", f"{prefix}-{name}").strip("-")


def labelled(text: str) -> nodes.paragraph:
    """A bold line."""
    return nodes.paragraph("", "", nodes.strong("", text))
