"""Template languages in raw Markdown: Liquid and Jinja (`{% %}`), shortcodes of Hugo (`{{< >}}`), interpolations (`{{ }}`).

Their markup goes, the text between it stays. Values that the page itself gives are filled in; others become an ellipsis.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from app.text.fences import outside_code, outside_fences
from ingestion.convert.admonitions import KINDS, label
from ingestion.convert.pairs import between, replaced, without

_CODE = re.compile(
    r"(?m)^(?P<indent>[ \t]*+)(?:\{%-?[ \t]*+highlight(?P<liquid>[^%\n]*+)%\}|"
    r"\{\{(?P<sign>[<%])[ \t]*+(?P<name>[\w-]{0,30}(?:highlight|code)[\w-]{0,30})(?P<hugo>(?:[^\n%>]|[%>](?!\}\}))*+)[%>]\}\})[ \t]*+\n?"
)
_CODE_END = re.compile(
    r"\{%-?[ \t]*+endhighlight[ \t]*+-?%\}|\{\{[<%][ \t]*+/[ \t]*+[\w-]{0,30}(?:highlight|code)[\w-]{0,30}[ \t]*+[%>]\}\}"
)
_MOST_FOUND = 100
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


def template_markup(text: str) -> tuple[str, ...]:
    """The tags and shortcodes outside code, which a site's HTML shows as what they make."""
    found: list[str] = []

    def keep(prose: str) -> str:
        found.extend(match[0] for sign in (_TAG, _SHORTCODE) for match in sign.finditer(prose))
        return prose

    if "{%" in text or "{{" in text:
        outside_code(text, keep)
    return tuple(found[:_MOST_FOUND])


def _fenced(found: re.Match[str], end: re.Match[str]) -> str:
    """The code between two tags as a fenced block."""
    arguments = found["liquid"] or found["hugo"] or ""
    named, first, body = _pairs(arguments), _first(arguments), between(found, end).rstrip()
    language = named.get("lang") or named.get("language") or (first if _LANGUAGE.fullmatch(first) else "")
    title = named.get("title") or (named.get("file", "") if "." in named.get("file", "") else "")
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", body)), default=0))
    indent = found["indent"]
    above = f"{indent}**{title}**\n\n" if title else ""
    return f"{above}{indent}{fence}{language}\n{body}\n{indent}{fence}"


def _without_markup(prose: str) -> str:
    if "{%" not in prose and "{{" not in prose:
        return prose
    prose = replaced(prose, _RAW, _RAW_END, _as_written)
    prose = outside_code(
        prose, lambda text: _TAG.sub(lambda found: found["path"] or "", without(text, _WHOLE, _WHOLE_END))
    )
    return outside_code(prose, lambda text: _SHORTCODE.sub(_shown, text))


def _as_written(found: re.Match[str], end: re.Match[str]) -> str:
    return between(found, end).replace("{{", f"{{{_HELD}{{").replace("{%", f"{{{_HELD}%")


def _shown(found: re.Match[str]) -> str:
    """What readers see of a shortcode: a title, a picture, the target of a link, the argument of one within a sentence."""
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
        kind = next((one for one in kinds if one in KINDS), "")
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
    found = _BARE.search(_PAIR.sub("", arguments))
    return next(filter(None, found.groups()), "") if found else ""


def _filled(facts: Mapping[str, Any]) -> Callable[[str], str]:
    myst = facts.get("myst")
    given = myst.get("substitutions") if isinstance(myst, dict) else facts.get("substitutions")
    known = {**facts, **(given if isinstance(given, dict) else {})}

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
