"""Checks whether an answer is in the language of the question, by its prose, and only decides if that is certain.

Documentation in any language is full of English words, so code, quotations, links and names don't count.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from app.core.language import Language
from app.core.turn import LanguageCheck
from app.text.analysis import fold, spoken, words
from app.text.blocks import informal_sentences
from app.text.letters import LIKELY, all_letters, profile_codes

Verdict = Literal["right", "wrong", "unsure"]

SURE = 3  # function words of one language and none of another: more text won't change the verdict
LIKELY_ALONE = 10.0  # odds by letters without a function word
STRANGE = 15.0  # odds of a language whose function words nobody knows against all that are configured
TERMS = 55.0  # odds of a configured one: documentation has terms of it
MAJORITY = 2  # times the words of the other language, if there are words of both
PROSE = 0.2  # least share of function words: prose has 20 to 50 %; text of a related language has under 15 %
FEWEST_OWN = 2
FEWEST_WORDS = 6  # that letters tell; fewer may be names and terms, in any order
LONGEST_WORD = 4  # letters, for scripts without spaces between words
SWITCHED = 0.2  # share of the prose
WINDOW = 12  # the fewest words that are checked together
MOST_WINDOWS = 10
FEWEST_STRANGE = 24  # words that letters alone tell; fewer may be names and terms
LEAST_LED = 3  # words of a sentence before code ("Run the following command:")

_SILENT = re.compile(
    # bounded or anchored, so that the time is linear; most letters are inside of plain words, where nothing begins
    r"(?=[`~])(?P<fence>`{3,20}|~{3,20}).*?(?:(?P=fence)|\Z)|`[^`\n]*(?:`|\Z)|[hH](?i:ttps?)://\S+|\]\([^)\s]*\)?"
    r"|\[[\d\s,;]*\]?|^(?:[ \t]*>[^\n]*|[ \t]*#{1,6}[ \t][^\n]*|[ \t]*\*\*[^*\n]*(?:\*\*:?[ \t]*)?$"
    r"|[^\w\n]*+(?i:error|warning|fatal|exception|panic)\b[^\n]*?(?:[.!?](?=\s)|$))"
    r"|„[^“”\n]*[“”]?|“[^”\n]*”?|\"[^\"\n]*\"?|«[^»\n]*»?"
    r"|(?<![a-z])(?:[!-.:;?A-\[\]^`a-z|~]{0,40}+[/@\\=<>{}_\d][!-~]*|\w{1,40}+\.\w[!-~]*"
    r"|\b[^\W\d_]*[a-z][A-Z][^\W\d_]*)",
    re.DOTALL | re.MULTILINE,  # with IGNORECASE, each class of characters takes a quarter longer
)
_LEADING = re.compile(r"\A\s*+([^\n]+):[*_ \t]*\n+[ \t]*(?:`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class _Count:
    words: int
    own: int
    foreign: int

    @property
    def is_foreign(self) -> bool:
        return self.foreign >= SURE and self.foreign > MAJORITY * self.own


class AnswerLanguage:
    """Distinguishes texts of one language from all others, including languages that aren't configured."""

    def __init__(self, code: str, languages: Mapping[str, Language]) -> None:
        others = tuple(known.traits.words for other, known in languages.items() if other != code)
        self._own, self._foreign = _distinct(languages[code].traits.words, others)
        self._letters = languages[code].traits.letters
        self._code, self._configured = code, languages.keys()
        self._has_profile = code in profile_codes()  # without it, others would match its texts

    def early(self, text: str) -> Verdict:
        """The verdict on the beginning of an answer; "unsure" as long as more text could change it."""
        prose = _SILENT.sub(" ", text)
        count = self._count(prose)
        if not count.foreign and self._is_likely(prose, count):
            return "right"
        return "wrong" if count.foreign > SURE and not count.own else "unsure"

    def beginning(self, text: str) -> Verdict:
        """The verdict on the beginning of an answer, when no more text can be waited for."""
        prose = _SILENT.sub(" ", text)
        count = self._count(prose)
        if self._is_other(prose, count):
            return "wrong"
        if self._is_own(count):
            return "right"
        return "wrong" if self._leads_to_code(text) else "unsure"

    def switched(self, text: str) -> bool:
        """True if a considerable part of the sentences of a whole answer is in another language."""
        windows = [(part, self._counted(words)) for part, words in _windows(_SILENT.sub(" ", text))]
        foreign = sum(count.words for _, count in windows if count.is_foreign)
        strange = sum(
            count.words
            for part, count in windows
            if not count.is_foreign and count.words >= WINDOW and self._is_other(part, count)
        )
        foreign += strange if strange >= FEWEST_STRANGE else 0
        return foreign > 0 and foreign >= SWITCHED * sum(count.words for _, count in windows)

    def _is_other(self, prose: str, count: _Count) -> bool:
        """True if the prose is in another language by its function words or its letters.

        Names have capitals, and documentation has terms of the configured languages. The first word is seldom a name.
        """
        if count.is_foreign or count.words < FEWEST_WORDS:
            return count.is_foreign
        words = spoken(prose)
        first, small = words[:1], [word for word in words[1:] if not word[0].isupper()]
        if self._odds(" ".join([word for word in first if not word[0].isupper()] + small), self._configured) < -STRANGE:
            return True
        return not count.own and self._odds(" ".join(first + small), (self._code,)) < -TERMS

    def _is_likely(self, prose: str, count: _Count) -> bool:
        """True if few words are enough, because related languages have other letters and words."""
        if not self._has_profile:
            return count.own >= SURE
        return self._odds(prose, (self._code,)) >= (LIKELY if count.own else LIKELY_ALONE)

    def _is_own(self, count: _Count) -> bool:
        return not count.foreign and count.own >= max(FEWEST_OWN, PROSE * count.words)

    def _leads_to_code(self, text: str) -> bool:
        """True if the first sentence leads to code and is in another language."""
        if not (leading := _LEADING.match(text)):
            return False
        count = self._count(_SILENT.sub(" ", leading[1]))
        return count.words >= LEAST_LED and count.foreign > 0 and not count.own

    def outcome(self, text: str) -> LanguageCheck:
        """The outcome for the whole second answer."""
        return "wrong" if self.beginning(text) == "wrong" or self.switched(text) else "corrected"

    def _odds(self, text: str, codes: Collection[str]) -> float:
        return all_letters().odds(text, codes) if self._has_profile else 0.0

    def _count(self, prose: str) -> _Count:
        return self._counted(spoken(prose))

    def _counted(self, words: Sequence[str]) -> _Count:
        text = " ".join(words)
        small = fold(text).split(" ")
        own, foreign = (sum(map(known.__contains__, small)) for known in (self._own, self._foreign))
        if strange := {letter for letter in set(text.lower()) if not letter.isascii()}.difference(self._letters):
            foreign += sum([self._strangeness(word, strange) for word in words if not word.isascii()])
        return _Count(len(words), own, foreign)

    def _strangeness(self, word: str, strange: AbstractSet[str]) -> int:
        """How many words of another language a word with these letters that this one lacks counts as."""
        if (folded := fold(word)) in self._own or folded in self._foreign:
            return 0
        letters = sum(map(strange.__contains__, word.lower()))
        return 1 + letters // LONGEST_WORD if letters else 0


@lru_cache(maxsize=64)
def _distinct(own: frozenset[str], others: tuple[frozenset[str], ...]) -> tuple[frozenset[str], frozenset[str]]:
    """The words of one language alone, and those of the others alone: words that languages share decide nothing."""
    foreign = frozenset[str]().union(*others)
    return own - foreign, foreign - own


def _windows(prose: str) -> Iterator[tuple[str, Sequence[str]]]:
    """The prose in parts of some sentences of one paragraph, each long enough to detect its language, with their words."""
    paragraphs = [
        [(sentence, spoken(sentence)) for line in paragraph.split("\n") for sentence in informal_sentences(line, ())]
        for paragraph in "\n".join(map(str.strip, prose.splitlines())).split("\n\n")
    ]
    least = max(WINDOW, sum([len(own) for paragraph in paragraphs for _, own in paragraph]) // MOST_WINDOWS)
    for paragraph in paragraphs:
        part, words = list[str](), list[str]()
        for sentence, own in paragraph:
            part.append(sentence)
            words += own
            if len(words) >= least:
                yield " ".join(part), words
                part, words = [], []
        yield " ".join(part), words


def is_refusal(text: str, language: Language) -> bool:
    """True if a text begins with the sentence by which models say that the documentation has no answer; only its words are compared."""
    said, sentence = words(fold(text)), words(fold(language.replies.no_answer))
    return bool(sentence) and said[: len(sentence)] == sentence
