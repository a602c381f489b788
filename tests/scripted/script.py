"""The answers of the scripted model: a file of outputs joined with the question set, found by question text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.files import EvaluationError, Required, Row, json_lines, parse_row
from eval.questions.cases import Case

_NO_KEYWORDS = frozenset({"id", "refined"})


class _Output(Row):
    id: Required
    refined: Required


@dataclass(frozen=True, slots=True)
class Line:
    """The answers to one question: its clear wording, and by language code its keywords and a made-up answer."""

    refined: str
    keywords: Mapping[str, tuple[str, ...]]
    imagined: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Script:
    """Answers by question text. Only the text of a question leads to its answers."""

    lines: Mapping[str, Line] = field(repr=False)

    def find(self, message: str) -> Line | None:
        """The answers to the message, or to the last of its lines that is a known question."""
        for text in (message, *reversed(message.splitlines())):
            line = self.lines.get(normal(text))
            if line:
                return line
        return None


def normal(text: str) -> str:
    """A question's text for comparison: single blanks, no quotes around it."""
    return " ".join(text.split()).strip("\"'“”„")


def load_script(outputs: str | Path, cases: Sequence[Case]) -> Script:
    """The outputs (JSONL: id, refined, lists of keywords under language codes) of those cases.

    Raises `EvaluationError` for a wrong line, an id that the cases lack, or two questions of the same text.
    """
    questions = {case.id: normal(case.question) for case in cases}
    lines: dict[str, Line] = {}
    for where, row in json_lines(Path(outputs)):
        output = parse_row(_Output, where, row)
        id_ = output.id
        if id_ not in questions:
            raise EvaluationError(f"{where}: the question set has no id {id_!r}. Do the two files belong together?")
        if questions[id_] in lines:
            raise EvaluationError(f"{where}: there is already a line for {questions[id_]!r}.")
        lines[questions[id_]] = Line(
            refined=output.refined,
            keywords=dict(_keywords(where, row)),
            imagined={key.removeprefix("hyde_"): str(text) for key, text in row.items() if key.startswith("hyde_")},
        )
    if not lines:
        raise EvaluationError(f"{outputs}: it contains no line.")
    return Script(lines)


def _keywords(where: str, row: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for code, words in row.items():
        if code in _NO_KEYWORDS or not re.fullmatch(r"[a-z]{2,3}", code):
            continue
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise EvaluationError(f"{where}: {code!r} is {words!r}, it must be a list of keywords.")
        yield code, tuple(words)
