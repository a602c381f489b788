"""The judge of `bench.soak` explains what a fault explains, and nothing else."""

import random
from pathlib import Path

from bench.soak.judge import USUAL_GRACE, Fault, Index, Seen, explained
from bench.soak.report import Measured, table, verdict
from bench.soak.site import anchors_in, evolve, html, read


def test_a_fault_explains_its_own_errors_and_only_around_its_time() -> None:
    fault = Fault("model down", 100.0, 120.0)

    def judged(outcome: str, began: float, ended: float, since: float = -1.0) -> str:
        return explained(Seen("chat", began, ended, outcome, since=since), [fault])

    assert judged("extractive", 110, 111) == judged("extractive", 90, 101) == "model down"
    assert judged("extractive", 120 + USUAL_GRACE - 1, 140) == "model down"
    assert judged("extractive", 120 + USUAL_GRACE + 1, 140) == ""
    assert judged("extractive", 90, 99) == ""
    assert judged("store_unavailable", 110, 111) == judged("500", 110, 111) == ""
    assert explained(Seen("re-index", 110, 111, "exit 1"), [fault]) == ""
    assert explained(Seen("re-index", 110, 111, "exit 1"), [Fault("store killed", 100)]) == "store killed"
    lost = Fault("database killed", 100.0, 110.0)
    assert explained(Seen("feedback", 300, 301, "answer_not_found", since=105), [lost]) == "database killed"
    assert explained(Seen("feedback", 300, 301, "answer_not_found", since=200), [lost]) == ""


def test_a_link_is_judged_by_the_index_of_its_time() -> None:
    first = read(Path(__file__).parents[1] / "docs")
    second = {**first, "/en/new/": first["/en/operate/"]}
    del second["/en/operate/"]
    versions = [first, second]
    served = [{path: (n, anchors_in(html(page, one))) for path, page in one.items()} for n, one in enumerate(versions)]
    index = Index()
    index.ran(Seen("re-index", -10, 0, "exit 0"), served[0], frozenset(first))
    index.ran(Seen("re-index", 90, 100, "exit 3"), {}, frozenset(second))
    assert index.verdict("/en/new/#look", 95, 96, versions) == "missing"
    index.ran(Seen("re-index", 190, 200, "exit 2"), {"/en/new/": served[1]["/en/new/"]}, frozenset(second))
    asked = {
        ("/en/operate/#look", 150): "ok", ("/en/operate/#nothing", 150): "missing", ("/en/new/", 150): "missing",
        ("/en/operate/#look", 195): "ok", ("/en/new/#look", 195): "ok",
        ("/en/operate/#look", 300): "stale", ("/en/new/#look", 300): "ok", ("/en/invented/", 300): "missing",
    }  # fmt: skip
    for (url, at), said in asked.items():
        assert index.verdict(url, at, at + 1, versions) == said, (url, at)


def test_every_link_of_the_site_leads_somewhere_in_every_version() -> None:
    version, random_ = read(Path(__file__).parents[1] / "docs"), random.Random(1)
    for number in range(1, 4):
        version = evolve(version, number, random_)
    pages = {path: html(page, version) for path, page in version.items()}
    links = {link for text in pages.values() for link in text.split('href="')[1:] if link.startswith("/")}
    assert len(links) > 100
    for link in (one.split('"')[0] for one in links):
        path, _, anchor = link.partition("#")
        assert path in pages, link
        assert not anchor or anchor in anchors_in(pages[path]), link


def test_memory_that_grows_after_the_warm_up_is_a_problem_and_its_slope_is_in_the_table() -> None:
    def measured(*megabytes: float) -> Measured:
        samples = [
            {"at": 10.0 * i, "pid": 1, "rss_mb": mb, "descriptors": 40, "threads": 30, "cpu": 0.5}
            for i, mb in enumerate(megabytes)
        ]
        return Measured([], [], [], samples, 3600.0)

    warm = [300.0 + i * 100 / 24 for i in range(24)] + [400.0] * 36
    slow, flat = measured(*warm, *(400 + i / 10 for i in range(300))), measured(*warm, *[410.0] * 300)
    assert verdict(flat) == []
    assert verdict(slow) == ["memory grew from 400 to 428 MB after the warm-up"]
    assert "+36.00 (+8.8%)" in table(slow)
    assert "+0.00 (+0.0%)" in table(flat)
