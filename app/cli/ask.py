"""`docs-assistant ask`: answers one question in the terminal, and shows the trace of the answer as text."""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict

import click

from app.cli.shared import json_text
from app.core import logs
from app.core.errors import RequestError
from app.core.settings import Settings
from app.core.trace import Trace, TraceCall, TraceCandidate, TraceFusion, TraceStep
from app.core.turn import Done, Event, Failure, Link, Message, Request, Source, Text

BAR = 40  # characters of the longest bar
LINES = 12  # of a prompt or reply
ROWS = 15  # of the candidates that were dropped


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
    asked = (" ".join(question) or _read_question()).strip()
    if not asked:
        raise RequestError("No question: pass it as an argument or on standard input.")
    request = Request((Message("user", asked),), assistant, uuid.uuid4().hex[:12], whole=as_json, trace=trace)
    events: list[Event] = []
    async with opened(settings) as assistants:
        async for event in assistants.get(assistant).answer(request):
            events.append(event)
            if isinstance(event, Text) and not as_json:
                print(event.text, end="", flush=True)
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
            print("\n".join(_trace_lines(record)), file=sys.stderr)
        if failure:
            print(f"docs-assistant: the answer broke off: {failure}", file=sys.stderr)
    return 1 if failure else 0


def _read_question() -> str:
    if sys.stdin.isatty():
        print("Your question, then Ctrl-D:", file=sys.stderr)
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise RequestError(f"The question on standard input can't be read as text: {error}.") from error


def _trace_lines(trace: Trace) -> Iterator[str]:
    """Yields lines about what happened, in the order of the answer; --json has all of it."""
    first = f", first text after {trace.first_text:g} ms" if trace.first_text is not None else ""
    yield f"\nTrace: {trace.ms:g} ms{first}, language {trace.language}, generation {trace.generation}"
    for step in trace.steps:
        yield from _step(step, trace.ms)
    if trace.fusion:
        yield f"\nfusion: {_fusion(trace.fusion)}"
    yield from _candidates(trace.candidates)
    if trace.evidence:
        judged = "enough" if trace.evidence.enough else "too little"
        yield f"\nevidence: {trace.evidence.found:g} of {trace.evidence.needed:g} needed: {judged}"
    yield f"\npassages for the model:{'' if trace.passages else ' none'}"
    for passage in trace.passages:
        yield f"  {(passage.text.splitlines() or [''])[0]}  (chunks {', '.join(passage.chunks)})"
    yield f"\nlinks:{'' if trace.links else ' none'}"
    yield from map(_link, trace.links)
    yield f"\nremoved:{'' if trace.removed else ' none'}"
    for removal in trace.removed:
        yield f"  {removal.kind}: {json.dumps(removal.text, ensure_ascii=False)}\n      why: {removal.reason}"
    if trace.problem:
        yield f"\nnot in this trace: {trace.problem}"


def _step(step: TraceStep, whole: float) -> Iterator[str]:
    scale = BAR / (whole or 1.0)
    before = round(step.start * scale)
    bar = " " * before + "█" * max(1, round(step.end * scale) - before)
    yield f"\n{step.step}: {step.start:g} to {step.end:g} ms  {bar}"
    if step.error:
        yield f"  error: {step.error}"
    for call in step.calls:
        yield from _call(call)
    for key, value in step.output.items():
        if key not in {"legs", "hits", "passages", "search", "variants", "hypothetical"}:  # shown below
            yield f"  {key}: {json.dumps(value, ensure_ascii=False)}"


def _call(call: TraceCall) -> Iterator[str]:
    tokens = f", {call.prompt_tokens} + {call.completion_tokens} tokens" if call.kind == "chat" else ""
    yield f"  {call.kind} {call.model}: {call.start:g} to {call.end:g} ms{tokens}"
    if call.error:
        yield f"    error: {call.error}"
    for message in call.messages:
        yield from _text(f"to {message.role}", message.content)
    if call.kind == "chat":
        yield from _text("reply", call.reply)


def _text(name: str, text: str) -> Iterator[str]:
    lines = text.splitlines() or [""]
    yield f"    {name}:"
    yield from (f"      | {line}" for line in lines[:LINES])
    if len(lines) > LINES:
        yield f"      … {len(lines) - LINES} more lines (--json shows all)"


def _fusion(fusion: TraceFusion) -> str:
    filters: Mapping[str, Sequence[str]] = fusion.filters
    limits = "".join(f", {name} = {' '.join(values)}" for name, values in filters.items())
    return (
        f"{fusion.fusion}, words {fusion.words_weight_used:g} + vectors {fusion.vector_weight_used:g}"
        f" (configured {fusion.words_weight:g} + {fusion.vector_weight:g}), other language ×{fusion.other_language:g},"
        f" top_k {fusion.top_k}, per_page {fusion.per_page}{limits}"
    )


def _candidates(rows: Sequence[TraceCandidate]) -> Iterator[str]:
    dropped = [row for row in rows if row.dropped is not None]
    yield f"\ncandidates: {len(rows)}"
    for row in [*(row for row in rows if row.dropped is None), *dropped[:ROWS]]:
        sides = (("words", row.words), ("vectors", row.vectors))
        legs = ", ".join(f"{name} {place.rank}. ({place.score:g})" for name, place in sides if place)
        place = "  -" if row.place is None or row.dropped else f"{row.place:3}"
        fused = "" if row.fused is None else f", fused {row.fused:g} = {row.words_share:g} + {row.vectors_share:g}"
        reranked = "" if row.rerank is None else f", rerank {row.rerank:g}"
        yield f"  {place} {row.chunk} {row.url}  {legs}{fused}{reranked}"
        if row.dropped:
            yield f"        dropped by {row.dropped.step}: {row.dropped.detail}"
    if len(dropped) > ROWS:
        yield f"    … {len(dropped) - ROWS} more that were dropped (--json shows all)"


def _link(link: Link) -> str:
    number = "[-]" if link.number is None else f"[{link.number}]"
    passage = "" if link.passage is None else f"passage {link.passage}, "
    section = f", section “{link.section}”" if link.section else ""
    return (
        f"  {number} {link.url}\n"
        f"      {passage}chunk {link.chunk}, score {link.score:.4g}{section}\n"
        f"      why: {link.reason}"
    )
