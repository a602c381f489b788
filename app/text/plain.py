"""A passage as a model reads it: Markdown without addresses, tags, anchors and encoded data."""

from __future__ import annotations

import re

from app.text.fences import blocks, outside_spans

_FENCE = re.compile(
    r"(?P<fence>[^`~\n]*+(?:`{3,}+|~{3,}+))[ \t]*+\{?(?:code(?:-block)?\})?[ \t]*+\.?(?P<language>[A-Za-z][\w+#.-]*+)?[^\n]*+"
)
_IMAGE = re.compile(r"!\[([^\[\]\n]*+)\](?:\((?:[^()\n]|\([^()\n]*+\))*+\)|\[[^\[\]\n]*+\])")
_LINK = re.compile(
    r"(?<!\])\[([^\[\]\n]*+(?:\[[^\[\]\n]*+\][^\[\]\n]*+){0,3}+)\]"
    r"(?:\((?:<[^<>\n]*+>|(?:[^()\s]|\([^()\s]*+\))*+)(?:\s++(?:\"[^\"\n]*+\"|'[^'\n]*+'))?[ \t]*+\)|\[[^\[\]\n]*+\](?!\()"
    # written wrongly, and known for an address all the same
    r"|\(\(?(?:https?://|mailto:)(?:[^()\n]|\n(?!\n)|\([^()\n]*+\))*+\))"
)
_DEFINITION = re.compile(r"(?m)^ {0,3}\[[^\[\]\n^]++\]:[ \t]++\S.*+\n?")
_ANCHOR = re.compile(r"(?m)(?:(?<![ \t])[ \t]++)?(?:\{#[^{}\s]++\}|(?<=[ \t])\[#[^\[\]\s]++\])[ \t]*+$")
_ESCAPED = re.compile(r"\\([<&])")
_TAG = re.compile(r"(?<!\\)<(/?)([A-Za-z][\w.:-]*+)((?:[^<>\"']|\"[^\"\n]*+\"|'[^'\n]*+')*+)>")
_CLOSING = re.compile(r"(?<!\\)</([A-Za-z][\w.:-]*+)")
_ENCODED = re.compile(r"data:[\w.+-]++/[\w.+-]++[;,][^\s()<>\"']*+|(?<![\w%+/=-])[\w%+/=-]{200,}+")
_ENCODED_IN_CODE = re.compile(r"(?<![\w%+/=-])[\w%+/=-]{500,}+")
_SHOWN = 40  # characters of encoded data: what it begins with may tell what it is
_HTML_NAMES = """
a abbr address article aside audio b big blockquote body br button canvas caption center cite code col
colgroup dd del details dfn dialog div dl dt em embed fieldset figcaption figure font footer form h1 h2 h3 h4
h5 h6 head header hr html i iframe img input ins kbd label legend li link main map mark menu meta nav noscript
object ol optgroup option p param picture pre q s samp script section select small source span strike strong
style sub summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul var
video wbr path
"""
_HTML = frozenset(_HTML_NAMES.split())


def plain(markdown: str) -> str:
    """The Markdown with the words of links and images, the language of code, and the text between tags; all else stays.

    An address that is itself what readers see stays, and so does what only looks like a tag, such as `<name>`.
    """
    return "".join(_code(piece) if code else outside_spans(piece, _prose) for code, piece in blocks(markdown))


def _code(block: str) -> str:
    opening, end, rest = block.partition("\n")
    if found := _FENCE.match(opening):
        opening = found["fence"] + (found["language"] or "")
    return f"{opening}{end}{_ENCODED_IN_CODE.sub(_begun, rest)}"


def _prose(text: str) -> str:
    if "[" in text:
        text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text)) if "](" in text or "][" in text else text
        text = _DEFINITION.sub("", text) if "]:" in text else text
    text = _ANCHOR.sub("", text) if "#" in text else text
    if "<" in text:
        closed = frozenset(_CLOSING.findall(text))
        text = _TAG.sub(lambda found: _untagged(found, closed), text)
    if "\\" in text:
        text = _ESCAPED.sub(r"\1", text)
    return _ENCODED.sub(_begun, text)


def _untagged(found: re.Match[str], closed: frozenset[str]) -> str:
    """What stays of a tag. A name without attributes in angle brackets is a placeholder, unless it is closed."""
    name, rest = found[2], found[3].strip()
    if name.casefold() not in _HTML:
        component = "=" in rest or rest == "/" if rest else name in closed
        return "" if component else found[0]
    if name.casefold() == "br":
        before = found.string[max(found.start() - 1, 0) : found.start()]
        return "" if before in "| \n" else " " if before in ".,;:!?" else "; "
    if name in {"sup", "sub"} and not found[1] and not rest:
        return "^" if name == "sup" else "_"
    return ""


def _begun(found: re.Match[str]) -> str:
    return "" if found[0].startswith("data:") else f"{found[0][:_SHOWN]}…"
