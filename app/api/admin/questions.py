"""POST /v1/admin/questions adds a question to the question set that `docs-assistant eval` reads; GET /v1/admin/prompts."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from urllib.parse import urldefrag

from starlette.requests import Request
from starlette.responses import Response

from app.api.admin.answer_models import PromptList, QuestionObject
from app.api.bodies import JsonResponse
from app.api.request_models import QuestionRequest
from app.api.runs.route import NO_STORE
from app.api.service import Service
from app.core.errors import QuestionSetError, RequestError, quoted
from app.core.prompt_files import shipped_files

ANSWERABLE = "questions.jsonl"
UNANSWERABLE = "unanswerable.jsonl"
"""`docs-assistant eval` has both kinds in files of their own."""


@dataclass(frozen=True)
class QuestionSet:
    """The files with the added questions, in one directory."""

    directory: Path

    def add(self, row: Mapping[str, Any]) -> str:
        """Add the row to the file of its kind, whose name is returned. A reader sees the old file or the new one.

        Raises `RequestError` with the code `question_exists` if a file has the question, and `QuestionSetError` if one
        can't be read or written.
        """
        name = ANSWERABLE if "doc" in row else UNANSWERABLE
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with self._locked():
                for file in (ANSWERABLE, UNANSWERABLE):
                    self._refuse_known(row, file)
                self._append(row, self.directory / name)
        except (OSError, ValueError) as error:
            raise QuestionSetError(f"The question set in {self.directory} can't be changed: {error}") from error
        return name

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.directory / "questions.lock").open("w") as lock:  # closing it releases the lock
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _refuse_known(self, row: Mapping[str, Any], file: str) -> None:
        path = self.directory / file
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        known = {_key(json.loads(line)) for line in lines if line.strip()}
        if _key(row) in known:
            raise RequestError(f"{file} has this question already.", param="question", code="question_exists")

    def _append(self, row: Mapping[str, Any], path: Path) -> None:
        before = path.read_bytes() if path.exists() else b""
        if before and not before.endswith(b"\n"):
            before += b"\n"
        with NamedTemporaryFile(dir=self.directory, prefix=".questions-", delete=False) as new:
            try:
                new.write(before + json.dumps(row, ensure_ascii=False).encode() + b"\n")
                new.flush()
                os.fsync(new.fileno())
                Path(new.name).chmod(0o644)
                Path(new.name).replace(path)
            except BaseException:
                Path(new.name).unlink(missing_ok=True)
                raise


def _key(row: Mapping[str, Any]) -> tuple[str, str]:
    return str(row.get("lang", "")), " ".join(str(row.get("question", "")).casefold().split())


@dataclass(frozen=True)
class Questions:
    """The handlers of the routes; all require an admin key."""

    service: Service

    async def add(self, request: Request) -> Response:
        """201 with the row that was added, and the file that has it."""
        self.service.check_admin(request, "Questions can't be added")
        asked = await self.service.read(request, QuestionRequest)
        row = await self._row(request, asked)
        file = await asyncio.to_thread(QuestionSet(Path(self.service.settings.question_sets)).add, row)
        body: QuestionObject = {"object": "question", "file": file, "row": row}
        return JsonResponse(body, 201, NO_STORE)

    async def _row(self, request: Request, asked: QuestionRequest) -> dict[str, Any]:
        """The row as `eval.questions.cases` reads it. Raises `RequestError` for a page that isn't indexed."""
        question = asked.question.strip()
        language = self.service.reader_language(request, asked.language)
        if not question:
            raise RequestError("question: it is blank.", param="question")
        row = {"id": hashlib.sha256(question.encode()).hexdigest()[:12], "lang": language, "question": question}
        if not asked.answerable:
            if asked.pages:
                raise RequestError("pages: a question without an answer has no pages.", param="pages")
            return row
        if not asked.pages:
            raise RequestError(
                "pages: name the page that answers the question, or send answerable: false.", param="pages"
            )
        live = await self.service.assistants.get(asked.model).store.live()
        for at, url in enumerate(asked.pages):
            if await live.page(urldefrag(url).url) is None:
                raise RequestError(f"pages[{at}]: {quoted(url)} isn't an indexed page.", param=f"pages[{at}]")
        first, *others = dict.fromkeys(asked.pages)
        optional = {"also": others, "answer": asked.answer, "evidence": asked.evidence}
        return row | {"doc": first} | {name: value for name, value in optional.items() if value}

    async def prompts(self, request: Request) -> Response:
        """The prompts in force, which `overrides` of a chat request can replace."""
        self.service.check_admin(request, "Prompts can't be read")
        shipped = shipped_files()
        files = self.service.assistants.prompts.files
        body: PromptList = {
            "object": "list",
            "data": [
                {
                    "object": "prompt",
                    "file": file,
                    "text": text,
                    "changed": text.strip() != shipped.get(file, "").strip(),
                }
                for file, text in sorted(files.items())
            ],
        }
        return JsonResponse(body, headers=NO_STORE)
