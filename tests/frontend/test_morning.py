"""The morning of an editor at /admin: did the night run work, what was asked yesterday, what did readers write, what to write next."""

import asyncio
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Page, expect

from app.conversations.opening import open_conversations
from app.conversations.records import Found, KeptAnswer
from app.conversations.store import DAY
from app.core.settings import Settings
from app.core.turn import Source
from tests.end_to_end.program import Program
from tests.frontend.test_admin import KEY, opened

STEPS = '["detect", "probe", "retrieve", "relevance", "overview", "curated", "synthesize", "cite"]'
SHAREPOINT = "How do I connect SharePoint?"
WEAK = Found(evidence=0.3, needed=0.32)
VOLUMES = "https://docs.example.org/en/volumes"
ASKED: tuple[tuple[str, str, float, Found], ...] = (  # when is in days before noon of today
    ("What is a notebook?", "written", 3, Found()),
    (SHAREPOINT, "refused", 2, Found(nearest={"url": VOLUMES, "title": "Volumes"})),
    (SHAREPOINT, "refused", 1, Found(nearest={"url": VOLUMES, "title": "Volumes"})),
    ("how do I connect sharepoint", "refused", 0.99, Found(nearest={"url": VOLUMES, "title": "Volumes"})),
    ("How do I create a volume?", "marked", 0.98, Found()),
    ("How large is a volume?", "written", 0.97, WEAK),
    ("Who has access?", "written", 0.96, Found()),
    ("dekuji mockrat", "refused", 0.95, Found()),
)
COMMENTS = {2: "We need this for our group.", 4: "The button isn't there."}


async def _log(settings: Settings, folder: Path) -> None:
    store = open_conversations(settings, folder)
    assert store
    noon = time.time() // DAY * DAY + DAY / 2
    source = Source(1, "Volumes", VOLUMES, "", "en", "", 0.9)
    for number, (question, outcome, ago, found) in enumerate(ASKED):
        sources = (source,) if outcome != "refused" else ()
        kept = KeptAnswer(f"q{number}", "", question, "An answer.", noon - ago * DAY, outcome=outcome, found=found)
        await store.keep(replace(kept, sources=sources, assistant="docs", language="en"))
    for number, comment in COMMENTS.items():
        await store.rate("", f"q{number}", "down", comment)
    await store.close()


@pytest.fixture(scope="module")
def asked(start, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """A service whose log has `ASKED` and `COMMENTS`, and whose assistant has the step `curated`."""
    folder = tmp_path_factory.mktemp("asked")
    own, database = folder / "assistants.toml", f"sqlite:///{folder / 'log.db'}"
    own.write_text(f'[[assistant]]\nid = "docs"\nsteps = {STEPS}\n', encoding="utf-8")
    settings = Settings.load(None, store=str(folder), database=database)
    with ThreadPoolExecutor(1) as thread:  # in that of Playwright, a loop is running
        thread.submit(asyncio.run, _log(settings, folder)).result()
    return start(**KEY, DOCS_LLM_URL="", DOCS_ASSISTANTS=str(own), DOCS_DATABASE=database)


def figure(page: Page, name: str):
    """The figure of this name."""
    return page.locator(".ad-figures > div", has=page.get_by_text(name, exact=True))


def test_an_editor_has_the_answers_to_the_four_questions_of_the_morning_by_clicks(page: Page, asked: Program, axe):
    """In less than a minute; each figure opens as many questions as it says."""
    rows = page.get_by_role("region", name="Questions").locator("tbody tr")
    opened(page, asked)
    began = time.monotonic()
    # did the night run work?
    run = page.get_by_text("Last run: published")
    expect(run).to_be_in_viewport()
    # what was asked yesterday, and how did it go?
    expect(page.get_by_role("heading", name="Yesterday")).to_be_in_viewport()
    shown = {"Questions": 6, "Answered": 3, "Refused": 3, "Partly not in the documentation": 1, "Rated down": 2}
    for name, count in shown.items():
        expect(figure(page, name).get_by_role("link")).to_have_text(str(count))
        expect(figure(page, name)).to_be_in_viewport()
    # what did readers complain about?
    expect(page.locator(".ad-said")).to_have_text([*reversed(COMMENTS.values())])
    expect(page.locator(".ad-said").last).to_be_in_viewport()
    axe(page, every=True)
    # what to write next?
    page.get_by_role("link", name="What to write next").click()
    first = page.locator(".ad-gaps > li").first
    expect(first).to_contain_text("connect sharepoint")
    expect(first.locator(".ad-said")).to_have_text([COMMENTS[2]])
    expect(page.get_by_text("only greet, thank or say nothing: 1")).to_be_visible()
    expect(page.locator(".ad-gaps")).not_to_contain_text("mockrat")
    assert time.monotonic() - began < 60
    axe(page, every=True)
    page.go_back()
    for name, rows_of in {"Questions": 5, "Answered": 3, "Refused": 2, "Rated down": 2}.items():  # equal ones are a row
        figure(page, name).get_by_role("link").click()
        expect(rows).to_have_count(rows_of)
        expect(page).to_have_url(re.compile("day="))
        page.go_back()


def test_any_day_is_chosen_by_its_bar_with_a_mouse_and_with_keys(page: Page, asked: Program, axe):
    opened(page, asked)
    day = page.locator("h2").first
    expect(day).to_contain_text("Yesterday")
    bars = page.locator(".ad-days")
    width = bars.bounding_box()["width"]
    bars.click(position={"x": width * 11.5 / 14, "y": 20})  # two days ago
    expect(day).to_contain_text("Day, ")
    expect(figure(page, "Questions").get_by_role("link")).to_have_text("1")
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(figure(page, "Answered").get_by_role("link")).to_have_text("1")
    page.get_by_role("link", name="Today").click()
    expect(day).to_contain_text("Today")
    expect(page.get_by_text("No reader wrote a comment")).to_be_visible()
    page.get_by_role("link", name="Questions", exact=True).click()
    page.locator(".ad-days").first.click(position={"x": 2, "y": 20})
    expect(page).to_have_url(re.compile(r"day=\d{4}-\d\d-\d\d"))
    expect(page.get_by_label("Day (UTC)")).not_to_have_value("")


def test_equal_questions_are_one_row_with_what_readers_wrote_and_unfold(page: Page, asked: Program, axe):
    """Also what wasn't answered well as one filter; in Czech on a phone, too."""
    rows = page.get_by_role("region", name="Questions").locator("tbody tr")
    opened(page, asked, "questions")
    expect(rows).to_have_count(6)
    page.get_by_label("Which").select_option("not answered well")
    expect(rows.locator("th > a:first-child")).to_have_text([
        "dekuji mockrat", "How large is a volume?", "How do I create a volume?", "how do I connect sharepoint",
    ])  # fmt: skip
    sharepoint = rows.last
    expect(sharepoint.locator(".ad-said")).to_have_text([COMMENTS[2]])
    axe(page, every=True)
    sharepoint.get_by_role("link", name="asked 3 times").click()
    expect(rows).to_have_count(3)
    rows.nth(1).locator("th > a").first.click()
    expect(page.locator(".ad-facts .ad-said")).to_have_text([COMMENTS[2]])
    page.get_by_label("Language").select_option("cs")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("link", name="Přehled").click()
    expect(page.get_by_role("heading", name="Včera")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe(page, every=True)


def test_an_answer_is_written_from_a_question_and_from_a_gap_and_is_given_at_once(page: Page, asked: Program):
    """The form has the question, its language and the nearest page."""
    opened(page, asked, "gaps")
    page.locator(".ad-gaps > li").first.get_by_role("link", name="Write an answer").click()
    expect(page.get_by_label("Questions, one a line")).to_have_value(re.compile("SharePoint", re.IGNORECASE))
    page.goto(f"{asked.url}/admin/questions?q=sharepoint")
    page.get_by_role("link", name="Write an answer").first.click()
    expect(page.get_by_label("Questions, one a line")).to_have_value("how do I connect sharepoint")
    expect(page.get_by_label("Page that is cited")).to_have_value(VOLUMES)
    answer = page.get_by_label("Answer in Markdown")
    expect(answer).to_be_focused()
    answer.fill("Ask Jana for a connector.")
    page.get_by_role("button", name="Add an entry").click()
    page.get_by_role("button", name="Try against the question log").click()
    page.get_by_role("button", name="Save as a new version").click()
    expect(page.get_by_role("listitem").filter(has_text="version 1, entries: 1")).to_be_visible()
    expect(page.get_by_label("Questions, one a line")).to_have_value("")  # the next one begins anew
    ask = {"model": "docs", "messages": [{"role": "user", "content": "How do I connect SharePoint?"}]}
    response = httpx.post(f"{asked.url}/v1/chat/completions", json=ask, timeout=60, trust_env=False)
    assert response.json()["choices"][0]["message"]["content"].startswith("Ask Jana for a connector. [1]")
