"""The proof that steps can work in their order, from what each declares to read and to write.

A field is made by the steps that write it without reading it, revised by those that do both, and read by the others. Who
revises it comes after all that make it, and who only reads it after all that write it: what a step reads is final.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from app.core.errors import SettingsError
from app.pipeline.runner import Declared

Groups = Sequence[Sequence[Declared]]
GIVEN = frozenset({"request", "generation"})
ANSWER = "events"


def prove(groups: Groups, known: Mapping[str, Declared]) -> None:
    """Raises `SettingsError` for a step that stands twice, writes what another of its group writes, lacks what it reads,
    reads what isn't final, or writes what nobody reads, and for steps that end without an answer. `known` are all steps
    that there are, by name.
    """
    _prove_once([step.name for group in groups for step in group])
    written = set(GIVEN)
    for index, group in enumerate(groups):
        _prove_apart(group)
        for step in group:
            _prove_inputs(step, written, known)
            _prove_final(step, [other for after in groups[index:] for other in after if other is not step])
        written |= {field for step in group for field in step.writes}
    if ANSWER not in written:
        raise SettingsError("These steps give no answer: synthesize is missing.")
    for index, group in enumerate(groups):
        for step in group:
            _prove_read(step, groups[index + 1 :])


def _prove_once(names: Sequence[str]) -> None:
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SettingsError(f"Step {twice} stands twice among the steps: leave one of them out.")


def _prove_apart(group: Sequence[Declared]) -> None:
    fields = [field for step in group for field in step.writes]
    if twice := {field for field in fields if fields.count(field) > 1}:
        both = ", ".join(step.name for step in group if twice & set(step.writes))
        raise SettingsError(
            f"Steps {both} write {', '.join(sorted(twice))} at the same time: put one after the other, or leave one out."
        )


def _prove_inputs(step: Declared, written: set[str], known: Mapping[str, Declared]) -> None:
    if lacking := [field for field in step.reads if field not in written]:
        giver = next(other.name for other in known.values() if lacking[0] in _made(other))
        raise SettingsError(
            f"Step {step.name} needs {', '.join(lacking)}, which no step before it gives: put {giver} before it."
        )


def _prove_final(step: Declared, later: Sequence[Declared]) -> None:
    """`later` are the other steps of its group, too."""
    for field in (*step.reads, *step.uses):
        changing = (_made(other) if field in step.writes else other.writes for other in later)
        if after := next((other for other, fields in zip(later, changing, strict=True) if field in fields), None):
            raise SettingsError(f"Step {step.name} uses {field}, so it must come after {after.name}.")


def _prove_read(step: Declared, later: Groups) -> None:
    if not any(field == ANSWER or _is_read(field, later) for field in step.writes):
        raise SettingsError(
            f"Step {step.name} is in vain: no step reads its {', '.join(step.writes)}{_again(step, later)}. Leave it out."
        )


def _is_read(field: str, later: Groups) -> bool:
    """Whether somebody reads it before it is made anew."""
    for group in later:
        if any(field in (*step.reads, *step.uses) for step in group):
            return True
        if any(field in step.writes for step in group):
            return False
    return False


def _again(step: Declared, later: Groups) -> str:
    anew = next((other.name for group in later for other in group if set(step.writes) & set(other.writes)), "")
    return f" before {anew} writes that anew" if anew else ""


def _made(step: Declared) -> frozenset[str]:
    return frozenset(step.writes).difference(step.reads, step.uses)
