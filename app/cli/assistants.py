"""`docs-assistant assistants`: prints the steps of each assistant and the models that they use."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from app.cli.options import Commands
from app.core.settings import Settings

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant
    from app.pipeline.runner import Step

GROUP_MARKS = ("┌", "│", "└")
KINDS = ("model", "embedder", "reranker", "postprocessor")


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "assistants",
        help="show the steps of each assistant",
        description="Shows the steps of each assistant in order, which of them run in parallel, and which models they use.",
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(handler=assistants)


def assistants(arguments: argparse.Namespace) -> int:
    """Print the assistants. Invalid settings are errors, as when the service starts."""
    settings = Settings.load()
    found = asyncio.run(_described(settings))
    print(
        json.dumps(found, ensure_ascii=False, indent=2) if arguments.json else "\n\n".join(_text(one) for one in found)
    )
    return 0


async def _described(settings: Settings) -> list[dict[str, Any]]:
    from app.assistants.assembly import opened

    async with opened(settings) as made:
        return [_assistant_object(one) for one in made.by_id.values()]


def _assistant_object(one: Assistant) -> dict[str, Any]:
    limits = {name: list(values) for name, values in asdict(one.limits).items() if values}
    return {
        "id": one.id,
        "names": dict(one.names),
        "listed": one.listed,
        "persona": one.persona,
        "index": one.index,
        "limits": {**({"collections": list(one.collections)} if one.collections else {}), **limits},
        "steps": [[_step(step) for step in group] for group in one.plan],
        "left_out": list(one.left_out),
        "warning": one.helper_call_warning,
    }


def _step(step: Step) -> dict[str, Any]:
    asked = {kind: getattr(step, kind, None) for kind in KINDS}
    settings, seconds = getattr(step, "settings", None), getattr(step, "seconds", None)
    if asked["model"] and step.optional and settings:
        seconds = settings.helper_timeout
    return {
        "step": step.name,
        **({"model": None} if hasattr(step, "model") else {}),
        **{kind: tool.name for kind, tool in asked.items() if tool is not None},
        **({} if seconds is None else {"seconds": seconds}),
        "optional": step.optional,
    }


def _text(one: dict[str, Any]) -> str:
    name = next(iter(one["names"].values()), "")
    notes = [name, "" if one["listed"] else "not listed", f"persona {one['persona']}" if one["persona"] else ""]
    lines = [f"{one['id']}  {', '.join(filter(None, notes))}".rstrip()]
    if one["persona"]:
        base = one["id"].removesuffix(f":{one['persona']}")
        return f"{lines[0]}\n  steps as {base}"
    if one["index"]:
        lines.append(f"  index {one['index']}")
    lines += [f"  limited to {kind}: {', '.join(values)}" for kind, values in one["limits"].items()]
    for number, group in enumerate(one["steps"], 1):
        for place, step in enumerate(group):
            last = place == len(group) - 1
            mark = GROUP_MARKS[0 if place == 0 else 2 if last else 1] if len(group) > 1 else " "
            label = f"{number}." if place == 0 else ""
            lines.append(f"  {label:>3} {mark} {step['step']:<13} {_step_notes(step)}".rstrip())
    if one["left_out"]:
        lines.append(f"  left out, no language model: {', '.join(one['left_out'])}")
    if one["warning"]:
        lines.append(f"  WARNING: {one['warning']}")
    return "\n".join(lines)


def _step_notes(step: dict[str, Any]) -> str:
    notes = [step[kind] or "no language model" for kind in KINDS if kind in step]
    if "seconds" in step:
        notes.append(f"{step['seconds']:g} s at most")
    return ", ".join([*notes, *(["may fail"] if step["optional"] else [])])
