"""What an operator should look at, each with what to do, from the states of the indexes and the parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from app.api.admin.answer_models import ProblemBody
from app.api.runs.processes import Run
from app.assistants.findings import empty_collections
from app.assistants.health import IndexState, PartState, embedder_mismatch
from app.core.settings import Settings
from app.core.types import Page
from app.index.run_history import RunHistory
from app.models import Embedder

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants

LOOK = "Look at the run in Runs or in the log, mend what it names, and start a run again."
RUN_AGAIN = "Start a run in Runs, or with `docs-assistant ingest`."


@dataclass(frozen=True, slots=True)
class Inspected:
    """An index with its pages and runs; there are no pages if it can't be read."""

    name: str
    embedder: Embedder
    state: IndexState
    pages: Sequence[Page]
    runs: RunHistory
    run: Run | None = None
    """The last one that this process has started; the history lacks those that were killed."""

    @property
    def last_result(self) -> str:
        """The result of the last run; empty without any."""
        return max(self.runs.ended, key=lambda result: self.runs.ended[result], default="")

    @property
    def failure(self) -> str:
        """How the last run failed; empty if it didn't, or if somebody stopped it."""
        run = self.run
        if run and run.ended > max(self.runs.ended.values(), default=0.0):
            if run.state == "failed" and not run.cancelled_by:
                return f"The last run failed: {run.error}"
            return ""
        if self.last_result in ("failed", "unpublished"):
            return f"The last run ended as {self.last_result}."
        return ""


def problems(
    inspected: Sequence[Inspected],
    parts: Mapping[str, PartState | None],
    assistants: Assistants,
    settings: Settings,
) -> list[ProblemBody]:
    """All problems, the most severe first."""
    found = [problem for one in inspected for problem in _of_index(one, settings.languages)]
    found += _of_parts(parts)
    filled = {one.name: {page.collection for page in one.pages} for one in inspected if one.state.info}
    for assistant, names in empty_collections(assistants.by_id.values(), filled).items():
        message = f"The assistant {assistant} answers from {', '.join(names)}, where no page is indexed."
        found.append(
            _problem("empty_collection", "warning", None, message, "Index a site in it, or change assistants.toml.")
        )
    if not assistants.model:
        message = "No language model is set: answers quote the pages."
        found.append(_problem("no_model", "info", None, message, "Set DOCS_LLM_URL and DOCS_LLM_MODEL."))
    return sorted(found, key=lambda one: ("error", "warning", "info").index(one["severity"]))


def _of_index(one: Inspected, languages: Sequence[str]) -> Iterator[ProblemBody]:
    state, name = one.state, one.name
    if one.failure:
        message = f"{one.failure.rstrip('.')}. The index is as it was before."
        yield _problem("run_failed", "warning", name, message, LOOK)
    if state.store_problem:
        yield _problem(
            "store", "error", name, state.store_problem, "Check the store; `docs-assistant check` says more."
        )
    elif state.info is None:
        yield _problem("no_index", "error", name, state.problem, RUN_AGAIN)
        return
    elif mismatch := embedder_mismatch(state.info, one.embedder):
        yield _problem("embedder", "error", name, f"The index was {mismatch}.", "Set that embedder, or index again.")
    elif state.problem:
        yield _problem("too_old", "error", name, state.problem, RUN_AGAIN)
    if failing := sum(1 for page in one.pages if page.stale_since):
        message = f"The last run couldn't read some pages ({failing}): their earlier text is used."
        yield _problem("pages_failing", "warning", name, message, "Look at them in Pages, then repair or remove them.")
    lacking = [code for code in languages if one.pages and code not in {page.language for page in one.pages}]
    if lacking:
        message = f"No page is in {', '.join(lacking)}: such questions are answered from pages in other languages."
        yield _problem(
            "no_pages_in_language",
            "info",
            name,
            message,
            "Index such pages, or remove the language from DOCS_LANGUAGES.",
        )


def _of_parts(parts: Mapping[str, PartState | None]) -> Iterator[ProblemBody]:
    for kind, part in parts.items():
        for one in (part, *part.others) if part else ():
            if one.state == "failing":
                failure = one.last_failure or one.last_probe_failure
                reason = f": {failure.error}" if failure else ""
                to_do = "Check its server and its key. The service tries it again by itself."
                yield _problem(
                    f"{kind}_fails",
                    "warning",
                    None,
                    f"{one.name} has been failing since {one.failing_since}{reason}",
                    to_do,
                )


def _problem(
    code: str, severity: Literal["error", "warning", "info"], index: str | None, message: str, to_do: str
) -> ProblemBody:
    return {"code": code, "severity": severity, "index": index, "message": message, "to_do": to_do}
