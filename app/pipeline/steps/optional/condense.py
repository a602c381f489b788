"""Condenses long passages to what matters for the question, before the answer is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.core.types import Passage
from app.models.protocols import Model
from app.pipeline.calls import call_helper
from app.pipeline.conversation import standalone
from app.pipeline.reading import CHARACTERS_PER_TOKEN, numbered, read_passages, room_in
from app.pipeline.runner import Changes
from app.text.literals import addresses, code_lines, code_spans, occurs, spaced, without_code

TOKENS_A_SECOND = 100  # of a model: a longer text would exceed the time limit of helpers
_MARK = re.compile(r"\s*\**\[(\d+)\]\**[:.]?\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
# with the next word, which may be a unit
CONDENSE_OVER = 6000
"""Passages are condensed if they have more characters than this, all together."""
_WITH_DIGIT = re.compile(r"(?<!\S)[^\s\d]*+\d\S*+(?: [^\W\d_]++(?!\d))?")
_AROUND = "`.,;:!?()[]{}\"'„“”*|"


@dataclass(frozen=True)
class Condense:
    """Asks the model to condense the longest passages; citations still use the passages themselves."""

    model: Model
    prompts: Prompts
    settings: Settings
    name = "condense"
    reads = ("question", "language", "hits", "generation")
    uses = ("referred", "refined", "refined_language", "passages")
    writes = ("passages", "condensed")
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """Shorter texts by the ids of their chunks; no changes if all passages are short."""
        tokens = min(int(self.settings.helper_timeout * TOKENS_A_SECOND), self.settings.llm_max_tokens)
        most = tokens * CHARACTERS_PER_TOKEN
        passages = await read_passages(turn, self.settings, self.prompts)
        long = whole(too_long(passages, CONDENSE_OVER, most), room_in(self.settings, tokens))
        if not long:
            return {"passages": passages}
        system = self.prompts.render(turn.language, "condense", passages=numbered(long), most=str(most))
        messages = [Message("system", system), Message("user", standalone(turn))]
        answer = await call_helper(
            self.name,
            lambda options: self.model.complete(messages, options),
            turn,
            self.settings,
            max_tokens=tokens,
        )
        texts = parse(answer.text, cut=answer.finish_reason == "length")
        if not texts:
            raise ModelError(
                f"The reply has no condensed passages: {answer.text[:200]!r}. The passages are used unchanged."
            )
        return {
            "passages": passages,
            "condensed": {
                passage.chunk.id: text
                for number, passage in enumerate(long, start=1)
                if faithful(text := texts.get(number, ""), passage.chunk.text)
            },
        }


def too_long(passages: Sequence[Passage], over: int, most: int) -> tuple[Passage, ...]:
    """The fewest of the longest passages that must shrink to `most` characters together to leave `over` characters at most.

    None if the passages aren't longer than that.
    """
    left = sum(map(_length, passages))
    chosen: list[Passage] = []
    for passage in sorted(passages, key=_length, reverse=True) if left > over else ():
        chosen.append(passage)
        left -= _length(passage)
        if left + most <= over:
            break
    return tuple(passage for passage in passages if passage in chosen)


def whole(passages: Sequence[Passage], room: int) -> tuple[Passage, ...]:
    """The passages that fit into `room` characters as a whole; the model can't condense one that is cut."""
    chosen = []
    for passage in passages:
        if _length(passage) <= room:
            chosen.append(passage)
            room -= _length(passage)
    return tuple(chosen)


def _length(passage: Passage) -> int:
    return len(numbered((passage,))) + len("[10]\n")


def parse(answer: str, *, cut: bool = False) -> dict[int, str]:
    """The texts after `[1]`, `[2]` at the start of lines outside fenced code, by number.

    Leaves out numbers that occur twice, because either could be right, and texts without an end.
    """
    texts: dict[int, list[str]] = {}
    wrong: set[int] = set()
    number, fence = 0, ""
    for line in answer.splitlines():
        rest = line
        if not fence and (mark := _MARK.match(line)):
            number, rest = int(mark[1]), line[mark.end() :]
            wrong |= {number} & texts.keys()
            texts[number] = []
        if found := _FENCE.match(rest):
            fence = "" if found[1] == fence else fence or found[1]
        if number:
            texts[number].append(rest)
    wrong |= {number} if fence or cut else set()
    return {n: text for n, lines in texts.items() if n not in wrong and (text := "\n".join(lines).strip())}


def faithful(text: str, passage: str) -> bool:
    """Whether the text is shorter, and the passage has all its numbers with units, commands, code lines and addresses."""
    if not 0 < len(text) < len(passage):
        return False
    if not set(addresses(text)) <= set(addresses(passage)):
        return False
    source, lines = spaced(passage), set(map(spaced, passage.splitlines()))
    if not all(spaced(line) in lines for line in code_lines(text)):
        return False
    # a part of a command may do something else than the whole
    code, prose = lines | set(map(spaced, code_spans(passage))), spaced(without_code(passage))
    if not all(spaced(span) in code or occurs(spaced(span), prose) for span in code_spans(text)):
        return False
    numbers = (found.strip(_AROUND) for found in _WITH_DIGIT.findall(spaced(text)))
    return all(occurs(number, source) for number in numbers if number)
