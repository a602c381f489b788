"""Headings of pages that readers ask as they are: questions, and tasks. The first questions of an assistant, and what follows an answer."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from app.citing.asked import asked_stems
from app.citing.links import untagged
from app.citing.sections import FEWEST_WORDS
from app.core.language import Language
from app.core.prompts import Prompts
from app.core.turn import Turn
from app.core.types import Chunk, Section
from app.text.analysis import beginnings, fold, words
from app.text.units import blocks_of

FOLLOW_UPS = 3
LONGEST = 80  # characters
TELLING_WORDS = 2  # besides those of any text: with fewer, a heading says little without its page
QUESTION_MARKS = ("?", "\uff1f", "\u061f")  # also those of Chinese, Japanese and Arabic
PUNCTUATION = ":;,()"


class Heading(NamedTuple):
    """A heading with its `rank`, low for what a reader would ask, its words without case, the stems of the telling ones, and
    the address of its section.
    """

    text: str
    rank: tuple[int, int]
    folded: str
    stems: frozenset[str]
    link: str


def headings_of(chunk: Chunk, language: Language) -> Iterator[Heading]:
    """The headings of the chunk and its title that can be asked."""
    tasks = {block.section for block in blocks_of(chunk) if block.kind == "code" or block.is_numbered}
    of_sections: list[tuple[str, bool, Section | None]] = [
        (section.path[-1], number in tasks, section) for number, section in enumerate(chunk.sections) if section.path
    ]
    for text, task, section in (*of_sections, (chunk.title, False, None)):
        fits = len(text.split()) >= FEWEST_WORDS and len(text) <= LONGEST and untagged(text) == text
        unsuggested = language.questions.unsuggested
        if fits and text[0].isalpha() and not unsuggested & set(_words(f"{chunk.title} {text}")):
            rank = _rank(text, task=task, title=text == chunk.title, language=language)
            said = _words(text)
            telling = beginnings(" ".join(word for word in said if word not in language.traits.words))
            yield Heading(text, rank, " ".join(said), telling, chunk.link_to(section))


def _rank(heading: str, *, task: bool, title: bool, language: Language) -> tuple[int, int]:
    """Low for what a reader would ask: questions and tasks, whose sections have steps or code; then titles, then headings,
    and those of several parts ("Models: local ones") and those that begin with a function word ("What it costs") last. Of
    questions and tasks, those that say enough come first.
    """
    first, *rest = _words(heading)
    telling = min(sum(word not in language.traits.words for word in (first, *rest)), TELLING_WORDS)
    asks = heading.endswith(QUESTION_MARKS) or (first in language.questions.question_words and telling > 1)
    in_parts = not set(PUNCTUATION).isdisjoint(heading)
    if asks or (task and first not in language.traits.stopwords and not in_parts):
        return 0, -telling
    if in_parts or first in language.traits.stopwords:
        return 3, 0
    return (1 if title else 2), 0


def _words(text: str) -> list[str]:
    return words(fold(text)) or [""]


@lru_cache(maxsize=2000)  # many questions find the same chunks
def _asked(chunk: Chunk, prompts: Prompts) -> tuple[Heading, ...]:
    """The headings of the chunk that are questions or tasks and say enough."""
    best = 0, -TELLING_WORDS
    headings = headings_of(chunk, prompts.language(chunk.language))
    return tuple(heading for heading in headings if heading.rank == best)


def follow_ups(turn: Turn, prompts: Prompts, cited: Sequence[str]) -> tuple[str, ...]:
    """Up to `FOLLOW_UPS` questions that the sections answer which were found but aren't `cited`, in the language of the answer.

    They are of the page that is cited first, or share a telling word with the question, and say more than it does; none was asked in this
    conversation. No model is asked, and nothing is searched.
    """
    links, asked, said, found = set(cited), asked_stems(turn), beginnings(turn.asked.in_context), dict[str, str]()
    first = cited[0].partition("#")[0] if cited else ""
    hits = [hit for passage in turn.passages for hit in passage.hits] or turn.hits
    for hit in (*hits, *turn.related):
        if hit.chunk.language == turn.asked.language:
            for heading in _asked(hit.chunk, prompts):
                near = hit.chunk.url == first or not asked.isdisjoint(heading.stems)
                if near and heading.link not in links and not said >= heading.stems:
                    found.setdefault(heading.folded, heading.text)
    for message in turn.request.messages:
        if message.role == "user" and len(message.content) <= LONGEST:
            found.pop(" ".join(_words(message.content)), None)
    return tuple(found.values())[:FOLLOW_UPS]
