"""An answer to a question of a set, and the contestant that gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from eval.questions.cases import Case


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a contestant; `error` says why there is none. `passages` are what the model read; of another assistant,
    what the index has on the pages that it cites and on its words.

    `pages` are those that were found, best first; of another assistant, those that it cites, if they are indexed. Only of
    our own are known: whether the question was `refused` for lack of evidence; the number of `calls` to language models;
    the steps that failed. Tokens include all calls to models, as the models counted them; 0 if they didn't.
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
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


class Contestant(Protocol):
    """Anything that answers questions."""

    @property
    def name(self) -> str:
        """Its name in tables."""
        ...

    @property
    def fingerprint(self) -> str:
        """A fingerprint of everything that its answers depend on, as far as known: with another one, saved answers
        aren't used.
        """
        ...

    async def answer(self, case: Case) -> Answer:
        """The answer; a failure is an answer with an `error`."""
        ...
