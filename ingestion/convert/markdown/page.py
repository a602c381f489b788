"""Markdown or MDX of a page -> clean Markdown: no front matter, banners, JSX or HTML tables; links are absolute."""

import datetime as dt
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urljoin, urlsplit

import yaml  # type: ignore[import-untyped]
from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference

from app.text.blocks import outside_code, outside_fences
from ingestion.convert.document import MARKDOWN_TYPES, Document, SourceText
from ingestion.convert.markdown.directives import clean_directives
from ingestion.convert.markdown.generators import clean_attributes, clean_templates, missing_text
from ingestion.convert.markdown.structure import MOST_NESTED, headings_in, with_linked_anchors
from ingestion.convert.markdown.tags import clean_components, clean_html, clean_mdx, rules_in
from ingestion.errors import ConversionError
from ingestion.urls import public_url

_INLINE = re.compile(r"(\]\(\s*+)(<[^<>\n]*+>|(?:[^\s()]|\([^\s()]*+\))++)(?=\s*+\)|\s++[\"'(])")
_TAG = re.compile(r"(?i)<(?:a|img|video|source)\b[^<>]*+")
_ATTRIBUTE = re.compile(r"""(?i)(\b(?:href|src)\s*+=\s*+["'])([^"']*+)""")
_SCHEME = re.compile(r"(?i)\A[a-z][a-z0-9+.-]*:")


def absolute_links(text: str, base: str) -> str:
    """The text with absolute links. Links to raw Markdown of the same site point to the page instead."""
    host = urlsplit(base).netloc

    @lru_cache(maxsize=1024)  # most pages repeat their links
    def absolute(target: str) -> str:
        if not target or "\x00" in target or (_SCHEME.match(target) and not target.lower().startswith("http")):
            return target
        try:
            joined = urljoin(base, target)
            path, mark, fragment = joined.partition("#")
            return (public_url(path) if urlsplit(path).netloc == host else path) + mark + fragment
        except ValueError:  # no address at all
            return target

    def join(match: re.Match[str]) -> str:
        written = match[2]
        target = written.strip("<>").strip()
        address = absolute(target)
        if address == target:
            return match[0]
        return match[1] + (f"<{address}>" if written.startswith("<") else address)

    def change(prose: str) -> str:
        return _TAG.sub(lambda tag: _ATTRIBUTE.sub(join, tag[0], count=1), _INLINE.sub(join, prose))

    return outside_code(text, change)


_DEFINED = re.compile(r"(?m)^[ \t>]*+\[[^\]\n^][^\]\n]*+\]:")
_LABEL = r"\[((?:[^\[\]\\]|\\.)++)\]"
_IMAGE = re.compile(rf"(?<!\\)(!)\[((?:[^\[\]\\]|\\.)*+)\](?:{_LABEL}|\[\])?(?![\[(:])", re.DOTALL)
_LINK = re.compile(
    rf"(?<![\\\]!])()\[((?:[^\[\]\\]|\\.|\[[^\[\]]*+\](?:\([^()\n]*+\))?)++)\](?:{_LABEL}|\[\])?(?![\[(:])", re.DOTALL
)
_BLOCKS = MarkdownIt("commonmark", {"maxNesting": MOST_NESTED}).disable("inline")
_BLOCKS.normalizeLink = str  # type: ignore[method-assign,assignment]  # addresses stay as they are written


def inline_references(text: str) -> str:
    """The text with the target of each reference in its place, and without definitions. Footnotes stay as they are."""
    if not _DEFINED.search(text):
        return text
    env: dict[str, Any] = {}
    _BLOCKS.parse(text, env)
    defined = {
        label: definition for label, definition in env.get("references", {}).items() if not label.startswith("^")
    }
    if not defined:
        return text
    definitions = [
        *defined.values(),
        *(duplicate for duplicate in env.get("duplicate_refs", []) if not duplicate["label"].startswith("^")),
    ]
    lines = text.split("\n")
    for start, end in sorted({tuple(definition["map"]) for definition in definitions}, reverse=True):
        del lines[start:end]
    targets = {label: _target(definition["href"]) for label, definition in defined.items()}
    return outside_code("\n".join(lines), lambda prose: _resolved(prose, targets))


def _target(address: str) -> str:
    return f"<{address}>" if re.search(r"[\s()]", address) or not address else address


def _resolved(prose: str, targets: Mapping[str, str]) -> str:
    def inline(match: re.Match[str]) -> str:
        target = targets.get(normalizeReference(match[3] or match[2]))
        return match[0] if target is None else f"{match[1]}[{match[2]}]({target})"

    return _LINK.sub(inline, _IMAGE.sub(inline, prose))


_DELIMITERS = re.compile(r"[ \t>]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+$")
_PIPE = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r"-+")


def compact_tables(text: str) -> str:
    """The text with one space between cell and pipe, and three dashes below each column's name."""
    return outside_fences(text, _compacted) if re.search(r"-[ \t]*\||\|[ \t]*:?-", text) else text


def _compacted(prose: str) -> str:
    lines = prose.split("\n")
    at = 1
    while at < len(lines):
        if "|" in lines[at] and "|" in lines[at - 1] and _DELIMITERS.match(lines[at]):
            lines[at] = _DASHES.sub("---", lines[at])
            at -= 1
            while at < len(lines) and "|" in lines[at]:
                lines[at] = _row(lines[at])
                at += 1
        at += 1
    return "\n".join(lines)


def _row(line: str) -> str:
    body = line.lstrip(" \t")
    return line[: len(line) - len(body)] + " | ".join(cell.strip(" \t") for cell in _PIPE.split(body)).strip(" ")


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
_H1 = re.compile(r"(?m)^(?:# ++\S|\S[^\n]*+\n=++[ \t]*+$)")


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
        missing = missing_text(body)
        rules = rules_in(body)
        body, note = clean_attributes(clean_directives(clean_templates(body, facts)))
        if source.is_mdx or _IMPORT.search(body[:_HEAD]):
            body = clean_mdx(body)
        body = inline_references(compact_tables(clean_html(clean_components(body), rules)))
        body = absolute_links(with_linked_anchors(body), source.base or source.url).strip("\n")
        if not re.search(r"\w", body) and not (title or _text(facts.get("title"))):
            raise ConversionError(f"{source.url} is empty")
        heading = next((one.text for one in headings_in(f"{body}\n") if one.level == 1), "")
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
