"""Markup that is for a generator alone: templates (Liquid, Jinja, Hugo, `{{ }}`), attributes, icons, includes.

Markup goes, the text between it stays. Values that the page itself gives are filled in; others become an ellipsis.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from app.text.blocks import blocks, fenced, outside_code, outside_fences
from ingestion.convert.document import KINDS
from ingestion.convert.html.boxes import label
from ingestion.convert.markdown.tags import between, replaced, without

_CODE = re.compile(
    r"(?m)^(?P<indent>[ \t]*+)(?:\{%-?[ \t]*+highlight(?P<liquid>[^%\n]*+)%\}|"
    r"\{\{(?P<sign>[<%])[ \t]*+(?P<name>[\w-]{0,30}(?:highlight|code)[\w-]{0,30})(?P<hugo>(?:[^\n%>]|[%>](?!\}\}))*+)[%>]\}\})[ \t]*+\n?"
)
_CODE_END = re.compile(
    r"\{%-?[ \t]*+endhighlight[ \t]*+-?%\}|\{\{[<%][ \t]*+/[ \t]*+[\w-]{0,30}(?:highlight|code)[\w-]{0,30}[ \t]*+[%>]\}\}"
)
_LANGUAGE = re.compile(r"[\w+#.-]{1,20}")
_RAW, _RAW_END = re.compile(r"\{%-?[ \t]*+raw[ \t]*+-?%\}"), re.compile(r"\{%-?[ \t]*+endraw[ \t]*+-?%\}")
_HELD = "\x01"
"""Between the braces of what is shown as it is, until all others are gone."""
_WHOLE = re.compile(r"(?<!\{)\{%-?[ \t]*+(?:for|comment|capture|tablerow)\b[^%\n]*+%\}")
_WHOLE_END = re.compile(r"\{%-?[ \t]*+end(?:for|comment|capture|tablerow)[ \t]*+-?%\}")
_TAG = re.compile(r"(?<!\{)\{%-?[ \t]*+(?:(?:link|post_url)[ \t]++(?P<path>[^\s%{}]++))?(?:[^%{}]|%(?!\}))*+%\}")
_SHORTCODE = re.compile(
    r"\{\{(?P<sign>[<%])[ \t\n]*+(?P<close>/?)[ \t]*+(?P<name>[\w./-]++)?(?P<rest>(?:[^<>{}%]|%(?!\}\}))*+)(?:/?>|%)\}\}"
)
_VALUE = re.compile(r"(?<![${={\\])\{\{-?(?P<expression>[^{}\n<>%]++)\}\}(?!\})")
_LITERAL = re.compile(r"\s*+(?:\"([^\"\n]*+)\"|'([^'\n]*+)')")
_SENTENCE = re.compile(r"^\s*+[A-Za-z]++[ ]++[A-Za-z]")
_PAGE = re.compile(r"\s*+(?:page\.|\$frontmatter\.|frontmatter\.)?([\w-]++)\s*+$")
_PAIR = re.compile(r"(?<![\w-])([\w-]++)=(?:\"([^\"\n]*+)\"|'([^'\n]*+)'|([^\s\"'/]++))")
_BARE = re.compile(r"(?:^|\s)(?:\"([^\"\n]*+)\"|'([^'\n]*+)'|([^\s\"'=/]++)(?=\s|/|$))")
_TARGET = re.compile(r"\]\(<?[^()\s<>]*+$")
_TITLES = ("title", "name", "header", "heading", "label", "summary")
_BOXES = frozenset({"alert", "admonition", "callout", "notice", "hint", "details", "expand", "tab"})
_ELSEWHERE = re.compile(r"include|readfile")
_LINKS = frozenset({"ref", "relref", "link"})
_PICTURES = frozenset({"figure", "img", "image"})
_SINCE = re.compile(r"\b(?:new|since|added|deprecated|removed|changed)\b")


def clean_templates(text: str, facts: Mapping[str, Any]) -> str:
    """The Markdown without template markup; `facts` are those of its front matter."""
    if "{%" not in text and "{{" not in text:
        return text
    fenced = outside_fences(text, lambda prose: replaced(prose, _CODE, _CODE_END, _fenced))
    return outside_code(outside_fences(fenced, _without_markup), _filled(facts)).replace(_HELD, "")


def _fenced(found: re.Match[str], end: re.Match[str]) -> str:
    arguments = found["liquid"] or found["hugo"] or ""
    named, first, body = _pairs(arguments), _first(arguments), between(found, end).rstrip()
    language = named.get("lang") or named.get("language") or (first if _LANGUAGE.fullmatch(first) else "")
    title = named.get("title") or (named.get("file", "") if "." in named.get("file", "") else "")
    indent = found["indent"]
    above = f"{indent}**{title}**\n\n" if title else ""
    code, _, end_fence = fenced(body, language).rpartition("\n")
    return f"{above}{indent}{code}\n{indent}{end_fence}"


def _without_markup(prose: str) -> str:
    if "{%" not in prose and "{{" not in prose:
        return prose
    prose = replaced(
        prose,
        _RAW,
        _RAW_END,
        lambda *tags: between(*tags).replace("{{", f"{{{_HELD}{{").replace("{%", f"{{{_HELD}%"),
    )
    return outside_code(prose, _without_tags)


def _without_tags(text: str) -> str:
    text = _TAG.sub(lambda found: found["path"] or "", without(text, _WHOLE, _WHOLE_END))
    return _SHORTCODE.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    """Returns what readers see of a shortcode: a title, a picture, a link's target, the argument of one in a sentence."""
    name, rest = (found["name"] or "").lower(), found["rest"].strip()
    if found["close"] or not name or _ELSEWHERE.search(name):
        return ""
    named, first = _pairs(rest), _first(rest)
    if name in _LINKS:
        return named.get("path") or first
    if name in _PICTURES and named.get("src"):
        said = named.get("alt") or named.get("caption") or named.get("title") or ""
        return f"![{said}]({named['src']})"
    if name in KINDS or name in _BOXES:
        kinds = (name, named.get("type", ""), named.get("color", ""), first.lower())
        kind = next((word for word in kinds if word in KINDS), "")
        title = next(filter(None, map(named.get, _TITLES)), "" if first.lower() in KINDS else first)
        said = label(kind, title or kind.capitalize())
        return f"\n**{said}**\n\n" if said else ""
    line = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
    if _SINCE.search(name.replace("-", " ")) and first:
        return f"({name.replace('-', ' ')} {first})"
    return first if line.strip() and not named else ""


def _pairs(arguments: str) -> dict[str, str]:
    return {name: double or single or plain for name, double, single, plain in _PAIR.findall(arguments)}


def _first(arguments: str) -> str:
    match = _BARE.search(_PAIR.sub("", arguments))
    return next(filter(None, match.groups()), "") if match else ""


def _filled(facts: Mapping[str, Any]) -> Callable[[str], str]:
    myst = facts.get("myst")
    substitutions = myst.get("substitutions") if isinstance(myst, dict) else facts.get("substitutions")
    known = {**facts, **(substitutions if isinstance(substitutions, dict) else {})}

    def value(found: re.Match[str]) -> str:
        if _SENTENCE.search(found["expression"]):
            return found[0]
        if literal := _LITERAL.match(found["expression"]):
            return literal[1] or literal[2] or ""
        named = _PAGE.match(found["expression"])
        said = known.get(named[1]) if named else None
        if isinstance(said, str | int | float):
            return str(said)
        line = found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]
        return "" if _TARGET.search(line) or not line.strip() else "…"

    return lambda prose: _VALUE.sub(value, prose)


INCLUDES = "text that its pages include from other files (--8<--, <<<, include) is missing"
"""The note of a page with such text."""

_ITEM = r"(?:[#.][\w:.-]++|[\w:-]++=(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s{}\"']++)|[ \t]++)"
_LIST = rf"\{{:?[ \t]*+(?=[#.]|[\w:-]++=){_ITEM}++\}}"
_AT_END = re.compile(rf"(?<=\S)[ \t]*(?P<list>{_LIST})[ \t]*+$")
_ALONE = re.compile(rf"[ \t>]*+(?P<list>{_LIST}|\{{::?[^{{}}\n]++\}})[ \t]*+$")
_BEHIND = re.compile(rf"(?<=[)\]*_>:\x00])(?:{_LIST}|\{{:[^{{}}\n]++\}})")
_BEFORE = re.compile(rf"(?<=[|*+-] ){_LIST}[ \t]*+(?=\S)")
_ID = re.compile(r"(?:#([\w:.-]++)|\bid=[\"']?([\w:.-]++))")
_ICON = re.compile(r"(?<![\w:]):(?:material|octicons|fontawesome|simple)-[a-z0-9-]++:(?:[ \t]++(?=\S))?")
_CONTENTS = re.compile(r"(?mi)^[ \t]*+(?:\[TOC\]|\[\[_?toc_?\]\])[ \t]*+$\n?")
_SNIPPET = r"[ \t]*+(?:;?-{1,10}8<-{1,10}[^\n]*+|<<<[ \t]*+[@./][^\n]*+)"
_INCLUDE = re.compile(rf"(?m)^(?:{_SNIPPET}|[ \t]*+<!--[ \t]*+@include:[^\n>]*+-->|\{{\*[^*\n]++\*\}})[ \t]*+$\n?")
_INCLUDED_CODE = re.compile(rf"[^\n]*+\n(?:{_SNIPPET}\n)++[ \t>]*+[`~]{{3,}}\s*+$")
_INCLUDED_BY = re.compile(
    r"(?m)\{\{[<%][ \t]*+(?:include|readfile)\b|^[ \t>]*+(?:`{3,}|~{3,}|:{3,})\{(?:literal)?include\}"
)
_SCRIPT, _SCRIPT_END = (
    re.compile(r"(?mi)^[ \t]*+<(?:script|style|iframe)\b[^<>]*+>"),
    re.compile(r"(?i)</(?:script|style|iframe)\s*+>"),
)
_GENERATED = re.compile(r"(?m)^:::[ ]++[A-Za-z_]\w*+(?:\.\w++)++[ \t]*+\n(?:(?:[ ]{4}[^\n]*+|[ \t]*+)\n)*+")
_SIGNS = (
    "{", ":material", ":octicons", ":fontawesome", ":simple", "8<", "<<<", "@include", "[TOC]", "[[", "[toc]", "<s",
    "<S", "<iframe", ":::",
)  # fmt: skip


def missing_text(text: str) -> str:
    """The note of a page that includes other files by shortcodes or directives; empty for others."""
    return INCLUDES if _INCLUDED_BY.search(text) else ""


def clean_attributes(text: str) -> tuple[str, str]:
    """(the Markdown without attributes and the like, a note about text that is missing); ids of headings stay as ` {#id}` at their end.

    `# Title { #id .class }`, `{: .note }`, `:material-check:`, `[TOC]`, `--8<-- "file"`, `<<< @/file`, `<script setup>`.
    """
    if not any(sign in text for sign in _SIGNS):
        return text, ""
    pieces: list[str] = []
    missing = False
    for code, piece in blocks(text):
        cut = "" if code and _INCLUDED_CODE.match(piece) else piece if code else _INCLUDE.sub("", piece)
        missing |= cut != piece
        pieces.append(cut)
    return outside_code("".join(pieces), _clean), INCLUDES if missing else ""


def _clean(prose: str) -> str:
    prose = _CONTENTS.sub("", without(_GENERATED.sub("", prose), _SCRIPT, _SCRIPT_END))
    if "{" in prose:
        prose = _without_lists(prose)
    return _ICON.sub("", prose) if ":" in prose else prose


def _without_lists(prose: str) -> str:
    lines: list[str] = []
    for line in prose.split("\n"):
        heading = (lines[-1] if lines else "").startswith("#")
        if "{" not in line:
            lines.append(line)
        elif alone := _ALONE.match(line):
            if heading and lines[-1][-1:] != "}":
                lines[-1] += _id(alone["list"])
        elif at_end := _AT_END.search(line):
            rest = _within(line[: at_end.start()])
            lines.append(rest + _id(at_end["list"]) if line.startswith("#") else rest)
        else:
            lines.append(_within(line))
    return "\n".join(lines)


def _within(line: str) -> str:
    return _BEFORE.sub("", _BEHIND.sub("", line))


def _id(attributes: str) -> str:
    named = _ID.search(attributes)
    return f" {{#{named[1] or named[2]}}}" if named else ""
