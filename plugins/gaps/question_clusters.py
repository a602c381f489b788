"""Makes clusters of the questions that weren't answered well, with the words that a docs editor needs to know them by.

Two clusters are joined by average linkage until no two are similar enough.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from app.conversations.log_figures import Repeated
from app.conversations.question_log import iso
from app.conversations.records import LoggedQuestion
from app.core.language import Language
from app.text.analysis import STEM_MARK, analyse, fold, runs
from app.text.language import is_smalltalk, what_is_asked
from app.text.letters import Letters
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


def moved(similarity: Matrix, clusters: Sequence[Sequence[int]], least: float) -> list[list[int]]:
    """The clusters with each row in the one that it is most similar to, because others have joined its own since."""
    member = np.zeros((len(clusters), len(similarity)), np.float32)
    for at, rows in enumerate(clusters):
        member[at, rows] = 1
    others = member.sum(axis=1, keepdims=True) - member
    means = (member @ similarity - member * similarity.diagonal()) / np.maximum(others, 1)
    means[(member > 0) & (others == 0)] = least
    best = means.argmax(axis=0)
    return [np.flatnonzero(best == at).tolist() for at in np.unique(best)]


MOST_TOKENS = 4_096
"""Columns of the table of words, for the tokens of most questions; one that a single question has joins nothing."""
ENOUGH = 8
"""Questions from which a language, or each of the two forms, says what its questions have in common."""
BLOCK = 256
"""Rows of a matrix that are computed at once."""


def similarities(
    rows: Sequence[LoggedQuestion], tokens: Sequence[Counter[str]], weights: Mapping[str, float]
) -> Matrix:
    """Returns the similarity of each question to each other one: about 1 for the same words, about 0 for nothing in common."""
    similar = by_words(tokens, weights)
    for places, vectors in vectors_of(rows):
        for start in range(0, len(places), BLOCK):
            square = np.ix_(places[start : start + BLOCK], places)
            cosines = vectors[start : start + BLOCK] @ vectors.T
            similar[square] = (similar[square] + np.maximum(cosines, 0.0)) / 2
    return similar


def tokens_of(row: LoggedQuestion, languages: Mapping[str, Language]) -> Counter[str]:
    """The tokens of what a question is about; its nearest section if only digests are logged."""
    if not row.text:
        return Counter([str(row.nearest.get("url") or row.digest)])
    return Counter(analyse(" ".join(about(row.text, row.language, languages)), row.language))


def about(text: str, language: str, languages: Mapping[str, Language]) -> list[str]:
    """The words that say what a question is about, without those that only ask, greet or thank; all if there are no others."""
    known = languages.get(language)
    words = (what_is_asked(text, known) if known else text).split()
    telling = [word for word in words if known and not {fold(run) for run in runs(word)} <= known.questions.smalltalk]
    return telling or words


def weights_of(tokens: Sequence[Counter[str]], pages: Pages) -> dict[str, float]:
    """The weight of each token: its rarity among the questions, but little for one that many pages have.

    The name of the product and the words of its field are in all subjects; what a page lacks is in few pages or none.
    """
    spread = Counter(token for counts in tokens for token in counts)
    return {token: float(np.log((1 + len(tokens)) / n)) * pages.rarity(token) ** 2 for token, n in spread.items()}


def by_words(tokens: Sequence[Counter[str]], weights: Mapping[str, float]) -> Matrix:
    """The cosine of their words. Names, numbers and the beginnings of loanwords are the same in all languages."""
    spread = Counter(token for counts in tokens for token in counts)
    common = sorted((token for token, n in spread.items() if n > 1), key=lambda token: (-spread[token], token))
    column = {token: at for at, token in enumerate(common[:MOST_TOKENS])}
    table = np.zeros((len(tokens), len(column)), np.float32)
    for row, counts in enumerate(tokens):
        length = sum(weights[token] ** 2 for token in counts) ** 0.5 or 1.0
        for token in counts.keys() & column.keys():
            table[row, column[token]] = weights[token] / length
    return np.asarray(table @ table.T, np.float32)


def vectors_of(rows: Sequence[LoggedQuestion]) -> list[tuple[list[int], Matrix]]:
    """The vectors of each embedder, of length 1, with the places of their questions.

    What their language and form explain (keywords or a sentence, long or short) is taken from the vectors: it isn't the subject.
    """
    spaces: dict[tuple[str, int], list[int]] = defaultdict(list)
    for place, row in enumerate(rows):
        if row.vector:
            spaces[row.embedder, len(row.vector)].append(place)
    found = []
    for places in spaces.values():
        vectors = _unit(np.stack([np.frombuffer(rows[at].vector, np.float16).astype(np.float32) for at in places]))
        forms = _forms([rows[at] for at in places])
        vectors -= forms @ np.linalg.lstsq(forms, vectors, rcond=None)[0]
        found.append((places, _unit(vectors)))
    return found


def _forms(rows: Sequence[LoggedQuestion]) -> Matrix:
    """A column for each language, and two for the form, as far as there are enough questions to tell."""
    counts = Counter(row.language for row in rows)
    groups = [row.language if counts[row.language] >= ENOUGH else "" for row in rows]
    columns = [[float(one == group) for one in groups] for group, n in sorted(Counter(groups).items()) if n >= ENOUGH]
    if len(rows) >= ENOUGH * (len(columns) + 2):
        columns += [
            [float("?" in row.text) for row in rows],
            [float(np.log(1 + len(row.text.split()))) for row in rows],
        ]
    return np.array(columns, np.float32).reshape(len(columns), len(rows)).T


def _unit(vectors: Matrix) -> Matrix:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6), np.float32)


LEAST = 0.07
"""Mean similarity from which clusters are joined. In mixtures of twelve of twenty planted subjects with failures of our set, by
multilingual-e5-small in 8 bits, 10.9 of twelve have a cluster of their own, and 0.5 clusters of a report are mixed; at .06 it is
10.9 and 0.8, at .08 it is 10.8 and 0.4."""
CLEAR = 0.6
"""Share of the questions from which their most frequent nearest section is probably about the subject."""
NEAR = 0.3
"""Share of the questions below which a section that isn't about them is only in the way."""
UNLIKE = 3.2
"""How like words of a configured language a question must be (`Letters.likeness`), if it shares none with anything. Of 500 rows of random keys of
one row of the keyboard, 87 % are below it; of 507 questions about 32 subjects, two, which others share words with."""
EXAMPLES = 10
NAME_WORDS = 5
SHORTEST_WORD = 2
CLAUSE = re.compile(r"[.,;:!?…](?!\w)|[()\"„“”]|(?<!\w)\w{1,20}['’]\w{1,20}")
"""What ends a clause, and words such as doesn't, which no name needs."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A question that failed: how often, its newest row of the log, and the comments on its answers."""

    counts: Repeated
    row: LoggedQuestion
    comments: Sequence[str] = ()

    @property
    def section(self) -> str:
        """The address of its nearest section; empty without any."""
        return str(self.row.nearest.get("url", ""))


def without_chit_chat(failed: Sequence[Failed], pages: Pages, languages: Mapping[str, Language]) -> list[Failed]:
    """The questions that are about something; those of which only digests are logged are.

    Small talk is what is such in any of the languages, as the language of "díky" may be mistaken. Random keys are letters that no
    language puts together like this, in words that neither a page nor another question has.
    """
    tokens = [tokens_of(question.row, languages) for question in failed]
    spread = Counter(token for counts in tokens for token in counts)
    letters = Letters(languages, folded=True)

    def random_keys(question: Failed, own: Iterable[str]) -> bool:
        alone = all(spread[token] == 1 and not pages.frequencies.get(token) for token in own)
        return (
            bool(pages.by_url) and alone and question.counts.count == 1 and letters.likeness(question.row.text) < UNLIKE
        )

    return [
        question
        for question, own in zip(failed, tokens, strict=True)
        if not (text := question.row.text)
        or not (any(is_smalltalk(text, one) for one in languages.values()) or random_keys(question, own))
    ]


def clusters_of(
    failed: Sequence[Failed], pages: Pages, languages: Mapping[str, Language], *, before: bool
) -> list[Cluster]:
    """The clusters of the period, those with most failures first: a weak answer, which may be right, counts half.

    `before`: what failed before the period is known, and among them.
    """
    rows = [question.row for question in failed]
    tokens = [tokens_of(row, languages) for row in rows]
    weights = weights_of(tokens, pages)
    similar = similarities(rows, tokens, weights)
    name_of = partial(_name, languages=languages, weights=weights)
    clusters = []
    for places in moved(similar, average_linkage(similar.copy(), LEAST), LEAST) if failed else []:
        earlier = sum(failed[at].counts.failed_before for at in places) if before else None
        if now := [at for at in places if failed[at].counts.failed]:
            central = similar[np.ix_(now, now)].sum(axis=1)
            clusters.append(_cluster([failed[at] for at in now], central, name_of, earlier))
    return sorted(clusters, key=lambda one: (one.weak - 2 * one.failed, -one.refused, -one.count, one.name, one.first))


def _name(
    members: Sequence[Failed], central: Matrix, languages: Mapping[str, Language], weights: Mapping[str, float]
) -> str:
    """The words of a typical question that say most of what several ask for, as it has them, such as "price of a licence".

    Empty if nothing says enough: a part of a sentence needs two words that others have, too, or one that is written as a name.
    """
    questions = [_clauses(member.row, languages) for member in members]
    spread = Counter(
        stem for clauses in questions for stem in {stem for clause in clauses for _, stem in clause if stem}
    )
    shared = {stem for stem, n in spread.items() if n > 1}
    best = (0.0, "")
    for clauses, near in zip(questions, central / (central.max() or 1.0), strict=True):
        for words, stems, enough in _parts(clauses):
            told = {stem: weights.get(stem, 0.0) for stem in stems if stem}
            if stems[0] and stems[-1] and len(told.keys() & shared) >= enough:
                length = sum(weight**2 for weight in told.values()) ** 0.5 * len(words) ** 0.25
                worth = near * sum(spread[stem] * weight**2 for stem, weight in told.items()) / (length or 1.0)
                best = max(best, (round(float(worth), 6), " ".join(words)))
    return best[1]


def _clauses(row: LoggedQuestion, languages: Mapping[str, Language]) -> list[list[tuple[str, str]]]:
    """The words of each clause of a question with their stems, which are empty for words that say nothing of the subject."""
    clauses = []
    for clause in CLAUSE.split(row.text):
        telling = set(about(clause, row.language, languages))
        clauses.append([(word, _stem(word, row.language) if word in telling else "") for word in clause.split()])
    return clauses


def _parts(clauses: Sequence[Sequence[tuple[str, str]]]) -> Iterator[tuple[Sequence[str], Sequence[str], int]]:
    """The words and stems of all parts of clauses, and how many of the words others must have for a name."""
    for clause in clauses:
        for start in range(len(clause)):
            for end in range(start + 1, min(start + NAME_WORDS, len(clause)) + 1):
                words, stems = zip(*clause[start:end], strict=True)
                named = len(words) == 1 and start and words[0] != words[0].lower()
                yield words, stems, 1 if named or len(words) == len(clause) else 2


def _stem(word: str, language: str) -> str:
    """The token of the stem; empty for numbers and single letters."""
    stems = [token for token in analyse(word, language) if token.endswith(STEM_MARK)]
    return stems[0] if stems and len(word) >= SHORTEST_WORD else ""


def _cluster(
    members: Sequence[Failed], central: Matrix, name_of: Callable[[Sequence[Failed], Matrix], str], earlier: int | None
) -> Cluster:
    counts = [member.counts for member in members]
    failed = sum(count.failed for count in counts)
    refused = sum(count.refused for count in counts)
    examples = _examples(members, central)
    answered = refused < failed / 2  # what is nearest to a refused question is about something else
    rated = sum(count.down for count in counts) * 2 > failed
    nearest = _nearest(members, failed, 0.0 if rated else NEAR)
    clear = nearest is not None and nearest.clear and answered
    heading = (nearest.section.rpartition(" > ")[2] or nearest.title or nearest.url) if nearest else ""
    languages = Counter[str]()
    for member in members:
        languages[member.row.language] += member.counts.failed
    return Cluster(
        name=name_of(members, central) or min((one.text for one in examples[:3]), key=len, default=heading),
        to_do="correct" if rated else "extend" if clear else "write",
        failed=failed,
        failed_before=earlier,
        count=sum(count.count for count in counts),
        different=len(members),
        refused=refused,
        unsupported=sum(count.unsupported for count in counts),
        weak=sum(count.weak for count in counts),
        down=sum(count.down for count in counts),
        languages=dict(sorted(languages.items(), key=lambda one: (-one[1], one[0]))),
        nearest=nearest and replace(nearest, clear=clear),
        examples=examples,
        first=iso(min(count.first or count.last for count in counts)),
        last=iso(max(count.last for count in counts)),
        comments=[comment for member in members for comment in member.comments][:EXAMPLES],
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
