"""Understands the question in one call of the model, or asks back where it has several meanings."""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Question, Turn
from app.core.types import Hit
from app.pipeline.calls import braced, unquoted
from app.pipeline.conversation import Asking, ask_about
from app.pipeline.runner import Changes, Declared
from app.pipeline.steps.retrieve import LONGEST_KEYWORDS, LONGEST_QUESTION, codes_of
from app.text.language import LanguageDetector, names_of, without_stopwords
from app.text.language import parse as parse_lines

_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_QUESTION = re.compile(r"^[^\w\n]*+question[^\w\n]*?[:=]\s*(.+)$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Analyze(Asking):
    """Asks the language model for a JSON object with the question and keywords per language."""

    detector: LanguageDetector
    name = "analyze"
    reads = ("asked",)
    uses = ("sure",)
    writes = ("refined", "keywords")

    async def __call__(self, turn: Turn) -> Changes:
        """Returns what can be read of the two; raises `ModelError` when it is nothing."""
        if turn.sure:
            return {}
        codes = codes_of(turn, self.prompts)
        lines = ['  "question": "…"', *(f'  "{code}": ["…", "…", "…"]' for code in codes)]
        form = "{\n" + ",\n".join(lines) + "\n}"
        answer = await ask_about(self, turn, "analyze", languages=names_of(codes, self.prompts), form=form)
        question, keywords = parse(answer, codes)
        if len(question) > max(LONGEST_QUESTION, 2 * len(turn.asked.text)):
            question = ""  # too long for a question
        if not question and not keywords:
            raise ModelError(f"The reply has neither question nor keywords: {answer[:200]!r}; the original is used.")
        refined = Question(question, self.detector.shown(question)) if question else None
        return {"refined": refined, "keywords": keywords}


def parse(answer: str, codes: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The question and the keywords by language of an answer as models give it.

    JSON in a fence or among words, with Python's quotes, trailing commas or keywords one level deeper; where it
    is broken, its lines. What can't be read is empty.
    """
    values = _object(answer)
    if values is None:
        match = _QUESTION.search(answer)
        return (_line(match[1]) if match else ""), parse_lines(answer, codes, LONGEST_KEYWORDS)
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


MOST_WORDS = 3
NEAR = 0.85  # the least share of the best score for another reading
MOST_CHOICES = 3


@dataclass(frozen=True)
class Clarify(Declared):
    """Finds the readings of a short question that the passages support equally; never asks twice in a row."""

    prompts: Prompts
    settings: Settings
    name = "clarify"
    reads = ("asked", "hits")
    uses = ("dates",)
    writes = ("choices",)
    optional = True

    async def __call__(self, turn: Turn) -> Changes:
        """The best hit of each reading; no changes if there is only one."""
        words = without_stopwords(
            turn.dates.topic or turn.asked.text, self.prompts.language(turn.asked.language)
        ).split()
        if turn.asked.referred or len(words) > MOST_WORDS or self._asked_before(turn):
            return {}
        choices = readings(turn.hits)
        return {"choices": choices} if len(choices) > 1 else {}

    def _asked_before(self, turn: Turn) -> bool:
        """True if the last answer was our question back, in any language."""
        answer = next((m.content for m in reversed(turn.request.messages) if m.role == "assistant"), "").strip()
        openings = (
            self.prompts.render(code, "clarify", choices="").split("\n")[0].strip() for code in self.prompts.languages
        )
        return any(answer.startswith(opening) for opening in openings)


def readings(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The best hit of each part of the site that scores nearly as well as the first hit, in their order.

    Pages of one folder are one reading, because they have one subject. Pages in another language than the first hit are
    none, because a translation says the same. If the first hit hasn't the best score, another reason such as its heading
    put it there, and it is the only reading.
    """
    if not hits or hits[0].score < max(hit.score for hit in hits):
        return tuple(hits[:1])
    best: dict[str, Hit] = {}
    for hit in hits:
        near = bool(hits[0].score) and hit.score >= NEAR * hits[0].score
        near = near and hit.chunk.language == hits[0].chunk.language
        titled = all(hit.chunk.title != other.chunk.title for other in best.values())
        if near and titled and hit.chunk.title:
            best.setdefault(_folder(hit.chunk.url), hit)
    return tuple(best.values())[:MOST_CHOICES]


def _folder(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc + parts.path.rstrip("/").rpartition("/")[0]
