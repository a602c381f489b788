"""The report tells people what became of every page, and programs by its exit code."""

import json

from app.core.generation import GenerationInfo, Recipe
from ingestion.report import EXIT_NOT_PUBLISHED, EXIT_OK, EXIT_WITH_FAILURES, PageReport, Report

INFO = GenerationInfo(3, Recipe("fake", 64, "markdown-1/1500", "a"), "2025-11-01T10:00:00+00:00", ("cs", "en"), 2, 9)


def test_exit_codes() -> None:
    """0 is well, 1 not published, 2 published with failures; what rules keep out is no failure."""
    assert Report(("s",)).exit_code == EXIT_NOT_PUBLISHED == 1
    assert Report(("s",), [PageReport("u", "skipped", "robots")], INFO).exit_code == EXIT_OK == 0
    assert Report(("s",), [PageReport("u", "failed", "500")], INFO).exit_code == EXIT_WITH_FAILURES == 2


def test_the_text_has_counts_then_what_needs_a_look() -> None:
    """Long lists are cut in the text and whole in the JSON."""
    pages = [PageReport(f"u{n}", "failed", "answered 500", kept=n == 0) for n in range(30)]
    pages += [PageReport("n", "new", language="cs", note="the text is cs, html lang says en", chunks=4)]
    pages += [PageReport(f"o{n}", "skipped", "its language", language="fr", other_language=True) for n in range(4)]
    report = Report(("s",), pages, INFO, 2, 4, seconds=1.25, changed=True, configured=("cs", "en"))
    lines = report.text.split("\n")
    assert lines[0] == "1 new, 4 skipped, 30 failed; 1.2 s, 4 texts embedded in 2 calls"
    assert lines[1] == "The index holds 2 pages, 9 chunks (cs, en)."
    assert lines[2] == "Languages: 1 cs."
    assert lines[3].startswith("Pages in languages that aren't configured: 4 fr. They aren't indexed.")
    assert 'DOCS_LANGUAGES="cs en fr"' in lines[3]
    assert lines[lines.index("Not indexed, in fr (4):") + 1 :][:3] == ["  o0", "  o1", "  o2"]
    assert lines[4:6] == ["Failed (30):", "  u0: answered 500 (older state kept)"]
    assert "  ... and 10 more (all are in the JSON report)" in lines
    assert lines[-2:] == ["Language to check (1):", "  n: the text is cs, html lang says en"]
    content = json.loads(report.to_json())
    assert len(content["pages"]) == 35
    assert content["counts"] == {"new": 1, "changed": 0, "unchanged": 0, "removed": 0, "skipped": 4, "failed": 30}
    assert (content["languages"], content["other_languages"]) == ({"cs": 1}, {"fr": 4})
    assert content["published"]["recipe"]["embedder"] == "fake"


def test_a_run_that_changed_nothing_says_so() -> None:
    """Without a generation the first lines say that the index is as it was."""
    assert "Nothing was published" in Report(("s",)).text
