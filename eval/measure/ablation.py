"""What each step is worth: the steps of one assistant with every box put in, or taken out, one at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.assistants_file import AssistantsFile, AssistantTable
from app.core.errors import SettingsError
from app.pipeline.registry import Tools, flat, lacking, prove_order
from eval.errors import EvaluationError
from eval.measure.grid import Configuration

Steps = tuple[tuple[str, ...], ...]
BASE = "as it is"
BESIDE = ("multi_query", "hyde", "associate")  # they run while the question is embedded
AFTER: Mapping[str, Sequence[tuple[str, ...]]] = {
    "detect": (("period",),),
    "retrieve": (("rerank",), ("rerank", "helpful")),
    "relevance": (("second_search",), ("clarify",), ("condense",)),
}
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "fusion by ranks (rrf)": {"fusion": "rrf"},
    "0.6 vectors, 0.4 words": {"fusion": "weighted", "vector_weight": {"*": 0.6}},
    "exact nearest neighbours": {"exact": True},
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way of steps beside the assistant's own. `boxes` is what differs, `out` that they were taken out of it;
    `needs` says what it can't be measured without, empty where nothing is missing.
    """

    name: str
    steps: Steps
    boxes: tuple[str, ...] = ()
    out: bool = False
    needs: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)


def variants(written: Sequence[str | Sequence[str]], tools: Tools) -> tuple[Variant, ...]:
    """The steps as they are, then without each that can be left out, then with each that isn't among them."""
    base: Steps = tuple((item,) if isinstance(item, str) else tuple(item) for item in written)
    found = [Variant(BASE, base)]
    for steps, boxes, out in (*_without(base), *_with(base)):
        name = f"{'without' if out else 'with'} {' + '.join(boxes)}"
        if _possible(steps):
            found.append(Variant(name, steps, boxes, out, _lacking(boxes, tools)))
    if {"refine", "keywords"} <= set(flat(base)):
        steps = _replaced(base, ("refine", "keywords"), "analyze")
        found.append(
            Variant("analyze for refine and keywords", steps, ("analyze",), needs=_lacking(("analyze",), tools))
        )
    found += [Variant(name, base, settings=settings) for name, settings in SETTINGS.items()]
    return tuple(found)


def _without(base: Steps) -> Iterator[tuple[Steps, tuple[str, ...], bool]]:
    for name in flat(base):
        yield tuple(rest for group in base if (rest := tuple(n for n in group if n != name))), (name,), True


def _with(base: Steps) -> Iterator[tuple[Steps, tuple[str, ...], bool]]:
    present = set(flat(base))
    for box in BESIDE:
        if box not in present:
            yield tuple((*group, box) if "probe" in group else group for group in base), (box,), False
    for before, several in AFTER.items():
        for boxes in several:
            if not present.intersection(boxes):
                yield tuple(part for group in base for part in _followed(group, before, boxes)), boxes, False


def _followed(group: tuple[str, ...], before: str, boxes: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield group
    if before in group:
        yield from ((box,) for box in boxes)


def _replaced(base: Steps, old: tuple[str, ...], new: str) -> Steps:
    return tuple(
        (new, *(n for n in group if n not in old)) if old[0] in group else tuple(n for n in group if n not in old)
        for group in base
    )


def _possible(steps: Steps) -> bool:
    """Whether the order can work; what is missing on this machine is no reason why not."""
    try:
        prove_order(steps)
    except SettingsError:
        return False
    return True


def _lacking(boxes: Sequence[str], tools: Tools) -> str:
    return next((what for box in boxes if (what := lacking(box, tools))), "")


def write_assistants(file: AssistantsFile, entry: AssistantTable, found: Sequence[Variant], path: Path) -> None:
    """The variants as an assistants.toml, each under its name; the first one is the assistant itself."""
    kept = {key: value for key, value in entry.written().items() if key not in {"id", "steps", "persona", "models"}}
    lines = [line for table in file.models for line in _table("model", table.written())]
    lines += [line for table in file.indices for line in _table("index", table.written())]
    for one in found:
        named = {step: name for step, name in entry.models.items() if step in flat(one.steps)}
        models = {"models": named} if named else {}
        lines += _table("assistant", {"id": one.name, **kept, **models, "steps": one.steps})
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"{path} can't be written: {error}") from error


def configurations(found: Sequence[Variant], path: Path) -> list[Configuration]:
    """Those that can be measured, as a grid's."""
    return [Configuration(v.name, {"assistants": str(path), **v.settings}, v.name) for v in found if not v.needs]


def _table(kind: str, table: Mapping[str, Any]) -> list[str]:
    return [f"[[{kind}]]", *(f"{key} = {_value(value)}" for key, value in table.items()), ""]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
