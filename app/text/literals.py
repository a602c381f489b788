"""Finds what readers copy from an answer and what must not be invented: numbers with units, commands, addresses."""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from app.core.language import vocabulary
from app.text import blocks

_CITATION = re.compile(r"\[\d{1,3}\]")  # as answers have it; [80, 443] is a value
_LIST_MARK = re.compile(r"^[^\S\n]*\d+[.)]\s", re.MULTILINE)
_URL = re.compile(r"https?://[^\s<>()\[\]`\"'|]+")

MONEY = "$€£¥"  # also before a number
_PREFIXES = {"k": "kilo", "m": "mega", "g": "giga", "t": "tera", "p": "peta"}
_SYMBOLS: Mapping[str, str] = {
    "%": "%",
    # Gb and Mbps are bits, GB and gb bytes
    **{f"{p}bit": rf"(?-i:{p.upper()}b)|{p}bps|{p}bits?|{full}bit\w*" for p, full in _PREFIXES.items()},
    **{f"{p}b": f"{p}b" for p in _PREFIXES},
    **{f"{p}ib": rf"{p}ib|(?<=\d){p}i" for p in _PREFIXES},
    "byte": r"bytes?",
    **{f"{p}hz": f"{p}hz" for p in ("k", "m", "g", "")},
    "ms": "ms",
    "s": r"(?<=\d)s",  # "s" apart may be a word
    "min": "mins?",
    "h": "h",
    "day": r"(?<=\d)d",
    "week": r"(?<=\d)w",
    **dict.fromkeys(("month", "year"), ""),
    "money": rf"[{MONEY}]|usd|eur|gbp|czk",
}
"""Units, each with the symbols that every language writes; the words are those of `[units]` in language.toml."""

_DIGIT = re.compile(r"\d")
_DIGITS = r"\d{1,30}+(?:[.,:]\d{1,30}+|[ \u00a0\u202f]\d{3}(?!\d)){0,10}+"


@cache
def _units() -> Mapping[str, str]:
    """Units, each with the ways that any language writes it."""
    words = {"%" if unit == "percent" else unit: written for unit, written in vocabulary().units.items()}
    words |= {f"{p}b": rf"{full}(?:{words['byte']})\w*" for p, full in _PREFIXES.items()}
    return {unit: "|".join(filter(None, (symbols, words.get(unit)))) for unit, symbols in _SYMBOLS.items()}


@cache
def _unit() -> str:
    return "|".join(f"(?P<u{i}>{written})" for i, written in enumerate(_units().values()))


@cache
def _amount() -> re.Pattern[str]:
    return re.compile(
        rf"(?<![\w.,])(?:(?P<sign>[{MONEY}])\s?)?(?P<number>{_DIGITS})(?:[\s-]?(?:{_unit()}))?(?!\w)", re.IGNORECASE
    )


@cache
def _measured() -> re.Pattern[str]:
    low = rf"(?P<low>{_DIGITS})(?P<to>\s?[–—-]\s?|\s(?:{vocabulary().up_to})\s)"
    return re.compile(rf"(?<!\d)(?:{low})?(?P<number>{_DIGITS})[\s-]?(?:{_unit()})(?!\w)", re.IGNORECASE)


MOST_PLACES = 100  # of a text that are checked


def claims(text: str) -> tuple[str, ...]:
    """The numbers with units, commands and addresses of a text, without citations and list numbers."""
    text = _LIST_MARK.sub("", _CITATION.sub("", text))
    literals = list(addresses(text))
    text = without_addresses(text)
    literals += [*code_lines(text), *code_spans(text)]
    literals += [amount[0] for amount in _amount().finditer(without_code(text))]
    return tuple(dict.fromkeys(literal for literal in literals if literal))


def addresses(text: str) -> tuple[str, ...]:
    """The web addresses of a text, without punctuation after them."""
    return tuple(url.rstrip(".,;:!?*") for url in _URL.findall(text))


def without_addresses(text: str) -> str:
    """The text with blanks for its web addresses."""
    return _URL.sub(" ", text)


def code_lines(text: str) -> tuple[str, ...]:
    """The lines of fenced code in a text."""
    lines = (line.strip() for code, block in blocks.blocks(text) if code for line in blocks.code_lines(block))
    return tuple(line for line in lines if line)


def code_spans(text: str) -> tuple[str, ...]:
    """The code spans of a text."""
    prose = _without_fences(text)
    spans = (prose[start:end].strip("`").strip() for start, end in blocks.code_spans(prose))
    return tuple(span for span in spans if span)


def without_code(text: str) -> str:
    """The text without fenced code and code spans."""
    prose, parts, at = _without_fences(text), list[str](), 0
    for start, end in blocks.code_spans(prose):
        parts.append(prose[at:start])
        at = end
    return " ".join([*parts, prose[at:]])


def _without_fences(text: str) -> str:
    return " ".join(piece for code, piece in blocks.blocks(text) if not code)


def spaced(text: str) -> str:
    """The text with single spaces as its only white space."""
    return " ".join(text.split())


def comparable(text: str) -> str:
    """The text in lower case, with single spaces and uniform units: 10GiB, 10 GiB and 10 gib become the same."""
    return _measured().sub(_with_unit, spaced(text)).casefold()


def occurs(literal: str, text: str) -> bool:
    """True if the text has the literal as a whole: 10 isn't in 100 and 1.2 not in 11.2 but in 1.2.3, --force not in --force-all, "rm ." not in "rm ./build".

    Pass both through `comparable`, through `spaced`, or in lower case.
    """
    at = text.find(literal)
    for _ in range(MOST_PLACES):
        if at < 0:
            break
        before, after = text[max(at - 2, 0) : at], text[at + len(literal) : at + len(literal) + 2]
        if _begins(literal, before) and _ends(literal, after):
            return True
        at = text.find(literal, at + 1)
    return _in_table(literal, text)


def _begins(literal: str, before: str) -> bool:
    if not before or not (literal[0].isalnum() or literal[0] == "-"):
        return True
    if before[-1].isalnum() or before[-1] == "_" or (literal[0] == "-" and before[-1] == "-"):
        return False
    return not (literal[0].isdigit() and len(before) == 2 and before[1] in ".," and before[0].isdigit())


def _ends(literal: str, after: str) -> bool:
    if not after:
        return True
    if after[0].isalnum() or after[0] == "_" or (literal[0] == "-" and after[0] == "-" and after[1:].isalnum()):
        return False
    if not literal[-1].isalnum():
        return after[0] != "/"
    goes_on = literal[-1].isdigit() and len(after) == 2 and after[0] in ".," and after[1].isdigit()
    return not goes_on or (after[0] == "." in literal)  # 3.11 is told by 3.11.4


def _in_table(claim: str, text: str) -> bool:
    """True if a table cell has the number, and the text its unit, as in the head of the column."""
    number, _, unit = claim.rpartition(" ")
    cell = rf"\|\s*{re.escape(number)}\s*\|"
    return (
        bool(number) and unit in _units() and bool(re.search(cell, text) and re.search(rf"(?<!\w){unit}(?!\w)", text))
    )


def amounts(text: str) -> Iterator[tuple[str, str]]:
    """The numbers of a text as they are written, each with its unit; "" without one."""
    places = _amount().finditer(text) if _DIGIT.search(text) else ()
    return ((match["number"], _unit_of(match)) for match in places)


def unit_in(unit: str, text: str) -> bool:
    """True if the text names the unit in any of its forms."""
    return bool(re.search(rf"(?<![^\W\d_])(?:{_units()[unit]})(?!\w)", text, re.IGNORECASE))


def _unit_of(match: re.Match[str]) -> str:
    group = match.lastgroup or ""
    if group.startswith("u"):
        return [*_units()][int(group[1:])]
    return "money" if match.groupdict().get("sign") else ""


def _with_unit(match: re.Match[str]) -> str:
    unit = _unit_of(match)
    low = f"{match['low']} {unit}{match['to']}" if match["low"] else ""
    return f"{low}{match['number']} {unit}"
