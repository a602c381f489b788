"""Judges parts of an answer against its evidence, the words, numbers, names and units of its passages."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain, combinations
from typing import TYPE_CHECKING

from app.core.turn import Unsupported, UnsupportedKind
from app.proof.reading import CLOSING, Clause, Reading, clauses_of, words_in
from app.text.analysis import RAISED, fold
from app.text.blocks import code_spans
from app.text.literals import amounts, unit_in

if TYPE_CHECKING:
    from app.proof.wording import Polarity, Wording

MOST_PLACES = 50  # of a literal in one text
CLOSE = 0.005  # share by which a rounded result may differ
MOST_OPERANDS = 8  # numbers of a sentence that another one of it can be the sum of

_GROUPS = re.compile(r"\d{1,3}(?:[ ,.\u00a0\u202f]\d{3})+")
_BLOCKS = re.compile(r"\n\s*\n")


def readings(number: str) -> set[str]:
    """The values that a written number can have: 1.500 is 1500 in some languages and 1.5 in others."""
    plain = number.replace("\u00a0", " ").replace("\u202f", " ")
    values = {plain.replace(",", ".").replace(" ", "")}
    if _GROUPS.fullmatch(plain) and plain[0] != "0":
        values.add(re.sub(r"[ ,.]", "", plain))
    return {value.rstrip("0").rstrip(".") if "." in value and value.count(".") == 1 else value for value in values} | (
        {plain.lstrip("0")} if plain.isdecimal() and plain.strip("0") else set()
    )


_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "day": 86400.0, "week": 604800.0}
_BYTES = {f"{prefix}b": 1000.0**i for i, prefix in enumerate("kmgtp", start=1)} | {
    f"{prefix}ib": 1024.0**i for i, prefix in enumerate("kmgtp", start=1)
}
_FACTORS: Mapping[str, tuple[str, float]] = {
    **{unit: ("time", factor) for unit, factor in _SECONDS.items()},
    **{unit: ("size", factor) for unit, factor in _BYTES.items()},
    "byte": ("size", 1.0),
}


def _with_heads(text: str) -> Iterator[tuple[str, str]]:
    """Pairs of a part of a text with what is around it: a paragraph with itself, a row of a table with the head above it."""
    for block in _BLOCKS.split(text):
        rows, prose = list[str](), list[str]()
        for line in block.splitlines():
            (rows if line.lstrip().startswith("|") else prose).append(line)
        yield from ((row, f"{rows[0]}\n{row}") for row in rows)
        yield "\n".join(prose), "\n".join(prose)


def _value(reading: str) -> float | None:
    try:
        return float(reading)
    except ValueError:
        return None


def _values(product: str) -> Iterator[float]:
    """The factors of a written product, each as its largest reading."""
    return (max(filter(None, map(_value, readings(number))), default=1.0) for number, _ in amounts(product))


class Evidence:
    """The passages and the question of one answer. `languages` are those of the passages."""

    def __init__(self, passages: Sequence[str], languages: Sequence[str], question: str = "") -> None:
        self.passages = tuple(map(Reading, passages))
        self.languages = tuple(languages)
        self.question = Reading(question)
        self._texts = passages

    def holds(self, literal: str) -> bool:
        """True if a passage or the question has the literal as a whole, in any case."""
        for reading in (*self.passages, self.question):
            if literal in reading.small and occurs(literal, reading.small):
                return True
        return False

    @cached_property
    def _numbers(self) -> Mapping[str, Mapping[str, set[str]]]:
        """The units of each number, by the values that it can have, each with the texts where both stand.

        Read only for a number that isn't there as it is written.
        """
        found: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for text, around in chain(*map(_with_heads, self._texts), [(self.question.small, self.question.small)]):
            for number, unit in amounts(text):
                for value in readings(number):
                    found[value][unit].add(around)
        return found

    @cached_property
    def _measures(self) -> set[tuple[str, float]]:
        """The amounts with a unit of time or size, in seconds and bytes."""
        return {
            (kind, round(number * factor, 6))
            for value, units in self._numbers.items()
            if (number := _value(value)) is not None
            for unit in units
            for kind, factor in (_FACTORS.get(unit, ("", 0.0)),)
            if kind
        }

    def has_amount(self, number: str, unit: str) -> bool:
        """True if the number is there with this unit, or in another one that makes the same amount."""
        for value in readings(number):
            units = self._numbers.get(value, {})
            if unit in units or (units and not unit):
                return True
            if "" in units and any(unit_in(unit, text) for text in units[""]):
                return True  # the head of a table has the unit, or an earlier number of a list
            kind, factor = _FACTORS.get(unit, ("", 0.0))
            size = _value(value)
            if kind and size is not None and (kind, round(size * factor, 6)) in self._measures:
                return True
        return False

    def near(self, stems: Iterable[str], among: Iterable[int]) -> tuple[int, float]:
        """The index of the passage that has the most of these stems, and their share; (-1, 0) without passages."""
        wanted = set(stems)
        best = (-1, 0.0)
        for index in among:
            share = len(wanted & self.passages[index].stems) / max(len(wanted), 1)
            if share > best[1] or best[0] < 0:
                best = (index, share)
        return best

    def clause(self, stems: AbstractSet[str], index: int) -> Clause | None:
        """The clause of a passage that has the most of these stems, the shortest of several."""
        best, rank = None, (0, 0)
        for clause in self.passages[index].clauses:
            own = len(stems & clause.stems), -len(clause.stems)
            if best is None or own > rank:
                best, rank = clause, own
        return best

    def counts(self, noun: str) -> set[str]:
        """What stands in the passages before a word that begins like this one: `3` for `3 replicas`."""
        pattern = re.compile(rf"(?<!\w)(\w++) {re.escape(noun.casefold()[:5])}")
        return {match[1] for reading in self.passages for match in pattern.finditer(reading.small)}


def occurs(literal: str, text: str) -> bool:
    """True if the text has the literal as a whole: 10 isn't in 100 and 1.2 not in 11.2, --force not in --force-all."""
    at = text.find(literal)
    for _ in range(MOST_PLACES):
        if at < 0:
            return False
        before, after = text[max(at - 2, 0) : at], text[at + len(literal) : at + len(literal) + 2]
        if _begins(literal, before) and _ends(literal, after):
            return True
        at = text.find(literal, at + 1)
    return False


def _begins(literal: str, before: str) -> bool:
    if not before or not (literal[0].isalnum() or literal[0] == "-"):
        return True
    if before[-1].isalnum() or before[-1] == "_" or (literal[0] == "-" and before[-1] == "-"):
        return False
    return not (literal[0].isdigit() and len(before) == 2 and before[1] in ".," and before[0].isdigit())


def _ends(literal: str, after: str) -> bool:
    if not after or not literal[-1].isalnum():
        return True
    if after[0].isalnum() or after[0] == "_" or (literal[0] == "-" and after[0] == "-" and after[1:].isalnum()):
        return False
    return not (literal[-1].isdigit() and len(after) == 2 and after[0] in ".," and after[1].isdigit())


def follows_from(number: str, others: Sequence[str], *, ratios: bool) -> bool:
    """True if the number is a sum or difference of others of its sentence, or with `ratios` their product or quotient."""
    wanted = {value for reading in readings(number) if (value := _value(reading))}
    known = list(dict.fromkeys(value for other in others for reading in readings(other) if (value := _value(reading))))
    known = known[:MOST_OPERANDS]
    made = {sum(known)} if len(known) > 1 else set[float]()
    for first, second in combinations(known, 2):
        made |= {first + second, abs(first - second)}
        made |= {first * second, first / second, second / first} if ratios else set()
    return any(abs(value - one) < CLOSE * value for value in wanted for one in made)


NEEDED = (0.0, 0.0, 0.0, 0.25, 0.3, 0.4)
"""The share of the words of a sentence that a passage must have, by the number of its words that say something; few decide nothing."""
SUPPORTED = 0.5  # share of its words for which a passage is taken for the source of a sentence
FEWEST_WORDS = (3, 2)  # of a sentence that are enough to tell its source by; fewer where one is cited
FEWEST_COMMON = 2  # words that two clauses have in common, if both say the same or the opposite
NEAR = 0.6  # share of its words that an answer's clause has in common with that of a passage then
NEAR_BACK = 0.4
LONGEST_REFUSAL = 400  # characters
SMALL = 12  # larger numbers don't count what the answer itself lists

CITATION = re.compile(r"[ \t]?(?:\[{1,2}\^?[^\[\]\n()]{0,20}\d[^\[\]\n()]{0,20}\]{1,2}(?!\()|【[^】\n]{1,40}】)")
"""A citation as models write it, with the space before it."""
_MARK = re.compile(r"^\s*(?:>\s*)*(?:(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?|#{1,6}\s+)*")
_URL = re.compile(r"https?://[^\s<>()\[\]`\"'|]+|\]\([^)\s(]*+\)")
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+")
_NAME = re.compile(
    r"(?<![\w/.-])(?:--[a-z][\w-]+|-[a-z](?![\w-])|(?:~|\.{1,2})?(?:/[\w.-]*\w)+|\w+(?:_\w+)+|[\w.]*\w\(\)"
    r"|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,5}(?![\w.])|v\d[\w.]*\d|[^\W\d_]+-?\d\w*|\d+[^\W\d_]\w*(?!\w))",
    re.IGNORECASE,
)
_PROPER = re.compile(r"(?:(?<=[^\WA-Z\d_] )|(?<=, ))[A-Z][^\W\d_A-Z]{3,}(?![\w-])")  # within a sentence
_PRODUCT = re.compile(r"\d[\d,.]{0,20}(?:\s?[×x*]\s?\d[\d,.]{0,20}){1,7}")
_PLACEHOLDER = re.compile(
    r"<[^<>\n]{1,60}>|\$?\{[^{}\n]{1,60}\}|\[[a-z][^\[\]\n]{0,40}\]|\$\w+|%\w+%|\.{3}|…|[xX]{3,}|\*+"
)
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|--)\s.*$|<!--[^<>]*+-->")
_SPLIT = re.compile(r"[\s\"'`,;|()\[\]{}<>\\]+|=(?==)|(?<=\w)[:=]+(?=\s|$|\w|/|\"|')|&&|[+*!?]")
_PARTS = re.compile(r"[/:@,=&?]+")
_COUNTED = re.compile(r"\s+([^\W\d_]{3,})")
_POWER = re.compile(r"\b(\d{1,20}|[a-z]{1,2})(?:\*\*|\^|<sup>)\{?([-+]?\d{1,4})\}?(?:</sup>)?")
_ARITHMETIC = re.compile(r"[=×*÷]|\d\s*[x/]\s*\d")
_NUMBERING = re.compile(r"\s*[:)\].]|\s*$")
_INTERJECTION = re.compile(r"^[^\w]*[^\W\d_]{1,4}[,.:;!–—]\s+")
_QUOTED = re.compile(r"\"[^\"\s]*+\s[^\"\n]*+\"|„[^„“\n]*+“")
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"[\w./@-]+")
_NOTHING = frozenset({""})
_SIGNS = re.compile(r"[*_>#|~]+")


def _alike(one: Polarity, other: Polarity) -> bool:
    """True if two clauses speak of the same."""
    own, there = one.said | one.heads | (other.heads & one.words), other.said | other.heads | (one.heads & other.words)
    both = len(own & there)
    enough = both == len(own) if both <= FEWEST_COMMON else both >= NEAR * len(own)
    return both >= FEWEST_COMMON and enough and both >= NEAR_BACK * len(there)


class Checker:
    """Judges the sentences and lines of one answer."""

    def __init__(self, evidence: Evidence, code: str, wording: Wording) -> None:
        self._evidence, self._language, self._wording = evidence, wording.languages[code], wording
        self._denials = wording.denials[code]
        self._results = set[str]()  # of sums that the answer shows
        self._own = [index for index, language in enumerate(evidence.languages) if language in {code, ""}]

    def sentence(self, text: str) -> list[Unsupported]:
        """What the evidence doesn't prove of a sentence, an item or a row; empty if it is proved or can't be judged."""
        plain = CITATION.sub("", _MARK.sub("", text))
        if kind := next(self._unproven_literals(plain), None):
            return [Unsupported(text, kind, *self._place(plain))]
        fault = self._statement(text, plain)
        return [fault] if fault else []

    def doubt(self, text: str) -> Unsupported | None:
        """A statement that words neither prove nor disprove: no passage in its language has enough of them, or only one of both denies."""
        plain = CITATION.sub("", _MARK.sub("", text))
        said = self._stems(plain)
        announces = plain.rstrip(CLOSING).endswith((":", "?"))
        if announces or len(said) < FEWEST_WORDS[False] or self.refuses(plain) or self.sentence(text):
            return None
        index, share = self._evidence.near(said - self._evidence.question.stems, self._own)
        decided = index >= 0 and share >= SUPPORTED
        if decided and not any(self._denies_apart(clause, index) for clause in clauses_of(plain)):
            return None
        return Unsupported(text, "statement", *self._place(plain))

    def repeats(self, text: str) -> bool:
        """True if a sentence has nothing that says something but words of the question: no number, and no code."""
        plain = CITATION.sub("", _MARK.sub("", text))
        return not _DIGIT.search(plain) and "`" not in plain and self._stems(plain) <= self._evidence.question.stems

    def code(self, line: str) -> list[Unsupported]:
        """What the evidence doesn't prove of a line of code."""
        bare = _COMMENT.sub("", line).strip()
        return [] if self._has_code(bare) else [Unsupported(line.strip(), "code", *self._place(line))]

    # ---- literals --------------------------------------------------------------------------------

    def _unproven_literals(self, plain: str) -> Iterator[UnsupportedKind]:
        """The kind of each literal that the evidence lacks."""
        at = 0
        prose = list[str]()
        for start, end in code_spans(plain):
            prose.append(plain[at:start])
            at = end
            if not self._has_code(plain[start:end].strip("` ")):
                yield "code"
        text = _URL.sub(" ", " ".join([*prose, plain[at:]]))
        for email in _EMAIL.findall(text):
            if not self._evidence.holds(email.casefold()):
                yield "name"
        text = _POWER.sub(self._without_proved, _EMAIL.sub(" ", text))
        for name in _NAME.findall(text):
            if not self._has_name(name):
                yield "name"
        if not self._is_mixed and any(map(self._is_new, _PROPER.findall(text))):
            yield "name"
        yield from self._numbers(text)

    def _is_new(self, name: str) -> bool:
        """True if the evidence has no form of a name; where all nouns are written like names, none tells."""
        form = name.casefold()[: max(4, len(name) - 2)]
        everything = (*self._evidence.passages, self._evidence.question)
        return not self._language.traits.nouns_capitalised and not any(form in reading.small for reading in everything)

    def _without_proved(self, power: re.Match[str]) -> str:
        """Nothing in place of a power that the evidence has, written in this way or with raised letters."""
        base, exponent = power.groups()
        proved = any(self._evidence.holds(form) for form in (base + exponent.translate(RAISED), f"{base}^{exponent}"))
        return " " if proved else power[0]

    def _has_name(self, name: str) -> bool:
        small = name.casefold()
        if self._evidence.holds(small) or small.rpartition(".")[2] in self._language.shared.abbreviations:
            return True
        return any(unit for _, unit in amounts(name)) or self._is_placeholder(small)

    def _numbers(self, text: str) -> Iterator[UnsupportedKind]:
        if not _DIGIT.search(text):
            return
        found = list(amounts(_NAME.sub(lambda name: name[0] if any(u for _, u in amounts(name[0])) else " ", text)))
        signs = bool(_ARITHMETIC.search(text))
        proved, doubted, at = list[str](), list[tuple[str, str]](), 0
        for number, unit in found:
            at = text.find(number, at) + len(number)
            counted = signs and number.isdecimal() and int(number) <= SMALL
            if counted or number in self._results or self._has_number(number, unit, text[at:]):
                proved.append(number)
            else:
                doubted.append((number, unit))
        made = [math.prod(_values(product)) for product in _PRODUCT.findall(text)]
        made += [value / 100 for number, unit in found if unit == "%" and number in proved for value in _values(number)]
        for number, unit in doubted:
            wanted = [value * factor for value in _values(number) for factor in {1.0, _FACTORS.get(unit, ("", 1.0))[1]}]
            shown = any(abs(value - one) < CLOSE * value for value in wanted for one in made)
            if not shown and not follows_from(number, proved, ratios=signs):
                yield "number"
            else:
                proved += [number] * signs
        self._results.update(proved if signs else ())  # the next sentence may use them

    def _has_number(self, number: str, unit: str, behind: str) -> bool:
        if not unit and self._evidence.holds(number):
            return not (number.isdecimal() and int(number) <= SMALL) or self._is_counted(number, behind)
        if self._evidence.has_amount(number, unit):
            return True
        if (noun := _COUNTED.match(behind)) and self._evidence.holds(f"{number}{noun[1].casefold()}"):
            return True
        if number.isdecimal() and int(number) <= SMALL and (self._in_words(number) or not unit):
            return bool(unit) or self._in_words(number) or self._is_counted(number, behind)
        return False

    def _is_counted(self, number: str, behind: str) -> bool:
        """False if the passages count the same things, and others than so many of them; a list number counts nothing."""
        if noun := _COUNTED.match(behind):
            counts = self._evidence.counts(noun[1])
            numbers = {count for count in counts if count.isdecimal()}
            return number in counts or not numbers or self._in_words(number)
        return self._evidence.holds(number) or bool(_NUMBERING.match(behind) and behind.strip())

    def _in_words(self, number: str) -> bool:
        pattern = self._wording.numbers.get(number)
        return pattern is not None and any(pattern.search(reading.folded) for reading in self._evidence.passages)

    # ---- code ------------------------------------------------------------------------------------

    def _has_code(self, code: str) -> bool:
        """True if the evidence has the code, or each of its parts; what a reader has to fill in is no part."""
        small = " ".join(code.casefold().split())
        if not small or self._evidence.holds(small):
            return True
        return all(
            self._has_part(part) for part in _SPLIT.split(_PLACEHOLDER.sub(" ", _QUOTED.sub(" ", small))) if part
        )

    def _has_part(self, part: str) -> bool:
        bare = part.strip(".:;-") if not part.startswith("-") else part.rstrip(".:;")
        if len(bare) < 2 or self._evidence.holds(bare) or self._is_placeholder(bare):
            return True
        inner = [one for one in _PARTS.split(bare) if one]
        if len(inner) > 1:
            return all(len(one) < 2 or self._evidence.holds(one) or self._is_placeholder(one) for one in inner)
        return bare.isdecimal() and self._evidence.has_amount(bare, "")

    def _is_placeholder(self, part: str) -> bool:
        words = [fold(word) for word in words_in(part)]
        return bool(words) and any(word in self._language.replies.placeholders for word in words)

    # ---- statements ------------------------------------------------------------------------------

    def _stems(self, plain: str) -> frozenset[str]:
        words = words_in(_SIGNS.sub(" ", _URL.sub(" ", plain)))
        return frozenset(map(self._wording.telling, words)) - _NOTHING

    def _statement(self, text: str, plain: str) -> Unsupported | None:
        end = plain.rstrip(CLOSING)
        if end.endswith("?") or not self._own:
            return None
        said = self._stems(plain)
        stems = said - self._evidence.question.stems
        index, share = self._evidence.near(stems, self._own)
        if share < NEEDED[min(len(stems), len(NEEDED) - 1)]:
            announces = end.endswith(":")
            return (
                None
                if announces or self.refuses(plain) or self._is_mixed
                else Unsupported(text, "statement", index + 1, share)
            )
        index, share = self._evidence.near(said, self._own)
        if index >= 0 and self._opposite(plain, index):
            return Unsupported(text, "negation", index + 1, share)
        return None

    # ---- citations -------------------------------------------------------------------------------

    def sources(self, text: str, cited: list[int]) -> list[int]:
        """The numbers of the passages that a proved sentence rests on: those of `cited` that support it, else the one that does.

        None if nothing is cited, and the sentence only announces or asks something. Unchanged where words don't tell.
        """
        plain = CITATION.sub("", _MARK.sub("", text))
        said = self._stems(plain)
        passages = self._evidence.passages
        numbers = set[str]()
        if _DIGIT.search(plain):
            numbers = {
                one.strip("./-") for one in _TOKEN.findall(plain.casefold()) if len(one) > 1 and _DIGIT.search(one)
            }
        held = {
            i + 1: (said & passages[i].stems) | {one for one in numbers if one in passages[i].small} for i in self._own
        }
        best = max(held, key=lambda number: len(held[number]), default=0)
        unclear = not best or len(held[best]) < SUPPORTED * (len(said) + len(numbers))
        if unclear or len(said) + len(numbers) < FEWEST_WORDS[bool(cited)]:
            return cited
        if not cited:
            announces = plain.rstrip(CLOSING).endswith((":", "?")) or said <= self._evidence.question.stems
            return [] if announces else [best]
        if not all(1 <= number <= len(passages) for number in cited):
            return cited
        # one in another language can't be compared
        kept = [one for one in cited if one not in held or 2 * len(held[one]) > len(held[best])]
        # beside the right one, a passage may say the rest
        return [one for one in cited if one in kept or not held[one] <= held[best]] if kept else [best]

    @property
    def _is_mixed(self) -> bool:
        """True if words can't decide, because passages in other languages may say it."""
        return len(self._own) < len(self._evidence.passages)

    def refuses(self, plain: str) -> bool:
        """True if a sentence says that the documentation has no answer."""
        pattern = self._language.replies.no_answer
        return (
            bool(pattern) and len(plain) <= LONGEST_REFUSAL and bool(re.search(pattern, " ".join(fold(plain).split())))
        )

    def _opposite(self, plain: str, index: int) -> bool:
        """True if a clause denies what the passages state, or states what they deny."""
        clauses = [self._denials.of(clause.words) for clause in clauses_of(_INTERJECTION.sub("", plain))]
        heads = frozenset[str]().union(*(clause.heads for clause in clauses))
        said = frozenset[str]().union(*(clause.said for clause in clauses))
        return any(self._is_opposite(clause, index, heads, said) for clause in clauses)

    def _nearest(self, own: Polarity, index: int) -> Polarity:
        near = self._evidence.clause(own.said, index)
        return self._denials.of(near.words if near else ())

    def _denies_apart(self, clause: Clause, index: int) -> bool:
        own = self._denials.of(clause.words)
        return bool(own.heads) != bool(self._nearest(own, index).heads)

    def _is_opposite(self, own: Polarity, index: int, heads: AbstractSet[str], said: AbstractSet[str]) -> bool:
        """True if what one of both denies is stated by the other. `heads` is what the whole sentence denies, `said` its words."""
        near = self._nearest(own, index)
        if _alike(own, near):
            reach = own.heads if near.heads & own.heads else set[str]() if near.firm else own.denied
            denied = reach & near.words - near.denied
            if len(own.said) > FEWEST_COMMON and own.said <= near.said and not near.heads:
                denied |= own.heads  # "isn't needed", where the passage says the same with "must"
            stated = near.heads & own.words - own.denied if heads <= near.heads else set[str]()
            limited = own.limits != near.limits or not (near.only <= own.words and own.only <= near.words)
            if limited or (own.fragment and own.said != near.said) or not (denied or stated):
                return False
            for one in self._clauses():
                if _alike(own, one):  # another one may say it as the answer does
                    denied, stated = denied - one.denied, stated - (one.words - one.denied)
                elif one.said <= own.said:  # so may a cell, which says no more than that
                    denied -= one.denied
            return bool(denied or stated)
        if own.fragment or own.limits or own.only or not own.heads & own.said:
            return False
        there = map(self._denials.of, (clause.words for clause in self._evidence.passages[index].clauses))
        alike = (one.said for one in there if len(one.said & said) >= FEWEST_COMMON)
        common = set[str]().union(*alike).intersection(own.heads, own.said)
        unsure = (one.words if one.limits or one.only else one.denied for one in self._clauses()) if common else ()
        return bool(common.difference(*unsure))

    def _clauses(self) -> Iterator[Polarity]:
        """The clauses of all passages that words can be compared with."""
        passages = self._evidence.passages
        return (self._denials.of(clause.words) for index in self._own for clause in passages[index].clauses)

    def _place(self, plain: str) -> tuple[int, float]:
        """The number of the passage that is nearest to a text, and the share of its words that it has."""
        index, share = self._evidence.near(self._stems(plain), range(len(self._evidence.passages)))
        return index + 1, share
