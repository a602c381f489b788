"""GET /figures: what everybody may know of a service, in both databases."""

import re
from pathlib import Path

import lxml.html
from pydantic import TypeAdapter

from app.conversations.database import Database, url_of
from app.conversations.evaluations import keep_evaluation
from app.conversations.queries import QuestionLog
from app.conversations.records import Evaluation, Found, KeptAnswer
from app.conversations.store import DAY, ConversationStore
from app.core.shares import share
from app.routes.figures import FiguresBody
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of

NOW = 20_000 * DAY
SHOWN: dict[str, object] = {"tuning": {"figures": True}}
MEASURES = {name: {"mean": 0.8, "low": 0.7, "high": 0.9} for name in ("hit_1", "hit", "rr")}


async def kept(database: str) -> ConversationStore:
    """A store with 20 answers of 1 to 20 s, four of them refused and two marked, and an evaluation."""
    own = Database(url_of(database, Path()))
    store = ConversationStore(own, 30, question_log=QuestionLog(), clock=lambda: float(NOW))
    for n in range(1, 21):
        outcome = "refused" if n <= 4 else "marked" if n <= 6 else "written"
        about = {"language": "en", "assistant": "docs-assistant", "found": Found(ms=1000 * n), "outcome": outcome}
        await store.keep(KeptAnswer(f"a{n}", "me", f"Is zebra {n} secret?", "Zebra.", NOW - n * DAY / 2, **about))
    figures = {"k": 5, "rows": [{"language": "mean", "variant": "all", "cross": False, "n": 80, "measures": MEASURES}]}
    for age, n in ((2, 10), (1, 80)):
        one = Evaluation(kind="eval retrieval", created=float(NOW - age * DAY), n=n, figures=figures)
        own.write(keep_evaluation, one)
    return store


async def test_everybody_sees_figures_with_dates_and_intervals_but_no_question(database: str, tmp_path: Path):
    """Also where asking needs a key; the page is in the language of the reader, and JSON for programs."""
    store = await kept(database)
    keys = {"api_keys": "reader-key-of-tests", **SHOWN}
    async with indexed(tmp_path, conversations=store, **keys) as service, client_of(service.app) as client:
        response = await client.get("/figures.json")
        found = TypeAdapter(FiguresBody).validate_json(response.content, extra="forbid")
        assert found["site"] is not None
        assert (found["site"]["pages"], found["site"]["read"].share) == (2, 1)
        answers = found["answers"]
        assert answers is not None
        assert (answers["questions"], answers["median_ms"], answers["p95_ms"]) == (20, 10_000, 19_000)
        assert (answers["refused"], answers["marked"]) == (share(4, 20), share(2, 20))
        assert (answers["first_at"][:10], answers["last_at"][:10]) == ("2024-09-24", "2024-10-03")
        (quality,) = found["quality"]
        assert (quality["questions"], quality["measured_at"][:10], set(quality["measures"])) == (
            80,
            "2024-10-03",
            {"hit_1", "hit"},
        )
        programs = await client.get("/figures", headers={"accept": "application/json"})
        assert programs.json() == response.json()
        for language, title, refused in (
            ("cs", "Čísla o službě", "20,0 %8,1 %–41,6 % (4/20)"),
            ("en", "Figures", "20.0%8.1%–41.6% (4/20)"),
        ):
            page = await client.get("/figures", headers={"accept": "text/html,*/*", "accept-language": language})
            assert (page.status_code, "script" in page.text) == (200, False)
            tree = lxml.html.document_fromstring(page.text)
            assert (tree.get("lang"), title in tree.findtext(".//title")) == (language, True)
            assert any(refused in re.sub(r"\s+", " ", cell.text_content()) for cell in tree.iter("td"))
            assert "ebra" not in page.text
        assert "ebra" not in response.text
    await store.close()


async def test_without_the_setting_there_are_no_figures(tmp_path: Path):
    async with indexed(tmp_path) as service, client_of(service.app) as client:
        assert [(await client.get(path)).status_code for path in ("/figures", "/figures.json")] == [404, 404]


async def test_figures_are_null_where_nothing_is_kept(tmp_path: Path):
    async with indexed(tmp_path, **SHOWN) as service, client_of(service.app) as client:
        found = (await client.get("/figures.json")).json()
        assert (found["answers"], found["quality"]) == (None, [])
        assert (await client.get("/figures")).status_code == 200


async def test_the_time_of_an_answer_is_logged(database: str, tmp_path: Path):
    store = ConversationStore(Database(url_of(database, Path())), 30, question_log=QuestionLog())
    async with indexed(tmp_path, conversations=store, **SHOWN) as service, client_of(service.app) as client:
        await client.post(CHAT, json=chat("How do I create a volume?"))
        await store.writer.settle()
        answers = (await client.get("/figures.json")).json()["answers"]
    await store.close()
    assert 0 < answers["median_ms"] == answers["p95_ms"] < 60_000


def test_intervals_are_those_of_wilson():
    """As published tables have them: of 10, none and all; of 20, a fifth."""
    values = [(one.share, one.low, one.high) for one in (share(0, 10), share(10, 10), share(4, 20), share(0, 0))]
    assert values == [(0, 0, 0.2775), (1, 0.7225, 1), (0.2, 0.0807, 0.416), (None, None, None)]
