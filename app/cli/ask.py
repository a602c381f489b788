"""`docs-assistant ask`: one question, answered in the terminal."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import uuid
from dataclasses import asdict
from typing import Any

from app.cli import logs
from app.cli.types import Commands
from app.core.errors import RequestError
from app.core.settings import Settings
from app.core.turn import Done, Event, Failure, Message, Request, Source, Text


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser("ask", help="ask a question and read the answer as it is written")
    parser.add_argument("question", nargs="*", help="the question; without one it is read from standard input")
    parser.add_argument("--assistant", default="", help="which assistant to ask (default: the first)")
    parser.add_argument("--json", action="store_true", help="the whole answer with its sources as JSON")
    parser.set_defaults(handler=ask)


def ask(arguments: argparse.Namespace) -> int:
    """Answer one question; 1 when the answer broke off."""
    settings = Settings.load()
    logs.configure(settings)
    question = " ".join(arguments.question) or _read_question()
    if not question.strip():
        raise RequestError("No question: write it behind the command, or into standard input.")
    return asyncio.run(_ask(settings, question.strip(), arguments))


def _read_question() -> str:
    if sys.stdin.isatty():
        print("Your question, then Ctrl-D:", file=sys.stderr)
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise RequestError(f"The question on standard input can't be read as text: {error}.") from error


async def _ask(settings: Settings, question: str, arguments: argparse.Namespace) -> int:
    from app.assistant import opened

    request = Request((Message("user", question),), arguments.assistant, uuid.uuid4().hex[:12], whole=arguments.json)
    events: list[Event] = []
    async with opened(settings) as assistants:
        async for event in assistants.get(arguments.assistant).answer(request):
            events.append(event)
            if isinstance(event, Text) and not arguments.json:
                print(event.text, end="", flush=True)
    failure = next((str(event.error) for event in events if isinstance(event, Failure)), None)
    if arguments.json:
        print(json.dumps(_whole(events, failure), ensure_ascii=False, indent=2))
    else:
        print()
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
