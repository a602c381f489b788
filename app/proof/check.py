"""Judges parts of an answer against its evidence, the words, numbers, names and units of its passages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from app.core.fitted import fitted
from app.core.turn import Unsupported, UnsupportedKind
from app.proof.evidence import (
    SECONDS,
    Evidence,
    bare_names,
    follows_from,
    imports_in,
    literals_of,
    names_in,
    packages_in,
    readings,
    values_of,
)
from app.proof.wording import Wording
from app.text.analysis import WORD, fold, folded, roots, spoken, words
from app.text.answer_language import AnswerLanguage, is_refusal
from app.text.blocks import code_spans, plain, unmarked
from app.text.literals import amounts, unit_in, without_addresses, without_code
from app.text.reading import CLOSING

SUPPORTED = 0.5  # share of its words for which a passage is taken for the source of a sentence
MOST_FUNCTION = 10  # words for each function word of the answer's language: with more of these, the sentence is in it
IN_DOUBT = (
    3  # words that say something: below `SUPPORTED` of so many or more, a sentence is decided by the fitted numbers
)
UNCOMPARED = 0.08  # the cosine that a sentence counts with if nobody compares it: invented ones are about as near
SMALL = 12  # larger numbers don't count what the answer itself lists

CITATION = re.compile(r"[ \t]?(?:\[{1,2}\^?[^\[\]\n()]{0,20}\d[^\[\]\n()]{0,20}\]{1,2}(?!\()|【[^】\n]{1,40}】)")
"""A citation as models write it, with the space before it."""
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+")
_PROPER = re.compile(r"(?:(?<=[^\WA-Z\d_] )|(?<=, ))[A-Z][^\W\d_A-Z]{3,}(?![\w-])")  # within a sentence
_PLACEHOLDER = re.compile(
    r"<(?!/)[^<>\n=\"]{1,60}>|(?<!\{)\$?\{(?!\{)[^{}\n]{1,60}\}|\[[a-z][^\[\]\n]{0,40}\]"
    r"|(?<![\w.])\$\w+|%\w+%|\.{3}|…|[xX]{3,}|\*+"
)
"""What a reader fills in; `<a href="...">`, `{{ user }}` and `this.$emit` are code."""
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|--)\s.*$|<!--[^<>]*+-->")
_SPLIT = re.compile(r"[\s\"'`,;|()\[\]{}<>\\]+|=(?==)|(?<=\w)[:=@]+(?=\s|$|\w|/|\"|')|&&|[+*!?]")
_COUNTED = re.compile(r"\s+([^\W\d_]{3,})")
_TIMES = re.compile(r"(\d+)[^\W\d_]{3,}")  # 60krát
_ORDINAL = re.compile(r"(\d{1,2})[^\W\d_]{1,2}")  # 2nd, 5x
_ARITHMETIC = re.compile(r"[=×*÷]|\d\s*[x/]\s*\d")
_QUOTED = re.compile(r"\"[^\"\s]*+\s[^\"\n]*+\"|„[^„“\n]*+“")
_OWN_FILE = re.compile(r"(?<=\s)\w[\w-]*(\.[a-z]{2,4})(?!\S)")  # a reader's own one


def _plain(text: str) -> str:
    """A sentence without the mark of its item and its citations; most have neither, and looking for them takes longer."""
    bare = text if text[:1].isalpha() else unmarked(text)
    return CITATION.sub("", bare) if "[" in bare or "【" in bare else bare


def _without_urls(text: str) -> str:
    return without_addresses(plain(text)) if "://" in text or "](" in text else text


class Checker:
    """Judges the sentences and lines of one answer.

    If it `compares`, somebody can say how near a sentence is to the pages in meaning, also `across` languages: then `sentence`
    returns a fault of the kind `statement` also for one that words leave `undecided`, and `compared` decides.
    """

    def __init__(
        self, evidence: Evidence, code: str, wording: Wording, *, compares: bool = False, across: bool = False
    ) -> None:
        self._compares, self._across = compares, across
        self.undecided = False
        self._evidence, self._language, self._wording = evidence, wording.languages[code], wording
        self._results = dict[str, None]()  # of sums that the answer shows
        self._last = "", frozenset[str]()  # the last sentence and its stems
        self._own = [index for index, language in enumerate(evidence.languages) if language in {code, ""}]

    def sentence(self, text: str) -> list[Unsupported]:
        """What the evidence doesn't prove of a sentence, an item or a row; empty if it is proved or can't be judged."""
        plain = _plain(text)
        self.undecided = False
        if is_refusal(plain, self._language):
            return []
        if kind := next(self._unproven_literals(plain), None) or next(self._misplaced(plain), None):
            return [Unsupported(text, kind, *self._place(plain))]
        fault = self._statement(text, plain)
        return [fault] if fault else []

    def held(self, text: str) -> bool:
        """True if the passages have most words, at least two, or a number or code of what a sentence adds to the question.

        One that adds at most a word, as "Yes [1].", is held if it cites.
        """
        plain = _plain(text)
        codes = (plain[start:end].strip("` ").casefold() for start, end in code_spans(plain))
        cites = plain != text.strip()
        if cites and not self._own:  # words of another language can't tell
            return True
        if any(map(self._evidence.holds, codes)) or any(self._evidence.has_amount(*one) for one in amounts(plain)):
            return True
        added = self._stems(plain) - self._evidence.question.stems
        if len(added) > cites:
            share = self._evidence.near(added, range(len(self._evidence.passages)))[1]
            return share >= SUPPORTED and (cites or share * len(added) > 1)
        return cites

    def doubt(self, text: str) -> Unsupported | None:
        """A statement that words neither prove nor disprove: no passage in its language has enough of them."""
        plain = _plain(text)
        said = self._stems(plain)
        announces = plain.rstrip(CLOSING).endswith((":", "?"))
        if announces or len(said) < IN_DOUBT or self.sentence(text):
            return None
        share = self._evidence.near(said - self._evidence.question.stems, self._own)[1]
        return None if share >= SUPPORTED else Unsupported(text, "statement", *self._place(plain))

    def code(self, line: str) -> list[Unsupported]:
        """What the evidence doesn't prove of a line of code."""
        bare = _COMMENT.sub("", line).strip()
        others = _OWN_FILE.sub(lambda name: " " if self._evidence.has_ending(name[1]) else name[0], bare)
        proved = (self._has_code(bare) or self._has_code(others)) and self._has_imports(bare)
        return [] if proved else [Unsupported(line.strip(), "code", *self._place(line))]

    # ---- literals --------------------------------------------------------------------------------

    def _unproven_literals(self, plain: str) -> Iterator[UnsupportedKind]:
        """The kind of each literal that the evidence lacks."""
        spans = list(code_spans(plain))
        codes = [plain[start:end].strip("` ") for start, end in spans]
        if not all(map(self._has_code, codes)):
            yield "code"
        if not self._has_packages(plain.casefold()):
            yield "name"
        ends = [0, *chain.from_iterable(spans), len(plain)]
        text = _without_urls(" ".join(plain[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)))
        if "@" in text:
            if not all(map(self._evidence.holds, map(str.casefold, _EMAIL.findall(text)))):
                yield "name"
            text = _EMAIL.sub(" ", text)
        unknown = [name for name in bare_names(text) if not self._has_name(name)]
        times = [match[1] for name in unknown if (match := _TIMES.fullmatch(name))]
        if len(times) < len(unknown) or (not self._is_mixed and any(map(self._is_new, _PROPER.findall(text)))):
            yield "name"
        yield from self._numbers(" ".join([text, *times]), " ".join(codes))

    def _misplaced(self, plain: str) -> Iterator[UnsupportedKind]:
        """The kind of each literal that the passages have, but with other words than those of the sentence."""
        literals = [] if self._is_mixed or _ARITHMETIC.search(plain) else list(literals_of(plain))
        if not literals:
            return
        said = self._stems(plain) | names_in(plain)
        for kind, values in literals:
            own = frozenset[str]().union(*(others for other, others in literals if other == kind))
            rest = said - values - frozenset[str]().union(*map(roots, values))
            asked = any(map(self._evidence.question.small.__contains__, values))
            if not asked and self._evidence.rows.misplaced(kind, values, rest, own):
                yield "name" if kind.startswith("`") else "number"

    def _is_new(self, name: str) -> bool:
        """True if the evidence has no form of a name; where all nouns are written like names, none tells."""
        form = name.casefold()[: max(4, len(name) - 2)]
        known = self._language.traits.nouns_capitalised or any(form in one.small for one in self._evidence.everything)
        return not known

    def _has_name(self, name: str) -> bool:
        small = name.casefold()
        ordinal = _ORDINAL.fullmatch(name)
        if self._evidence.holds(small) or (ordinal and int(ordinal[1]) <= SMALL):
            return True
        return any(unit for _, unit in amounts(name)) or self._is_placeholder(small)

    def _numbers(self, text: str, code: str) -> Iterator[UnsupportedKind]:
        """The kind of each number that the evidence lacks, and that doesn't follow from others of the sentence and of its `code`."""
        if not all(
            self._in_words(number) or self._evidence.has_amount(number, unit) for number, unit in self._spans(text)
        ):
            yield "number"
        found = list(amounts(text))
        signs = bool(_ARITHMETIC.search(text))
        proved, doubted, at = list[str](), list[tuple[str, str]](), 0
        for number, unit in found:
            at = text.find(number, at) + len(number)
            counted = signs and number.isdecimal() and int(number) <= SMALL
            if counted or number in self._results or self._has_number(number, unit, text[at:]):
                proved.append(number)
            else:
                doubted.append((number, unit))
        if doubted and not self._follow(doubted, proved, text, code):
            yield "number"
        self._results |= dict.fromkeys(number for number, _ in found if signs)  # the next sentence may use them

    def _follow(self, doubted: Sequence[tuple[str, str]], proved: list[str], text: str, code: str) -> bool:
        """True if all doubted numbers follow from proved ones of the sentence, of its code and of sums before it."""
        in_code = [number for number, _ in amounts(code)]
        signs, spans = bool(_ARITHMETIC.search(text)), self._seconds_in_words(text)
        ratios = {longer / shorter for longer in spans for shorter in spans if longer > shorter}  # 60 minutes an hour
        for number, unit in doubted:
            shown = any(value in ratios or value * SECONDS.get(unit, 0.0) in spans for value in values_of(number))
            if not shown and not follows_from(number, [*proved, *in_code, *self._results]):
                return False
            proved += [number] * signs
        return True

    def _spans(self, text: str) -> list[tuple[str, str]]:
        """The times that a text writes in words, with their units: "two weeks"."""
        said = words(text)
        if said == [*map(self._wording.digits, said)]:  # mostly
            return []
        in_digits = WORD.sub(lambda word: self._wording.digits(word[0]), text)
        written = Counter(amounts(in_digits)) - Counter(amounts(text))
        return [(number, unit) for number, unit in written if unit in SECONDS]

    def _seconds_in_words(self, text: str) -> set[float]:
        """The seconds of these times, as of "two weeks", which are 14 days, and of units alone, as "an hour"."""
        spans = {value * SECONDS[unit] for number, unit in self._spans(text) for value in values_of(number)}
        return spans.union(seconds for unit, seconds in SECONDS.items() if unit_in(unit, text))

    def _has_number(self, number: str, unit: str, behind: str) -> bool:
        counts = not unit and number.isdecimal() and int(number) <= SMALL
        if not unit and self._evidence.holds(number):
            return not counts or self._is_counted(number, behind)
        known = self._evidence.has_amount(number, unit) or self._in_words(number)
        return known or (counts and self._is_counted(number, behind))

    def _is_counted(self, number: str, behind: str) -> bool:
        """False if the passages count the same things, and others than so many of them."""
        if noun := _COUNTED.match(behind):
            counts = self._evidence.counts(noun[1])
            numbers = {count for count in counts if count.isdecimal()}
            return number in counts or not numbers or self._in_words(number)
        return self._evidence.holds(number)

    def _in_words(self, number: str) -> bool:
        patterns = [self._wording.numbers[value] for value in readings(number) if value in self._wording.numbers]
        return any(pattern.search(part.folded) for pattern in patterns for part in self._evidence.parts)

    # ---- code ------------------------------------------------------------------------------------

    def _has_code(self, code: str) -> bool:
        """True if the evidence has the code, or each of its parts; what a reader has to fill in is no part."""
        small = " ".join(code.casefold().split())
        if not self._has_packages(small):
            return False
        if len(small) == 1 and small.isalpha():
            return self._evidence.holds(small)
        if (
            not small
            or self._evidence.holds(small)
            or (small.startswith("-") and self._evidence.has_ending(small))
            or self._evidence.are_keys(small)
        ):
            return True
        parts = [part for part in _SPLIT.split(_PLACEHOLDER.sub(" ", _QUOTED.sub(" ", small))) if part]
        return all(
            self._has_part(part) or (before and self._evidence.takes_value(before))
            for before, part in zip(["", *parts], parts, strict=False)
        )

    def _has_packages(self, small: str) -> bool:
        """True if the evidence has each scoped package as a whole, or a reader has to fill it in."""
        return all(self._evidence.has_package(one) or self._is_placeholder(one) for one in packages_in(small))

    def _has_imports(self, code: str) -> bool:
        """True if the evidence imports what the code does from the same modules; a reader's own ones begin with a dot."""
        return all(
            module.startswith(".") or self._is_placeholder(module) or self._evidence.has_import(module, names)
            for module, names in imports_in(code)
        )

    def _has_part(self, part: str) -> bool:
        bare = part.strip(".:;-").rstrip("/") if not part.startswith("-") else part.rstrip(".:;")
        if len(bare) < 2 or self._evidence.holds(bare) or self._is_placeholder(bare):
            return True
        return bare.isdecimal() and self._evidence.has_amount(bare, "")

    def _is_placeholder(self, part: str) -> bool:
        return not self._language.replies.placeholders.isdisjoint(words(fold(part)))

    # ---- statements ------------------------------------------------------------------------------

    def _stems(self, plain: str) -> frozenset[str]:
        if self._last[0] != plain:  # the same sentence, asked for again
            said = filter(str.isalpha, words(_without_urls(plain)))
            self._last = plain, frozenset(map(self._wording.telling, said)) - {""}
        return self._last[1]

    def _statement(self, text: str, plain: str) -> Unsupported | None:
        end = plain.rstrip(CLOSING)
        if end.endswith("?") or not (self._own or self._across):
            return None
        said = self._stems(plain)
        stems = said - self._evidence.question.stems
        index, share = self._evidence.near(stems, self._own)
        if self._is_foreign(plain):
            return Unsupported(text, "statement", index + 1, max(share, 0.0))
        comparable = self._compares and (self._across or not self._is_mixed)
        if share >= SUPPORTED or len(stems) < IN_DOUBT or end.endswith(":") or (self._is_mixed and not comparable):
            return None
        fault = Unsupported(text, "statement", index + 1, share)
        if comparable:  # by its meaning, unless any nearness says the same
            self.undecided = not fitted("stated").decides(self.features(text, {0: 0.0}))
        elif not self.compared(fault, {}):
            return None
        return fault if self.undecided or not comparable else None

    def _is_foreign(self, plain: str) -> bool:
        """True if a sentence is in another language than the answer; only one with few function words is looked at."""
        words = spoken(without_code(plain) if "`" in plain else plain)
        own = 0
        for word in words:
            own += folded(word) in self._language.traits.stopwords
            if MOST_FUNCTION * own > len(words):  # after a few, mostly
                return False
        return AnswerLanguage(self._language.code, self._wording.languages).beginning(plain) == "wrong"

    def compared(self, fault: Unsupported, nearness: Mapping[int, float]) -> list[Unsupported]:
        """What stays of a fault of the kind `statement`, by its nearness in meaning to the passages, by number; empty if that isn't known."""
        known = bool(nearness) or not self._is_mixed  # words of another language say nothing
        return [fault] if known and not fitted("stated").decides(self.features(fault.text, nearness)) else []

    def features(self, text: str, nearness: Mapping[int, float]) -> dict[str, float]:
        """The features of a statement by which the fitted numbers decide whether the passages state it.

        They are the cosine with the nearest stretch (`near`); the share of its words and names that a row has (`row`, 0 across languages);
        whether passages are in other languages (`across`), and what the cosine says then (`near_across`).
        """
        plain, mixed = _plain(text), self._is_mixed
        near = max(nearness.values(), default=UNCOMPARED)
        stems = self._stems(plain) - self._evidence.question.stems
        row = 0.0 if mixed else min(self._evidence.rows.share(stems, names_in(plain)), 1.0)
        return {"row": row, "near": near, "across": float(mixed), "near_across": near * mixed}

    @property
    def _is_mixed(self) -> bool:
        """True if words can't decide, because passages in other languages may say it."""
        return len(self._own) < len(self._evidence.passages)

    def _place(self, plain: str) -> tuple[int, float]:
        """The number of the passage that is nearest to a text, and the share of its words that it has."""
        index, share = self._evidence.near(self._stems(plain), range(len(self._evidence.passages)))
        return index + 1, share
