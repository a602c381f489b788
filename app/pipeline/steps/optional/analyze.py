"""Refines the question and gets keywords with one call, instead of the two of refine and keywords."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import helper_messages
from app.pipeline.replies import braced, unquoted
from app.pipeline.runner import Changes
from app.pipeline.steps.keywords import LONGEST as LONGEST_KEYWORDS
from app.pipeline.steps.keywords import codes_of
from app.pipeline.steps.refine import LONGEST as LONGEST_QUESTION
from app.text.language import LanguageDetector
from app.text.language_lines import names_of
from app.text.language_lines import parse as parse_lines

_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_QUESTION = re.compile(r"^[^\w\n]*+question[^\w\n]*?[:=]\s*(.+)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Analyze:
    """Asks the language model for a JSON object with the question and keywords per language."""

    model: Model
    prompts: Prompts
    settings: Settings
    detector: LanguageDetector
    name = "analyze"
    reads = ("question", "language")
    uses = ("sure",)
    writes = ("refined", "refined_language", "keywords")
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """What can be read of the two; `ModelError` when it is nothing."""
        if turn.sure:
            return {}
        codes = codes_of(turn, self.prompts)
        lines = ['  "question": "…"', *(f'  "{code}": ["…", "…", "…"]' for code in codes)]
        system = self.prompts.render(
            turn.language,
            "analyze",
            languages=names_of(codes, self.prompts),
            form="{\n" + ",\n".join(lines) + "\n}",
        )
        messages = helper_messages(system, turn, self.prompts)
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings)
        question, keywords = parse(answer, codes)
        if len(question) > max(LONGEST_QUESTION, 2 * len(turn.question)):
            question = ""  # too long for a question
        if not question and not keywords:
            raise ModelError(f"The reply has neither question nor keywords: {answer[:200]!r}; the original is used.")
        return {"refined": question, "refined_language": self.detector.shown(question), "keywords": keywords}


def parse(answer: str, codes: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The question and the keywords by language of an answer as models give it.

    JSON in a fence or among words, with Python's quotes, trailing commas or keywords one level deeper; where it
    is broken, its lines. What can't be read is empty.
    """
    values = _object(answer)
    if values is None:
        found = _QUESTION.search(answer)
        return (_line(found[1]) if found else ""), parse_lines(answer, codes, LONGEST_KEYWORDS)
    if isinstance(deeper := values.get("keywords"), Mapping):
        values = {**deeper, **values}
    asked = values.get("question")
    keywords = {code: text for code in codes if (text := _keywords(values.get(code)))}
    return (_line(asked) if isinstance(asked, str) else ""), keywords


def _object(answer: str) -> Mapping[str, Any] | None:
    for read in (json.loads, ast.literal_eval):
        try:
            values = read(_TRAILING_COMMA.sub("", braced(answer)))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(values, dict):
            return values
    return None


def _line(text: str) -> str:
    question = " ".join(unquoted(text.strip(" \t\n,")).split())
    return question if re.search(r"\w", question) else ""


def _keywords(value: object) -> str:
    words = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    text = ", ".join(" ".join(word.split()) for word in words if isinstance(word, str) and word.strip())
    return text[:LONGEST_KEYWORDS] if re.search(r"\w", text) else ""
