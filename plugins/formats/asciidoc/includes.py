"""The place of an AsciiDoc file among the others (also in Antora's modules), and its includes, of its own source only."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote, unquote

import lxml.html
import yaml  # type: ignore[import-untyped]
from lxml.html import HtmlElement

from ingestion.convert.files import Tree

_MODULE = re.compile(r"^(?P<component>(?:.*/)?)modules/(?P<module>[^/]+)/[^/]+/")
_FAMILIES = {"partial": "partials", "example": "examples", "page": "pages", "": "pages"}
_TITLE = re.compile(r"(?m)^[=#][ \t]+(\S.*)$")
_PAGE = re.compile(r"\.(?:adoc|asciidoc)$")


@dataclass
class Place:
    """The page at the path `file`, in the tree of its source."""

    file: str
    tree: Tree

    @cached_property
    def module(self) -> tuple[str, str]:
        """(folder of its component, name of its module), or two empty texts outside of Antora."""
        match = _MODULE.match(self.file)
        return (match["component"], match["module"]) if match else ("", "")

    @cached_property
    def component(self) -> Mapping[str, Any]:
        """Contents of antora.yml."""
        text = self.tree.text(f"{self.module[0]}antora.yml") if self.module[1] else ""
        try:
            values = yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506  # makes nothing but texts, lists and dicts
        except (yaml.YAMLError, ValueError, RecursionError):
            values = None
        return values if isinstance(values, dict) else {}

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes that Antora sets for the page."""
        asciidoc = self.component.get("asciidoc")
        own = asciidoc.get("attributes") if isinstance(asciidoc, dict) else None
        attributes = (
            {str(name): str(value).removesuffix("@") for name, value in own.items()} if isinstance(own, dict) else {}
        )
        for name in ("name", "version", "title"):
            if isinstance(value := self.component.get(name), str):
                attributes[f"page-component-{name}"] = value
        if "page-component-version" in attributes:
            attributes["page-version"] = attributes["page-component-version"]
        return attributes | ({"page-module": self.module[1]} if self.module[1] else {})

    def path(self, written: str, usual: str = "") -> str:
        """The path of the file that the page calls so; empty if it isn't there. `usual` is the family of a bare name."""
        *named, last = written.rpartition("@")[2].split(":")
        family, dollar, path = last.rpartition("$")
        component, module = self.module
        if len(named) > 1 and named[-2] != self.component.get("name"):
            return ""
        if module and (named or dollar or (usual and not last.startswith(("./", "../")))):
            folder = _FAMILIES.get(family or usual, family)
            path = f"{component}modules/{(named and named[-1]) or module}/{folder}/{path}"
        elif named or dollar:
            return ""
        else:
            path = posixpath.join(posixpath.dirname(self.file), last)
        path = posixpath.normpath(path)
        return path if self.tree.place(path) else ""

    def linked(self, html: str) -> str:
        """The HTML with links to other files of the source as relative ones, and with their titles where they have no text."""
        root = lxml.html.fragment_fromstring(html, create_parent="div")
        for link in list(root.iter("a")):
            self._link(link)
        return str(lxml.html.tostring(root, encoding="unicode"))

    def named(self, text: str) -> str:
        """The text with the attributes of the component in it."""
        return re.sub(r"\{([\w-]+)\}", lambda name: self.attributes.get(name[1], name[0]), text)

    def _link(self, link: HtmlElement) -> None:
        target, mark, fragment = (link.get("href") or "").partition("#")
        if "include" in (link.get("class") or "").split():
            link.drop_tree()
        elif "://" not in target and _PAGE.search(target):
            path = self.path(unquote(target), "page")
            if path:
                link.set("href", quote(posixpath.relpath(path, posixpath.dirname(self.file) or ".")) + mark + fragment)
            title = _TITLE.search(self.tree.text(path)) if path else None
            if link.text_content().partition("#")[0] in (target, _PAGE.sub("", target)):
                for child in list(link):
                    link.remove(child)
                link.text = self.named(title[1]) if title else re.split("[/:]", _PAGE.sub("", target))[-1]
            if not path and ":" in target:
                link.drop_tag()


DEEPEST = 8
MOST = 200
"""Files that a page may include, each time counted."""

_INCLUDE = re.compile(r"^include::(\S[^\[\n]*)\[([^\]\n]*)\][ \t]*$")
_TAG = re.compile(r"(?:^|\W)(tag|end)::([\w.-]+)\[\]")
_SET = re.compile(r"^:([\w-]++):(?:[ \t]++(.*+))?$")
_OPTION = re.compile(r"(?<!\w)(\w++)=(?:\"([^\"]*)\"|([^,]*))")


def with_includes(text: str, place: Place, attributes: Mapping[str, str]) -> str:
    """The text with the files that it includes; those that aren't there are left out."""
    return "\n".join(_Reading(place, dict(attributes)).lines(text, ())) + "\n"


@dataclass
class _Reading:
    place: Place
    attributes: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def lines(self, text: str, around: tuple[str, ...]) -> Iterator[str]:
        """The lines, with those of included files in their places."""
        for line in text.splitlines():
            if match := _SET.match(line):
                self.attributes.setdefault(match[1], (match[2] or "").rstrip(" \t"))
            if not (include := _INCLUDE.match(line)):
                yield line
                continue
            self.count += 1
            target = re.sub(r"\{([\w-]+)\}", lambda name: self.attributes.get(name[1], name[0]), include[1])
            options = {name: quoted or plain for name, quoted, plain in _OPTION.findall(include[2])}
            path = self.place.path(target)
            if path not in around and len(around) < DEEPEST and self.count <= MOST:
                chosen = _chosen(self.place.tree.text(path), options)
                yield from _shifted(self.lines(chosen, (*around, path)), options.get("leveloffset", ""))


def _shifted(lines: Iterator[str], offset: str) -> Iterator[str]:
    if not re.fullmatch(r"[+-]?\d", offset):
        yield from lines
        return
    back = offset.translate(str.maketrans("+-", "-+")) if offset[0] in "+-" else f"-{offset}"
    yield from (f":leveloffset: {offset}", "", *lines, "", f":leveloffset: {back}")


def _chosen(text: str, options: Mapping[str, str]) -> str:
    """The lines that the options choose; marks of tags are never shown."""
    lines = text.splitlines()
    if spec := options.get("lines"):
        lines = [line for part in re.split(r"[,;]", spec)[:100] for line in _range(lines, part.strip())]
    wanted = [tag for tag in re.split(r"[,;]", options.get("tags") or options.get("tag") or "") if tag]
    shown: list[str] = []
    open_: list[str] = []
    for line in lines:
        if mark := _TAG.search(line):
            if mark[1] == "tag":
                open_.append(mark[2])
            elif mark[2] in open_:
                open_.remove(mark[2])
        elif _is_wanted(open_, wanted):
            shown.append(line)
    if options.get("indent") == "0":
        least = min((len(line) - len(line.lstrip()) for line in shown if line.strip()), default=0)
        shown = [line[least:] for line in shown]
    return "\n".join(shown)


def _is_wanted(open_: list[str], wanted: list[str]) -> bool:
    if not wanted or "**" in wanted:
        return not any(f"!{tag}" in wanted for tag in open_)
    if "*" in wanted:
        return bool(open_)
    return any(tag in wanted for tag in open_) and not any(f"!{tag}" in wanted for tag in open_)


def _range(lines: list[str], part: str) -> list[str]:
    first, dots, last = part.partition("..")
    if not first.isdecimal() or len(part) > 20:
        return []
    end = int(last) if last.isdecimal() else len(lines)
    return lines[int(first) - 1 : end if dots else int(first)] if int(first) else []
