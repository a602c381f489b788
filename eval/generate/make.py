"""Asks the model, saves each finished job, and checks the questions."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.core.errors import ModelError
from app.models.protocols import CallOptions, Model
from app.text.language import LanguageDetector
from eval.cache import Cache, fingerprint
from eval.files import write_json_lines, write_text
from eval.generate.checks import reason_against
from eval.generate.jobs import FOLLOW_UP, UNANSWERABLE, Job
from eval.judge.loop import MalformedError, Pace, json_object
from eval.parallel import Progress, in_parallel
from eval.questions.evidence import words

TEMPERATURE = 0.7
COLUMNS = ("id", "lang", "variant", "question", "doc", "answer", "evidence", "cross")


@dataclass
class Generated:
    """The rows of each kind, the number of rejected rows by reason, and the failed jobs."""

    questions: list[dict[str, Any]] = field(default_factory=list)
    follow_ups: list[dict[str, Any]] = field(default_factory=list)
    unanswerable: list[dict[str, Any]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


async def ask(
    jobs: Sequence[Job], model: Model, cache: Cache, pace: Pace, progress: Progress | None = None
) -> dict[str, str]:
    """The error of each failed job by its key; answers go to the cache, and cached jobs aren't asked again."""
    errors = dict[str, str]()
    options = CallOptions(temperature=TEMPERATURE, max_tokens=4000)

    async def one(_: int, job: Job) -> None:
        if cache.get(job.key) is None:
            try:
                cache.put(job.key, {"rows": await pace.ask(model, job.messages, options, _rows)})
            except (ModelError, MalformedError) as error:
                errors[job.key] = f"{job.doc or 'unanswerable'} {job.language} {job.variant}: {error}"

    await in_parallel(jobs, one, pace.parallel, progress)
    return errors


def _rows(text: str) -> list[Mapping[str, Any]]:
    found = json_object(text).get("questions")
    if not isinstance(found, list):
        raise MalformedError("it sent no list of questions")
    return [row for row in found if isinstance(row, dict)]


def gather(jobs: Iterable[Job], cache: Cache, detector: LanguageDetector) -> Generated:
    """The usable rows of the cached answers, each question once."""
    made, seen = Generated(), set[tuple[str, ...]]()
    for job in jobs:
        kept = cache.get(job.key) or {"rows": []}
        for row in kept["rows"][: job.n]:
            reason = reason_against(job, row, detector)
            asked = tuple(words(str(row.get("standalone") or row.get("question") or "")))
            if not reason and asked in seen:
                reason = "asked before"
            if reason:
                made.refused[reason] += 1
                continue
            seen.add(asked)
            _add(made, job, row)
    return made


def _add(made: Generated, job: Job, row: Mapping[str, Any]) -> None:
    id_ = fingerprint(job.language, job.doc, str(row["question"]))[:12]
    if job.variant == UNANSWERABLE:
        kind = {"id": id_, "lang": job.language, "kind": "near", "question": row["question"]}
        made.unanswerable.append(kind)
    elif job.variant == FOLLOW_UP:
        said = [("user", "first"), ("assistant", "first_answer"), ("user", "question")]
        messages = [{"role": role, "content": row[name]} for role, name in said]
        own = {"id": id_, "lang": job.language, "messages": messages, "standalone": row["standalone"], "doc": job.doc}
        made.follow_ups.append({**own, "answer": row.get("answer", ""), "evidence": row["evidence"]})
    else:
        own = {"id": id_, "lang": job.language, "variant": job.variant, "question": row["question"], "doc": job.doc}
        made.questions.append({**own, "answer": row["answer"], "evidence": row["evidence"], "cross": job.cross})


def write(made: Generated, folder: Path) -> list[Path]:
    """Write the files that have rows, questions as CSV too; their paths. Raises `EvaluationError` if that fails."""
    kinds = {"questions": made.questions, "follow_ups": made.follow_ups, "unanswerable": made.unanswerable}
    written = []
    for name, rows in kinds.items():
        if rows:
            written.append(folder / f"{name}.jsonl")
            write_json_lines(rows, written[-1])
    if made.questions:
        written.append(folder / "questions.csv")
        text = io.StringIO(newline="")
        table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(made.questions)
        write_text(text.getvalue(), written[-1])
    return written
