"""Checks whether an answer is in the language of the question, by its prose, and only decides if that is certain.

Documentation in any language is full of English words, so code, quotations, links and names don't count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np

from app.core.language import Language
from app.core.turn import LanguageCheck
from app.text.analysis import fold, spoken
from app.text.language import has_profile, likeliest, statistics_of

Verdict = Literal["right", "wrong", "unsure"]

SURE = 3  # function words of one language and none of another: more text won't change the verdict
LIKELY = 6.0  # log odds by letters, with a function word: measured in decision 055
LIKELY_ALONE = 10.0  # without one; also the odds against a language that decide about related ones
MAJORITY = 2  # times the words of the other language, if there are words of both
PROSE = 0.2  # least share of function words: prose has 20 to 50 %; text of a related language has under 15 %
FEWEST_OWN = 2
FEWEST_WORDS = 6  # fewer words without a function word could be names
FEWEST_RELATED = 8  # words; with fewer, names can look like another language
CERTAIN = 0.9  # probability by letter statistics
LONGEST_WORD = 4  # letters, for scripts without spaces between words
SWITCHED = 0.2  # share of the prose
WINDOW = 12  # the fewest words that are checked together
MOST_WINDOWS = 10
LONGEST_PART = 200  # characters; more make the statistics slower, not better
FEWEST_STRANGE = 24  # words; with fewer, the statistics confuse Czech and Slovak, and names with anything
LEAST_LED = 3  # words of a sentence before code ("Run the following command:")
MODELS_WRITE = ("cs", "de", "en", "es", "fr", "hu", "it", "nl", "pl", "pt", "ru", "sk", "uk", "zh-cn")

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
_SENTENCE = re.compile(r"(?<=[.!?:])\s+|\n")
_PARAGRAPH = re.compile(r"\n\s*\n")


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
        self._code, self._configured = code, tuple(languages)
        # without its own profile, others would match its texts
        self._statistics = profiles(languages) if has_profile(code) else None
        self._odds = _odds(code, tuple(sorted(languages))) if has_profile(code) else None

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
        if count.is_foreign or self._is_related(prose, count):
            return "wrong"
        if self._is_own(count):
            return "right"
        if count.words >= FEWEST_WORDS:
            return "wrong" if self._statistical(prose) not in {"", self._code} else "unsure"
        return "wrong" if self._leads_to_code(text) else "unsure"

    def switched(self, text: str) -> bool:
        """True if a considerable part of the sentences of a whole answer is in another language."""
        windows = [(part, self._counted(words)) for part, words in _windows(_SILENT.sub(" ", text))]
        foreign = sum(count.words for _, count in windows if count.is_foreign)
        strange = [
            (part, count.words) for part, count in windows if not count.is_foreign and self._is_strange(part, count)
        ]
        words = sum(n for _, n in strange)
        if words >= FEWEST_STRANGE and self._statistical(" ".join(part for part, _ in strange)) not in {"", self._code}:
            foreign += words
        return foreign > 0 and foreign >= SWITCHED * sum(count.words for _, count in windows)

    def _is_strange(self, part: str, count: _Count) -> bool:
        """True if a part could be in a language that isn't configured; uses the slow statistics only if words don't decide."""
        return count.words >= WINDOW and not self._is_own(count) and self._statistical(part) not in {"", self._code}

    def _is_likely(self, prose: str, count: _Count) -> bool:
        """True if few words are enough, because related languages have other letters and words."""
        if self._odds is None:
            return count.own >= SURE
        return count.words > 0 and self._odds(prose) >= (LIKELY if count.own else LIKELY_ALONE)

    def _is_related(self, prose: str, count: _Count) -> bool:
        """True if the letters are those of a related language, which has function words in common.

        Configured languages have words of their own, and documentation has terms of theirs. Names have capitals.
        """
        if self._odds is None or not count.own:
            return False
        words = [word for word in spoken(prose) if word[0].islower()]
        return len(words) >= FEWEST_RELATED and self._odds(" ".join(words), without=self._configured) < -LIKELY_ALONE

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

    def _statistical(self, text: str) -> str:
        if self._statistics is None:
            return ""
        language, probability = likeliest(self._statistics, text[:LONGEST_PART])
        return language if probability >= CERTAIN else ""

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
        [(sentence, spoken(sentence)) for sentence in _SENTENCE.split(paragraph)]
        for paragraph in _PARAGRAPH.split(prose)
    ]
    least = max(WINDOW, sum([len(own) for sentences in paragraphs for _, own in sentences]) // MOST_WINDOWS)
    for sentences in paragraphs:
        part, words = list[str](), list[str]()
        for sentence, own in sentences:
            part.append(sentence)
            words += own
            if len(words) >= least:
                yield " ".join(part), words
                part, words = [], []
        yield " ".join(part), words


@cache
def _odds(code: str, languages: tuple[str, ...]) -> LetterOdds:
    return LetterOdds(code, profiles(languages))


def profiles(languages: Iterable[str] = ()) -> Any:
    """The letter statistics of these languages and of `MODELS_WRITE`; loaded once, best before the first answer."""
    return statistics_of(tuple(sorted({*MODELS_WRITE, *languages})))


RARE = 0.5 / 10_000  # langdetect's smoothing, so that one n-gram that a language lacks doesn't decide
LONGEST = 3  # letters of an n-gram
MOST_WORDS = 4096  # whose sums are kept: about 1 MB


class LetterOdds:
    """The odds of a language by naive Bayes over langdetect's n-grams of one to three letters.

    Langdetect itself (Nakatani 2010) makes a probability of the same numbers by seven random trials, which takes about
    30 times as long. `statistics` is its factory of detectors, which must have the language.
    """

    def __init__(self, code: str, statistics: Any) -> None:
        self._known = statistics.word_lang_prob_map
        self._languages: list[str] = statistics.langlist
        self._own = self._languages.index(code)
        self._none = np.zeros(len(self._languages))
        self._words = lru_cache(MOST_WORDS)(self._counted)

    def __call__(self, text: str, *, without: Iterable[str] = ()) -> float:
        """The logarithm of the odds against the likeliest other language: 0 is undecided, below 0 it is the other one.

        The languages of `without` are no others.
        """
        words = spoken(text)
        sums = np.add.reduce([self._none, *map(self._words, words)])
        own = sums[self._own]
        sums[[self._own, *(self._languages.index(code) for code in without if code in self._languages)]] = -np.inf
        return float(own - sums.max())

    def _counted(self, word: str) -> Any:
        """The sums for one word: no n-gram goes beyond it, so texts that grow are sums of words that are known already."""
        letters = f" {word} "
        ngrams = (letters[at : at + size] for size in range(1, LONGEST + 1) for at in range(len(letters) - size + 1))
        shares = [self._known[ngram] for ngram in ngrams if ngram != " " and ngram in self._known]
        return np.log(np.asarray(shares) + RARE).sum(axis=0) if shares else self._none
