"""Tells languages apart by their letters: naive Bayes over n-grams, with the profiles that langdetect publishes.

Langdetect's own detector makes a probability of the same profiles by seven random trials. Here the same text has the same
odds each time, and a text that grows costs only its new words.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from math import exp
from pathlib import Path
from typing import Any

import numpy as np

from app.text.analysis import fold, normalized

RARE = 0.5 / 10_000  # langdetect's smoothing, so that one n-gram that a language lacks doesn't decide
LONGEST = 3  # letters of an n-gram
DRAWN = 20
"""N-grams that a probability is made of: the more there are, the surer it is. A longer text counts by its mean, so that half of
it in another language leaves a doubt."""
MOST_WORDS = 4096  # whose sums are kept: about 2 MB
LIKELY = 6.0
"""Odds that decide with a function word, or against the default; a logarithm, as measured in decision 055."""


class Letters:
    """The letters of some languages, as far as langdetect has their profiles.

    If it is `folded`, small letters without diacritics are compared, as many people type none.
    """

    def __init__(self, codes: Iterable[str], *, folded: bool = False) -> None:
        self.codes = tuple(sorted({*codes}.intersection(profile_codes())))
        self._change = fold if folded else str
        self._rows = {" ": 0}  # which says nothing
        self._nothing = np.zeros(len(self.codes) + 1, np.float32)
        columns = [self._column(code) for code in self.codes]
        places = [place + len(self.codes) * rows for place, (rows, _) in enumerate(columns)]
        # most n-grams are of few languages: only these are kept, in the order of the n-grams
        cells, at = np.unique(np.concatenate(places), return_inverse=True)
        shares = np.bincount(at, np.concatenate([shares for _, shares in columns]))
        self._gains = np.log1p(shares / RARE).astype(np.float32)
        self._places = (cells % len(self.codes)).astype(np.uint8)
        self._starts = np.searchsorted(cells, len(self.codes) * np.arange(len(self._rows) + 1)).tolist()
        self._sums_of = lru_cache(MOST_WORDS)(self._counted)

    def odds(self, text: str, codes: Collection[str]) -> float:
        """The logarithm of the odds of the likeliest of some languages against the likeliest other one.

        0 is undecided, below 0 it is the other one. It is 0, too, if there are no profiles to compare.
        """
        sums = dict(zip(self.codes, self._sums(text).tolist(), strict=False))
        own = [sums.pop(code) for code in codes if code in sums]
        return max(own) - max(sums.values()) if own and sums else 0.0

    def likeness(self, text: str) -> float:
        """How like words of the likeliest language the text is: the mean of what its n-grams add, 0 without letters."""
        words = _plain(self._change(text)).split()
        ngrams = sum(len(word) + 3 - size for word in words for size in range(1, LONGEST + 1))
        sums = self._sums(text)[:-1]
        return float(max(sums)) / ngrams if ngrams and len(sums) else 0.0

    def probabilities(self, text: str, among: Collection[str]) -> Mapping[str, float]:
        """The probability of each of these languages that has a profile; empty if the text has no letters that they know."""
        *sums, number = self._sums(text).tolist()
        likely = {code: logarithm for code, logarithm in zip(self.codes, sums, strict=True) if code in among}
        if not likely or not number:
            return {}
        most, weight = max(likely.values()), min(1.0, DRAWN / number)
        shares = {code: exp(weight * (logarithm - most)) for code, logarithm in likely.items()}
        return {code: share / sum(shares.values()) for code, share in shares.items()}

    def _column(self, code: str) -> tuple[Any, Any]:
        """The rows of the n-grams of a language, and the share that each has of those of its length."""
        profile = json.loads(_profile(code).read_text(encoding="utf-8"))
        counts = {ngram: count for ngram, count in profile["freq"].items() if ngram != " "}
        rows = [self._rows.setdefault(self._change(ngram), len(self._rows)) for ngram in counts]
        totals = np.asarray(profile["n_words"])[np.fromiter(map(len, counts), int) - 1]
        return np.asarray(rows), np.fromiter(counts.values(), float) / totals

    def _sums(self, text: str) -> Any:
        """By language, what the n-grams of a text add to its logarithm; at the end, how many n-grams these are."""
        words = _plain(self._change(text)).split()
        return np.add.reduce([self._nothing, *map(self._sums_of, words)])

    def _counted(self, word: str) -> Any:
        """The sums of one word: no n-gram goes beyond it."""
        letters = f" {word} "
        ngrams = (letters[at : at + size] for size in range(1, LONGEST + 1) for at in range(len(letters) - size + 1))
        sums = self._nothing.copy()
        for row in filter(None, map(self._rows.get, ngrams)):
            cells = slice(self._starts[row], self._starts[row + 1])
            sums[self._places[cells]] += self._gains[cells]
            sums[-1] += 1
        return sums


def _plain(text: str) -> str:
    """The text with blanks for what isn't a letter, and one letter for those that are used alike, as the profiles have them."""
    return normalized("NFC", text).translate(_plain_letters())


class _PlainLetters(dict[int, str]):
    """What the profiles have for each letter; kept, because langdetect looks for the script of each."""

    def __missing__(self, point: int) -> str:
        from langdetect.utils.ngram import NGram

        self[point] = plain = str(NGram.normalize(chr(point)))
        return plain


_plain_letters = cache(_PlainLetters)


def _profile(code: str) -> Path:
    from langdetect import PROFILES_DIRECTORY

    return Path(PROFILES_DIRECTORY, code)


@cache
def profile_codes() -> tuple[str, ...]:
    """The codes of all languages that langdetect supports."""
    return tuple(sorted(file.name for file in _profile("").iterdir() if not file.suffix))


@cache
def all_letters() -> Letters:
    """The letters of all languages that langdetect supports, loaded once, which takes .2 s."""
    return Letters(profile_codes())
