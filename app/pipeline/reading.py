"""What the language model reads of the hits: their pages' sections, numbered, within a budget."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.core.errors import StoreError
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.core.types import Passage, PlainText
from app.index.protocols import Generation
from app.pipeline.conversation import earlier
from app.text.growth import grown, heading_line

log = logging.getLogger("app.pipeline")

CHARACTERS_PER_TOKEN = 3  # a low estimate for Czech, so that the passages fit
LONGEST_QUESTION_TOKENS = 2000
LONGEST_STYLE = 2000


async def read_passages(turn: Turn, settings: Settings, prompts: Prompts) -> tuple[Passage, ...]:
    """The passages for the model, grown from the hits; those of an earlier step if there are any.

    If the texts of the pages can't be read, the passages are the chunks.
    """
    return turn.passages or tuple(grown(turn.hits, await _plain_texts(turn), _budget(turn, settings, prompts)))


def as_found(turn: Turn) -> Turn:
    """The turn with the best hit of each passage in the place of the hits, so that both have the same numbers."""
    return replace(turn, hits=tuple(one.hits[0] for one in turn.passages)) if turn.passages else turn


async def _plain_texts(turn: Turn) -> Mapping[str, PlainText]:
    generation: Generation | None = turn.generation
    try:
        urls = list(dict.fromkeys(hit.chunk.url for hit in turn.hits))
        return await generation.plain_texts(urls) if generation else {}
    except StoreError as error:
        log.warning(LogMessage("pages not read, passages are only chunks", id=turn.request.id, error=error))
        return {}


def _budget(turn: Turn, settings: Settings, prompts: Prompts) -> int:
    """How many characters the passages may have."""
    room = room_for_pages(turn, settings, prompts)
    attached, style = client_texts(turn, room)
    return min(settings.passage_tokens * CHARACTERS_PER_TOKEN, room - len(attached) - len(style))


def room_for_pages(turn: Turn, settings: Settings, prompts: Prompts) -> int:
    """How many characters the context window has for passages and for what the client attached."""
    history = earlier(turn.request.messages, prompts) if len(turn.request.messages) > 1 else ()
    return room_in(settings, settings.llm_max_tokens) - sum(len(message.content) for message in history)


def client_texts(turn: Turn, room: int) -> tuple[str, str]:
    """What the client attached, at most half of the room, and its wishes for the style of the answer."""
    return "\n\n".join(turn.request.attached)[: max(room // 2, 0)], turn.request.style[:LONGEST_STYLE]


def room_in(settings: Settings, answer: int) -> int:
    """How many characters of passages fit into the context window, beside a question and an answer of so many tokens."""
    return (settings.llm_context_window - answer - LONGEST_QUESTION_TOKENS) * CHARACTERS_PER_TOKEN


def numbered(passages: Sequence[Passage], condensed: Mapping[str, str] | None = None, first: int = 1) -> str:
    """The passages with their numbers from `first` on, each below its site, page and headings.

    A text of `condensed`, by the id of the chunk, replaces that of the passage.
    """
    texts = (
        f"[{number}] {heading_line(one.chunk)}\n{(condensed or {}).get(one.chunk.id) or _below_title(one)}"
        for number, one in enumerate(passages, start=first)
    )
    return "\n\n".join(texts)


def _below_title(passage: Passage) -> str:
    """The text without the title of its page, which the line above it has."""
    title = f"# {passage.chunk.title}\n"
    return passage.chunk.text.removeprefix(title).lstrip("\n")
