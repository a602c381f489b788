"""What a site's generator puts into raw Markdown for its own use: tags of components, badges, attributes of code, encoded data.

It goes, and what readers see of it stays as text: the labels of tabs and code, the words of badges, the names of variants.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from app.text.fences import blocks, outside_code
from ingestion.convert.admonitions import component_kind, label

LONGEST_ADDRESS = 1000
"""Characters: a longer one holds encoded data, such as the program of a playground, which nobody searches or quotes."""

_FENCE = re.compile(
    r"(?P<indent>[ \t>]*+(?:(?:[-*+]|\d++[.)])[ \t]++)*+)(?P<fence>`{3,}+|~{3,}+)[ \t]*+"
    r"(?P<language>[A-Za-z][\w+#.-]*+)?(?P<rest>[^\n`]*+)$"
)
_MARKER = re.compile(r"[^\s>]")
_LABEL = re.compile(
    r"\[(?P<bracket>[^\[\]\n]++)\]|\b(?:title|file(?:name)?|name)=(?:\"(?P<double>[^\"\n]++)\"|'(?P<single>[^'\n]++)')"
)
_ATTRIBUTES = r"(?:[^<>\"']|\"[^\"\n]*+\"|'[^'\n]*+')*+"
_COMPONENT = re.compile(rf"(?<!\\)<(?P<close>/?)(?P<name>[A-Z][\w.]*+)(?P<rest>(?=[\s/>]){_ATTRIBUTES})>")
_CLOSING = re.compile(r"</([A-Z][\w.]*+)")
_BADGE = re.compile(
    rf"(?:(?<![ \t])[ \t]++)?<(?P<tag>sup|span|i|em|small)\b(?P<rest>{_ATTRIBUTES})>(?:(?P<said>[^<>\n]*+)</(?:sup|span|i|em|small)>)?"
)
_BADGE_CLASS = re.compile(r"\bclass=\"[^\"\n]*?badge")
_TEXT = re.compile(r"\b(?:data-)?text=\"([^\"\n]++)\"")
_TITLE = re.compile(r"\b(?:title|label)=\"([^\"\n]++)\"")
_CLASS = re.compile(r"<(?:div|span) class=\"([\w-]++)\">")
_BESIDE = re.compile(r"<span class=\"([\w-]++)\">[^<>]*+</span>(?=<span class=\"([\w-]++)\">)")
_INLINE = re.compile(r"<span class=\"([\w-]++)\">([^<>]*+)</span>(?=(<span\b)?)")
_BLOCK = re.compile(r"<div class=\"([\w-]++)\">\s*+((?:#[^\n]{0,1000}+\n)?)\n*+")
_ENCODED = re.compile(
    rf"!?\[([^\[\]\n]*+)\]\(<?(?:data:[^\s()<>]*+|[^\s()<>]{{{LONGEST_ADDRESS},}}+)>?(?:[ \t]++\"[^\"\n]*+\")?\)"
)


def clean_components(text: str) -> str:
    """The Markdown with nothing that only its generator understands; code stays as it is, but for the line of its fence."""
    variants = _variants(text)
    text = "".join(_labelled(piece) if code else piece for code, piece in blocks(text))
    return outside_code(text, lambda prose: _clean(prose, variants))


def _labelled(block: str) -> str:
    """A fenced block whose fence says no more than its language; what it says for readers stands above it."""
    opening, _, rest = block.partition("\n")
    found = _FENCE.match(opening)
    if found is None or not found["rest"].strip():
        return block
    label = _LABEL.search(found["rest"])
    fence = f"{found['fence']}{found['language'] or ''}\n{rest}"
    if label is None:
        return found["indent"] + fence
    inner = _MARKER.sub(" ", found["indent"])
    return f"{found['indent']}**{next(filter(None, label.groups()))}**\n{inner.rstrip()}\n{inner}{fence}"


def _clean(prose: str, variants: frozenset[str]) -> str:
    if "](" in prose:
        prose = _ENCODED.sub(r"\1", prose)
    if "<" not in prose:
        return prose
    prose = "\n".join(_unbadged(line) if "<" in line else line for line in prose.split("\n"))
    if variants:
        prose = _INLINE.sub(lambda found: _inline(found, variants), prose)
        prose = _BLOCK.sub(lambda found: _block(found, variants), prose)
    closed = frozenset(_CLOSING.findall(prose))
    return _COMPONENT.sub(lambda found: _shown(found, closed), prose)


def _unbadged(line: str) -> str:
    """The line with the words of badges between parentheses; a heading only with those that its anchor is made of too."""
    heading = line.startswith("#")

    def words(found: re.Match[str]) -> str:
        if not _BADGE_CLASS.search(found["rest"]):
            return found[0]
        if said := (found["said"] or "").strip():
            return f" ({said})"
        attribute = _TEXT.search(found["rest"])
        return f" ({attribute[1]})" if attribute and not heading else ""

    return _BADGE.sub(words, line)


def _variants(text: str) -> frozenset[str]:
    """Classes that tell variants of one text: of elements side by side, and others of the same kind, as `options-api`, `composition-api`."""
    prose = "".join(piece for code, piece in blocks(text) if not code)
    if "class=" not in prose:
        return frozenset()
    return frozenset(_beside(prose)) | frozenset(_of_a_kind(_CLASS.findall(prose)))


def _beside(prose: str) -> Iterable[str]:
    for one, other in _BESIDE.findall(prose):
        yield from (one, other) if one != other else ()


def _of_a_kind(names: Iterable[str]) -> Iterable[str]:
    """Those that end alike, where one comes again: a page is laid out once, and has variants all along."""
    kinds: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        before, _, kind = name.rpartition("-")
        kinds[kind][name] += bool(before)
    return (name for same in kinds.values() if len(same) > 1 and max(same.values()) > 1 for name in same)


def _inline(found: re.Match[str], variants: frozenset[str]) -> str:
    """Words of a sentence, behind them of which variant they are."""
    if found[1] not in variants:
        return found[0]
    return f"{found[2]} ({found[1].replace('-', ' ')}){' / ' if found[3] else ''}"


def _block(found: re.Match[str], variants: frozenset[str]) -> str:
    """The beginning of blocks, above them of which variant they are; a heading comes before that."""
    return f"\n{found[2]}\n**{found[1].replace('-', ' ')}**\n\n" if found[1] in variants else found[0]


def _shown(found: re.Match[str], closed: frozenset[str]) -> str:
    """What readers see of a component's tag; a name without attributes that is never closed is a placeholder."""
    rest = found["rest"].strip()
    if found["name"].isupper() or not (rest or found["name"] in closed):
        return found[0]
    if said := _TEXT.search(rest):
        return f"({said[1]})"
    title = _TITLE.search(rest)
    text = "" if found["close"] else label(component_kind(found["name"], rest), title[1] if title else "")
    return f"**{text}**\n\n" if text else ""
