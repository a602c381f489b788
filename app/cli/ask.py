"""`docs-assistant ask`: answers one question in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from app.cli import logs
from app.cli.options import Commands
from app.core.errors import RequestError
from app.core.settings import Settings
from app.core.turn import Done, Event, Failure, Message, Request, Source, Text


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser("ask", help="ask a question and read the answer as it is written")
    parser.add_argument("question", nargs="*", help="the question (default: read from standard input)")
    parser.add_argument("--assistant", default="", help="which assistant to ask (default: the first)")
    parser.add_argument("--json", action="store_true", help="print the whole answer with its sources as JSON")
    parser.add_argument(
        "--trace",
        action="store_true",
        help="also print input, output and time of each step, why each link is there, and what was removed",
    )
    parser.set_defaults(handler=ask)


def ask(arguments: argparse.Namespace) -> int:
    """Answer one question. Returns 1 if the answer broke off."""
    settings = Settings.load()
    logs.configure(settings)
    question = " ".join(arguments.question) or _read_question()
    if not question.strip():
        raise RequestError("No question: pass it as an argument or on standard input.")
    return asyncio.run(_ask(settings, question.strip(), arguments))


def _read_question() -> str:
    if sys.stdin.isatty():
        print("Your question, then Ctrl-D:", file=sys.stderr)
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise RequestError(f"The question on standard input can't be read as text: {error}.") from error


async def _ask(settings: Settings, question: str, arguments: argparse.Namespace) -> int:
    from app.assistants.assembly import opened

    request = Request((Message("user", question),), arguments.assistant, uuid.uuid4().hex[:12])
    request = replace(request, whole=arguments.json, trace=arguments.trace)
    events: list[Event] = []
    async with opened(settings) as assistants:
        async for event in assistants.get(arguments.assistant).answer(request):
            events.append(event)
            if isinstance(event, Text) and not arguments.json:
                print(event.text, end="", flush=True)
    failure = next((str(event.error) for event in events if isinstance(event, Failure)), None)
    steps = [step for event in events if isinstance(event, Done | Failure) for step in event.trace]
    if arguments.json:
        whole = _whole(events, failure) | ({"trace": steps} if arguments.trace else {})
        print(json.dumps(whole, ensure_ascii=False, indent=2))
    else:
        print()
        for step in steps:
            print(_step_text(step), file=sys.stderr)
        if failure:
            print(f"docs-assistant: the answer broke off: {failure}", file=sys.stderr)
    return 1 if failure else 0


def _whole(events: list[Event], failure: str | None) -> dict[str, Any]:
    return {
        "answer": "".join(event.text for event in events if isinstance(event, Text)),
        "sources": [asdict(event) for event in events if isinstance(event, Source)],
        "extractive": any(event.extractive for event in events if isinstance(event, Done)),
        "error": failure,
    }


def _step_text(step: Mapping[str, Any]) -> str:
    """One step of the trace as text."""
    tokens = f", {step['prompt_tokens']} + {step['completion_tokens']} tokens" if step["calls"] else ""
    first = f", first text after {step['first_text_ms']} ms" if step.get("first_text_ms") else ""
    lines = [f"\n{step['step']}: {step['ms']} ms, {step['calls']} calls{tokens}{first}"]
    lines += [f"  error: {step['error']}"] if step["error"] else []
    lines += [f"  reads {', '.join(step['input'])}"] if step["input"] else []
    for key, value in step["output"].items():
        if key in _ENTRIES:
            lines += [f"  {key}:{'' if value else ' none'}", *(_ENTRIES[key](entry) for entry in value)]
            continue
        lines += [f"  {key}: {line}" for line in _lines(value)]
    return "\n".join(lines)


def _link(link: Mapping[str, Any]) -> str:
    number = "[-]" if link["number"] is None else f"[{link['number']}]"
    passage = "" if link["passage"] is None else f"passage {link['passage']}, "
    section = f", section “{link['section']}”" if link["section"] else ""
    return (
        f"    {number} {link['url']}\n"
        f"        {passage}chunk {link['chunk']}, score {link['score']}{section}\n"
        f"        why: {link['reason']}"
    )


def _removal(removal: Mapping[str, Any]) -> str:
    return f"    {removal['kind']}: {json.dumps(removal['text'], ensure_ascii=False)}\n        why: {removal['reason']}"


_ENTRIES = {"links": _link, "removed": _removal}


def _lines(value: object) -> list[str]:
    """The value as JSON on one line; a list of objects has one line per object."""
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        return [json.dumps(item, ensure_ascii=False) for item in value]
    if isinstance(value, Mapping) and any(isinstance(item, list) for item in value.values()):
        return [f"{key} {line}" for key, item in value.items() for line in _lines(item)]
    return [json.dumps(value, ensure_ascii=False)]
