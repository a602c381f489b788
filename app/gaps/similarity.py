"""How similar questions are, also in different languages: by words, by vectors, and by the section that is nearest."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.core.language import Language
from app.gaps.linkage import Matrix
from app.text.analysis import analyse
from app.text.language import without_stopwords

MOST_TOKENS = 4_096
"""Columns of the table of words, for the tokens of most questions; one that a single question has joins nothing."""
ENOUGH = 8
"""Questions of a language from which their mean vector says what is common to the language."""
BLOCK = 256
"""Rows of a matrix that are computed at once."""
SAME_PAGE = 0.6
"""Similarity of two nearest sections of one page, or of a page and its translation."""
OF_SECTION = 0.1
"""Weight of the nearest section beside words and vectors, if both questions were answered: that of a refusal isn't about it."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is compared of a question. `page` is its nearest page, the same for translations, and `section` the part of it.

    `vector` is that of the `embedder`, empty without one. `text` is empty if only digests are logged.
    """

    text: str
    language: str
    vector: NDArray[np.float32]
    embedder: str = ""
    page: str = ""
    section: str = ""
    answered: bool = False


def similarities(questions: Sequence[Question], languages: Mapping[str, Language]) -> Matrix:
    """How similar each question is to each other one: about 1 for the same words, about 0 for nothing in common.

    Questions without text are similar if they have the same nearest section.
    """
    found = by_words(questions, languages)
    for rows, vectors in vectors_of(questions):
        for start in range(0, len(rows), BLOCK):
            square = np.ix_(rows[start : start + BLOCK], rows)
            cosines = vectors[start : start + BLOCK] @ vectors.T
            found[square] = (found[square] + np.maximum(cosines, 0.0)) / 2
    _add_sections(found, questions)
    return found


def words_of(text: str, language: str, languages: Mapping[str, Language]) -> str:
    """The text without stopwords, if those of the language are known."""
    known = languages.get(language)
    return without_stopwords(text, known) if known else text


def by_words(questions: Sequence[Question], languages: Mapping[str, Language]) -> Matrix:
    """The cosine of their words, by rarity. Names, numbers and the beginnings of loanwords are the same in all languages."""
    found = [Counter(analyse(words_of(one.text, one.language, languages), one.language)) for one in questions]
    spread = Counter(token for counts in found for token in counts)
    rarity = {token: float(np.log((1 + len(found)) / n)) for token, n in spread.items()}
    common = sorted((token for token, n in spread.items() if n > 1), key=lambda token: (-spread[token], token))
    column = {token: at for at, token in enumerate(common[:MOST_TOKENS])}
    table = np.zeros((len(found), len(column)), np.float32)
    for row, counts in enumerate(found):
        length = sum(rarity[token] ** 2 for token in counts) ** 0.5 or 1.0
        for token in counts.keys() & column.keys():
            table[row, column[token]] = rarity[token] / length
    return np.asarray(table @ table.T, np.float32)


def vectors_of(questions: Sequence[Question]) -> list[tuple[list[int], Matrix]]:
    """The vectors of each embedder, of length 1, with the rows of their questions.

    What is common to the questions of a language is taken from their vectors: it says the language, not the subject.
    """
    spaces: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row, one in enumerate(questions):
        if len(one.vector):
            spaces[one.embedder, len(one.vector)].append(row)
    found = []
    for rows in spaces.values():
        vectors = _unit(np.stack([questions[row].vector for row in rows]))
        _centre(vectors, [questions[row].language for row in rows])
        found.append((rows, _unit(vectors)))
    return found


def _centre(vectors: Matrix, languages: Sequence[str]) -> None:
    counts = Counter(languages)
    of_language: dict[str, list[int]] = defaultdict(list)
    for row, language in enumerate(languages):
        of_language[language if counts[language] >= ENOUGH else ""].append(row)
    for rows in of_language.values():
        if len(rows) >= ENOUGH:
            vectors[rows] -= vectors[rows].mean(axis=0)


def _unit(vectors: Matrix) -> Matrix:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6), np.float32)


def _add_sections(found: Matrix, questions: Sequence[Question]) -> None:
    """Add to the similarities those of the nearest sections, row by row, because matrices are large."""
    sections, pages = (_numbers([getattr(one, name) for one in questions]) for name in ("section", "page"))
    answered = np.array([one.answered for one in questions], bool)
    silent = np.array([not one.text for one in questions], bool)
    for row, one in enumerate(questions):
        same = sections == sections[row]
        if not one.text:
            found[row] += same & silent
        elif one.answered:
            found[row] += (
                np.where(same, OF_SECTION, np.where(pages == pages[row], SAME_PAGE * OF_SECTION, 0.0)) * answered
            )


def _numbers(names: Sequence[str]) -> NDArray[np.int64]:
    """The same number for the same name, and another one for each empty name."""
    known: dict[str, int] = {}
    return np.array(
        [known.setdefault(name, len(known)) if name else -1 - row for row, name in enumerate(names)], np.int64
    )
