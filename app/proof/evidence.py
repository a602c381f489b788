"""The evidence of one answer, its passages and question: which literals and amounts they have, and where, and what follows from numbers."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, combinations

from app.text.analysis import roots
from app.text.blocks import code_spans
from app.text.literals import amounts, occurs, unit_in
from app.text.reading import KEPT, Part, Reading, part_of

CLOSE = 0.005  # share by which a rounded result may differ
HALF_A_TENTH = 0.05  # by which one with a single decimal may differ, as "about 3.4"
SHORTEST_ENDING = 3  # letters, so that no short option is taken for one
MOST_OPERANDS = 8  # numbers of a sentence that another one of it can be the sum of

NAME = re.compile(
    r"(?<![\w/.-])(?<!\d,)(?:--[a-z][\w-]+|-[a-z](?![\w-])|(?:~|\.{1,2})?(?:/[\w.-]*\w)+|\w+(?:_\w+)+|[\w.]*\w\(\)"
    r"|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,5}(?![\w.])|v\d[\w.]*\d|[^\W\d_]+-?\d\w*|\d+[^\W\d_]\w*(?!\w))",
    re.IGNORECASE,
)
BESIDE = 0.4  # share of the words of a sentence that a row must have to be what it speaks of
FARTHER = 2  # words that it has more than the best row with the literal
MOST_KEYS = 4  # that a user types one after another
SHORTEST_PART = 2  # characters of a number that may be a part of a word, as in 15d

LONGEST_IMPORT = 1000  # characters

_PACKAGE = re.compile(r"(?<![\w@/.-])@[a-z\d][\w.-]{0,100}/[a-z\d][\w-]*+(?:\.[\w-]++)*+", re.IGNORECASE)
_JS_MODULE = re.compile(r"\b(?:from\s{0,9}|(?:require|import)\(\s{0,9})(?:'([^'\n]{1,200})'|\"([^\"\n]{1,200})\")")
_PYTHON_MODULE = re.compile(
    r"(?<![\w.'\"])from[ \t]{1,9}([\w.]{1,200})[ \t]{1,9}import[ \t]{1,9}(?:\(([^()]{1,1000})\)|([\w, \t]{1,1000}))"
)
_BOUND = re.compile(r"\s*(?:=\s*(?:await\s*)?)?")  # between the names of an import and its module
_IMPORTED = re.compile(r"\s*(?:type\s+)?([\w$]+)")
_NAMED = re.compile(r"[`_/\d]|\w[.(][\w)]|(?<!\w)-")
_GROUPS = re.compile(r"\d{1,3}(?:[ ,.\u00a0\u202f]\d{3})+")
_DURATION = re.compile(r"\b(?:(\d+)h)?(\d+)m(\d+)s\b")  # as Go writes them


def readings(number: str) -> set[str]:
    """The values that a written number can have: 1.500 is 1500 in some languages and 1.5 in others."""
    plain = number.replace("\u00a0", " ").replace("\u202f", " ")
    values = {plain.replace(",", ".").replace(" ", "")}
    if _GROUPS.fullmatch(plain) and plain[0] != "0":
        values.add("".join(filter(str.isdigit, plain)))
    return {value.rstrip("0").rstrip(".") if "." in value and value.count(".") == 1 else value for value in values} | (
        {plain.lstrip("0")} if plain.isdecimal() and plain.strip("0") else set()
    )


SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0, "week": 604800.0}
BYTES = {f"{prefix}b": 1000.0**i for i, prefix in enumerate("kmgtp", start=1)} | {
    f"{prefix}ib": 1024.0**i for i, prefix in enumerate("kmgtp", start=1)
}
FACTORS: Mapping[str, tuple[str, float]] = {
    **{unit: ("time", factor) for unit, factor in SECONDS.items()},
    **{unit: ("size", factor) for unit, factor in BYTES.items()},
    "byte": ("size", 1.0),
}


def _value(reading: str) -> float | None:
    try:
        return float(reading)
    except ValueError:
        return None


def values_of(product: str) -> Iterator[float]:
    """The factors of a written product, each as its largest reading."""
    return (max(filter(None, map(_value, readings(number))), default=1.0) for number, _ in amounts(product))


@lru_cache(maxsize=KEPT)
def _amounts(section: str) -> tuple[Mapping[str, Mapping[str, set[str]]], AbstractSet[tuple[str, float]]]:
    """The units of each number of a section, by the values that it can have, each with the texts where both stand, and its
    amounts of time and size, in seconds and bytes. Read only for a number that isn't there as it is written.
    """
    found: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in part_of(section).rows:
        for number, unit in amounts(_DURATION.sub(r"\1h \2min \3s", row.text)):
            for value in readings(number):
                found[value][unit].add(row.around)
    measures = {measure for value, units in found.items() for unit in units if (measure := _measure(value, unit))}
    return found, measures


def _measure(value: str, unit: str) -> tuple[str, float] | None:
    """An amount of time in seconds, or of data in bytes."""
    kind, factor = FACTORS.get(unit, ("", 0.0))
    number = _value(value) if kind else None
    return None if number is None else (kind, round(number * factor, 6))


class Evidence:
    """The passages and the question of one answer. `languages` are those of the passages."""

    def __init__(self, passages: Sequence[str], languages: Sequence[str], question: str = "") -> None:
        self.passages = tuple(map(Reading, passages))
        self.languages = tuple(languages)
        self.question = Reading(question, returns=False)
        self.everything = (*self.passages, self.question)
        self.parts = [part for reading in self.everything for part in reading.parts]
        self._texts, self._asked = passages, question

    def holds(self, literal: str) -> bool:
        """True if a passage or the question has the literal as a whole, in any case."""
        return any(literal in reading.small and occurs(literal, reading.small) for reading in self.everything)

    def has_amount(self, number: str, unit: str) -> bool:
        """True if the number is there with this unit, or in another one that makes the same amount."""
        parts = [_amounts(part.text) for part in self.parts]
        for value in readings(number):
            if unit in BYTES and self.holds(f"{value}{unit[:-1]}"):
                return True  # 16G and 16Gi, as in Kubernetes
            if unit == "h" and (self.holds(f"{value}:00") or self.holds(f"0{value}:00")):
                return True  # "ve 2 hodiny" is at 02:00
            measure = _measure(value, unit)
            for numbers, measures in parts:
                units = numbers.get(value, {})
                if unit in units or (units and not unit) or measure in measures:
                    return True
                if "" in units and any(unit_in(unit, text) for text in units[""]):
                    return True  # the head of a table has the unit, or an earlier number of a list
        return False

    @cached_property
    def rows(self) -> Rows:
        """The rows of the passages."""
        return Rows([part for reading in self.passages for part in reading.parts])

    def near(self, stems: AbstractSet[str], among: Iterable[int]) -> tuple[int, float]:
        """The index of the passage that has the most of these stems, and their share; (-1, 0) without passages."""
        best = max(among, key=lambda index: len(stems & self.passages[index].stems), default=-1)
        return best, len(stems & self.passages[best].stems) / max(len(stems), 1) if best >= 0 else 0.0

    def has_ending(self, literal: str) -> bool:
        """True if words of a passage end with it, as the names of files with `-wal`."""
        return len(literal) >= SHORTEST_ENDING and any(
            re.search(rf"\w{re.escape(literal)}(?![\w-])", reading.small) for reading in self.passages
        )

    def are_keys(self, code: str) -> bool:
        """True for a few keys that go on after a code span of a passage that begins with a sign: `"0p`, where `"0` is a register."""
        signs = len(code) <= MOST_KEYS and not code[0].isalnum() and code[0] not in "-_"
        spans = [f"`{code[:size]}`" for size in range(2, len(code)) if signs]
        return any(span in reading.small for span in spans for reading in self.passages)

    def takes_value(self, option: str) -> bool:
        """True if a passage has the option, or other code, with a name for a value behind it: `-g GID`, `-u, --user <name>`, `exec FILE`."""
        pattern = re.compile(
            rf"(?<![\w-])(?i:{re.escape(option)})(?:, ?--[\w-]+)?[ =]\[?(?:(\w{{2,}}+)(?!=)|<[^<>\n]+>)"
        )
        found = chain.from_iterable(map(pattern.finditer, self._texts))
        named = (match for match in found if match[1] is None or match[1].isupper())
        return any(option.startswith("-") or not (match[0].isupper() or "_" in match[0]) for match in named)

    def has_package(self, package: str) -> bool:
        """True if the evidence has the scoped package, as `@scope/name`, as a whole: @a/cli isn't in @a/cli-tools."""
        return any(package in packages_in(reading.small) for reading in self.everything if package in reading.small)

    def has_import(self, module: str, names: AbstractSet[str]) -> bool:
        """True if the evidence imports these names from the module, or names them with it, as `module.name`."""
        own = self._imports.get(module, frozenset())
        return all(name in own or self.holds(f"{module}.{name}".casefold()) for name in names)

    @cached_property
    def _imports(self) -> Mapping[str, AbstractSet[str]]:
        found = defaultdict[str, set[str]](set)
        for text in (*self._texts, self._asked):
            for module, names in imports_in(text) if "import" in text or "require" in text else ():
                found[module] |= names
        return found

    def counts(self, noun: str) -> set[str]:
        """What stands in the passages before a word that begins like this one: `3` for `3 replicas`."""
        start = f" {noun.casefold()[:5]}"
        pattern = re.compile(rf"(?<!\w)(\w++){re.escape(start)}")
        texts = (reading.small for reading in self.passages if start in reading.small)
        return {match[1] for text in texts for match in pattern.finditer(text)}


def packages_in(text: str) -> list[str]:
    """The scoped packages of a text, as `@scope/name`."""
    return _PACKAGE.findall(text) if "@" in text else []


def imports_in(code: str) -> Iterator[tuple[str, set[str]]]:
    """The modules that JavaScript, TypeScript or Python code imports names from, with these names; not the files of a project."""
    for found in _JS_MODULE.finditer(code):
        before = code[max(found.start() - LONGEST_IMPORT, 0) : found.start()]
        opening, closing = before.rfind("{"), before.rfind("}")
        if 0 <= opening < closing and _BOUND.fullmatch(before, closing + 1):
            yield found[1] or found[2], _names(before[opening + 1 : closing])
    for found in _PYTHON_MODULE.finditer(code):
        yield found[1], _names(found[2] or found[3])


def _names(listed: str) -> set[str]:
    return {name[1] for one in listed.split(",") if (name := _IMPORTED.match(one))}


def follows_from(number: str, others: Sequence[str]) -> bool:
    """True if the number is the sum, difference, product or quotient of two others of its sentence."""
    wanted = {value for reading in readings(number) if (value := _value(reading))}
    half = HALF_A_TENTH if number[-2:-1] in {".", ","} else 0.0
    known = [value for other in others for reading in readings(other) if (value := _value(reading))][:MOST_OPERANDS]
    made = set[float]()
    for first, second in combinations(known, 2):
        made |= {first + second, abs(first - second), first * second, first / second, second / first}
    return any(abs(value - one) < max(CLOSE * value, half) for value in wanted for one in made)


# ---- where literals stand ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence, an item, a row of a table or a line of code.

    `stems` are those of its words, with the names in it. `literals` are numbers by what they measure, and names in code by their shape.
    """

    small: str
    stems: AbstractSet[str]
    literals: Mapping[str, AbstractSet[str]]


def literals_of(text: str) -> Iterator[tuple[str, AbstractSet[str]]]:
    """The literals of a text with their kinds: a number as all its readings, a code span of one word as it is."""
    for number, unit in amounts(text):
        yield FACTORS.get(unit, (unit,))[0], readings(number)
    for start, end in code_spans(text):
        name = text[start:end].strip("` ")
        if len(name) > 1 and name.split() == [name] and not name[0].isdecimal():
            signs = "".join(sorted({sign for sign in name.lstrip("-") if not sign.isalnum()}))
            yield f"`{'A' if name.isupper() else 'a'}{signs}", {name.casefold()}


def bare_names(text: str) -> list[str]:
    """The names of a text as they are written; words without signs are none, which shows faster than what is one."""
    parts = [part for part in text.split() if not part.isalpha() and _NAMED.search(part)]
    return NAME.findall(" ".join(parts)) if parts else []


def names_in(text: str) -> frozenset[str]:
    """The names and code spans of a text that can be compared as a whole, in lower case."""
    spans = {text[start:end].strip("` ") for start, end in code_spans(text)}
    return frozenset(name.casefold() for name in spans.union(bare_names(text)) if len(name) > SHORTEST_PART)


@lru_cache(maxsize=KEPT)
def _rows(section: str) -> tuple[Row, ...]:
    rows = list[Row]()
    for text, *_ in part_of(section).rows:
        stems = names_in(text) | roots(text)
        literals = defaultdict[str, set[str]](set)
        for measured, values in literals_of(text):
            literals[measured] |= values
        rows.append(Row(text.casefold(), stems, literals))
    return tuple(rows)


class Rows:
    """The rows of the passages of one answer."""

    def __init__(self, sections: Sequence[Part]) -> None:
        self._sections = sections

    @cached_property
    def _rows(self) -> list[Row]:
        return [row for section in self._sections for row in _rows(section.text)]

    @cached_property
    def _by_kind(self) -> Mapping[str, list[Row]]:
        found = defaultdict[str, list[Row]](list)
        for row in self._rows:
            for kind in row.literals:
                found[kind].append(row)
        return found

    def share(self, said: AbstractSet[str], names: AbstractSet[str]) -> float:
        """The most of these stems and names that a row has, as a share of the stems; sections that have fewer aren't read by rows."""
        wanted, most = said | names, 0
        had = [len(wanted & one.stems) + sum(name in one.small for name in names - one.stems) for one in self._sections]
        for count, section in sorted(zip(had, self._sections, strict=True), key=lambda pair: -pair[0]):
            if count <= most:
                break
            most = max([most, *(len(wanted & row.stems) for row in _rows(section.text))])
        return most / max(len(said), 1)

    def misplaced(self, kind: str, values: AbstractSet[str], said: AbstractSet[str], own: AbstractSet[str]) -> bool:
        """True if another literal of this kind stands in a row that has far more of what is `said` than any row with this one.

        A row that has any of the sentence's `own` literals of this kind is no such row.
        """
        others = (row for row in self._by_kind.get(kind, ()) if own.isdisjoint(row.literals[kind]))
        most = max((len(said & row.stems) for row in others), default=0)
        if most < max(BESIDE * len(said), FARTHER):
            return False
        held = [row for row in self._rows if _holds(row, values)]
        nearest = max((len(said & row.stems) for row in held), default=0)
        return bool(held) and most - nearest >= FARTHER


def _holds(row: Row, values: AbstractSet[str]) -> bool:
    for value in values:
        if len(value) >= SHORTEST_PART and value in row.small:
            return True
    return not all(map(values.isdisjoint, row.literals.values()))
