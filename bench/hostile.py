"""Texts that are hard for a regular expression, made up from its own parts: what it repeats, and what stands before that."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from re import _constants as sre  # type: ignore[attr-defined]  # the parser of the standard library has no public name
from re import _parser  # type: ignore[attr-defined]
from typing import Any

REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)
SHORT = 20  # repeats: up to here a bounded repeat is no reason for more than linear time
VARIANTS = 3
CATEGORIES = {
    sre.CATEGORY_DIGIT: "1", sre.CATEGORY_SPACE: " ", sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "-", sre.CATEGORY_NOT_SPACE: "a", sre.CATEGORY_NOT_WORD: " ",
}  # fmt: skip
ANY = "a -\n<é`[A1"
GENERIC = (
    " ", "\n", "\t", "\r\n", "a", "a ", "é", "A", "1", "1.", "1,", "a.", "a. ", "a, ", "-", "- ", "|", "*", "_", "`", "``` ", "~",
    "<", "<a ", "<!--", "[", "](", "![", "[a]", "(", "\\", '"', "'", "„", "/", "http://", "&", "{", "}", "{}", "#", "# ", "\n# ", "\n\n",
    " \n", "\n ", ":", ":\n", ">", "=", "@", "?", ".", "\u00a0", "a\n", "1 ", "1 000", "x=1;", "aB", "_a", "a'",
    "\ufdfa", "각", "\u0301\u0316", "ﾞ\u0301",
)  # fmt: skip

ODD = (
    "\ufdfa",
    "\ufdfa ",
    "\ufdfa" * 40 + " ",
    "각힣",
    "각힣" * 20 + " ",
    "\u0301\u0316",
    "a\u0316\u0301",
    "ﾞ\u0301",
    "ﷻ",
    "㌀",
    "ß",
    "İ",
    "ﬃ",
    "🏳️‍🌈",
    "가나 ",
)
"""Letters that grow or are sorted when they are brought into a normal form of Unicode, alone and as words."""

Grow = Callable[[int], str]
"""A text of about so many characters."""


def hostile(pattern: re.Pattern[Any]) -> Iterator[tuple[str, Grow]]:
    """Ways to grow a text that the pattern may take more than linear time for, each with a name, nothing twice."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = _parser.parse(source, pattern.flags & ~re.UNICODE)
    seen = set[str]()
    for parts in _attacks(tree):
        sample = _grown(parts)(200)
        if sample and sample not in seen:
            seen.add(sample)
            yield " + ".join(repr(part) if len(part) < 40 else f"{part[:10]!r}..." for part in parts), _grown(parts)


def _grown(parts: tuple[str, str, str]) -> Grow:
    before, pump, after = parts
    if pump == LADDER:
        return lambda n: _ladder(before, after, n)
    if pump == HALVES:
        return lambda n: before * (n // 2 // len(before)) + after * (n // 2 // len(after))
    return lambda n: before + pump * (max(n - len(before) - len(after), 0) // max(len(pump), 1)) + after


LADDER, HALVES = "(longer and longer)", "(half and half)"


def _ladder(step: str, between: str, n: int) -> str:
    """Runs of every length: no closing one fits an opening one."""
    runs, length = list[str](), 0
    while length < n:
        runs.append(step * (len(runs) + 1) + between)
        length += len(runs[-1])
    return "".join(runs)


def _attacks(tree: Any) -> Iterator[tuple[str, str, str]]:
    wholes = [_example(tree, variant) for variant in range(VARIANTS)]
    found = [pair for variant in range(VARIANTS) for pair in _pumps(tree, "", variant)]
    pumps = list(dict.fromkeys(pump for _, pump in found if pump))
    for before, pump in dict.fromkeys(found):
        for after in ("", "\n", "!", "\x00", "a"):
            yield before, pump, after
        yield "", before + pump, ""
        yield "", before + pump, "\x00"
        yield "", before + pump * 30, ""
        yield "", before, ""
        yield before, pump + before, ""
    for pump in pumps:
        yield pump, LADDER, " "
        yield pump, LADDER, "\n"
    for one, other in pairwise(pumps):
        yield "", one + other, "\x00"
        yield one, HALVES, other
    for whole in wholes:
        for piece in (whole, whole[:-1], whole[1:], f"\n{whole}", f"{whole} "):
            yield "", piece, ""
            yield "", piece, "\x00"
    for piece in GENERIC:
        yield "", piece, ""


def _pumps(tree: Any, before: str, variant: int) -> Iterator[tuple[str, str]]:
    """What is repeated anywhere in the pattern, with an example of what must stand before it."""
    for op, argument in tree:
        if op in REPEATS and argument[1] > SHORT:
            yield before, _example(argument[2], variant)
        for part in _parts(op, argument):
            yield from _pumps(part, before, variant)
        before += _example([(op, argument)], variant)


def _parts(op: Any, argument: Any) -> Sequence[Any]:
    if op in REPEATS:
        return [argument[2]]
    if op is sre.SUBPATTERN:
        return [argument[3]]
    if op is sre.BRANCH:
        return list(argument[1])
    if op is sre.ATOMIC_GROUP:
        return [argument]
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [argument[1]]
    return []


def _example(tree: Any, variant: int, groups: dict[int, str] | None = None) -> str:
    """A text that the tree matches but for its conditions; another variant takes other branches."""
    groups = {} if groups is None else groups
    return "".join(_example_of(op, argument, variant, groups) for op, argument in tree)


def _example_of(op: Any, argument: Any, variant: int, groups: dict[int, str]) -> str:  # one for each operator
    if op in (sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN):
        return _letter(op, argument, variant)
    if op in REPEATS:
        times = max(argument[0], min(argument[1], 1 + variant % 2))
        return _example(argument[2], variant, groups) * times
    if op is sre.GROUPREF:
        return groups.get(argument, "")
    if op is sre.BRANCH:
        return _example(argument[1][variant % len(argument[1])], variant, groups)
    if op is sre.SUBPATTERN:
        text = _example(argument[3], variant, groups)
        groups[argument[0]] = text
        return text
    return _example(argument, variant, groups) if op is sre.ATOMIC_GROUP else ""


def _letter(op: Any, argument: Any, variant: int) -> str:
    if op is sre.LITERAL:
        return chr(argument)
    if op is sre.IN:
        return _member(argument, variant)
    return next(letter for letter in ANY[variant:] if op is sre.ANY or letter != chr(argument))


def _member(members: Any, variant: int) -> str:
    first, *rest = members
    if first[0] is sre.NEGATE:
        excluded = re.compile("[" + "".join(map(_class_member, rest)) + "]")
        fitting = [letter for letter in ANY if not excluded.match(letter)]
        return fitting[variant % len(fitting)] if fitting else "\x01"
    op, argument = members[variant % len(members)]
    if op is sre.CATEGORY:
        return CATEGORIES[argument]
    return chr(argument[0] if op is sre.RANGE else argument)


def _class_member(member: Any) -> str:
    op, argument = member
    if op is sre.CATEGORY:
        names = {sre.CATEGORY_DIGIT: r"\d", sre.CATEGORY_SPACE: r"\s", sre.CATEGORY_WORD: r"\w",
                 sre.CATEGORY_NOT_DIGIT: r"\D", sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_NOT_WORD: r"\W"}  # fmt: skip
        return names[argument]
    if op is sre.RANGE:
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    return re.escape(chr(argument))
