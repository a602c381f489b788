"""Sections that support an answer: where a statement stands, why a link leads there, and pages to offer when there is none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from app.citing.citations import BRACKET, Citations, inner
from app.citing.links import markdown_link, page_title
from app.core.language import Language
from app.core.turn import Link, Source, Turn
from app.core.types import Chunk, Hit, Section
from app.text.analysis import fold
from app.text.language import without_stopwords

STEM = 5  # letters; endings usually begin after them
FEWEST_WORDS = 2  # single words are often headings
_WORD = re.compile(r"[^\W_]+")
_STEMS = re.compile(rf"([^\W_]{{3,{STEM}}})[^\W_]*")


def stems(text: str) -> set[str]:
    """The first letters of the words, folded; most inflected forms share them."""
    # folding each letter took a tenth of an answer's CPU
    return set(_STEMS.findall(text.casefold() if text.isascii() else fold(text)))


@lru_cache(maxsize=500)  # the passages of a question have 24,000 characters, so this is a few megabytes
def read_section(text: str) -> tuple[str, frozenset[str]]:
    """The text of a section folded, and its stems. Kept, because answers cite the same sections again and again."""
    folded = fold(text)
    return folded, frozenset(_STEMS.findall(folded))


def asked_stems(turn: Turn) -> set[str]:
    """The stems of the question, the refined question and all keywords."""
    keywords = (*turn.keywords.values(), *turn.more_keywords.values())
    return stems(" ".join((turn.referred, turn.question, turn.refined, *keywords)))


def best_section(chunk: Chunk, wanted: Iterable[str]) -> Section | None:
    """The section with most of the wanted stems in heading and text; on a tie the one with most in its heading, then the
    first one.
    """
    if len(chunk.sections) < 2:
        return chunk.sections[0] if chunk.sections else None
    matches = _matches(section_texts(chunk), set(wanted))
    return chunk.sections[matches.index(max(matches))]


def _matches(texts: Iterable[tuple[str, str]], wanted: set[str]) -> list[tuple[int, int]]:
    """Counts the wanted stems of each section in heading and text, and those in its heading."""
    return [
        (len(read_section(f"{heading} {text}")[1] & wanted), len(read_section(heading)[1] & wanted))
        for heading, text in texts
    ]


def section_texts(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """The heading of each section and its text in the chunk."""
    ends = [*(section.offset for section in chunk.sections[1:]), len(chunk.text)]
    for section, end in zip(chunk.sections, ends, strict=True):
        yield " ".join(section.path[-1:]), chunk.text[section.offset : end]


def section_text(chunk: Chunk, section: Section | None) -> str:
    """The text of this section in the chunk, all of it without a section."""
    if section is None:
        return chunk.text
    later = [other.offset for other in chunk.sections if other.offset > section.offset]
    return chunk.text[section.offset : min(later, default=len(chunk.text))]


def section_reason(chunk: Chunk, wanted: Iterable[str]) -> str:
    """The reason why `best_section` chose its section, with the words of the question that are in it."""
    if not chunk.sections:
        return "the passage lies in no section"
    asked, parts = set(wanted), list(section_texts(chunk))
    matches = _matches(parts, asked)
    best = max(matches)
    heading, text = parts[matches.index(best)]
    places = {"heading": _asked_words(heading, asked), "text": _asked_words(text, asked - stems(heading))}
    found_words = "; ".join(f"{place}: {', '.join(words)}" for place, words in places.items() if words)
    if len(parts) == 1:
        chosen = "the passage's only section"
    elif not best[0] or matches.count(best) > 1:
        chosen = f"the first of the passage's sections with most words of question and keywords ({best[0]})"
    else:
        chosen = f"the passage's section with most words of question and keywords ({best[0]})"
    return f"{chosen}; {found_words}" if found_words else chosen


def _asked_words(text: str, asked: set[str]) -> list[str]:
    """One word of the text for each of these stems that it has."""
    words: dict[str, str] = {}
    for match in _WORD.finditer(text):
        for stem in stems(match[0]) & asked:
            words.setdefault(stem, match[0])
    return list(words.values())


def headed_first(hits: Sequence[Hit], question: str, language: Language) -> tuple[Hit, ...]:
    """The hits; first those with a heading or title that is the question word for word, then those that repeat it but for
    function words.

    A question that repeats a heading or a suggested question asks for that section.
    """
    asked = _words(question)
    wanted = stems(without_stopwords(question, language))

    def place(hit: Hit) -> int:
        headings = {hit.chunk.title, *(section.path[-1] for section in hit.chunk.sections if section.path)}
        if len(asked) >= FEWEST_WORDS and any(_words(heading) == asked for heading in headings):
            return 0
        if len(wanted) < FEWEST_WORDS:
            return 2
        near = [heading for heading in headings if stems(heading) >= wanted]  # few match, and the next check takes time
        return 1 if any(stems(without_stopwords(heading, language)) == wanted for heading in near) else 2

    return tuple(sorted(hits, key=place))


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


LONGEST = 500  # characters of a statement
FEWEST_STATED = 3  # fewer before a citation: what it proves comes behind it
EXACT = 2.0  # times the weight of a word: numbers and commands are copied, words are not
_EXACT = re.compile(
    r"\d{1,20}+(?:[.,:]\d{1,20}+){0,6}+|--?[a-z][\w-]{2,60}+|[^\W_]{1,40}+(?:[_./-][^\W_]{1,40}+){1,8}+"
)
_CODE_BELOW = re.compile(
    r"[ \t.:)*_]{0,9}\n{1,3}[ \t]{0,12}(`{3,20}|~{3,20})[^\n]{0,80}\n(.{0,500}?)\n[ \t]{0,12}\1", re.DOTALL
)
_BEHIND = re.compile(r"[^.!?\n\[【]{0,300}")
_LABELLED = re.compile(r"[ \t]{0,9}[:\n]")
_GAP = re.compile(r"[\s,;.)(]*")


@dataclass(frozen=True, slots=True)
class Place:
    """The section that a source leads to, and the words of the statements that it holds; none if it was chosen by the
    question.
    """

    passage: int
    section: Section | None
    words: tuple[str, ...] = ()


@dataclass(slots=True)
class _Votes:
    """Number of statements that a section of a passage holds, and the words by which."""

    count: int = 0
    words: dict[str, None] = field(default_factory=dict)


def places(turn: Turn, citations: Citations, answer: str) -> list[tuple[int, list[Place]]]:
    """For each listed page its number and a place in each of its cited passages, the one with most statements first."""
    said = list(statements(answer, citations)) or [(answer[:LONGEST], range(1, len(citations.pages) + 1))]
    wanted = asked_stems(turn)
    return [(number, _of_page(turn, passages, said, wanted)) for number, passages in citations.listed()]


def statements(answer: str, citations: Citations) -> Iterator[tuple[str, Sequence[int]]]:
    """Yields what the answer says before each citation, with the passages that it cites."""
    at, statement = 0, ""
    for match in BRACKET.finditer(answer):
        passages = citations.numbers(inner(match[0]))
        if not passages:
            continue
        between, at = answer[at : match.start()], match.end()
        if not statement or not _GAP.fullmatch(between):
            statement = between[-LONGEST:]
            if _is_label(statement) and _LABELLED.match(answer, at):
                statement += _until_cited(answer, at, citations)
            elif len(stems(statement)) < FEWEST_STATED and (behind := _BEHIND.match(answer, at)):
                statement += behind[0]
            if code := _CODE_BELOW.match(answer, at):
                statement += f" {code[2]}"
        yield statement, passages


def _is_label(statement: str) -> bool:
    """True when the statement ends with a bold label instead of a sentence: what the citation proves comes behind it."""
    end = statement.rstrip()
    return end.endswith(("**", "__")) and not end.rstrip("*_").endswith((".", "!"))


def _until_cited(answer: str, start: int, citations: Citations) -> str:
    end = min(start + LONGEST, len(answer))
    ends = (match.start() for match in BRACKET.finditer(answer, start, end) if citations.numbers(inner(match[0])))
    return answer[start : next(ends, end)]


def _of_page(
    turn: Turn, passages: Sequence[int], said: Sequence[tuple[str, Sequence[int]]], wanted: set[str]
) -> list[Place]:
    chunks = {passage: turn.hits[passage - 1].chunk for passage in passages}
    options = [(passage, i) for passage, chunk in chunks.items() for i in range(max(len(chunk.sections), 1))]
    votes: dict[tuple[int, int], _Votes] = {}
    if len(options) > 1:
        read = {
            p: [read_section(" ".join(part)) for part in section_texts(chunk)] or [("", frozenset[str]())]
            for p, chunk in chunks.items()
        }
        for statement, cited in said:
            among = [(p, i) for p, i in options if p in cited]
            if among and (best := _best(statement, [read[p][i] for p, i in among])):
                place, words = among[best[0]], best[1]
                vote = votes.setdefault(place, _Votes())
                vote.count += 1
                vote.words |= dict.fromkeys(words)
    counts = Counter({place: vote.count for place, vote in votes.items()})
    ranked = [place for place, _ in counts.most_common()]
    places: dict[int, Place] = {}
    for passage, chunk in chunks.items():
        index = next((i for p, i in ranked if p == passage), None)
        if index is None or len(chunk.sections) < 2:
            places[passage] = Place(passage, best_section(chunk, wanted))
        else:
            places[passage] = Place(passage, chunk.sections[index], tuple(votes[passage, index].words))
    first = [passage for passage, _ in ranked]
    return [places[passage] for passage in dict.fromkeys([*first, *passages])]


def _best(statement: str, sections: Sequence[tuple[str, frozenset[str]]]) -> tuple[int, list[str]] | None:
    """The section that holds most of the statement, and by which words; None if none of them does."""
    folded = fold(statement)
    exact = dict.fromkeys(_EXACT.findall(folded))
    words = sorted(word for word in stems(folded).difference(exact) if not word.isdecimal())
    holders = [(mark, EXACT, [i for i, (text, _) in enumerate(sections) if _holds(text, mark)]) for mark in exact]
    holders += [(word, 1.0, [i for i, (_, own) in enumerate(sections) if word in own]) for word in words]
    scores, words_of = [0.0] * len(sections), [list[str]() for _ in sections]
    for mark, weight, held in holders:
        for i in held:
            scores[i] += weight / len(held)
            words_of[i].append(mark)
    best = max(range(len(sections)), key=lambda i: (scores[i], -i))
    return (best, words_of[best]) if scores[best] else None


def _holds(text: str, mark: str) -> bool:
    if mark not in text:
        return False
    # 16 is not in 160
    return not mark[0].isdecimal() or re.search(rf"(?<![\d.]){re.escape(mark)}(?!\d)", text) is not None


SHOWN = 6  # words of a reason
_UNCITED = "linked as all passages are, since the answer cites none; "
_NO_ANCHOR = "; its anchor isn't known, so the link leads to its page"


def cited_links(turn: Turn, found: Iterable[tuple[Source, Sequence[Place]]], *, cited: bool) -> list[Link]:
    """The links to the sources: one for each cited passage of a page, the one that its link was made of first."""
    links, wanted = [], asked_stems(turn)
    for source, places in found:
        for place in places:
            hit = turn.hits[place.passage - 1]
            reason = "" if cited else _UNCITED
            if place.words:
                words = ", ".join(place.words[:SHOWN])
                reason += f"the passage's section that holds what is cited; words: {words}"
            else:
                reason += section_reason(hit.chunk, wanted)
            if hit.found_in:
                reason += f"; found by the translation of its page in {hit.found_in}"
            if source.section and "#" not in source.url:
                reason += _NO_ANCHOR
            links.append(
                Link(source.number, place.passage, hit.chunk.id, source.url, source.section, reason, hit.score)
            )
    return links


def offered_links(hits: Iterable[Hit], reason: str) -> list[Link]:
    """The links to whole pages that an answer without sources offers, best hits first."""
    return [Link(None, None, hit.chunk.id, hit.chunk.url, "", reason, hit.score) for hit in hits]


MOST = 3
WEAKEST = 0.25  # times the evidence that an answer needs


def related_pages(turn: Turn, hits: Iterable[Hit], language: Language) -> list[Hit]:
    """The first hit of each of up to three pages that have a word of the question in title, address or headings.

    None if the best passage has next to nothing of the question, such as one on the weather.
    """
    # no evidence at all can also mean that a step has put all passages aside
    if turn.evidence and turn.evidence < WEAKEST * turn.evidence_needed:
        return []
    wanted = asked_stems(turn) - stems(" ".join(language.stopwords))
    pages: dict[str, Hit] = {}
    for hit in hits:
        headings = " ".join(section.path[-1] for section in hit.chunk.sections if section.path)
        if not wanted.isdisjoint(stems(f"{hit.chunk.context} {headings}")):
            pages.setdefault(hit.chunk.url, hit)
    return list(pages.values())[:MOST]


def related_list(pages: Iterable[Hit], language: Language) -> str:
    """Markdown of the pages under the heading for related pages; empty without pages."""
    lines = [f"- {markdown_link(page_title(hit.chunk) or hit.chunk.url, hit.chunk.url)}" for hit in pages]
    return f"\n\n{language.related}\n\n" + "\n".join(lines) if lines else ""
