"""Keeps the result of a run with the index, for the metrics of the service, which is another process."""

from __future__ import annotations

import logging
import time
from collections.abc import Coroutine, Mapping
from typing import Any

from app.core import spans
from app.core.errors import NotPublished, StoreBusy, StoreError
from app.core.log_message import LogMessage
from app.index.protocols import Store
from app.index.run_history import RunResult, SourceRuns, add_run
from ingestion.report import Report

log = logging.getLogger("ingestion")


async def with_result_kept(store: Store, run: Coroutine[Any, Any, Report]) -> Report:
    """The report of the run, whose result is then kept in the store. Raises what the run raises."""
    began = time.monotonic()
    result: RunResult = "failed"
    learned: Mapping[str, SourceRuns] | None = None
    try:
        with spans.span("ingest") as span:
            report = await run
            result, learned = report.result, report.learned
            span.note({"docs_assistant.result": result, "docs_assistant.pages": len(report.pages)})
    except (NotPublished, StoreBusy):
        result = "unpublished"
        raise
    else:
        return report
    finally:
        try:
            await add_run(store, result, time.monotonic() - began, learned)
        except StoreError as error:  # the result matters less than the run, which may have failed for the same reason
            log.warning(LogMessage("result of the run not kept", result=result, error=str(error)))
