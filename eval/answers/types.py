"""An answer to a question of a set, and who gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from eval.questions.cases import Case


@dataclass(frozen=True, slots=True)
class Answer:
    """What a contestant said. `passages` is what it had to go by (empty: not known), `error` why there is no answer.

    Of our own assistants also known: the `pages` that were found, best first, whether `refused` for want of evidence,
    the `calls` to language models, and the steps that failed and were done without. The tokens are of all calls to
    models, as these counted them; 0 where they didn't say.
    """

    contestant: str
    case: str
    text: str = ""
    passages: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    ms: float = 0.0
    extractive: bool = False
    error: str = ""
    pages: tuple[str, ...] = ()
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    refused: bool = False
    failed_steps: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Read and written together."""
        return self.prompt_tokens + self.completion_tokens


class Contestant(Protocol):
    """Somebody who answers questions."""

    @property
    def name(self) -> str:
        """As it is called in tables."""
        ...

    @property
    def made_of(self) -> str:
        """What its answers hang on, as far as is known: kept answers of another one aren't its own."""
        ...

    async def answer(self, case: Case) -> Answer:
        """The answer; failures are an answer with an `error`."""
        ...
