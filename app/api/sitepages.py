"""The documentation's Markdown files as pages: `docs/<language>/<name>.md`, read again when a file changes.

Heading ids follow GitHub's rule: lower case, letters, digits, - and _ stay, spaces become -, the rest goes;
a repeated one gets -1, -2 ...; `## Heading {#id}` sets it. Links to `other.md` become links to the page.
"""

from __future__ import annotations

import logging
import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import frontmatter
import yaml  # type: ignore[import-untyped]
from markdown_it import MarkdownIt
from markdown_it.token import Token

log = logging.getLogger("app.api")
HOME = "index"
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]+)*")
_EXPLICIT_ID = re.compile(r"(?<!\s)\s*+\{#([\w-]+)\}\s*$")
_PAGE_LINK = re.compile(
    r"(?![a-zA-Z][a-zA-Z0-9+.-]*:|/|#)(?P<folder>(?:[^#?]*/)?+)(?P<name>[^#?/]+)\.md(?P<rest>[#?].*)?"
)


@dataclass(frozen=True, slots=True)
class DocPage:
    """One page of the documentation; `markdown` is the file as it is, `html` the article alone.

    One that isn't `listed` is left out of the navigation: others lead to it.
    """

    language: str
    name: str
    title: str
    description: str
    order: float
    markdown: str
    html: str
    modified: datetime
    listed: bool = True

    @property
    def path(self) -> str:
        """Where the page is below /docs/: a home page ends in a slash."""
        return f"{self.language}/{'' if self.name == HOME else self.name}"


class Pages:
    """The pages in a folder, as they are now; files that didn't change aren't read again."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._read: dict[tuple[str, str], tuple[tuple[int, int], DocPage]] = {}

    def all(self) -> Mapping[tuple[str, str], DocPage]:
        """By language and name, in reading order: home first, then by `order` of the front matter, then by title."""
        read = {}
        for language, file in self._files():
            key = language, file.name.removesuffix(".md")
            try:
                stat = file.stat()
                stamp = stat.st_mtime_ns, stat.st_size
                known = self._read.get(key)
                read[key] = known if known and known[0] == stamp else (stamp, read_page(Path(file), *key))
            except OSError as error:
                log.warning("a documentation page can't be read file=%s error=%r", file.path, error)
        self._read = read
        pages = sorted(
            (page for _, page in read.values()), key=lambda p: (p.language, p.name != HOME, p.order, p.title)
        )
        return {(page.language, page.name): page for page in pages}

    def _files(self) -> list[tuple[str, os.DirEntry[str]]]:
        if not self._folder:
            return []
        try:
            folders = [entry for entry in os.scandir(self._folder) if _LANGUAGE.fullmatch(entry.name)]
            return [
                (folder.name, file)
                for folder in folders
                if folder.is_dir()
                for file in os.scandir(folder)
                if file.name.endswith(".md") and file.name[0] not in "._" and file.is_file()
            ]
        except FileNotFoundError:
            return []


def read_page(file: Path, language: str, name: str) -> DocPage:
    """The page in this file. Raises `OSError` when it can't be read."""
    text = file.read_text(encoding="utf-8", errors="replace")
    try:
        meta, body = frontmatter.parse(text)
    except yaml.YAMLError as error:
        log.warning("front matter is no valid YAML file=%s error=%r", file, error)
        meta, body = {}, text
    html, heading = render(body)
    title = str(meta.get("title") or heading or name)
    if not heading:
        html = f"<h1>{_escaped(title)}</h1>\n{html}"
    order = meta.get("order")
    return DocPage(
        language=language,
        name=name,
        title=title,
        description=str(meta.get("description") or ""),
        order=float(order) if isinstance(order, int | float) else float("inf"),
        markdown=text,
        html=html,
        modified=datetime.fromtimestamp(int(file.stat().st_mtime), UTC),
        listed=meta.get("listed") is not False,
    )


def render(markdown: str) -> tuple[str, str]:
    """The HTML of a Markdown text, and its first heading of the first level (empty where it has none)."""
    parser = _parser()
    tokens = parser.parse(markdown)
    seen: dict[str, int] = {}
    first = ""
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            text = _mark(token, inline, seen)
            first = first or (text if token.tag == "h1" else "")
        if token.type == "inline":
            _point_to_pages(token.children or ())
    return parser.renderer.render(tokens, parser.options, {}), first


def slug(heading: str) -> str:
    """A heading's id by GitHub's rule (before repeated ones are told apart)."""
    kept = (c for c in heading.strip().lower() if c.isalnum() or c in "-_ " or unicodedata.category(c)[0] == "M")
    return "".join(kept).replace(" ", "-") or "section"


def _mark(heading: Token, inline: Token, seen: dict[str, int]) -> str:
    """Give the heading its id and a link to itself; its text."""
    children = inline.children or []
    explicit = ""
    if children and children[-1].type == "text" and (match := _EXPLICIT_ID.search(children[-1].content)):
        explicit = match[1]
        children[-1].content = children[-1].content[: match.start()]
    text = "".join(child.content for child in children if child.type in ("text", "code_inline"))
    base = explicit or slug(text)
    anchor, n = base, seen.get(base, -1) + 1
    if n:
        anchor = f"{base}-{n}"
        while anchor in seen:
            n += 1
            anchor = f"{base}-{n}"
    seen[base] = n
    seen.setdefault(anchor, 0)
    heading.attrSet("id", anchor)
    if heading.tag != "h1":
        link = Token(
            "link_open",
            "a",
            1,
            attrs={"class": "anchor", "href": f"#{anchor}", "aria-hidden": "true", "tabindex": "-1"},
        )
        children += [link, Token("link_close", "a", -1)]
    return text


def _point_to_pages(children: Sequence[Token]) -> None:
    for token in children:
        if token.type == "link_open" and (match := _PAGE_LINK.fullmatch(str(token.attrGet("href") or ""))):
            name = "" if match["name"] == HOME else match["name"]
            token.attrSet("href", (match["folder"] + name or "./") + (match["rest"] or ""))


@cache
def _parser() -> Any:
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
