"""Progress is a bar for people and lines for logs."""

import io

import pytest

from ingestion import progress
from ingestion.progress import BarProgress, LogProgress, Pace, open_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_written_at_both_ends_and_now_and_then() -> None:
    """A log gets no carriage returns; every stage ends with its rate."""
    stream = io.StringIO()
    lines = LogProgress(stream, every=0)
    lines.stage("Pages", 4)
    lines.advance(1, "https://docs.example.org/a")
    lines.advance(3)
    lines.stage("Publishing", 0)
    lines.close()
    written = stream.getvalue().splitlines()
    assert written[0] == "Pages: 4 ..."
    assert written[1].startswith("Pages: 1 of 4 (25 %), ")
    assert written[1].endswith("https://docs.example.org/a")
    assert written[3].startswith("Pages: 4 of 4 (100 %)")
    assert written[-1] == "Publishing ..."


def test_few_lines_for_many_pages() -> None:
    """A thousand pages in a moment don't flood the log."""
    stream = io.StringIO()
    lines = LogProgress(stream)
    lines.stage("Pages", 1000)
    for _ in range(1000):
        lines.advance()
    lines.close()
    assert len(stream.getvalue().splitlines()) == 2


def test_the_time_left_is_of_the_pages_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page waits for the models; taken as the speed, its 26 s would promise 42 minutes for 95 pages."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[-1])
    pace = Pace(95)
    now.append(26.0)
    pace.advance(1)
    assert pace.minutes_left == 0
    now.append(28.0)
    pace.advance(2)
    assert pace.minutes_left == 2  # 92 pages at one a second
    pace.advance(92)
    assert pace.minutes_left == 0


def test_a_terminal_gets_a_bar() -> None:
    """It shows how many of how many, and can be closed at any moment, twice too."""
    stream = Terminal()
    bar = open_progress(stream)
    assert isinstance(bar, BarProgress)
    bar.stage("Reading sitemaps", 0)
    bar.stage("Pages", 3)
    bar.advance(3, "x")
    bar.close()
    bar.close()
    assert "3/3" in stream.getvalue()
    assert isinstance(open_progress(io.StringIO()), LogProgress)
