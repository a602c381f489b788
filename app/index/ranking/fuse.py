"""Fuses the lexical and the vector leg into one ranking, and merges the translations of a page in it. All stores use this code, so that
scores stay comparable.
"""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import itemgetter
from statistics import median
from typing import Literal
from urllib.parse import urlsplit

from app.core.generation import newness, split_version
from app.core.types import Boost, Candidate, Chunk, Hit, Indirect, Legs, Query, Recency
from app.index.protocols import Counterparts, Generation, Pair, TranslationSet, TranslationSets
from app.index.ranking.legs import best_first, nearest
from app.text.marks import names

COMPARED = 2
"""Times the limit of the query: so many pages from the top are compared with their translations."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Candidates by id, with their fused scores and boosts.

    `sets` are translation sets by the address of a page. `found_as` has, by id, the candidate in another language that
    a score comes from.
    """

    candidates: dict[str, Candidate]
    scores: dict[str, float]
    boosts: Mapping[str, float]
    sets: Mapping[str, TranslationSet] = field(default_factory=dict)
    found_as: dict[str, Candidate] = field(default_factory=dict)

    def best(self, candidates: Sequence[Candidate]) -> Candidate | None:
        """The candidate with the highest score."""
        return min(candidates, key=lambda one: (-self.scores[one.id], one.id), default=None)


async def merge_translations(generation: Generation, scored: Scored, query: Query) -> Scored:
    """The candidates with one page of each translation set: the reader's, unless it lacks what is asked for.

    Calls the store only for pairs of pages that no question has met before, and then once.
    """
    sets = await generation.translation_sets()
    groups = _groups(scored, sets, query)
    if not groups:
        return scored
    pairs = {(one.url, group.own_url) for group in groups if group.own_url for one in group.foreign}
    compared = await _compared(generation, sets, pairs)
    asked = names(query.texts[0].text if query.texts else "")  # keywords have names that nobody asked for
    merged = Scored(dict(scored.candidates), dict(scored.scores), scored.boosts, sets.of)
    for group in groups:
        group.merge(merged, compared, query.language, asked)
    return merged


@dataclass(frozen=True, slots=True)
class _Group:
    """The candidates of one translation set: of the reader's page, if the query admits it, and of the others."""

    id: str
    own_url: str
    own: Sequence[Candidate]
    foreign: Sequence[Candidate]

    def merge(
        self, scored: Scored, compared: Mapping[Pair, Counterparts], language: str, asked: frozenset[str]
    ) -> None:
        """Leave the candidates of one page, with the best scores of all: the reader's, unless it lacks what the best of the
        others was found for. `asked` are the names in the question.
        """
        best, other = scored.best(self.own), scored.best(self.foreign)
        assert other
        as_good = best is not None and scored.scores[best.id] >= scored.scores[other.id]
        said = compared.get((other.url, self.own_url))  # nothing if the reader has no page of the set
        if said is None or (not as_good and (asked & said.only_there or not (best or other.id in said.of))):
            self._keep(scored, other)
            return
        for one in self.foreign:
            same = compared[one.url, self.own_url]
            # the chunk of the reader's page that says the same, else its best one
            id_ = same.of.get(one.id) or (best.id if best else same.first)
            del scored.candidates[one.id]
            if id_ not in scored.candidates:
                scored.candidates[id_] = one._replace(id=id_, url=self.own_url, language=language)
            if id_ not in scored.scores or scored.scores[one.id] > scored.scores[id_]:
                scored.scores[id_] = scored.scores[one.id]
                scored.found_as[id_] = one

    def _keep(self, scored: Scored, best: Candidate) -> None:
        """Leave the page that the set is named after, else the page of the best candidate."""
        kept = scored.best([one for one in self.foreign if one.url == self.id]) or best
        scored.scores[kept.id] = scored.scores[best.id]
        for one in (*self.own, *self.foreign):
            if one.url != kept.url:
                del scored.candidates[one.id]


def _groups(scored: Scored, sets: TranslationSets, query: Query) -> list[_Group]:
    """The translation sets at the top of which a page in another language was found."""
    if not sets.of:
        return []
    by_set: dict[str, list[Candidate]] = defaultdict(list)
    for id_, _ in sorted(scored.scores.items(), key=itemgetter(1), reverse=True):
        candidate = scored.candidates[id_]
        translations = sets.of.get(candidate.url)
        by_set[translations.id if translations else candidate.url].append(candidate)
    found: list[_Group] = []
    for candidates in islice(by_set.values(), COMPARED * query.limit):
        translations = sets.of.get(candidates[0].url)
        if translations and any(one.language != query.language for one in candidates):
            own_url = translations.own_page(candidates[0], query)
            own = [one for one in candidates if one.url == own_url]
            found.append(_Group(translations.id, own_url, own, [one for one in candidates if one.url != own_url]))
    return [group for group in found if group.foreign]


async def _compared(generation: Generation, sets: TranslationSets, pairs: Collection[Pair]) -> dict[Pair, Counterparts]:
    found = {pair: sets.counterparts[pair] for pair in pairs if pair in sets.counterparts}
    if missing := [pair for pair in pairs if pair not in found]:
        new = await generation.counterparts(missing)
        sets.cache(new)
        found |= new
    return found


MOST_SOFTENED = 2.0  # times the best score of the reader's language; more would let one leg dominate
LimitCut = Literal["", "language", "translation", "per_page", "top_k"]
OF_UNITS = 0.8  # share of a chunk's nearest stretch in what its vectors add
OF_INDIRECT = 0.5
"""Weight of each leg of what a language model wrote, relative to that of the vectors, where it decides clearly: it is multiplied by the
square of its distinctness, as such a leg finds something for every question.
"""
FEWEST_INDIRECT = 10
"""Candidates of such a leg, or half of what there is in a small index: scaled, the best of fewer would count fully however far it is,
as where few pages have a summary yet.
"""
OF_PAGES: Container[Indirect] = ("summaries",)
RRF_K = 60  # the constant of Cormack et al. 2009; it dampens the first ranks


async def rank(generation: Generation, legs: Legs, query: Query) -> tuple[Hit, ...]:
    """The hits of the legs: the candidates that `chosen` gives, with the texts of their chunks."""
    fused = await merge_translations(generation, scored(legs, query), query)
    candidates = chosen(fused, query)
    chunks = await generation.fetch([candidate.id for candidate in candidates])
    return hits(candidates, {chunk.id: chunk for chunk in chunks}, fused, legs, query)


def joined(*searches: Legs) -> Legs:
    """The legs of several searches as one, without units: each candidate once, with its best score, best first."""
    return Legs(nearest(*(legs.lexical for legs in searches)), nearest(*(legs.vector for legs in searches)))


def with_indirect(legs: Legs, variants: Legs | None, hypothetical: Legs | None) -> Legs:
    """The legs with what other wordings of the question and a made-up answer found; None if nothing was searched for them."""
    lexical, indirect = legs.lexical, dict(legs.indirect)
    if variants is not None:
        lexical, indirect["variants"] = nearest(lexical, variants.lexical), variants.vector
    if hypothetical is not None:
        indirect["hypothetical"] = hypothetical.vector
    return replace(legs, lexical=lexical, indirect=indirect)


def scored(legs: Legs, query: Query) -> Scored:
    """All candidates of both legs with their fused scores."""
    candidates = _candidates(legs, query)
    words, vectors = leg_scores(legs, query)
    other, language = query.of_another_language, query.language
    scores = {
        id_: (vectors.get(id_, 0.0) + words.get(id_, 0.0)) * (1.0 if one.language == language else other)
        for id_, one in candidates.items()
    }
    if scores and (most := max(scores.values())) > 1:
        scores = {id_: score / most for id_, score in scores.items()}
    boosts = factors(candidates, query)
    if boosts:
        scores = {id_: score * boosts.get(id_, 1.0) for id_, score in scores.items()}
    return Scored(candidates, scores, boosts)


def language_factor(candidate: Candidate, query: Query) -> float:
    """Returns the factor for the score of a candidate because of its language."""
    return 1.0 if candidate.language == query.language else query.of_another_language


def comparable(vector: Sequence[Candidate], query: Query) -> Sequence[Candidate]:
    """The vector leg without what its cosines owe to the language alone."""
    if not query.language_offsets:
        return vector
    nearer = dict(query.language_offsets)
    moved = [one._replace(score=one.score - nearer[one.language]) if one.language in nearer else one for one in vector]
    return best_first(moved)


def in_order(found: Scored) -> list[Candidate]:
    """The candidates, best first."""
    by_id = sorted(found.candidates)
    by_id.sort(key=found.scores.__getitem__, reverse=True)  # equal scores stay in the order of their ids
    return [found.candidates[id_] for id_ in by_id]


def chosen(fused: Scored, query: Query) -> list[Candidate]:
    """The best candidates, best first: at most `query.limit`, at most `query.per_page` of one page, and one page of each
    translation set. Equal scores are ordered by id.
    """
    cuts = with_cuts(one_version(in_order(fused), query), fused, query)
    return list(islice((candidate for candidate, cut in cuts if not cut), query.limit))


def hits(
    candidates: Sequence[Candidate], chunks: Mapping[str, Chunk], fused: Scored, legs: Legs, query: Query
) -> tuple[Hit, ...]:
    """The candidates with their chunks and scores; without those that have no chunk."""
    scored_as = {candidate.id: fused.found_as.get(candidate.id, candidate) for candidate in candidates}
    ids = {candidate.id for candidate in scored_as.values()}
    raw_lexical, raw_vector = (
        {one.id: one.score for one in leg[: query.depth] if one.id in ids} for leg in (legs.lexical, legs.vector)
    )
    return tuple(
        Hit(
            chunks[id_],
            raw_lexical.get(candidate.id),
            raw_vector.get(candidate.id),
            fused.scores[id_],
            fused.boosts.get(candidate.id, 1.0),
            found_in=candidate.language if id_ in fused.found_as else "",
            stretch=legs.nearest.get(id_),
        )
        for id_, candidate in scored_as.items()
        if id_ in chunks
    )


def leg_scores(legs: Legs, query: Query) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Returns the share of the words and of the vectors in the fused scores, by id, before all factors."""
    lexical, vector = _cut(legs, query)
    if query.fusion == "rrf":
        return _rrf(lexical), _sums(_rrf(vector), *(_rrf(leg) for leg in legs.indirect.values()))
    words, vectors, scale = _weights(lexical, vector, query)
    of_units = OF_UNITS * vectors if legs.units else 0.0
    near = _stretched(vector, query, vectors - of_units)
    in_units = _stretched(comparable(legs.units, query), query, of_units)
    return _stretched(lexical, query, words), _sums(
        near, in_units, *_indirect(legs, query, scale * query.vector_weight)
    )


def _indirect(legs: Legs, query: Query, vectors: float) -> Iterator[Mapping[str, float]]:
    """What each further leg adds: the more, the more clearly it decides. The summary of a page counts for all its candidates."""
    for kind, found in legs.indirect.items():
        of_all = {one.url for one in legs.vector} if kind in OF_PAGES else legs.vector
        if len(found) < min(FEWEST_INDIRECT, max(2, len(of_all) // 2)):
            continue
        leg = comparable(found, query)
        weight = OF_INDIRECT * vectors * (1.0 if query.fusion == "fixed" else _distinctness(leg) ** 2)
        scores = _stretched(leg, query, weight)
        if kind in OF_PAGES:
            of_page = {one.url: scores[one.id] for one in leg}
            everywhere = _candidates(legs, query).items()
            scores = {id_: of_page[one.url] for id_, one in everywhere if one.url in of_page}
        yield scores


def _candidates(legs: Legs, query: Query) -> dict[str, Candidate]:
    found = {one.id: one for one in (*legs.vector[: query.depth], *legs.lexical[: query.depth])}
    for leg in legs.indirect.values():
        found |= {one.id: one for one in leg if one.id not in found}
    return found


def _sums(scores: dict[str, float], *more: Mapping[str, float]) -> dict[str, float]:
    for added in more:
        for id_, score in added.items():
            scores[id_] = scores.get(id_, 0.0) + score
    return scores


def leg_weights(legs: Legs, query: Query) -> tuple[float, float]:
    """The weights of both legs for this question: the configured ones, moved towards the leg that decides more clearly."""
    return _weights(*_cut(legs, query), query)[:2]


def _cut(legs: Legs, query: Query) -> tuple[Sequence[Candidate], Sequence[Candidate]]:
    return legs.lexical[: query.depth], comparable(legs.vector[: query.depth], query)


def _weights(lexical: Sequence[Candidate], vector: Sequence[Candidate], query: Query) -> tuple[float, float, float]:
    """The weights of both legs, and the factor that makes their sum that of the configured ones."""
    words, vectors = query.lexical_weight, query.vector_weight
    if query.fusion == "fixed":
        return words, vectors, 1.0
    of_words, of_vectors = (_distinctness(leg) if leg else 0.0 for leg in (lexical, vector))
    there = words * bool(lexical) + vectors * bool(vector)
    scale = there / ((words * of_words + vectors * of_vectors) or 1.0)
    if lexical and vector:
        words, vectors = words * of_words * scale, vectors * of_vectors * scale
    return words, vectors, scale


def _distinctness(leg: Sequence[Candidate]) -> float:
    """Measures how clearly the best page differs from the others: 1 if it stands alone, 1 / sqrt(n) for n equal ones.

    Distances are in standard deviations of the leg, so it's the same for models whose cosines lie between .7 and .9 as for
    those that use the whole range.
    """
    scores = [candidate.score for candidate in leg]
    mean, most = sum(scores) / len(scores), max(scores)
    spread = math.dist(scores, [mean] * len(scores)) / math.sqrt(len(scores)) or 1.0
    best_of_pages = {candidate.url: candidate.score for candidate in reversed(leg)}  # a leg is sorted, best first
    return 1 / math.hypot(*[math.exp((score - most) / spread) for score in best_of_pages.values()])


def _stretched(leg: Sequence[Candidate], query: Query, weight: float) -> dict[str, float]:
    """Scores scaled so that the best candidate in the reader's language has the weight; all have it if all scores are equal.

    If that language has only low scores, others exceed it, so that its preference has less weight, unless the query has its `own_words`.
    """
    own = next((c.score for c in leg if not query.language or c.language == query.language), math.inf)  # best first
    if query.own_words:
        leg = [candidate._replace(score=min(candidate.score, own)) for candidate in leg]
    scores = [candidate.score for candidate in leg]
    low, high = min(scores, default=0.0), max(scores, default=0.0)
    if high == low:
        return {candidate.id: weight for candidate in leg}
    own = min(own, high)
    reach = max(own - low, (high - low) / MOST_SOFTENED)
    return {candidate.id: weight * ((candidate.score - low) / reach) for candidate in leg}


def _rrf(leg: Sequence[Candidate]) -> dict[str, float]:
    """Reciprocal rank fusion, scaled so that the first of both legs has 1 in all. Both legs have the same weight."""
    ranked = enumerate(best_first(leg), start=1)
    return {candidate.id: (RRF_K + 1) / 2 / (RRF_K + rank) for rank, candidate in ranked}


def one_version(order: Sequence[Candidate], query: Query) -> Sequence[Candidate]:
    """The candidates without those of other versions of their page than the one that the query returns."""
    if query.filters.versions:
        return order
    versions_of = {candidate.url: candidate.versions for candidate in order}
    parts = {url: split_version(url) for url in versions_of}
    if len({page for page, _ in parts.values()}) == len(parts):
        return order  # no page exists in two versions
    newest: dict[str, tuple[tuple[bool, int, tuple[int, ...]], str]] = {}
    for url, (page, version) in parts.items():
        key = newness(version, query.versions, versions_of[url])
        if page not in newest or key > newest[page][0]:
            newest[page] = key, version
    return [one for one in order if newest[(of := parts[one.url])[0]][1] == of[1]]


def with_cuts(order: Sequence[Candidate], fused: Scored, query: Query) -> Iterator[tuple[Candidate, LimitCut]]:
    """Each candidate with the limit that keeps it from the hits; empty for a hit."""
    remaining = query.limit
    of_page: dict[str, int] = {}
    shown: dict[str, str] = {}  # the page of each translation set
    for candidate in order:
        translations = fused.sets.get(candidate.url)
        if not language_factor(candidate, query):
            yield candidate, "language"
        elif translations and shown.get(translations.id, candidate.url) != candidate.url:
            yield candidate, "translation"
        elif of_page.get(candidate.url, 0) >= query.per_page:
            yield candidate, "per_page"
        elif not remaining:
            yield candidate, "top_k"
        else:
            remaining -= 1
            of_page[candidate.url] = of_page.get(candidate.url, 0) + 1
            if translations:
                shown[translations.id] = candidate.url
            yield candidate, ""


DAYS_A_YEAR = 365.25
NEAR_THE_READER = 1.1
"""Factor for pages in the section of the site where the reader is; the page itself has it twice."""


def read_address(page: str) -> tuple[str, str]:
    """The site and the path of the page that a reader looks at, in the form that all addresses of a page share."""
    address = urlsplit(page)
    return f"{address.scheme}://{address.netloc}", address.path.removesuffix("/index.html").rstrip("/")


def near_page(page: str) -> tuple[Boost, ...]:
    """Boosts for the page at this address and for the pages beside and below it; none for a page at the top of its site."""
    site, path = read_address(page)
    beside = path.rpartition("/")[0]
    if not path:
        return ()
    own = Boost(NEAR_THE_READER, urls=(f"{site}{path}",), url_prefixes=(f"{site}{path}/",))
    return (own, Boost(NEAR_THE_READER, url_prefixes=(f"{site}{beside}/",)) if beside else own)


def factors(candidates: Mapping[str, Candidate], query: Query) -> Mapping[str, float]:
    """The factors for the fused scores, by id; a missing id means 1."""
    if not query.boosts and query.recency is None:
        return {}
    factors_of = dict.fromkeys(candidates, 1.0)
    for boost in query.boosts:
        for id_, candidate in candidates.items():
            factors_of[id_] *= boost.factor if _fits(boost, candidate) else 1.0
    if query.recency is not None:
        for id_, factor in _recent(candidates, query.recency).items():
            factors_of[id_] *= factor
    return factors_of


def _fits(boost: Boost, candidate: Candidate) -> bool:
    day = candidate.dated[:10]
    if (boost.first or boost.last) and not day:
        return False
    late, early = bool(boost.first) and day < boost.first, bool(boost.last) and day > boost.last
    if late or early:
        return False
    anywhere = not (boost.urls or boost.url_prefixes or boost.collections)
    near = candidate.url in boost.urls or candidate.url.startswith(boost.url_prefixes)
    return anywhere or near or candidate.collection in boost.collections


def _recent(candidates: Mapping[str, Candidate], recency: Recency) -> Mapping[str, float]:
    """Factors by age. A page without a date gets the median of the pages with a date."""
    today = dt.date.fromisoformat(recency.today)
    days = {id_: candidate.dated[:10] for id_, candidate in candidates.items() if candidate.dated}
    if len(set(days.values())) < 2:  # a single day is probably the day of a build, which means nothing
        return {}
    aged = {id_: _aged(today, day, recency) for id_, day in days.items()}
    middle = median(aged.values())
    return {id_: aged.get(id_, middle) for id_ in candidates}


def _aged(today: dt.date, day: str, recency: Recency) -> float:
    years = max(0.0, (today - dt.date.fromisoformat(day)).days / DAYS_A_YEAR)
    return 1 / (1 + recency.loss * min(years, recency.years))


Cut = Literal["", "version", "translation", "language", "per_page", "top_k"]


@dataclass(frozen=True, slots=True)
class Explained:
    """A candidate with its fused score, of which `words` and `vectors` are the parts that both legs add.

    `cut` says why it isn't among the hits; empty if it is. `found_in` is the language of the translation that has the score.
    """

    candidate: Candidate
    fused: float
    words: float
    vectors: float
    language_factor: float
    boost: float
    cut: Cut
    found_in: str = ""


async def explained(generation: Generation, legs: Legs, query: Query) -> list[Explained]:
    """Explains how `rank` gets from these legs to its hits: all candidates, best first."""
    first = scored(legs, query)
    merged = await merge_translations(generation, first, query)
    shares = _shares(leg_scores(legs, query))
    cuts = _cuts(merged, query)

    def one(candidate: Candidate, score: float, cut: Cut) -> Explained:
        shown = merged.found_as.get(candidate.id, candidate) if cut != "translation" else candidate
        words = shares.get(shown.id, 0.0)
        found_in = "" if shown is candidate else shown.language
        boost = merged.boosts.get(shown.id, 1.0)
        return Explained(
            candidate, score, score * words, score * (1 - words), language_factor(shown, query), boost, cut, found_in
        )

    rows = [one(candidate, merged.scores[id_], cuts[id_]) for id_, candidate in merged.candidates.items()]
    others = ((id_, candidate) for id_, candidate in first.candidates.items() if id_ not in cuts)
    rows += [one(candidate, first.scores[id_], "translation") for id_, candidate in others]
    return sorted(rows, key=lambda row: (bool(row.cut), -row.fused, row.candidate.id))


def _shares(scores: tuple[Mapping[str, float], Mapping[str, float]]) -> Mapping[str, float]:
    """The share (0..1) of the words in the score of each candidate."""
    words, vectors = scores
    sums = {id_: words.get(id_, 0.0) + vectors.get(id_, 0.0) for id_ in {**words, **vectors}}
    return {id_: words.get(id_, 0.0) / total if total else float(id_ in words) for id_, total in sums.items()}


def _cuts(merged: Scored, query: Query) -> dict[str, Cut]:
    """The reason why each candidate isn't among the hits, by id; empty for the hits."""
    order = in_order(merged)
    admitted = one_version(order, query)
    cuts: dict[str, Cut] = {candidate.id: "version" for candidate in order}
    cuts |= {candidate.id: cut for candidate, cut in with_cuts(admitted, merged, query)}
    least = min((merged.scores[id_] for id_, cut in cuts.items() if not cut), default=0.0)
    for candidate in admitted:
        if cuts[candidate.id] == "top_k" and _for_its_language(candidate, merged, query, least):
            cuts[candidate.id] = "language"
    return cuts


def _for_its_language(candidate: Candidate, merged: Scored, query: Query, least: float) -> bool:
    """True if the candidate would be among the hits if it were in the language of the question."""
    factor = language_factor(candidate, query)
    return factor < 1 and (not factor or merged.scores[candidate.id] / factor > least)
