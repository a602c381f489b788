"""Makes clusters of the questions that weren't answered well, with the words that a docs editor needs to know them by.

Two clusters are joined by average linkage until no two are similar enough.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from app.conversations.log_figures import ANSWERED, Repeated
from app.conversations.question_log import iso
from app.conversations.records import LoggedQuestion
from app.core.language import Language
from app.text.analysis import PREFIX, STEM_MARK, analyse, fold, runs
from app.text.language import without_stopwords
from plugins.gaps.page_facts import Pages
from plugins.gaps.records import Cluster, Example, Nearest

Matrix = NDArray[np.float32]


def average_linkage(similarity: Matrix, least: float) -> list[list[int]]:
    """The clusters as rows of the symmetric matrix, which is overwritten; the same for the same matrix.

    The similarity of two clusters is the mean of those of their members. Of equal ones, the first are joined. It takes
    the square of the number of rows in time.
    """
    count = len(similarity)
    if not count:
        return []
    members = [[row] for row in range(count)]
    np.fill_diagonal(similarity, -np.inf)
    nearest = similarity.argmax(axis=1)
    best = similarity[np.arange(count), nearest]
    while (score := best[row := int(best.argmax())]) >= least and np.isfinite(score):
        first, other = sorted((row, int(nearest[row])))
        a, b = len(members[first]), len(members[other])
        joined = (a * similarity[first] + b * similarity[other]) / (a + b)
        joined[first] = -np.inf
        similarity[first, :] = similarity[:, first] = joined
        similarity[other, :] = similarity[:, other] = -np.inf
        members[first] += members[other]
        members[other] = []
        best[other] = -np.inf
        stale = np.flatnonzero(np.isfinite(best) & ((nearest == first) | (nearest == other)))
        for at in {first, *stale.tolist()}:
            nearest[at] = similarity[at].argmax()
            best[at] = similarity[at, nearest[at]]
        nearer = similarity[:, first] > best
        nearest[nearer], best[nearer] = first, similarity[nearer, first]
    return [sorted(rows) for rows in members if rows]


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
    """Question to compare. `page` is its nearest page, the same for translations, and `section` the part of it.

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
    """Returns the similarity of each question to each other one: about 1 for the same words, about 0 for nothing in common.

    Questions without text are similar if they have the same nearest section.
    """
    similar = by_words(questions, languages)
    for rows, vectors in vectors_of(questions):
        for start in range(0, len(rows), BLOCK):
            square = np.ix_(rows[start : start + BLOCK], rows)
            cosines = vectors[start : start + BLOCK] @ vectors.T
            similar[square] = (similar[square] + np.maximum(cosines, 0.0)) / 2
    _add_sections(similar, questions)
    return similar


def words_of(text: str, language: str, languages: Mapping[str, Language]) -> str:
    """The text without stopwords, if those of the language are known."""
    known = languages.get(language)
    return without_stopwords(text, known) if known else text


def by_words(questions: Sequence[Question], languages: Mapping[str, Language]) -> Matrix:
    """The cosine of their words, by rarity. Names, numbers and the beginnings of loanwords are the same in all languages."""
    counters = [
        Counter(analyse(words_of(question.text, question.language, languages), question.language))
        for question in questions
    ]
    spread = Counter(token for counts in counters for token in counts)
    rarity = {token: float(np.log((1 + len(counters)) / n)) for token, n in spread.items()}
    common = sorted((token for token, n in spread.items() if n > 1), key=lambda token: (-spread[token], token))
    column = {token: at for at, token in enumerate(common[:MOST_TOKENS])}
    table = np.zeros((len(counters), len(column)), np.float32)
    for row, counts in enumerate(counters):
        length = sum(rarity[token] ** 2 for token in counts) ** 0.5 or 1.0
        for token in counts.keys() & column.keys():
            table[row, column[token]] = rarity[token] / length
    return np.asarray(table @ table.T, np.float32)


def vectors_of(questions: Sequence[Question]) -> list[tuple[list[int], Matrix]]:
    """The vectors of each embedder, of length 1, with the rows of their questions.

    What is common to the questions of a language is taken from their vectors: it says the language, not the subject.
    """
    spaces: dict[tuple[str, int], list[int]] = defaultdict(list)
    for row, question in enumerate(questions):
        if len(question.vector):
            spaces[question.embedder, len(question.vector)].append(row)
    rows_and_vectors = []
    for rows in spaces.values():
        vectors = _unit(np.stack([questions[row].vector for row in rows]))
        _centre(vectors, [questions[row].language for row in rows])
        rows_and_vectors.append((rows, _unit(vectors)))
    return rows_and_vectors


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
    sections, pages = (_numbers([getattr(question, name) for question in questions]) for name in ("section", "page"))
    answered = np.array([question.answered for question in questions], bool)
    silent = np.array([not question.text for question in questions], bool)
    for row, question in enumerate(questions):
        same = sections == sections[row]
        if not question.text:
            found[row] += same & silent
        elif question.answered:
            found[row] += (
                np.where(same, OF_SECTION, np.where(pages == pages[row], SAME_PAGE * OF_SECTION, 0.0)) * answered
            )


def _numbers(names: Sequence[str]) -> NDArray[np.int64]:
    """The same number for the same name, and another one for each empty name."""
    known: dict[str, int] = {}
    return np.array(
        [known.setdefault(name, len(known)) if name else -1 - row for row, name in enumerate(names)], np.int64
    )


LEAST = 0.05
"""Mean similarity from which clusters are joined. In mixtures of five of twenty planted subjects with failures of our set, by
multilingual-e5-small in 8 bits, the largest cluster of a subject has 86 % of its failures, and .13 of the five subjects aren't
among the six first clusters; at .055 it is .17, at .06 .18, at .045 .15. (With texts that are cut before they are embedded: .22,
.25, .26, .22.) The one that most often misses is answered for two thirds, from pages that have the same words."""
CLEAR = 0.6
"""Share of the questions from which their most frequent nearest section gives the cluster its name."""
NEAR = 0.3
"""Share of the questions below which a section that isn't about them is only in the way."""
EXAMPLES = 3
NAME_WORDS = 4
SHORTEST_WORD = 2
CONTRACTED = re.compile(r"(?<!\w)\w{1,20}['’]\w{1,20}")
"""Words such as doesn't, whose parts would stand in a name as words."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A question that failed: how often, and its newest row of the log."""

    counts: Repeated
    row: LoggedQuestion

    @property
    def section(self) -> str:
        """The address of its nearest section; empty without any."""
        return str(self.row.nearest.get("url", ""))


def clusters_of(
    failed: Sequence[Failed], pages: Pages, languages: Mapping[str, Language], *, before: bool
) -> list[Cluster]:
    """The clusters of the period, those with most failures first: a weak answer, which may be right, counts half.

    `before`: what failed before the period is known, and among them.
    """
    similar = similarities([_question(question, pages) for question in failed], languages)
    telling = partial(_telling, languages=languages, rarity=_rarity(failed, languages))
    clusters = []
    for rows in average_linkage(similar.copy(), LEAST):
        earlier = sum(failed[row].counts.failed_before for row in rows) if before else None
        if now := [row for row in rows if failed[row].counts.failed]:
            central = similar[np.ix_(now, now)].sum(axis=1)
            clusters.append(_cluster([failed[row] for row in now], central, telling, earlier))
    return sorted(clusters, key=lambda one: (one.weak - 2 * one.failed, -one.refused, -one.count, one.name, one.first))


def _question(one: Failed, pages: Pages) -> Question:
    row = one.row
    vector = np.frombuffer(row.vector, np.float16).astype(np.float32)
    page = pages.set_of(one.section)
    return Question(row.text, row.language, vector, row.embedder, page, one.section, row.outcome in ANSWERED)


def _telling(members: Sequence[Failed], languages: Mapping[str, Language], rarity: Mapping[str, float]) -> str:
    """The most telling words as they are most often written; those of one stem, in any language, once."""
    weights, written = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for member in members:
        for stem, word in _stems(member.row.text, member.row.language, languages).items():
            weights[stem] += rarity[stem] * member.counts.failed**0.5
            written[stem][word] += 1
    shared = {stem: weight for stem, weight in weights.items() if written[stem].total() > 1 or len(members) == 1}
    best = sorted(shared, key=lambda stem: (-shared[stem], stem))
    words = (min(written[stem].items(), key=lambda one: (-one[1], one[0]))[0] for stem in best)
    different = {fold(word)[:PREFIX]: word for word in reversed(list(islice(words, 2 * NAME_WORDS)))}
    return ", ".join(list(reversed(different.values()))[:NAME_WORDS])


def _cluster(
    members: Sequence[Failed], central: Matrix, telling: Callable[[Sequence[Failed]], str], earlier: int | None
) -> Cluster:
    counts = [member.counts for member in members]
    failed = sum(count.failed for count in counts)
    refused = sum(count.refused for count in counts)
    examples = _examples(members, central)
    answered = refused < failed / 2  # what is nearest to a refused question is about something else
    rated = sum(count.down for count in counts) * 2 > failed
    nearest = _nearest(members, failed, 0.0 if rated else NEAR) if answered or not examples else None
    clear = nearest is not None and nearest.clear and answered
    known_by = nearest if clear or not examples else None
    heading = (known_by.section.rpartition(" > ")[2] or known_by.title or known_by.url) if known_by else ""
    languages = Counter[str]()
    for member in members:
        languages[member.row.language] += member.counts.failed
    return Cluster(
        name=heading or telling(members) or (examples[0].text if examples else ""),
        to_do="correct" if rated else "extend" if clear else "write",
        failed=failed,
        failed_before=earlier,
        count=sum(count.count for count in counts),
        different=len(members),
        refused=refused,
        weak=sum(count.weak for count in counts),
        down=sum(count.down for count in counts),
        languages=dict(sorted(languages.items(), key=lambda one: (-one[1], one[0]))),
        nearest=nearest and replace(nearest, clear=clear),
        examples=examples,
        first=iso(min(count.first or count.last for count in counts)),
        last=iso(max(count.last for count in counts)),
    )


def _nearest(members: Sequence[Failed], failed: int, least: float) -> Nearest | None:
    """The most frequent nearest section, if at least this share of the failures has it."""
    counts = Counter[str]()
    for member in members:
        if member.section:
            counts[member.section] += member.counts.failed
    url, count = min(counts.items(), key=lambda one: (-one[1], one[0]), default=("", 0))
    if not url or count < least * failed:
        return None
    known = next(member.row.nearest for member in members if member.section == url)
    title, section, language = (str(known.get(name, "")) for name in ("title", "section", "language"))
    return Nearest(url, title, section, language, round(count / failed, 3), count >= CLEAR * failed)


def _examples(members: Sequence[Failed], central: Matrix) -> list[Example]:
    """The most central questions of different words, one of each language first."""
    order = sorted(range(len(members)), key=lambda at: (-float(central[at]), members[at].row.digest))
    known = [members[at] for at in order if members[at].row.text]
    firsts = {member.row.language: member for member in reversed(known)}
    heads = [member for member in known if firsts[member.row.language] is member]
    chosen = dict.fromkeys(member.row.digest for member in (*heads, *known))
    by_digest = {member.row.digest: member for member in known}
    return [
        Example(member.row.text, member.row.language, member.counts.count)
        for member in (by_digest[digest] for digest in list(chosen)[:EXAMPLES])
    ]


def _rarity(failed: Sequence[Failed], languages: Mapping[str, Language]) -> Mapping[str, float]:
    spread = Counter(
        stem for question in failed for stem in _stems(question.row.text, question.row.language, languages)
    )
    return {stem: float(np.log((1 + len(failed)) / n)) for stem, n in spread.items()}


def _stems(text: str, language: str, languages: Mapping[str, Language]) -> dict[str, str]:
    """The words of a question by their stems."""
    words: dict[str, str] = {}
    for word in runs(words_of(CONTRACTED.sub(" ", text), language, languages)):
        if len(word) >= SHORTEST_WORD and not word.isdigit():
            tokens = analyse(word, language)
            stem = next((token for token in tokens if token.endswith(STEM_MARK)), fold(word))
            words.setdefault(stem.rstrip(STEM_MARK), word)
    return words
