"""What a run of answers is compared with: the shipped prompts, a directory of prompts, a saved result, or an assistant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.assistants.assistant import Assistants
from app.core.prompt_files import differing, files_in_force, own_files
from app.core.prompts import load_prompts
from app.core.settings import Settings
from eval.answers.result import load_answers
from eval.answers.types import Answer
from eval.errors import EvaluationError
from eval.grid.configurations import Configuration
from eval.questions.cases import Case

SHIPPED = "shipped"
FORMS = (
    f"`{SHIPPED}` (the shipped prompts), a directory of prompts, a saved result (answers.json of `eval run`, or its directory),"
    " or one of the assistants"
)


@dataclass(frozen=True)
class Against:
    """The other side of a comparison: a configuration to ask, or answers that were saved before.

    `note` says in which prompts the two sides differ, or how many questions have no saved answer.
    """

    name: str
    configuration: Configuration | None = None
    saved: tuple[Answer, ...] = ()
    note: str = ""


def against(text: str, own: Configuration, base: Settings, assistants: Assistants, cases: Sequence[Case]) -> Against:
    """What --against names. `own` is compared with it; `base` are the settings without --prompts.

    Raises `EvaluationError` if there is no such thing, or if both sides are the same; `PromptError` for wrong prompts.
    """
    path = Path(text)
    if path.is_file() or path.joinpath("answers.json").is_file():
        return _saved(text, path, cases)
    prompts = str(own.settings.get("prompts", base.prompts))
    if text in assistants.by_id:
        other = Configuration(text, {"prompts": base.prompts}, text)
    elif text == SHIPPED or (path.is_dir() and own_files(text)):
        other = Configuration(text, {"prompts": "" if text == SHIPPED else text}, own.assistant)
    else:
        raise EvaluationError(
            f"--against {text}: there is no such thing. It takes {FORMS}: {', '.join(assistants.by_id)}."
        )
    load_prompts(base.languages, other.settings["prompts"])  # a wrong file is an error before the first question
    files = differing(files_in_force(prompts), files_in_force(other.settings["prompts"]))
    if not files and other.assistant == own.assistant:
        raise EvaluationError(f"--against {text}: it has the same prompts, so there is nothing to compare.")
    name = text if text != own.name else f"{text} as set"
    return Against(name, replace(other, name=name), note=f"Prompts that differ: {', '.join(files) or 'none'}.")


def _saved(text: str, path: Path, cases: Sequence[Case]) -> Against:
    """The answers of the first contestant to the questions that are asked now."""
    result = load_answers(path if path.is_file() else path / "answers.json")
    asked = {case.id: case for case in cases}
    own = result.of(result.contestants[0]).scored
    kept = [one for one in own if one.case.id in asked and not one.answer.error]
    other = [
        one.case
        for one in kept
        if (one.case.messages, one.case.doc) != (asked[one.case.id].messages, asked[one.case.id].doc)
    ]
    if other:
        raise EvaluationError(
            f"--against {text}: {len(other)} questions had other content then, for example {other[0].id!r}."
        )
    if not kept:
        raise EvaluationError(f"--against {text}: it has no answer to any of these questions.")
    missing = len(cases) - len(kept)
    note = f"{missing} of {len(cases)} questions have no answer in {text}." if missing else ""
    return Against(text, saved=tuple(replace(one.answer, contestant=text) for one in kept), note=note)
