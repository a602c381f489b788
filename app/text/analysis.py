"""Splits text into the tokens that BM25 counts: words, their stems and first letters, identifiers and their parts.

Passages and questions are analysed alike, without diacritics, so that a question typed without them matches the page.
Every store indexes these tokens, so all stores find the same.
"""

import re
import threading
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Literal

from Stemmer import Stemmer

from app.core.language import STROKES

ANALYZER = "stem-prefix5-3"  # part of the index's recipe: raise the number when the tokens of a text change

PREFIX, LONGEST_ROOT, SHORTEST_STEM = 5, 6, 3  # letters
PREFIX_MARK, STEM_MARK, HEADED_MARK = (
    "*",
    "~",
    "=",
)  # never part of a word or an identifier, so that kinds of tokens don't collide
LONGEST_KEPT = 32  # characters of a run whose tokens are cached; it bounds the memory of the cache
MOST_KEPT = 20_000  # runs of a language
LONGEST = 64  # longer runs are encoded data, which would only fill the index

STEMMERS: Mapping[str, str] = {
    "cs": "czech", "da": "danish", "de": "german", "en": "english", "es": "spanish", "et": "estonian",
    "fi": "finnish", "fr": "french", "hu": "hungarian", "it": "italian", "nl": "dutch", "no": "norwegian",
    "pl": "polish", "pt": "portuguese", "ro": "romanian", "sk": "czech", "sv": "swedish",
}  # fmt: skip
"""Language codes and Snowball's stemmers; Slovak has none of its own, and Czech endings are the nearest."""

WORD = re.compile(r"[^\W_]+")
RUN = re.compile(rf"{WORD.pattern}(?:[._/:@+-]+{WORD.pattern})*")
"""Words that signs join, as in `docs.example.org`."""
SPOKEN = re.compile(rf"{WORD.pattern}(?:['’]{WORD.pattern})*")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
# the two letters that become a sentence of 18 and 8 letters stay as they are: a question of them would become 18 times as long
_SENTENCES = re.compile("([\ufdfa\ufdfb]+)")
LONG_QUESTION = 500  # characters: a longer one is folded once, not by each of the steps that read it
MOST_MARKS = 30  # in a row, as in the Stream-Safe Text Format of UAX 15: sorting them takes square time
# marks are neither letters nor ASCII, but for two voiced sound marks, which become one
_MARKS = re.compile(r"(?:[\uff9e\uff9f]|[^\w\s\x00-\x7f]){31,}+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def analyse(text: str, language: str) -> list[str]:
    """The tokens of a text in order; without a stemmer for the language, words and first letters only."""
    return list(chain.from_iterable(map(_kept(language).__getitem__, runs(text))))


RAISED = str.maketrans("0123456789+-\u2212", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
LOWERED = str.maketrans("0123456789+-\u2212", "₀₁₂₃₄₅₆₇₈₉₊₋₋")
"""Numbers as exponents and indices."""


def fold(text: str) -> str:
    """The text in lower case without diacritics and without strokes of letters."""
    small = text.casefold()
    if small.isascii():  # fast path for most words
        return small
    return _folded_question(small) if len(small) > LONG_QUESTION else _folded(small)


def _folded(small: str) -> str:
    return _NOT_ASCII.sub(_without_marks, normalized("NFKD", small))


_folded_question = lru_cache(maxsize=8)(_folded)


def normalized(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """The text in a normal form of Unicode, in linear time: of more than `MOST_MARKS` marks in a row, the first are kept."""
    if len(text) > MOST_MARKS and not text.isascii():
        text = _MARKS.sub(_first_marks, text)
    if form != "NFC" and _SENTENCES.search(text):
        parts = enumerate(_SENTENCES.split(text))  # every second one is a match
        return "".join(part if i % 2 else unicodedata.normalize(form, part) for i, part in parts)
    return unicodedata.normalize(form, text)


def _first_marks(match: re.Match[str]) -> str:
    letters, marks = list[str](), 0
    for letter in match[0]:
        marks = marks + 1 if unicodedata.combining(unicodedata.normalize("NFKD", letter)[0]) else 0
        if marks <= MOST_MARKS:
            letters.append(letter)
    return "".join(letters)


def _without_marks(found: re.Match[str]) -> str:
    return "".join([c for c in found[0].translate(STROKES) if not unicodedata.combining(c)])


def runs(text: str) -> list[str]:
    """The words of a text as they are written; words that signs join, as in `docs.example.org`, are one."""
    # composed, because stemmers expect it and a lone accent isn't part of a word
    return RUN.findall(normalized("NFC", text))


def words(text: str) -> list[str]:
    """The words of a text as they are written: letters and digits in a row; "don't" is two."""
    return WORD.findall(text)


def spoken(text: str) -> list[str]:
    """The words of a text that a language can have: without digits, and "don't" is one."""
    return [word for word in SPOKEN.findall(text) if word.isalpha() or not any(map(str.isdigit, word))]


@lru_cache(maxsize=50_000)
def folded(word: str) -> str:
    """The word in lower case without diacritics; kept, because the same words come again and again."""
    return fold(word)


def beginnings(text: str) -> frozenset[str]:
    """The first letters of the words of a text, as in the index: what words share that one looks for in any language."""
    return frozenset([word[:PREFIX] for word in WORD.findall(fold(text)) if len(word) >= SHORTEST_STEM])


@lru_cache(maxsize=50_000)
def root(word: str) -> str:
    """The beginning of a word, folded, which its forms share: a stem where nobody knows the language. It is longer for longer words."""
    small = fold(word)
    return small if len(small) < PREFIX else small[: max(PREFIX - 1, min(len(small) - 2, LONGEST_ROOT))]


def roots(text: str) -> frozenset[str]:
    """The roots of all words of a text."""
    return frozenset(map(root, WORD.findall(text)))


def words_of(run: str) -> list[str]:
    """The run folded and, if it has several, its words; parts by capitals are words too."""
    parts = [part for word in WORD.findall(run) for part in _humps(word)]
    return list(dict.fromkeys(fold(part) for part in (run, *parts)))


class _Kept(dict[str, tuple[str, ...]]):
    """The tokens of runs without spaces in a language; most of those in a text are short, and were in one before."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, run: str) -> tuple[str, ...]:
        tokens = self._made(run)
        if len(run) <= LONGEST_KEPT:
            if len(self) >= MOST_KEPT:
                self.clear()
            self[run] = tokens
        return tokens

    def _made(self, run: str) -> tuple[str, ...]:
        """The tokens of the words in the run and, if it has several, of the whole."""
        if run.isalpha() and run[1:].islower():
            return _word_tokens(run, self._language)
        words = WORD.findall(run)
        if len(words) == 1:
            return tuple(token for part in _humps(run) for token in _word_tokens(part, self._language))
        whole = (fold(run),) if len(run) <= LONGEST else ()
        return (*whole, *(token for word in words for token in self[word]))


_kept = cache(_Kept)


def _humps(word: str) -> list[str]:
    """The word, and its parts by capitals, so that "image pull" finds ImagePullBackOff."""
    parts = _HUMP.split(word)
    return [word, *parts] if len(parts) > 1 else parts


def _word_tokens(word: str, language: str) -> tuple[str, ...]:
    if len(word) > LONGEST:
        return ()
    folded = fold(word)
    if folded.isdigit():
        return (folded,)
    beginning = (folded[:PREFIX] + PREFIX_MARK,) if len(folded) >= PREFIX else ()
    return (folded, stem(folded, language) + STEM_MARK, *beginning)


@lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """The stem of a folded word; the word itself without a stemmer for the language."""
    name = STEMMERS.get(language)
    if name is None:
        return word
    stemmers: dict[str, Any] = _own.__dict__
    if name not in stemmers:
        stemmers[name] = Stemmer(name, 0)  # without its own cache
    return str(stemmers[name].stemWord(word))


_own = threading.local()  # stemmers have state, so threads can't share one
