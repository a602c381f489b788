"""Reports as HTML pages: they ask nobody for anything, hide nothing, break on no text, and fit a narrow window."""

import re
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import lxml.html
import pytest

from eval.answers.score import side_by_side
from eval.measure.result import RETRIEVAL, Result, load_result
from eval.questions.cases import Case
from eval.reports.pages import answers_page, retrieval_page
from tests.end_to_end.test_browser import Browser, browser
from tests.eval.conftest import found
from tests.eval.test_answers_gate import result as answers
from tests.serving import serving

__all__ = ["browser"]
HOSTILE = '<script src="https://evil.example/x.js"></script> & "quotes"'


def result(*ranks: int, question: str = "How big is it?", contestant: str = "") -> Result:
    outcomes = []
    for i, rank in enumerate(ranks):
        case = Case(f"c{i}", "en" if i % 2 else "cs", f"{question} {i}", "doc", str(i % 4 + 1))
        hit = {
            "link": "https://docs.example.org/en/a#b",
            "right": rank == 1,
            "lexical": 3.25,
            "cosine": None,
            "fused": 0.5,
        }
        steps = [
            {"step": "detect", "ms": 0.4, "changes": "language: en", "error": ""},
            {"step": "keywords", "ms": 6000.0, "changes": "", "error": "ModelTimeout: late"},
        ]
        outcomes.append(found(case, rank, contestant, hits=[hit], steps=steps))
    return Result(RETRIEVAL, tuple(outcomes), {"set": "s.jsonl", "index": {"recipe": {"embedder": "e5"}}}, 5)


def test_the_page_asks_for_nothing_from_elsewhere():
    """No script, link, image or import, whatever the questions and titles hold; a policy forbids it as well."""
    html = retrieval_page(result(1, 2, 0, 1, question=HOSTILE), result(1, 1, 1, 1, question=HOSTILE))
    tree = lxml.html.document_fromstring(html)
    assert {"script", "link", "img", "iframe", "object", "use", "image"} & {e.tag for e in tree.iter()} == set()
    assert not any(name in ("src", "href", "srcset", "action") for e in tree.iter() for name in e.attrib)
    assert not re.search(r"@import|url\(", tree.findtext(".//style"))
    assert "default-src 'none'" in tree.xpath("//meta[@http-equiv]/@content")[0]
    assert HOSTILE in tree.text_content()


def test_worst_questions_come_first_with_their_trace(tmp_path: Path):
    """What wasn't found, then what was found late; each with its steps, scores and failures, also of a kept result."""
    result(1, 2, 0, 5).save(tmp_path / "a.json")
    tree = lxml.html.document_fromstring(retrieval_page(load_result(tmp_path / "a.json")))
    shown = [e.text_content() for e in tree.iter("details")]
    assert [re.search(r"\? (\d)", text)[1] for text in shown] == ["2", "3", "1"]
    assert "not among the first 5" in shown[0]
    assert "right page at 5" in shown[1]
    assert "keywords 6000 ms FAILED: ModelTimeout: late" in shown[0]
    assert "3.250" in shown[0]


def test_bars_show_the_difference_to_the_baseline():
    """Each bar says its figure and how far it is from the kept result; the configuration is shown flat."""
    html = retrieval_page(result(1, 1, 1, 1), result(2, 1, 2, 1))
    assert "1.000 (+0.500)" in html
    assert html.count('class="before"') == len(result(1, 1, 1, 1).rows[""])
    assert 'class="before"' not in (alone := retrieval_page(result(1, 1)))
    assert "index.recipe.embedder" in alone


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the base calls it
        """Nothing."""


@pytest.mark.slow
@pytest.mark.server
def test_reports_in_a_browser_ask_nobody_and_fit(browser: Browser, tmp_path: Path):
    """No request but for itself, no word on the console; a probe says that nothing is wider than a phone's window."""
    pages = {
        "retrieval": retrieval_page(result(1, 0, 2), result(2, 1, 1)),
        "answers": answers_page(side_by_side(answers(*[1.0] * 40), answers(*[1.0, 0.0] * 20), ("a" * 80, "b"))),
    }
    frame = '<iframe src="report.html" style="width:390px;height:800px;border:0"></iframe>'
    probe = "const d=frames[0].document.documentElement;document.title=d.scrollWidth+' of '+d.clientWidth"
    (tmp_path / "probe.html").write_text(f"<title></title>{frame}<script>onload=()=>{{{probe}}}</script>", "utf-8")
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))) as origin:
        for name, html in pages.items():
            (tmp_path / "report.html").write_text(html, "utf-8")
            asked = browser.requests(f"{origin}/report.html")
            assert [url for url in asked if url not in {f"{origin}/report.html", f"{origin}/favicon.ico"}] == [], name
            assert "CONSOLE" not in browser.log, name
            assert "<title>390 of 390</title>" in browser.run(f"{origin}/probe.html", "--dump-dom"), name
