"""Validates the order of steps by what each declares to read and write.

A step that writes a field without reading it makes the field; a step that does both revises it. Steps that revise a field
come after all that make it; steps that only read it come after all that write it. So what a step reads is final.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.core.errors import SettingsError
from app.pipeline.runner import StepDeclaration

Groups = Sequence[Sequence[StepDeclaration]]
GIVEN = frozenset({"request", "generation"})
ANSWER = "events"


def validate(groups: Groups, known: Mapping[str, StepDeclaration]) -> None:
    """Raises `SettingsError` if a step is named twice, writes the same field as another step of its group, reads a field
    that is missing or not final, or writes only fields that no step reads, or if no step writes an answer. `known` has
    all existing steps by name.
    """
    _validate_once([step.name for group in groups for step in group])
    written = set(GIVEN)
    for index, group in enumerate(groups):
        _validate_apart(group)
        for step in group:
            _validate_inputs(step, written, known)
            _validate_final(step, [other for after in groups[index:] for other in after if other is not step])
        written |= {field for step in group for field in step.writes}
    if ANSWER not in written:
        raise SettingsError("These steps write no answer: synthesize is missing.")
    for index, group in enumerate(groups):
        for step in group:
            _validate_read(step, groups[index + 1 :])


def _validate_once(names: Sequence[str]) -> None:
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SettingsError(f"Step {twice} is named twice: remove one of them.")


def _validate_apart(group: Sequence[StepDeclaration]) -> None:
    fields = [field for step in group for field in step.writes]
    if twice := {field for field in fields if fields.count(field) > 1}:
        both = ", ".join(step.name for step in group if twice & set(step.writes))
        raise SettingsError(
            f"Steps {both} write {', '.join(sorted(twice))} at the same time: put one after the other, or remove one."
        )


def _validate_inputs(step: StepDeclaration, written: set[str], known: Mapping[str, StepDeclaration]) -> None:
    if lacking := [field for field in step.reads if field not in written]:
        writer = next((other.name for other in known.values() if lacking[0] in _made(other)), "a step that does")
        raise SettingsError(
            f"Step {step.name} needs {', '.join(lacking)}, which no earlier step writes: put {writer} before it."
        )


def _validate_final(step: StepDeclaration, later: Sequence[StepDeclaration]) -> None:
    """`later` includes the other steps of its group."""
    for field in (*step.reads, *step.uses):
        changing = (_made(other) if field in step.writes else other.writes for other in later)
        if after := next((other for other, fields in zip(later, changing, strict=True) if field in fields), None):
            raise SettingsError(f"Step {step.name} uses {field}, so it must come after {after.name}.")


def _validate_read(step: StepDeclaration, later: Groups) -> None:
    if not any(field == ANSWER or _is_read(field, later) for field in step.writes):
        raise SettingsError(
            f"Step {step.name} has no effect: no step reads its {', '.join(step.writes)}{_overwritten(step, later)}. Remove it."
        )


def _is_read(field: str, later: Groups) -> bool:
    """Whether a later step reads the field before another overwrites it."""
    for group in later:
        if any(field in (*step.reads, *step.uses) for step in group):
            return True
        if any(field in step.writes for step in group):
            return False
    return False


def _overwritten(step: StepDeclaration, later: Groups) -> str:
    anew = next((other.name for group in later for other in group if set(step.writes) & set(other.writes)), "")
    return f" before {anew} overwrites it" if anew else ""


def _made(step: StepDeclaration) -> frozenset[str]:
    return frozenset(step.writes).difference(step.reads, step.uses)
