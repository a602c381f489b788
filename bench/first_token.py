"""Time to the first text of an answer, against what it can't be less than, by the records of the fake model server.

first_token.py FAKE_LLM: FAKE_LLM is the benchmark's fake_llm.py. Indexes this repository's documentation into a
temporary directory, asks 50 questions one after another for each way of steps, and ends with 1 where the median is
more than 20 ms over: slowest helper + retrieval + the model's own first token + the time of its first 80 characters.
The first way is the shipped plan; a second table has the own time of its steps, without the calls of models.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.settings import Settings
from app.core.trace import TraceStep
from app.core.turn import Done, Message, Request, Text

DOCS = Path(__file__).parents[1] / "docs"
SLACK_MS = 20.0
HELD = 80  # characters
ANSWER = "The documentation says that this is done by a setting, and that the service has to be started again [1]."
KEYWORDS = "en: setting, service, index\ncs: nastavení, služba, index"
ANALYSIS = json.dumps({"question": "How is it set?", "en": ["setting", "service"], "cs": ["nastavení", "služba"]})
RULES = [
    {"match": "one JSON object", "answer": ANALYSIS, "ttft_ms": 90},
    {"match": "one line per language", "answer": KEYWORDS, "ttft_ms": 60},
    {"match": "Rewrite the user", "answer": "How is it set, and where?", "ttft_ms": 50},
    {"match": "Answer the user", "answer": ANSWER, "ttft_ms": 120},
]
WAYS = {
    "refine ‖ keywords": ["refine", "keywords", "probe"],
    "analyze": ["analyze", "probe"],
    "none": ["probe"],
}
THINGS = ["store", "port", "language", "sitemap", "collection", "answer", "index", "timeout", "splitter", "key"]
QUESTIONS = [f"{how} {thing}?" for thing in THINGS for how in (
    "How do I set the", "Which setting changes the", "What is the default of the", "Where is the service told the",
    "Can the service be started with another",
)]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """One answer, in milliseconds."""

    first_text: float
    bound: float
    helpers: int
    overlapping: bool
    embedded: int
    own: Mapping[str, float]  # by step


def call(base: str, path: str, body: object = None) -> Any:
    """What the fake server answers."""
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(base + path, data=data), timeout=10) as response:
        return json.load(response)


async def ask(assistants: Assistants, base: str, question: str) -> Measured:
    """One question with its records."""
    await asyncio.to_thread(call, base, "/reset", {})
    request = Request((Message("user", question),), trace=True)
    started, first, done = time.monotonic(), 0.0, Done()
    async for event in assistants.get("").answer(request):
        if isinstance(event, Text) and not first:
            first = time.monotonic()
        if isinstance(event, Done):
            done = event
    if done.extractive or done.language:
        sys.exit(f"No proper answer to {question!r}: {done}")
    return measured(
        (first - started) * 1000,
        await asyncio.to_thread(call, base, "/records"),
        done.trace.steps if done.trace else (),
    )


def measured(first_text: float, records: Sequence[Mapping[str, Any]], trace: Sequence[TraceStep]) -> Measured:
    """The time against its bound: helpers and the model by the server's clock, retrieval by ours."""
    helpers = [record for record in records if record["path"] == "completions" and not record["stream"]]
    answer = next(record for record in records if record["stream"])
    steps = {step.step: step.end - step.start for step in trace}
    beginning = (answer["tN"] - answer["t1"]) * 1000 * min(1.0, HELD / len(ANSWER))
    slowest = max(((record["tN"] - record["t0"]) * 1000 for record in helpers), default=0.0)
    return Measured(
        own=own_times(trace),
        first_text=first_text,
        bound=slowest + steps["retrieve"] + (answer["t1"] - answer["t0"]) * 1000 + beginning,
        helpers=len(helpers),
        overlapping=not helpers or max(record["t0"] for record in helpers) < min(record["tN"] for record in helpers),
        embedded=sum(record["n"] for record in records if record["path"] == "embeddings"),
    )


def own_times(trace: Sequence[TraceStep]) -> Mapping[str, float]:
    """The milliseconds of each step without its calls; those of cite begin with the end of the model's answer."""
    answered = max((call.end for step in trace for call in step.calls), default=0.0)
    return {
        step.step: step.end - answered
        if step.step == "cite"
        else step.end - step.start - sum(call.end - call.start for call in step.calls)
        for step in trace
    }


async def way(steps: Sequence[str], base: str, directory: Path) -> list[Measured]:
    """All questions by these helper steps."""
    plan = directory / "assistants.toml"
    names = json.dumps(["detect", list(steps), "retrieve", "relevance", "overview", "synthesize", "cite"])
    plan.write_text(f'[[assistant]]\nid = "a"\nsteps = {names}\n', encoding="utf-8")
    settings = Settings.load(None, **connection(base, directory), assistants=str(plan), min_evidence=0.0)
    async with opened(settings) as assistants:
        await ask(assistants, base, "How is the index loaded for the first time?")  # opens files and connections
        return [await ask(assistants, base, question) for question in QUESTIONS]


def connection(base: str, directory: Path) -> dict[str, str]:
    """The settings that index and answer alike."""
    url = f"{base}/v1"
    models = {"llm_url": url, "llm_model": "fake", "embedding_url": url, "embedding_model": "fake-embed"}
    return {"store": str(directory / "index"), **models}


def index(base: str, directory: Path) -> None:
    """This repository's documentation, embedded by the fake server."""
    sources = directory / "sources.toml"
    sources.write_text(f'[[source]]\nurl = "https://docs.example.org/"\ndirectory = {json.dumps(str(DOCS))}\n')
    environment = {f"DOCS_{name.upper()}": value for name, value in connection(base, directory).items()}
    command = [sys.executable, "-m", "app.cli", "ingest", str(sources)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"docs-assistant ingest ended with {done.returncode}: {done.stderr[-500:]}")


def report(name: str, all_measured: Sequence[Measured]) -> bool:
    """Prints a row; false where the median is over its bound, a helper waited, or a question was embedded twice."""
    over = [m.first_text - m.bound for m in all_measured]
    median = statistics.median(over)
    apart = sum(not m.overlapping for m in all_measured)
    embedded = sorted({m.embedded for m in all_measured})
    times = [statistics.median(getattr(m, field) for m in all_measured) for field in ("first_text", "bound")]
    helpers = statistics.median(m.helpers for m in all_measured)
    print(
        f"| {name} | {helpers:.0f} | {times[0]:.0f} | {times[1]:.0f} | {median:+.1f} | {sorted(over)[-3]:+.1f} | "
        f"{apart} | {', '.join(map(str, embedded))} |"
    )
    return median <= SLACK_MS and not apart and embedded == [1]


def report_own_times(all_measured: Sequence[Measured]) -> None:
    """Prints the own time of each step, the median and the 95th percentile."""
    print(f"\n| step | own ms, p50 | own ms, p95 |\n|{'---|' * 3}")
    for step in all_measured[0].own:
        times = sorted(m.own[step] for m in all_measured if step in m.own)
        print(f"| {step} | {statistics.median(times):.1f} | {times[int(0.95 * len(times))]:.1f} |")


def main() -> None:
    """Measure, print the table, and say by the exit code whether it holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fake_llm", type=Path)
    parser.add_argument("--port", type=int, default=8439)
    arguments = parser.parse_args()
    base = f"http://127.0.0.1:{arguments.port}"
    server = subprocess.Popen([sys.executable, arguments.fake_llm, str(arguments.port)], stdout=subprocess.DEVNULL)
    try:
        time.sleep(2)
        call(base, "/control", {"tps": 60, "embed_ms": 15, "rules": RULES})
        with tempfile.TemporaryDirectory() as directory:
            index(base, Path(directory))
            print("| helper steps | calls | first text ms | bound ms | over, p50 | over, p95 | apart | embedded |")
            print(f"|{'---|' * 8}")
            ways = {name: asyncio.run(way(steps, base, Path(directory))) for name, steps in WAYS.items()}
        held = [report(name, found) for name, found in ways.items()]
        report_own_times(next(iter(ways.values())))
    finally:
        server.terminate()
        server.wait()
    sys.exit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
