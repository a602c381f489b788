"""Variants of one assistant's steps: each optional step added or removed, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.assistants.file import AssistantsFile, AssistantTable
from app.core.errors import SettingsError
from app.pipeline.registry import STEPS, StepFactory, Tools, flat, missing_tool, validate_order
from eval.errors import EvaluationError

Steps = tuple[tuple[str, ...], ...]
UNCHANGED = "as it is"
BESIDE_PROBE = ("period", "multi_query", "hyde", "associate")  # they run while the question is embedded
TOGETHER = (("rerank", "helpful"),)  # the second needs the first


@dataclass(frozen=True, slots=True)
class Variant:
    """One order of steps. `changed` are the added or removed steps; `needs` names what this machine lacks for it."""

    name: str
    steps: Steps
    changed: tuple[str, ...] = ()
    needs: str = ""


def variants(
    written: Sequence[str | Sequence[str]], tools: Tools, known: Mapping[str, StepFactory] = STEPS
) -> tuple[Variant, ...]:
    """The unchanged steps, then without each optional one, then with each that isn't among them. `known` are all steps."""
    base: Steps = tuple((item,) if isinstance(item, str) else tuple(item) for item in written)
    found = [(UNCHANGED, base, ()), *_without(base), *_with(base, known)]
    if {"refine", "keywords"} <= set(flat(base)):
        replaced = tuple(("analyze", *group) if "refine" in group else group for group in base)
        found.append(("analyze for refine and keywords", _drop(replaced, "refine", "keywords"), ("analyze",)))
    if "probe" in flat(base):
        searched = tuple(part for group in base for part in _search_first(group))
        found.append(("first_search for probe", searched, ("first_search",)))
    return tuple(
        Variant(
            name, steps, changed, next((what for step in changed if (what := missing_tool(known[step], tools))), "")
        )
        for name, steps, changed in found
        if _possible(steps, known)
    )


def _search_first(group: tuple[str, ...]) -> Steps:
    others = tuple(step for step in group if step != "probe")
    return tuple(filter(None, (("first_search",), others))) if "probe" in group else (group,)


def _without(base: Steps) -> Iterator[tuple[str, Steps, tuple[str, ...]]]:
    for step in flat(base):
        yield f"without {step}", _drop(base, step), (step,)


def _with(base: Steps, known: Mapping[str, StepFactory]) -> Iterator[tuple[str, Steps, tuple[str, ...]]]:
    present = set(flat(base))
    for step in BESIDE_PROBE:
        if step not in present:
            yield f"with {step}", tuple((*group, step) if "probe" in group else group for group in base), (step,)
    for steps in (*((name,) for name in STEPS if name not in BESIDE_PROBE), *TOGETHER):
        if not present.intersection(steps):
            at = _place(base, steps[0])
            yield f"with {' + '.join(steps)}", (*base[:at], *((step,) for step in steps), *base[at:]), steps
    for step in [
        name for name in known if name not in STEPS and name not in present
    ]:  # from outside: nobody has said where they belong
        places = ((*base[:at], (step,), *base[at:]) for at in range(len(base) + 1))
        if first := next((steps for steps in places if _possible(steps, known)), None):
            yield f"with {step}", first, (step,)


def _place(base: Steps, step: str) -> int:
    """Behind all groups with steps that stand before it in the registry."""
    earlier = set(list(STEPS)[: list(STEPS).index(step)])
    return max((at for at, group in enumerate(base, 1) if earlier.intersection(group)), default=0)


def _drop(base: Steps, *steps: str) -> Steps:
    return tuple(rest for group in base if (rest := tuple(step for step in group if step not in steps)))


def _possible(steps: Steps, known: Mapping[str, StepFactory]) -> bool:
    try:
        validate_order(steps, known)
    except SettingsError:
        return False
    return True


def chosen_assistant(file: AssistantsFile, id_: str) -> AssistantTable:
    """The assistant with this id, the first one for an empty id. Raises `EvaluationError` for an unknown id."""
    entry = next((one for one in file.assistants if not id_ or one.id == id_), None)
    if entry is None:
        raise EvaluationError(
            f"There is no assistant {id_!r}. Available: {', '.join(one.id for one in file.assistants)}."
        )
    return entry


def write_assistants(file: AssistantsFile, entry: AssistantTable, found: Sequence[Variant], path: Path) -> None:
    """Write an assistants.toml with one assistant for each variant, under the variant's name."""
    kept = {key: value for key, value in entry.written().items() if key not in {"id", "steps", "persona", "models"}}
    lines = [line for table in file.models for line in _table("model", table.written())]
    lines += [line for table in file.indices for line in _table("index", table.written())]
    lines += [line for table in file.steps for line in _table("step", table.written())]
    for one in found:
        named = {step: name for step, name in entry.models.items() if step in flat(one.steps)}
        models = {"models": named} if named else {}
        lines += _table("assistant", {"id": one.name, **kept, **models, "steps": one.steps})
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"{path} can't be written: {error}") from error


def _table(kind: str, table: Mapping[str, Any]) -> list[str]:
    return [f"[[{kind}]]", *(f"{key} = {_value(value)}" for key, value in table.items()), ""]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
