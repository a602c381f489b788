"""Which of a chunk's sections a reader should be sent to, and whether one is headed by what was asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from app.core.prompts import Language
from app.core.turn import Turn
from app.core.types import Chunk, Hit, Section
from app.text.analysis import fold
from app.text.language import without_stopwords

STEM = 5  # letters: endings change after about as many
FEWEST_STEMS = 2  # a single word is a heading here and there
_STEMS = re.compile(rf"([^\W_]{{3,{STEM}}})[^\W_]*")


def stems(text: str) -> set[str]:
    """The first letters of the text's words, folded: what survives inflection."""
    # letter by letter, as other texts must be, folding was a tenth of an answer's CPU
    return set(_STEMS.findall(text.casefold() if text.isascii() else fold(text)))


def asked_stems(turn: Turn) -> set[str]:
    """The stems of the question and of all that was searched in its place."""
    keywords = (*turn.keywords.values(), *turn.more_keywords.values())
    return stems(" ".join((turn.referred, turn.question, turn.refined, *keywords)))


def best_section(chunk: Chunk, wanted: Iterable[str]) -> Section | None:
    """The section that has most of the wanted stems, its heading counted with its text; the first one on a tie."""
    if len(chunk.sections) < 2:
        return chunk.sections[0] if chunk.sections else None
    ends = [*(section.offset for section in chunk.sections[1:]), len(chunk.text)]
    stems_wanted = set(wanted)

    def score(index: int) -> tuple[int, int]:
        section = chunk.sections[index]
        text = " ".join(section.path[-1:]) + " " + chunk.text[section.offset : ends[index]]
        return len(stems(text) & stems_wanted), -index

    return chunk.sections[max(range(len(chunk.sections)), key=score)]


def headed_first(hits: Sequence[Hit], question: str, language: Language) -> tuple[Hit, ...]:
    """The hits, those first that have the question for a heading or title, in its very words but for function words.

    Who takes a question from a list of contents, or repeats a suggested one, wants that section.
    """
    wanted = stems(without_stopwords(question, language))

    def is_headed(hit: Hit) -> bool:
        headings = {hit.chunk.title, *(section.path[-1] for section in hit.chunk.sections if section.path)}
        near = [heading for heading in headings if stems(heading) >= wanted]  # few are, and the rest takes time
        return any(stems(without_stopwords(heading, language)) == wanted for heading in near)

    return tuple(sorted(hits, key=lambda hit: not is_headed(hit))) if len(wanted) >= FEWEST_STEMS else tuple(hits)
