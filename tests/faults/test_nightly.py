"""A site of 1,000 pages night after night, on both stores: nothing changed costs nothing, a change costs its chunks."""

from ingestion.report import EXIT_OK, OUTCOMES, Report
from tests.faults.rig import Rig

PAGES = 1000
CHANGED = range(5, PAGES, 100)
PARAGRAPHS = 3


def _write(rig: Rig, number: int, marker: str) -> None:
    """A page of some chunks, the second of which has the marker."""
    said = [f"Part {n} of gauge {number} measures the pressure of boiler {n}. " * 4 for n in range(PARAGRAPHS)]
    said[1] += marker
    body = "".join(f"<h2 id=s{n}>Part {n}</h2><p>{paragraph}</p>" for n, paragraph in enumerate(said))
    rig.site.put(f"/gauge-{number}", f"<html lang=en><title>Gauge {number}</title><main><h1>Gauge</h1>{body}</main>")


def _counts(report: Report) -> dict[str, int]:
    return {outcome: report.counts[outcome] for outcome in OUTCOMES if report.counts[outcome]}


async def test_a_night_costs_what_changed(rig: Rig):
    """Counted at the embedder and at the store: calls and texts, operations and files."""
    rig.pages = PAGES
    for number in range(PAGES):
        _write(rig, number, "state1")
    rig.list_pages(PAGES)
    large = {"embedding_batch": 500, "embedding_parallel": 2, "chunk_size": 300, "crawl_parallel": 8}

    first = await rig.run(**large)
    assert (_counts(first), first.exit_code) == ({"new": PAGES}, EXIT_OK)
    assert first.published is not None
    assert first.published.chunks >= PAGES * PARAGRAPHS
    written, before = rig.place.writes(), first.published
    rig.llm.embedded.clear()
    rig.site.log.clear()

    second = await rig.run(**large)
    assert _counts(second) == {"unchanged": PAGES}
    assert [status for path, status, _ in rig.site.log if "gauge" in path] == [304] * PAGES
    assert rig.llm.embedded == []
    assert rig.place.writes() == written
    assert second.published == before

    for number in CHANGED:
        _write(rig, number, "state2")
    rig.llm.embedded.clear()
    third = await rig.run(**large)
    assert _counts(third) == {"changed": len(CHANGED), "unchanged": PAGES - len(CHANGED)}
    (embedded,) = rig.llm.embedded
    assert len(embedded) == len(CHANGED)
    assert all("state2" in text for text in embedded)
    assert third.published is not None
    assert third.published.chunks == before.chunks
    assert rig.place.left_over() == []
