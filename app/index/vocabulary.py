"""The words of a generation: the tokens that a chunk is found by, how rare each is, and the completions of a half-typed word.

They are kept in one text, because a dictionary of the 389,000 tokens of 100,000 chunks takes 172 MB, and this 8 MB.
"""

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Self

from app.core.types import Chunk, LexicalText
from app.text.analysis import HEADED_MARK, PREFIX_MARK, STEM_MARK, analyse, fold, runs

_NAME = re.compile(r"[^\W_][._][^\W_]|[^\W\d_][A-Z]")
"""An identifier: parts joined by a dot or an underscore, or capitals inside."""


def tokens_of(chunk: Chunk) -> list[str]:
    """The analysed text, the symbols in its headings, then the analysed questions, each in its own language."""
    tokens = list(analyse(chunk.embedded_text, chunk.language))
    tokens += dict.fromkeys(token for section in chunk.sections for token in _headed(section.path))
    for language, text in chunk.questions:
        tokens += analyse(text, language)
    return tokens


def chunks_with(tokens: Iterable[str]) -> Counter[str]:
    """The number of chunks with each token, from the tokens of each chunk in one text."""
    return Counter(token for text in tokens for token in set(text.split()))


def tokens_of_question(text: str, language: str) -> list[str]:
    """The tokens that a search for the text counts, each once: its words, and sections headed by a symbol that it names."""
    named = [fold(run) + HEADED_MARK for run in runs(text) if _NAME.search(run)]
    return list(dict.fromkeys([*analyse(text, language), *named]))


MAX_TERMS = 900
"""Tokens in one search: more cost time without better results, and OpenSearch accepts fewer than 1,024 clauses."""


def searched_terms(texts: Iterable[LexicalText]) -> list[tuple[str, float]]:
    """The tokens of each text in one line, with the weight of the text."""
    found, remaining = list[tuple[str, float]](), MAX_TERMS
    for text in texts:
        if tokens := tokens_of_question(text.text, text.language)[:remaining] if text.weight > 0 else []:
            found.append((" ".join(tokens), text.weight))
            remaining -= len(tokens)
    return found


def _headed(path: Sequence[str]) -> Iterator[str]:
    """The names that people call the symbol by which is the last heading: `MultiDict.items`, `items`."""
    own, parent = (_symbol(heading) for heading in (*path[-1:], *path[-2:-1], "", "")[:2])
    if not own:
        return
    name = own.rpartition(".")[2]
    yield own + HEADED_MARK
    yield name + HEADED_MARK
    if parent:
        yield f"{parent.rpartition('.')[2]}.{name}{HEADED_MARK}"


def _symbol(heading: str) -> str:
    """The heading folded if it is one identifier, else empty."""
    words = runs(heading)
    return fold(words[0]) if len(words) == 1 and " " not in heading.strip() else ""


SHORTEST_CORRECTED = 5  # letters, one more of a word that is being typed; shorter ones have too many neighbours
LONGEST_CORRECTED = 40  # letters; the work grows with the square of the length
LONGEST_COMPLETED = 100  # letters; what is remembered must stay small
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_MARKS = tuple(mark.encode() for mark in (PREFIX_MARK, STEM_MARK, HEADED_MARK))
_LAST = "\U0010ffff"


class Vocabulary:
    """The tokens of the chunks (see `app.text.analysis`), with the number of chunks that each is in.

    `tokens` are sorted UTF-8 lines, `counts` the number of chunks of each.
    """

    def __init__(self, tokens: bytes = b"", counts: bytes = b"") -> None:
        import numpy as np

        self.tokens, self.counts = tokens, counts
        self._sorted, self._counts = _Lines(tokens), np.frombuffer(counts, np.uint32)
        self._completed = lru_cache(maxsize=5000)(self._completions)

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> Self:
        """From the number of chunks of each token: .2 s for 389,000, so call it in a thread."""
        import numpy as np

        tokens = sorted(counts)
        numbers = np.fromiter((counts[token] for token in tokens), np.uint32, len(tokens))
        return cls("".join(f"{token}\n" for token in tokens).encode(), numbers.tobytes())

    def is_whole(self) -> bool:
        """True if each token has its count."""
        return len(self._sorted) == len(self._counts)

    def count(self, token: str) -> int:
        """The number of chunks with the token."""
        sought = token.encode()
        place = bisect_left(self._sorted, sought)
        return int(self._counts[place]) if place < len(self._sorted) and self._sorted[place] == sought else 0

    def completions(self, beginning: str, most: int) -> tuple[str, ...]:
        """The words that begin so, the most frequent first."""
        return self._completed(beginning, most) if len(beginning) <= LONGEST_COMPLETED else ()

    def corrected(self, word: str, *, whole: bool) -> str:
        """The most frequent word that differs in one letter, two neighbours swapped at most; else the word itself.

        If the word isn't `whole`, the beginnings of words are compared. A word that is there, or begins one, stays.
        """
        if self.completions(word, 1):
            return word
        return (self.neighbour(word) if whole else self._neighbour_begun(word)) or word

    def neighbour(self, word: str) -> str:
        """The most frequent word that differs in one letter from one that isn't there; empty without any."""
        if not SHORTEST_CORRECTED <= len(word) <= LONGEST_CORRECTED or not word.isalpha() or self.count(word):
            return ""
        return max(filter(self.count, _neighbours(word)), key=lambda other: (self.count(other), other), default="")

    def _neighbour_begun(self, word: str) -> str:
        """The beginning of the most frequent word that differs in one letter from this beginning; empty without any."""
        if not SHORTEST_CORRECTED < len(word) <= LONGEST_CORRECTED or not word.isalpha():
            return ""
        completed = ((words[0], other) for other in _neighbours(word) if (words := self.completions(other, 1)))
        return max(((self.count(found), other) for found, other in completed), default=(0, ""))[1]

    def _completions(self, beginning: str, most: int) -> tuple[str, ...]:
        import numpy as np

        first, last = (bisect_left(self._sorted, end.encode()) for end in (beginning, beginning + _LAST))
        frequent = first + np.argsort(-self._counts[first:last].astype(np.int64), kind="stable")
        words = (token for token in (self._sorted[int(place)] for place in frequent) if not token.endswith(_MARKS))
        return tuple(word.decode() for word in islice(words, most))


class _Lines:
    """The lines of a text, each of which ends with a line feed."""

    def __init__(self, text: bytes) -> None:
        import numpy as np

        self._text = text
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
        self._ends = array("I", ends.astype(np.uint32).tobytes())

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, place: int) -> bytes:
        return self._text[self._ends[place - 1] + 1 if place else 0 : self._ends[place]]


def _neighbours(word: str) -> Iterator[str]:
    """The texts at a distance of one, without those that begin with another letter: few people mistype that."""
    letters = _LETTERS if word.isascii() else ""
    for i in range(1, len(word)):
        before, letter, after = word[:i], word[i], word[i + 1 :]
        yield before + after
        yield before + after[:1] + letter + after[1:]
        yield from (before + other + after for other in letters if other != letter)
        yield from (before + other + letter + after for other in letters)
    yield from (word + other for other in letters)
