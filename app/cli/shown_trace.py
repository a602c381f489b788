"""The trace of an answer as text; `--json` has all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from app.core.trace import Trace, TraceCall, TraceCandidate, TraceFusion, TraceStep
from app.core.turn import Link, Removal

BAR = 40  # characters of the longest bar
LINES = 12  # of a prompt or reply
ROWS = 15  # of the candidates that were dropped


def trace_text(trace: Trace) -> str:
    """What happened, in the order of the answer."""
    return "\n".join(_lines(trace))


def _lines(trace: Trace) -> Iterator[str]:
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
    yield from (f"  {_heading(one.text)}  (chunks {', '.join(one.chunks)})" for one in trace.passages)
    yield f"\nlinks:{'' if trace.links else ' none'}"
    yield from map(_link, trace.links)
    yield f"\nremoved:{'' if trace.removed else ' none'}"
    yield from map(_removal, trace.removed)
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
    kept = [row for row in rows if row.dropped is None]
    dropped = [row for row in rows if row.dropped is not None]
    yield f"\ncandidates: {len(rows)}"
    for row in [*kept, *dropped[:ROWS]]:
        legs = ", ".join(
            f"{name} {place.rank}. ({place.score:g})"
            for name, place in (("words", row.words), ("vectors", row.vectors))
            if place
        )
        place = "  -" if row.place is None or row.dropped else f"{row.place:3}"
        fused = "" if row.fused is None else f", fused {row.fused:g} = {row.words_share:g} + {row.vectors_share:g}"
        reranked = "" if row.rerank is None else f", rerank {row.rerank:g}"
        yield f"  {place} {row.chunk} {row.url}  {legs}{fused}{reranked}"
        if row.dropped:
            yield f"        dropped by {row.dropped.step}: {row.dropped.detail}"
    if len(dropped) > ROWS:
        yield f"    … {len(dropped) - ROWS} more that were dropped (--json shows all)"


def _heading(text: str) -> str:
    return text.partition("\n")[0]


def _link(link: Link) -> str:
    number = "[-]" if link.number is None else f"[{link.number}]"
    passage = "" if link.passage is None else f"passage {link.passage}, "
    section = f", section “{link.section}”" if link.section else ""
    return (
        f"  {number} {link.url}\n"
        f"      {passage}chunk {link.chunk}, score {link.score:.4g}{section}\n"
        f"      why: {link.reason}"
    )


def _removal(removal: Removal) -> str:
    text: Any = json.dumps(removal.text, ensure_ascii=False)
    return f"  {removal.kind}: {text}\n      why: {removal.reason}"
