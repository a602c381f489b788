"""The search as readers use it, in a real Chromium: keyboard, screen reader, filters, and from a result to a question."""

import re
import time
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.end_to_end.program import Program
from tests.fake_llm import FakeLLM
from tests.frontend.test_page import finished


@pytest.fixture
def search(page: Page, service: Program) -> Page:
    """The page with an empty search."""
    page.goto(f"{service.url}/?search=")
    expect(page.get_by_role("combobox", name="Search", exact=True)).to_be_focused()
    return page


def first(page: Page) -> Locator:
    """The row that Enter opens: the best one, which lies below the row of its page unless it is that."""
    return page.locator(".da-active")


def test_half_a_word_shows_sections_with_breadcrumbs_and_marked_words(search: Page, axe):
    search.keyboard.type("create a vol", delay=20)
    expect(first(search)).to_contain_text("How do I create a volume?")
    expect(search.locator("mark").get_by_text("volume").first).to_be_visible()  # and not those of "create" alone
    page, path = search.get_by_role("row").first.locator(".da-found-title, .da-card-path").all_inner_texts()
    assert (page, path) == ("Volumes", "/en/volumes")
    marks = {mark.lower() for mark in search.locator("mark").all_inner_texts()}
    assert {"create", "volume"} <= marks
    assert not {"a", "and"} & marks
    expect(search.get_by_role("status")).to_contain_text("result")
    expect(search).to_have_url(re.compile("search=create"))
    axe(search)
    search.emulate_media(color_scheme="dark")
    axe(search)
    search.set_viewport_size({"width": 390, "height": 844})
    assert search.evaluate("document.documentElement.scrollWidth") <= 390
    search.keyboard.press("Escape")
    expect(search.get_by_role("grid")).to_be_hidden()
    expect(search.get_by_role("combobox", name="Search", exact=True)).to_have_value("")


def test_the_keyboard_chooses_opens_and_asks(search: Page, llm: FakeLLM):
    field = search.get_by_role("combobox", name="Search", exact=True)
    field.fill("create a volume")  # at once: results of half a word would be followed by others, which end the choice
    expect(search.get_by_role("status")).to_contain_text("result")
    expect(field).to_have_attribute("aria-activedescendant", re.compile("-1$"))  # what Enter opens is marked at once
    search.keyboard.press("ArrowUp")
    expect(field).to_have_attribute("aria-activedescendant", re.compile("-0$"))  # the page of the section
    search.keyboard.press("ArrowUp")
    expect(first(search)).to_have_text("Ask: create a volume")
    search.keyboard.press("ArrowDown")
    expect(field).to_have_attribute("aria-activedescendant", re.compile("-0$"))
    active = search.locator(f"[id='{field.get_attribute('aria-activedescendant')}']")
    expect(active).to_have_attribute("aria-selected", "true")
    address = active.get_by_role("link").get_attribute("href")
    assert address.startswith("https://docs.example.org/")
    search.evaluate(
        "addEventListener('click', e => { e.preventDefault(); window.opened = e.composedPath()[0].href }, true)"
    )
    search.keyboard.press("Enter")
    assert search.evaluate("window.opened") == address
    field.fill("volumes")
    expect(search.get_by_role("status")).to_contain_text("result")
    search.evaluate("window.opened = ''")
    search.keyboard.press("Enter")  # without an arrow: the row that is marked
    assert search.evaluate("window.opened") == first(search).get_by_role("link").get_attribute("href")
    field.fill("volume")
    expect(search.get_by_role("status")).to_contain_text("result")
    search.keyboard.press("ArrowDown")
    search.keyboard.press("ArrowUp")
    search.keyboard.press("Control+Enter")
    expect(search.get_by_text("You asked").or_(search.locator(".da-question")).first).to_be_attached()
    finished(search)
    assert any("olume" in str(call["messages"][-1]["content"]) for call in llm.calls)
    search.go_back()
    expect(field).to_have_value("volume")


def test_a_result_and_the_query_itself_can_be_asked(search: Page, llm: FakeLLM):
    """What is asked is what the reader typed; with the page of the result, if the question is about a result."""
    asked: list[dict[str, Any]] = []
    search.on("request", lambda sent: asked.append(sent.post_data_json) if "chat/completions" in sent.url else None)
    search.keyboard.type("backup")
    row = search.get_by_role("row").filter(has=search.get_by_role("button", name="Ask about")).first
    address = row.get_by_role("link").get_attribute("href")
    row.get_by_role("button", name="Ask about").click()
    finished(search)
    assert (asked[0]["messages"], asked[0]["page"]) == ([{"role": "user", "content": "backup"}], address)
    modes = search.get_by_role("navigation", name="Ask or search")
    modes.get_by_role("link", name="Search").click()
    expect(search.get_by_role("combobox", name="Search", exact=True)).to_have_value("backup")
    modes.get_by_role("link", name="Ask").click()  # neither is lost
    finished(search)
    search.go_back()
    expect(search.get_by_role("status")).to_contain_text("result")  # rows that come during a click move the button away
    search.get_by_role("button", name="Ask: backup").click()
    finished(search)
    assert asked[-1]["messages"][-1]["content"] == "backup"
    assert "page" not in asked[-1]
    assert llm.calls


def test_rows_of_several_collections_name_theirs(search: Page):
    def two(route: Route) -> None:
        response = route.fetch()
        found = response.json()
        found["facets"]["collections"].append("wiki")
        found["data"][0]["collection"] = "wiki"
        route.fulfill(response=response, json=found)

    search.keyboard.type("backup")
    expect(search.get_by_role("status")).to_contain_text("result")
    expect(search.locator(".da-tag")).to_have_count(0)
    search.route("**/v1/search", two)
    search.get_by_role("combobox", name="Search", exact=True).fill("backups")
    expect(search.locator(".da-tag").get_by_text("wiki")).to_be_visible()


def test_searches_whose_results_were_used_are_offered_again(search: Page):
    """Until they are forgotten; what was only typed isn't kept."""
    recent = search.get_by_role("region", name="Recent searches")
    field = search.get_by_role("combobox", name="Search", exact=True)
    search.evaluate("addEventListener('click', event => event.preventDefault(), true)")
    for typed, used in (("volume", True), ("create", False), ("backup", True)):
        field.fill(typed)
        expect(search.get_by_role("status")).to_contain_text("result")
        if used:
            search.get_by_role("link").and_(search.locator(".da-found")).first.click()
    search.goto(search.url.partition("?")[0] + "?search=")
    expect(recent.get_by_role("button")).to_have_text(["backup", "volume", "Forget them"])
    recent.get_by_role("button", name="volume").click()
    expect(field).to_have_value("volume")
    expect(first(search)).to_contain_text("olume")
    field.fill("")
    recent.get_by_role("button", name="Forget them").click()
    expect(recent).to_have_count(0)


def test_before_anything_is_typed_it_shows_the_first_pages_of_the_site(search: Page, axe):
    pages = search.get_by_role("region", name="Start here")
    links = pages.get_by_role("link")
    expect(links.filter(has_text="Volumes")).to_have_attribute("href", "https://docs.example.org/en/volumes")
    assert links.count() <= 6
    axe(search)
    search.keyboard.type("volume")
    expect(pages).to_have_count(0)


def test_a_late_answer_never_replaces_a_newer_one(search: Page):
    def late(route: Route) -> None:
        if '"vol"' in (route.request.post_data or ""):
            time.sleep(0.5)
        route.continue_()

    search.route("**/v1/search", late)
    search.keyboard.type("vol")
    search.wait_for_timeout(200)
    search.keyboard.press("Control+A")
    search.keyboard.type("backup")
    expect(first(search)).to_contain_text("ackup")
    search.wait_for_timeout(800)
    expect(first(search)).to_contain_text("ackup")


def test_filters_and_the_empty_and_failed_state_say_what_they_are(search: Page, axe):
    search.keyboard.type("svaz")
    choice = search.get_by_role("combobox", name="Language of the pages")
    expect(search.get_by_role("combobox", name="Collection")).to_have_count(0)  # there is only one
    choice.select_option("cs")
    expect(first(search).locator(".da-tag")).to_have_text("Czech")
    choice.select_option("")
    field = search.get_by_role("combobox", name="Search", exact=True)
    field.fill("qqxxzz")
    expect(search.get_by_role("status")).to_have_text("Nothing was found for “qqxxzz”. Try fewer or other words.")
    expect(search.get_by_role("button", name="Ask: qqxxzz")).to_be_visible()
    expect(search.get_by_role("gridcell", selected=True)).to_have_text("Ask: qqxxzz")  # Enter asks it
    search.route("**/v1/search", lambda route: route.abort())
    field.fill("volume")
    expect(search.get_by_role("alert")).to_contain_text("No connection")
    axe(search)
    search.unroute("**/v1/search")
    search.get_by_role("button", name="Try again").click()
    expect(first(search)).to_contain_text("olume")
