"""The results of runs are kept with the index."""

import contextlib

import pytest

from app.core.errors import AssistantError, IndexDamaged, ModelUnavailable, RunRefused, StoreBusy
from app.core.generation import GenerationInfo, Recipe
from app.index.embedded.store import EmbeddedStore
from app.index.run_history import runs_of
from ingestion.report import PageReport, Report
from ingestion.run import with_result_kept

INFO = GenerationInfo(1, Recipe("e", 8, "s", "a"), "2026-01-02T03:04:05+00:00", ("en",), 1, 1)


async def run(outcome: Report | BaseException) -> Report:
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


async def test_each_end_of_a_run_has_its_result_and_the_file_can_be_replaced(tmp_path):
    store = EmbeddedStore(tmp_path / "index")
    whole = Report(("https://docs.example.org/",), published=INFO)
    partial = Report(whole.sites, [PageReport("https://docs.example.org/a", "failed")], INFO)
    ends = (
        (whole, "published"),
        (partial, "partial"),
        (Report(whole.sites), "unpublished"),
        (RunRefused("too much is missing"), "unpublished"),
        (StoreBusy("another run"), "unpublished"),
        (ModelUnavailable("no vectors"), "failed"),
        (KeyboardInterrupt(), "failed"),
    )
    for done, (end, result) in enumerate(ends, 1):
        raised = contextlib.nullcontext() if isinstance(end, Report) else pytest.raises(type(end))
        with raised:
            await with_result_kept(store, run(end))
        runs = await runs_of(EmbeddedStore(tmp_path / "index"))  # as another process reads it
        assert max(runs.ended, key=lambda name: runs.ended[name]) == result
        assert sum(runs.counts.values()) == done
    assert runs.counts == {"published": 1, "partial": 1, "unpublished": 3, "failed": 2}
    assert [run.errors for run in reversed(runs.last)] == [
        (), ("https://docs.example.org/a: ",), (), ("too much is missing",), ("another run",), ("no vectors",), ("It was interrupted.",),
    ]  # fmt: skip

    for broken in ("{", '{"counts": 1}'):
        (tmp_path / "index" / "runs.json").write_text(broken)
        with pytest.raises(IndexDamaged, match=r"runs\.json"):
            await runs_of(store)
        await with_result_kept(store, run(whole))
        assert (await runs_of(store)).counts == {"published": 1}


async def test_a_result_that_cannot_be_kept_changes_nothing_for_the_run(tmp_path, caplog):
    (tmp_path / "index").write_text("a file")
    report = Report((), published=INFO)
    assert await with_result_kept(EmbeddedStore(tmp_path / "index"), run(report)) is report
    with pytest.raises(AssistantError, match="refused"):
        await with_result_kept(EmbeddedStore(tmp_path / "index"), run(RunRefused("refused")))
    assert caplog.text.count("result of the run not kept") == 2
