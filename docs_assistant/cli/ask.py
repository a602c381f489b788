"""`docs-assistant ask`: answers one question in the terminal, and shows the trace of the answer as text."""

import re
import sys
import uuid
from dataclasses import asdict, replace

import click

from app.core import logs
from app.core.errors import RequestError
from app.core.settings import Settings
from app.core.trace import Trace
from app.core.turn import Done, Event, Failure, Message, Request, Source, Text
from app.text.blocks import blocks
from app.text.invisible import visible
from docs_assistant.cli.outline import outline
from docs_assistant.cli.shared import json_text

DROPPED = 15  # candidates that are shown although they were dropped
_QUOTATION = re.compile(r"^>.*(?:\n>.*)*", re.MULTILINE)


@click.command
@click.argument("question", nargs=-1, help="the question (default: read from standard input)")
@click.option("--assistant", default="", help="which assistant to ask (default: the first)")
@click.option("--json", "as_json", is_flag=True, help="print the whole answer with its sources as JSON")
@click.option(
    "--trace",
    is_flag=True,
    help="also print times, prompts and replies of each step, all candidates, why each link is there, and what was removed",
)
async def ask(question: tuple[str, ...], assistant: str, as_json: bool, trace: bool) -> int:
    """Answers one question as it is written. The exit code is 1 if the answer broke off."""
    from app.assistants.assembly import opened

    settings = Settings.load()
    logs.configure(settings)
    asked = visible(" ".join(question) or _read_question()).strip()
    if not asked:
        raise RequestError("No question: pass it as an argument or on standard input.")
    request = Request((Message("user", asked),), assistant, uuid.uuid4().hex[:12], whole=as_json, trace=trace)
    events: list[Event] = []
    async with opened(settings, by_meaning=True) as assistants:
        async for event in assistants.get(assistant).answer(request):
            events.append(event)
            if isinstance(event, Text) and not as_json:
                print(pasteable(event.text), end="", flush=True)
    failure = next((str(event.error) for event in events if isinstance(event, Failure)), None)
    record = next((event.trace for event in events if isinstance(event, Done | Failure)), None)
    if as_json:
        whole = {
            "answer": "".join(event.text for event in events if isinstance(event, Text)),
            "sources": [asdict(event) for event in events if isinstance(event, Source)],
            "extractive": any(event.extractive for event in events if isinstance(event, Done)),
            "error": failure,
        }
        print(json_text(whole | ({"trace": asdict(record)} if record else {})))
    else:
        print()
        if record:
            print(trace_text(record), file=sys.stderr, end="")
        if failure:
            print(f"docs-assistant: the answer broke off: {failure}", file=sys.stderr)
    return 1 if failure else 0


def pasteable(text: str) -> str:
    """The text without the signs of a quotation before its code: a shell would take them for redirections."""

    def without(quotation: re.Match[str]) -> str:
        plain = re.sub("^> ?", "", quotation[0], flags=re.MULTILINE)
        lines = ((code, line) for code, piece in blocks(plain) for line in piece.splitlines(keepends=True))
        return "".join(line if code else f"> {line}" for code, line in lines)

    return _QUOTATION.sub(without, text)


def _read_question() -> str:
    if sys.stdin.isatty():
        print("Your question, then Ctrl-D:", file=sys.stderr)
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise RequestError(f"The question on standard input can't be read as text: {error}.") from error


def trace_text(trace: Trace) -> str:
    """The trace as YAML, without what is empty, its searches, and most of the candidates that were dropped."""
    kept = [row for row in trace.candidates if row.dropped is None]
    dropped = [row for row in trace.candidates if row.dropped is not None]
    text = outline(asdict(replace(trace, searches=(), candidates=(*kept, *dropped[:DROPPED]))))
    more = f"# {len(dropped) - DROPPED} more candidates were dropped (--json shows all)\n" if dropped[DROPPED:] else ""
    return f"\n{text}{more}"
