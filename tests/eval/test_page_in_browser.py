"""The reports in a real Chromium: they ask nobody for anything, say nothing on the console, and fit a narrow window."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from eval.answers.report import answers_page
from eval.answers.result import AnswerResult
from eval.measure.grid import Configuration
from eval.page import grid_page, retrieval_page, write_page
from tests.end_to_end.test_browser import Browser, browser
from tests.eval.test_answers_gate import result as answers
from tests.eval.test_page import result as retrieval

__all__ = ["browser"]
pytestmark = pytest.mark.server


def both() -> AnswerResult:
    return answers(*[1.0, 0.0] * 20, correctness=0.4)


PAGES: dict[str, Callable[[], str]] = {
    "retrieval": lambda: retrieval_page(retrieval(1, 0, 2), retrieval(2, 1, 1)),
    "grid": lambda: grid_page([(Configuration(name, {}), retrieval(1, 2)) for name in ("fusion=rrf", "x=" + "y" * 90)]),
    "answers": lambda: answers_page(both()),
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the base calls it
        """Nothing."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield tmp_path, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("name", PAGES)
def test_a_report_asks_nobody_and_fits(browser: Browser, site: tuple[Path, str], name: str):
    """No request but for itself, no word on the console; a probe says that nothing is wider than a phone's window."""
    folder, origin = site
    write_page(PAGES[name](), folder / "report.html")
    asked = browser.requests(f"{origin}/report.html")
    assert [url for url in asked if url not in {f"{origin}/report.html", f"{origin}/favicon.ico"}] == []
    assert "CONSOLE" not in browser.log
    frame = '<iframe src="report.html" style="width:390px;height:800px;border:0"></iframe>'
    probe = "const d=frames[0].document.documentElement;document.title=d.scrollWidth+' of '+d.clientWidth"
    (folder / "probe.html").write_text(f"<title></title>{frame}<script>onload=()=>{{{probe}}}</script>", "utf-8")
    assert "<title>390 of 390</title>" in browser.run(f"{origin}/probe.html", "--dump-dom")
