"""Finds the section of each cited passage that holds what the answer says: by its words, numbers and commands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.citing.citations import BRACKET, Citations, inner
from app.citing.sections import asked_stems, best_section, read_section, section_texts, stems
from app.core.turn import Turn
from app.core.types import Section
from app.text.analysis import fold

LONGEST = 500  # characters of a statement
FEWEST_WORDS = 3  # fewer before a citation: what it proves comes behind it
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
    """How many statements a section of a passage holds, and the words by which."""

    count: int = 0
    words: dict[str, None] = field(default_factory=dict)


def places(turn: Turn, citations: Citations, answer: str) -> list[tuple[int, list[Place]]]:
    """For each listed page its number and a place in each of its cited passages, the one with most statements first."""
    said = list(statements(answer, citations)) or [(answer[:LONGEST], range(1, len(citations.pages) + 1))]
    wanted = asked_stems(turn)
    return [(number, _of_page(turn, passages, said, wanted)) for number, passages in citations.listed()]


def statements(answer: str, citations: Citations) -> Iterator[tuple[str, Sequence[int]]]:
    """What the answer says before each citation, with the passages that it cites."""
    at, statement = 0, ""
    for found in BRACKET.finditer(answer):
        passages = citations.numbers(inner(found[0]))
        if not passages:
            continue
        between, at = answer[at : found.start()], found.end()
        if not statement or not _GAP.fullmatch(between):
            statement = between[-LONGEST:]
            if _is_label(statement) and _LABELLED.match(answer, at):
                statement += _until_cited(answer, at, citations)
            elif len(stems(statement)) < FEWEST_WORDS and (behind := _BEHIND.match(answer, at)):
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
    found = (one.start() for one in BRACKET.finditer(answer, start, end) if citations.numbers(inner(one[0])))
    return answer[start : next(found, end)]


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
    made: dict[int, Place] = {}
    for passage, chunk in chunks.items():
        index = next((i for p, i in ranked if p == passage), None)
        if index is None or len(chunk.sections) < 2:
            made[passage] = Place(passage, best_section(chunk, wanted))
        else:
            made[passage] = Place(passage, chunk.sections[index], tuple(votes[passage, index].words))
    first = [passage for passage, _ in ranked]
    return [made[passage] for passage in dict.fromkeys([*first, *passages])]


def _best(statement: str, sections: Sequence[tuple[str, frozenset[str]]]) -> tuple[int, list[str]] | None:
    """The section that holds most of the statement, and by which words; None if none of them does."""
    folded = fold(statement)
    exact = dict.fromkeys(_EXACT.findall(folded))
    words = sorted(word for word in stems(folded).difference(exact) if not word.isdecimal())
    holders = [(mark, EXACT, [i for i, (text, _) in enumerate(sections) if _holds(text, mark)]) for mark in exact]
    holders += [(word, 1.0, [i for i, (_, own) in enumerate(sections) if word in own]) for word in words]
    scores, found = [0.0] * len(sections), [list[str]() for _ in sections]
    for mark, weight, held in holders:
        for i in held:
            scores[i] += weight / len(held)
            found[i].append(mark)
    best = max(range(len(sections)), key=lambda i: (scores[i], -i))
    return (best, found[best]) if scores[best] else None


def _holds(text: str, mark: str) -> bool:
    if mark not in text:
        return False
    # 16 is not in 160
    return not mark[0].isdecimal() or re.search(rf"(?<![\d.]){re.escape(mark)}(?!\d)", text) is not None
