"""Raw Markdown or MDX of a page -> clean Markdown: no front matter, banners, JSX or HTML tables."""

from __future__ import annotations

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]

from app.text.fences import blocks
from ingestion.convert.attributes import clean_attributes, missing_text
from ingestion.convert.components import clean_components
from ingestion.convert.containers import clean_containers
from ingestion.convert.document import MARKDOWN_TYPES, Document, SourceText
from ingestion.convert.inline_html import clean_html
from ingestion.convert.links import absolute_links
from ingestion.convert.mdx import clean_mdx
from ingestion.convert.myst import clean_myst
from ingestion.convert.raw import with_linked_anchors
from ingestion.convert.references import inline_references
from ingestion.convert.tables import compact_tables
from ingestion.convert.templates import clean_templates, template_markup
from ingestion.errors import ConversionError

_LARGEST = 10**18
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML = re.compile(r"\A\+\+\+[ \t]*\n(.{0,100000}?)\n\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)  # Hugo
_LONGEST_FRONT, _DEEPEST_FRONT, _MOST_ALIASES = 100_000, 20, 10
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FRONT_LINE = re.compile(r"(?m)^(\w++):[ \t]*+(.+)$")
_BANNERS = (
    # Mintlify, Rspress: where the list of all pages is
    re.compile(
        r"\A(?:>[^\n]*+\n)*?>(?=[^\n]*\b(?:llms(?:-full)?\.txt|Documentation Index|For AI agents))[^\n]*+\n(?:>[^\n]*+\n)*+"
    ),
    re.compile(r"\A<(?:AgentInstructions|SYSTEM)>.*?</(?:AgentInstructions|SYSTEM)>\s*", re.DOTALL),
)
_HEADED = re.compile(
    r"\A#[ \t]++(?P<title>[^\n]*\S)[ \t]*+\n(?:URL|Source|Source URL):[ \t]*\S+[ \t]*(?:\n(?!\S*:)|\n|\Z)"
)  # fumadocs
_LINKED = re.compile(r"\A#[ \t]++(?P<title>[^\n]*\S)[ \t]++\((?:https?:/)?/[^\s()]*\)[ \t]*(?:\n|\Z)")  # fumadocs
_IMPORT = re.compile(r"(?m)^import [^\n]*['\"](?:@theme|@site|@docusaurus|\.|[\w@-]+/)[^\n'\"]*['\"];?[ \t]*$")
_HEAD = 3_000
"""Characters at the start of a page in which imports show that it is MDX, whatever its ending."""
_H1 = re.compile(r"(?m)^(?:# ++(?P<atx>\S[^\n]*+)$|(?P<setext>\S[^\n]*+)\n=++[ \t]*+$)")
_ANCHOR = re.compile(r"(?:\{#[^{}\s]+\}|\[#[^\[\]\s]+\])\s*+$")


class MarkdownConverter:
    """Keeps Markdown and removes the syntax of site generators."""

    def matches(self, source: SourceText) -> bool:
        """True for Markdown, and for plain text or an .md address that isn't HTML in truth."""
        if source.media_type in MARKDOWN_TYPES:
            return True
        named = source.url.partition("?")[0].endswith((".md", ".mdx", ".txt"))
        plain = source.media_type == "text/plain" or (named and source.media_type in ("", "application/octet-stream"))
        return plain and not source.text.lstrip("\ufeff \t\r\n").startswith("<")

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` when there is no text in it."""
        text = re.sub(r"\r\n?", "\n", source.text.lstrip("\ufeff")).replace("\x00", "")
        facts, body = _front_matter(text)
        title, body = _banner(body)
        missing, templates = missing_text(body), template_markup(body)
        body, note = clean_attributes(clean_containers(clean_myst(clean_templates(body, facts))))
        if source.is_mdx or _IMPORT.search(body[:_HEAD]):
            body = clean_mdx(body)
        body = inline_references(compact_tables(clean_html(clean_components(body))))
        body = absolute_links(with_linked_anchors(body), source.base or source.url).strip("\n")
        if not re.search(r"\w", body) and not (title or _text(facts.get("title"))):
            raise ConversionError(f"{source.url} is empty")
        heading = _first_h1(body)
        title = _text(facts.get("title")) or title or heading
        if title and heading != title and not _H1.match(body):
            body = f"# {title}\n\n{body}"
        return Document(
            title=title,
            markdown=body.strip("\n") + "\n",
            languages=_languages(facts),
            published=_date(facts, "published", "date", "created"),
            modified=_date(facts, "modified", "updated", "last_modified", "lastModified", "lastUpdated", "last_update"),
            version=_version(facts),
            note=note or missing,
            raw=True,
            templates=templates,
        )


def _front_matter(text: str) -> tuple[Mapping[str, Any], str]:
    if match := _TOML.match(text):
        try:
            return tomllib.loads(match[1]), text[match.end() :]
        except (tomllib.TOMLDecodeError, RecursionError):
            return {}, text[match.end() :]
    if not (match := _FRONT.match(text)):
        return {}, text
    body = text[match.end() :]
    try:
        facts = yaml.load(match[1], Loader=_LOADER) if _is_small(match[1]) else None  # noqa: S506  # a safe one
    except (yaml.YAMLError, ArithmeticError, LookupError, TypeError, ValueError):
        facts = None
    if not isinstance(facts, dict):
        # a colon in an unquoted title is the usual slip: line by line it still reads
        return {key: value.strip(" \t").strip("\"'") for key, value in _FRONT_LINE.findall(match[1])}, body
    if "version" in facts:
        # as it is written: the number 1.10 would be 1.1; this loader makes nothing but strings, lists and dicts
        written = yaml.load(match[1], Loader=yaml.BaseLoader)  # noqa: S506
        facts = {**facts, "version": written.get("version", facts["version"])}
    return facts, body


def _is_small(front: str) -> bool:
    """False for YAML that would take a loader too long, or more stack or memory than there is."""
    if len(front) > _LONGEST_FRONT:
        return False
    depth = aliases = 0
    for event in yaml.parse(front, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        if depth > _DEEPEST_FRONT or aliases > _MOST_ALIASES:
            return False
    return True


def _banner(body: str) -> tuple[str, str]:
    """(title, rest) without the banner that some generators add; the title may be empty."""
    body = body.lstrip("\n")
    for banner in _BANNERS:
        body = banner.sub("", body).lstrip("\n")
    match = _HEADED.match(body) or _LINKED.match(body)
    return (match["title"].strip(), body[match.end() :].lstrip("\n")) if match else ("", body)


def _first_h1(body: str) -> str:
    for code, piece in blocks(body):
        if not code and (match := _H1.search(piece)):
            title = match["setext"] or match["atx"].rstrip(" \t").rstrip("#").rstrip(" \t")
            return _ANCHOR.sub("", title).strip()
    return ""


def _languages(facts: Mapping[str, Any]) -> Mapping[str, str]:
    for key in ("lang", "language", "locale"):
        if isinstance(facts.get(key), str):
            return {"front matter": facts[key]}
    return {}


def _version(facts: Mapping[str, Any]) -> str:
    value = facts.get("version", "")
    return ",".join(map(_text, value)) if isinstance(value, list) else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return " ".join(value.split())
    # Python refuses to write a number of some thousand digits
    return str(value) if isinstance(value, int | float) and abs(value) < _LARGEST else ""


def _date(facts: Mapping[str, Any], *keys: str) -> str:
    for key in keys:
        value = facts.get(key)
        if isinstance(value, dict):  # Docusaurus: last_update: {date: ...}
            value = value.get("date")
        if isinstance(value, dt.date):
            return value.isoformat()
        if isinstance(value, str) and re.match(r"\d{4}-\d{2}", value):
            return value
    return ""
