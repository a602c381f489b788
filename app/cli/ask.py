"""`docs-assistant ask`: answers one question in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from dataclasses import asdict, replace
from typing import Any

from app.cli import logs
from app.cli.options import Commands
from app.cli.shown_trace import trace_text
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
        help="also print times, prompts and replies of each step, all candidates, why each link is there, and what was removed",
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
    trace = next((event.trace for event in events if isinstance(event, Done | Failure)), None)
    if arguments.json:
        whole = _whole(events, failure) | ({"trace": asdict(trace)} if trace else {})
        print(json.dumps(whole, ensure_ascii=False, indent=2))
    else:
        print()
        if trace:
            print(trace_text(trace), file=sys.stderr)
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
