"""Links to answers on the page: who makes them, and what those see who have one, in a real Chromium."""

import re
import sqlite3

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.end_to_end.program import Program
from tests.fake_llm import FakeLLM
from tests.frontend.conftest import Start
from tests.frontend.test_page import QUESTION, UNPROVEN, answers, ask, finished, says

ENGLISH = {
    "share": "Share this answer",
    "copied": r"Link copied. Whoever has it can read the question and the answer until \w+ \d+, \d{4}\.",
    "note": r"Somebody shared this answer of \w+ \d+, \d{4} with you\. The link works until \w+ \d+, \d{4}\.",
    "own": "Ask your own question",
    "gone": "This answer isn't shared any more",
    "reason": "Not found in the documentation",
}
CZECH = {
    "share": "Sdílet tuto odpověď",
    "copied": r"Odkaz je zkopírovaný\. Kdo ho má, může otázku a odpověď číst do \d+\. \w+ \d{4}\.",
    "note": r"Někdo s vámi sdílí tuto odpověď z \d+\. \w+ \d{4}\. Odkaz platí do \d+\. \w+ \d{4}\.",
    "own": "Položit vlastní otázku",
    "gone": "Tato odpověď už není sdílená",
    "reason": "V dokumentaci není",
}
KEY = "right-key-of-tests"


@pytest.mark.parametrize(("width", "words", "locale"), [(1280, ENGLISH, "en-GB"), (390, CZECH, "cs-CZ")])
def test_who_has_the_link_reads_the_answer_and_its_sources(
    page: Page, service: Program, llm: FakeLLM, chromium: Browser, axe, width: int, words: dict[str, str], locale: str
):
    """In their own language and browser, with the marks; they can neither rate nor ask again; a deleted answer says so."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    says(llm, UNPROVEN)
    page.goto(service.url)
    ask(page)
    finished(page).get_by_role("button", name="Share this answer").click()
    expect(answers(page).get_by_role("status").filter(has_text=re.compile(ENGLISH["copied"]))).to_be_visible()
    link = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(re.escape(service.url) + r"/\?shared=[\w-]{40}", link)

    context = chromium.new_context(viewport={"width": width, "height": 844}, locale=locale)
    other = context.new_page()
    other.goto(link)
    shared = other.get_by_role("main")
    expect(shared.get_by_text(re.compile(words["note"]))).to_be_visible()
    expect(shared.get_by_role("heading", name=QUESTION)).to_be_visible()
    expect(shared.locator("u").first).to_have_text(re.compile("The volume is ready"))
    shared.get_by_role("button", name=words["reason"]).first.hover()
    expect(shared.get_by_role("tooltip")).to_be_visible()
    shared.locator(".da-card > button").first.click()
    expect(shared.locator(".da-passage mark").first).to_be_visible()
    assert shared.get_by_role("button", name=re.compile("Helpful|Pomohl|again|znovu|Share|Sdílet")).count() == 0
    for scheme in ("light", "dark"):
        other.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        axe(other)
    assert other.evaluate("document.documentElement.scrollWidth") <= width
    assert other.evaluate("Object.keys(localStorage).filter(name => name.includes('chat:'))") == []

    kept = sqlite3.connect(service.folder / "data/conversations.db")
    kept.execute("delete from answers")
    kept.commit()
    kept.close()
    other.reload()
    expect(other.get_by_role("alert")).to_contain_text(words["gone"])
    axe(other)
    shared.get_by_role("link", name=words["own"]).click()
    expect(other.get_by_role("textbox")).to_be_visible()
    assert "shared" not in other.url
    context.close()


def test_where_keys_are_needed_links_are_made_only_if_wanted_and_open_without_one(
    page: Page, start: Start, llm: FakeLLM, chromium: Browser
):
    """A browser that doesn't copy shows the link."""
    says(llm, "A volume can't be made smaller [1].")
    for settings, buttons in (({}, 0), ({"DOCS_TUNING__SHARE_DAYS": "3"}, 1)):
        service = start(DOCS_API_KEYS=KEY, **settings)
        page.goto(service.url)
        page.get_by_label("Key", exact=True).fill(KEY)
        page.keyboard.press("Enter")
        ask(page)
        expect(finished(page).get_by_role("button", name=ENGLISH["share"])).to_have_count(buttons)
    page.evaluate(
        "() => { navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => false }"
    )
    answers(page).get_by_role("button", name=ENGLISH["share"]).click()
    said = answers(page).get_by_role("status").filter(has_text="Copy this link: ")
    expect(said).to_be_visible()
    context = chromium.new_context(locale="en-GB")
    other = context.new_page()
    other.goto(re.findall(r"http\S+", said.inner_text())[0])
    expect(other.get_by_role("main")).to_contain_text("A volume can't be made smaller 1.")
    other.locator(".da-card > button").first.click()
    expect(other.locator(".da-passage p").first).to_be_visible()
    expect(other.locator(".da-passage")).not_to_contain_text("The page has changed")
    other.get_by_role("link", name=ENGLISH["own"]).click()
    expect(other.get_by_label("Key", exact=True)).to_be_visible()
    context.close()
