"""Jobs -> rows: the model is asked, its questions are checked, and every finished job is kept."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.core.errors import ModelError, ModelRateLimited
from app.core.language import LanguageDetector
from app.core.models.base import CallOptions, Model
from eval.cache import Cache, fingerprint
from eval.errors import EvaluationError
from eval.generate.checks import reason_against
from eval.generate.jobs import FOLLOW_UP, UNANSWERABLE, Job
from eval.judge.loop import MalformedError, Pace, Progress, json_object
from eval.questions.evidence import words

TRIES = 3
TEMPERATURE = 0.7
COLUMNS = ("id", "lang", "variant", "question", "doc", "answer", "evidence", "cross")


@dataclass
class Made:
    """The rows of each kind, how many were refused and why, and the jobs that failed."""

    questions: list[dict[str, Any]] = field(default_factory=list)
    follow_ups: list[dict[str, Any]] = field(default_factory=list)
    unanswerable: list[dict[str, Any]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


async def ask(
    jobs: Sequence[Job], model: Model, cache: Cache, pace: Pace, progress: Progress | None = None
) -> dict[str, str]:
    """The error of each failed job by its key; answers are in the cache, and what is there isn't asked again."""
    slots, errors, done = asyncio.Semaphore(pace.parallel), dict[str, str](), 0

    async def one(job: Job) -> None:
        nonlocal done
        if cache.get(job.key) is None:
            async with slots:
                await pace.wait()
                try:
                    cache.put(job.key, {"rows": await _asked(job, model, pace)})
                except ModelError as error:
                    errors[job.key] = f"{job.doc or 'unanswerable'} {job.language} {job.variant}: {error}"
        done += 1
        if progress:
            progress(done, len(jobs))

    async with asyncio.TaskGroup() as group:
        for job in jobs:
            group.create_task(one(job))
    return errors


async def _asked(job: Job, model: Model, pace: Pace) -> list[Mapping[str, Any]]:
    error: ModelError = ModelError("not asked")
    for attempt in range(TRIES):
        try:
            options = CallOptions(temperature=TEMPERATURE, max_tokens=4000, timeout=pace.timeout)
            found = json_object((await model.complete(job.messages, options)).text).get("questions")
            if isinstance(found, list):
                return [row for row in found if isinstance(row, dict)]
            error = ModelError("it sent no list of questions")
        except MalformedError as problem:
            error = ModelError(f"it sent {problem}")
        except ModelError as problem:
            error = problem
            told = problem.retry_after if isinstance(problem, ModelRateLimited) else None
            await asyncio.sleep(pace.first_wait * 2**attempt if told is None else told)
    raise error


def gather(jobs: Iterable[Job], cache: Cache, detector: LanguageDetector) -> Made:
    """What of the kept answers can be used, each question once."""
    made, seen = Made(), set[tuple[str, ...]]()
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


def _add(made: Made, job: Job, row: Mapping[str, Any]) -> None:
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


def write(made: Made, folder: Path) -> list[Path]:
    """The files with rows in them; questions as CSV too. Raises `EvaluationError` where they can't be written."""
    kinds = {"questions": made.questions, "follow_ups": made.follow_ups, "unanswerable": made.unanswerable}
    written = []
    try:
        for name, rows in kinds.items():
            if rows:
                path = folder / f"{name}.jsonl"
                text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                path.write_text(text, encoding="utf-8")
                written.append(path)
        if made.questions:
            written.append(folder / "questions.csv")
            with written[-1].open("w", encoding="utf-8", newline="") as file:
                table = csv.DictWriter(file, COLUMNS)
                table.writeheader()
                table.writerows(made.questions)
    except OSError as error:
        raise EvaluationError(f"The set can't be written: {error}") from error
    return written
