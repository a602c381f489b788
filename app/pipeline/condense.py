"""Long passages cut down to what bears on the question, before the answer is written from them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.core.errors import ModelError
from app.core.models.base import Model
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.pipeline.calls import ask_helper
from app.pipeline.step import Changes
from app.pipeline.synthesize import numbered

ROOM = 60_000  # characters that the model is shown
_EXACT = re.compile(r"`[^`\n]+`|\S*\d\S*|https?://\S+")


@dataclass(frozen=True)
class Condense:
    """Asks the language model what of each passage matters; citing goes on with the passages themselves."""

    model: Model
    prompts: Prompts
    settings: Settings
    name = "condense"
    reads = ("question", "language", "hits")
    uses = ("smalltalk",)
    writes = ("condensed",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """A shorter text for each hit, empty where the passage itself stays; nothing where they are short anyway."""
        length = sum(len(hit.chunk.text) for hit in turn.hits)
        if turn.smalltalk or length <= self.settings.condense_over:
            return {}
        system = self.prompts.render(turn.language, "condense", passages=numbered(turn.hits, ROOM))
        messages = [Message("system", system), Message("user", turn.question)]
        longest = self.settings.condense_over // 3  # a third of the characters is about as many tokens
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings, max_tokens=longest)
        said = parse(answer)
        if not said:
            raise ModelError(f"No condensed passages can be read from {answer[:200]!r}: they are used as they are.")
        texts = [said.get(number, "") for number in range(1, len(turn.hits) + 1)]
        return {
            "condensed": tuple(
                text if faithful(text, hit.chunk.text) else "" for text, hit in zip(texts, turn.hits, strict=True)
            )
        }


def parse(answer: str) -> dict[int, str]:
    """The texts after `[1]`, `[2]` at the beginnings of lines, by number."""
    parts = re.split(r"^\s*\**\[(\d+)\]\**[:.]?\s*", answer, flags=re.MULTILINE)
    return {int(number): text.strip() for number, text in zip(parts[1::2], parts[2::2], strict=True) if text.strip()}


def faithful(text: str, passage: str) -> bool:
    """Whether it is shorter, and every number, command and address in it is the passage's own."""
    exact = [found.strip("`.,;:!?()[]\"'„“*") for found in _EXACT.findall(text)]
    return 0 < len(text) < len(passage) and all(one in passage for one in exact)
