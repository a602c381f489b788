"""How much likelier a text is in one language than in any other, by its letters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

RARE = 0.5 / 10_000  # langdetect's smoothing, so that one n-gram that a language lacks doesn't decide
LONGEST = 3  # letters of an n-gram
MOST_WORDS = 4096  # whose sums are kept: about 1 MB

_WORD = re.compile(r"[^\W\d_]+")


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
        sums = self._none.copy()
        for word in _WORD.findall(text):
            sums += self._words(word)
        own = sums[self._own]
        sums[[self._own, *(self._languages.index(code) for code in without if code in self._languages)]] = -np.inf
        return float(own - sums.max())

    def _counted(self, word: str) -> Any:
        """The sums for one word: no n-gram goes beyond it, so texts that grow are sums of words that are known already."""
        letters = f" {word} "
        ngrams = (letters[at : at + size] for size in range(1, LONGEST + 1) for at in range(len(letters) - size + 1))
        shares = [self._known[ngram] for ngram in ngrams if ngram != " " and ngram in self._known]
        return np.log(np.asarray(shares) + RARE).sum(axis=0) if shares else self._none
