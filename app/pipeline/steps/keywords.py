"""Asks the model for search keywords in every indexed language, so that a Czech question finds English pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import helper_messages
from app.pipeline.runner import Changes

LONGEST = 400


@dataclass(frozen=True)
class Keywords:
    """Gets keywords from the language model, one line per language."""

    model: Model
    prompts: Prompts
    settings: Settings
    name = "keywords"
    reads = ("question", "language")
    uses = ()
    writes = ("keywords",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """Keywords by language code. Raises `ModelError` if the reply has none."""
        codes = codes_of(turn, self.prompts)
        system = self.prompts.render(
            turn.language,
            "refine_keywords",
            languages=names_of(codes, self.prompts),
            form=form_of(codes),
        )
        messages = helper_messages(system, turn, self.prompts)
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings)
        keywords = parse(answer, codes)
        if not keywords:
            raise ModelError(f"The reply has no keywords: {answer[:200]!r}. Searching for the question alone.")
        return {"keywords": keywords}


def codes_of(turn: Turn, prompts: Prompts) -> list[str]:
    """The languages of the keywords, the question's first."""
    return [turn.language, *(code for code in prompts.languages if code != turn.language)]


def names_of(codes: Sequence[str], prompts: Prompts) -> str:
    """The languages as a prompt names them."""
    return ", ".join(f"{prompts.language(code).name} ({code})" for code in codes)


def form_of(codes: Sequence[str]) -> str:
    """The lines that `parse` reads, as a prompt shows them."""
    return "\n".join(f"{code}: …, …, …" for code in codes)


def parse(answer: str, codes: list[str]) -> dict[str, str]:
    """The keywords in lines like `code: a, b, c`, which models write with list marks, quotes, bold or JSON brackets."""
    found: dict[str, str] = {}
    for line in answer.splitlines():
        match = re.match(r"\W*([a-z]{2,3})\W*[:=]\s*(.+)", line.strip())
        if match and match[1] in codes and match[1] not in found:
            text = re.sub(r"[\[\]{}\"*]", " ", match[2]).strip(" ,;.…")
            if re.search(r"\w", text):
                found[match[1]] = text[:LONGEST]
    return found
