"""Makes clusters of the questions that weren't answered well, with the words that a docs editor needs to know them by."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from app.conversations.log_figures import ANSWERED, Repeated
from app.conversations.records import LoggedQuestion
from app.core.language import Language
from app.gaps.linkage import Matrix, average_linkage
from app.gaps.pages import Pages
from app.gaps.period import iso
from app.gaps.records import Cluster, Example, Nearest
from app.gaps.similarity import Question, similarities, words_of
from app.text.analysis import PREFIX, STEM_MARK, analyse, fold, runs

LEAST = 0.07
"""Mean similarity from which clusters are joined. Of 302 refused and weak questions of four planted sets of five subjects, the
largest cluster of each subject has 83 % with multilingual-e5-small and 67 % with static vectors; the five largest clusters are
of one subject to 97 % and 89 %. From .04 to .1, the five subjects of the first set are its five largest with the former."""
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
    """The clusters of the period, those with most failures first. `before`: what failed before it is known, and among them."""
    similar = similarities([_question(one, pages) for one in failed], languages)
    rarity = _rarity(failed, languages)
    found = []
    for rows in average_linkage(similar.copy(), LEAST):
        earlier = sum(failed[row].counts.failed_before for row in rows) if before else None
        if now := [row for row in rows if failed[row].counts.failed]:
            central = similar[np.ix_(now, now)].sum(axis=1)
            found.append(_cluster([failed[row] for row in now], central, _Naming(languages, rarity), earlier))
    return sorted(found, key=lambda one: (-one.failed, -one.refused, -one.count, one.name, one.first))


def _question(one: Failed, pages: Pages) -> Question:
    row = one.row
    vector = np.frombuffer(row.vector, np.float16).astype(np.float32)
    page = pages.set_of(one.section)
    return Question(row.text, row.language, vector, row.embedder, page, one.section, row.outcome in ANSWERED)


@dataclass(frozen=True, slots=True)
class _Naming:
    languages: Mapping[str, Language]
    rarity: Mapping[str, float]

    def words(self, members: Sequence[Failed]) -> str:
        """The most telling words as they are most often written; those of one stem, in any language, once."""
        weights, written = Counter[str](), defaultdict[str, Counter[str]](Counter)
        for one in members:
            stems = _stems(one.row.text, one.row.language, self.languages)
            for stem, word in stems.items():
                weights[stem] += self.rarity[stem] * one.counts.failed**0.5
                written[stem][word] += 1
        shared = {stem: weight for stem, weight in weights.items() if written[stem].total() > 1 or len(members) == 1}
        best = sorted(shared, key=lambda stem: (-shared[stem], stem))
        words = (min(written[stem].items(), key=lambda one: (-one[1], one[0]))[0] for stem in best)
        different = {fold(word)[:PREFIX]: word for word in reversed(list(islice(words, 2 * NAME_WORDS)))}
        return ", ".join(list(reversed(different.values()))[:NAME_WORDS])


def _cluster(members: Sequence[Failed], central: Matrix, naming: _Naming, earlier: int | None) -> Cluster:
    counts = [one.counts for one in members]
    failed = sum(one.failed for one in counts)
    refused = sum(one.refused for one in counts)
    examples = _examples(members, central)
    answered = refused < failed / 2  # what is nearest to a refused question is about something else
    rated = sum(one.down for one in counts) * 2 > failed
    nearest = _nearest(members, failed, 0.0 if rated else NEAR) if answered or not examples else None
    clear = nearest is not None and nearest.clear and answered
    known_by = nearest if clear or not examples else None
    heading = (known_by.section.rpartition(" > ")[2] or known_by.title or known_by.url) if known_by else ""
    languages = Counter[str]()
    for one in members:
        languages[one.row.language] += one.counts.failed
    return Cluster(
        name=heading or naming.words(members) or (examples[0].text if examples else ""),
        to_do="correct" if rated else "extend" if clear else "write",
        failed=failed,
        failed_before=earlier,
        count=sum(one.count for one in counts),
        different=len(members),
        refused=refused,
        weak=sum(one.weak for one in counts),
        down=sum(one.down for one in counts),
        languages=dict(sorted(languages.items(), key=lambda one: (-one[1], one[0]))),
        nearest=nearest and replace(nearest, clear=clear),
        examples=examples,
        first=iso(min(one.first or one.last for one in counts)),
        last=iso(max(one.last for one in counts)),
    )


def _nearest(members: Sequence[Failed], failed: int, least: float) -> Nearest | None:
    """The most frequent nearest section, if at least this share of the failures has it."""
    counts = Counter[str]()
    for one in members:
        if one.section:
            counts[one.section] += one.counts.failed
    url, count = min(counts.items(), key=lambda one: (-one[1], one[0]), default=("", 0))
    if not url or count < least * failed:
        return None
    known = next(one.row.nearest for one in members if one.section == url)
    title, section, language = (str(known.get(name, "")) for name in ("title", "section", "language"))
    return Nearest(url, title, section, language, round(count / failed, 3), count >= CLEAR * failed)


def _examples(members: Sequence[Failed], central: Matrix) -> list[Example]:
    """The most central questions of different words, one of each language first."""
    order = sorted(range(len(members)), key=lambda at: (-float(central[at]), members[at].row.digest))
    known = [members[at] for at in order if members[at].row.text]
    firsts = {one.row.language: one for one in reversed(known)}
    heads = [one for one in known if firsts[one.row.language] is one]
    chosen = dict.fromkeys(one.row.digest for one in (*heads, *known))
    by_digest = {one.row.digest: one for one in known}
    return [
        Example(one.row.text, one.row.language, one.counts.count)
        for one in (by_digest[digest] for digest in list(chosen)[:EXAMPLES])
    ]


def _rarity(failed: Sequence[Failed], languages: Mapping[str, Language]) -> Mapping[str, float]:
    spread = Counter(stem for one in failed for stem in _stems(one.row.text, one.row.language, languages))
    return {stem: float(np.log((1 + len(failed)) / n)) for stem, n in spread.items()}


def _stems(text: str, language: str, languages: Mapping[str, Language]) -> dict[str, str]:
    """The words of a question by their stems."""
    found: dict[str, str] = {}
    for word in runs(words_of(CONTRACTED.sub(" ", text), language, languages)):
        if len(word) >= SHORTEST_WORD and not word.isdigit():
            tokens = analyse(word, language)
            stem = next((token for token in tokens if token.endswith(STEM_MARK)), fold(word))
            found.setdefault(stem.rstrip(STEM_MARK), word)
    return found
