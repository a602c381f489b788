"""/admin/ask: how an answer was made, asked again with other choices side by side, and kept for evaluation."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.end_to_end.program import Program, finished
from tests.fake_llm import FakeLLM, Reply
from tests.frontend.conftest import Start

QUESTION = "How do I create a volume?"
SAID = "Write a file `volume.yaml` and apply it [1]. ![x](https://evil.example/x.png) Then wait until the volume is ready [1]."
POEM = "A volume, a volume: apply `volume.yaml` and wait [1]."
PHONE = {"width": 390, "height": 844}
ASSISTANTS = """
[[assistant]]
id = "docs"
names = { cs = "Dokumentace", en = "Documentation" }
steps = ["detect", ["refine", "keywords", "probe"], "retrieve", "relevance", "overview", "synthesize", "cite"]

[[assistant]]
id = "plain"
names = { cs = "Bez pomoci", en = "Without helpers" }
steps = ["detect", "probe", "retrieve", "relevance", "synthesize", "cite"]
"""


@pytest.fixture
def service(start: Start, llm: FakeLLM, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Two assistants, an admin key, and a model that writes a poem if its prompt asks for one."""
    llm.reply = said
    own = tmp_path_factory.getbasetemp() / "assistants.toml"
    own.write_text(ASSISTANTS, "utf-8")
    return start(DOCS_ADMIN_KEYS="admin-key-of-tests", DOCS_ASSISTANTS=str(own))


def said(body: dict[str, Any]) -> Reply:
    if not body.get("stream"):
        return Reply("en: volume create\ncs: svazek vytvořit", delay=0.08)
    return Reply(POEM if "poem" in body["messages"][0]["content"] else SAID, delay=0.06, piece_delay=0.008)


def opened(page: Page, service: Program, **query: str) -> None:
    """The address of these parameters, with the admin key."""
    page.goto(f"{service.url}/admin/ask?{urlencode(query)}")
    field = page.get_by_label("Key", exact=True)
    field.or_(page.get_by_label("Question").first).first.wait_for()
    if field.is_visible():
        field.fill("admin-key-of-tests")
        field.press("Enter")


def region(page: Page, heading: str) -> Locator:
    return page.locator("section").filter(has=page.get_by_role("heading", name=heading, exact=True)).first


def part(page: Page, name: str) -> None:
    """Show this part of the trace, and no other."""
    link = page.get_by_role("navigation", name="Parts of the trace").get_by_role("link", name=name, exact=True)
    link.click()
    expect(link).to_have_attribute("aria-current", "page")


def test_a_question_shows_its_steps_prompts_candidates_and_links(
    page: Page, service: Program, llm: FakeLLM, axe: Callable[..., None]
) -> None:
    """The address asks it. Bars lie where the times are, a step shows its prompts as sent, a candidate why it was dropped."""
    llm.reply = lambda body: replace(said(body), delay=2.0 if body.get("stream") else 0.08)  # longer than all else
    opened(page, service, q=QUESTION, top_k="2")
    steps = region(page, "Steps")
    rows = steps.locator(".tr-row")
    expect(rows).to_have_count(9)
    assert [row.locator(".tr-name").inner_text() for row in rows.all()] == [
        "detect", "refine", "keywords", "probe", "retrieve", "relevance", "overview", "synthesize", "cite",
    ]  # fmt: skip
    parallel = steps.get_by_role("group", name="at the same time")
    expect(parallel.locator(".tr-row")).to_have_count(3)
    boxes = {row.locator(".tr-name").inner_text(): row.locator(".tr-bar").first.bounding_box() for row in rows.all()}
    assert boxes["refine"]["x"] < boxes["keywords"]["x"] + boxes["keywords"]["width"]
    assert boxes["keywords"]["x"] + boxes["keywords"]["width"] <= boxes["retrieve"]["x"] + 2
    assert boxes["synthesize"]["width"] > 5 * boxes["relevance"]["width"]
    ticks = steps.locator(".tr-ticks > span")
    assert ticks.all_inner_texts()[:3] == ["0", "1,000", "2,000"]
    track, label = rows.first.locator(".tr-track"), ticks.nth(2).bounding_box()
    step = track.evaluate("one => parseFloat(getComputedStyle(one).backgroundSize) / 100 * one.clientWidth")
    assert label["x"] + label["width"] / 2 == pytest.approx(track.bounding_box()["x"] + 2 * step, abs=1)  # at its line

    call = rows.nth(7).locator(".tr-call").bounding_box()
    assert call["height"] > 3
    assert (
        boxes["synthesize"]["x"]
        <= call["x"]
        < call["x"] + call["width"]
        <= boxes["synthesize"]["x"] + boxes["synthesize"]["width"] + 2
    )
    rows.nth(7).focus()
    page.keyboard.press("Enter")
    expect(rows.nth(7)).to_have_attribute("aria-expanded", "true")
    sent = [call for call in llm.calls if call.get("stream")][-1]["messages"]
    for message in sent:
        shown = steps.get_by_role("group", name=f"Sent as {message['role']}")
        assert shown.text_content() == message["content"]
    assert "evil.example" in (steps.get_by_role("group", name="Reply as it came").text_content() or "")
    steps.get_by_role("button", name="Copy: Sent as system").click()
    expect(rows.nth(4)).to_contain_text("Searches by words and by meaning, and merges both rankings.")
    rows.nth(4).click()
    for opened_values in steps.locator("summary").all():
        opened_values.click()
    assert not re.search("[0-9a-f]{64}", steps.inner_text())
    axe(page, every=True)

    part(page, "Candidates")
    expect(rows.first).to_be_hidden()
    candidates = region(page, "Candidates")
    expect(candidates.get_by_text("top_k 2, per_page 2")).to_be_visible()
    candidates.get_by_role("button", name="Dropped").click()
    expect(candidates.get_by_text("beyond top_k").first).to_be_visible()
    candidates.get_by_role("button", name="Kept").click()
    first = candidates.locator("tbody tr").first
    expect(first.get_by_text("passage 1")).to_be_visible()
    expect(first.locator("td").nth(2)).to_have_text(re.compile(r"1\.\s+\d"))
    candidates.get_by_role("button", name="All").click()
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    tabs = page.get_by_role("navigation", name="Parts of the trace")
    expect(tabs).to_be_in_viewport(ratio=1)  # however far one has scrolled; each part begins at its top
    part(page, "Steps")
    expect(page.get_by_role("heading", name="Steps", exact=True)).to_be_in_viewport()
    part(page, "Links")
    links = region(page, "Links")
    expect(links.locator("tbody tr")).to_have_count(1)
    expect(links.get_by_text(re.compile(r"holds most of what is cited, \d+ of its statements"))).to_be_visible()
    expect(page.locator(".tr-answer a.da-cite").first).to_have_attribute("href", re.compile("/en/volumes"))
    assert not re.search("[0-9a-f]{64}", links.inner_text())
    expect(region(page, "Removed from the model's text").get_by_text("evil.example")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollHeight") < 2000
    links.get_by_role("link", name="Volumes", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Chunk")
    page.go_back()
    expect(links.locator("tbody tr")).to_have_count(1)


def test_it_is_asked_again_with_other_choices_side_by_side(
    page: Page, service: Program, llm: FakeLLM, axe: Callable[..., None]
) -> None:
    """Another assistant, top_k, weight and prompt; words and chunks that differ are marked; the address brings both back."""
    opened(page, service, q="How many volumes may a project have, and what is copied every night?")
    part(page, "Ask again with …")
    again = region(page, "Ask again with …")
    again.get_by_label("Assistant").select_option("plain")
    again.get_by_label("Chunks (top_k)").fill("1")
    again.get_by_label("Vector weight").fill("0.05")
    again.get_by_role("combobox", name="Prompt", exact=True).select_option("en/synthesize.md")
    editor = again.get_by_label("Text of en/synthesize.md")
    assert "$passages" in editor.input_value()
    editor.fill("Answer with a poem.\n\n$passages")
    again.get_by_role("button", name="Ask again").click()
    both = region(page, "Both answers")
    sides = both.locator(".tr-side")
    expect(sides).to_have_count(2)
    expect(sides.nth(0).locator(".tr-row")).to_have_count(9)
    expect(sides.nth(1).locator(".tr-row")).to_have_count(6)
    expect(sides.nth(0).locator("del").first).to_be_visible()
    expect(sides.nth(1).locator("ins").first).to_contain_text("A volume")
    for choice in ("plain", "top_k = 1", "vector_weight = 0.05", "en/synthesize.md"):
        expect(sides.nth(1).get_by_text(choice, exact=True)).to_be_visible()
    sent = [call for call in llm.calls if call.get("stream")][-1]["messages"][0]["content"]
    assert sent.startswith("Answer with a poem.\n\n[1] ")
    hits = both.get_by_role("region", name="Chunks kept")
    expect(hits.get_by_text("lost", exact=True).first).to_be_visible()
    expect(hits.get_by_text("beyond top_k").first).to_be_visible()
    axe(page, every=True)
    assert "again.top_k=1" in page.url
    page.reload()
    expect(page.locator(".tr-side")).to_have_count(2)
    expect(page.locator(".tr-side").nth(1)).not_to_contain_text("en/synthesize.md")
    page.get_by_role("button", name="Show the first answer alone").click()
    expect(page.locator(".tr-side")).to_have_count(0)
    page.set_viewport_size(PHONE)
    page.go_back()
    expect(page.locator(".tr-side")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_wrong_choice_says_what_is_wrong(page: Page, service: Program) -> None:
    """A prompt without its placeholder is refused by the service; its sentence is shown."""
    opened(page, service, q=QUESTION, part="again")
    again = region(page, "Ask again with …")
    again.get_by_role("combobox", name="Prompt", exact=True).select_option("en/synthesize.md")
    again.get_by_label("Text of en/synthesize.md").fill("No passages.")
    again.get_by_role("button", name="Ask again").click()
    expect(page.get_by_role("alert")).to_contain_text("$passages is missing")
    expect(page.get_by_role("heading", name="Steps", exact=True)).to_be_visible()


def test_a_question_goes_to_the_question_set_that_eval_reads(
    page: Page, service: Program, axe: Callable[..., None]
) -> None:
    """With the page that somebody chooses; a second time it is refused; `docs-assistant eval retrieval` reads it."""
    opened(page, service, q=QUESTION, part="add")
    form = region(page, "Add to question set")
    expect(form.get_by_label("Question")).to_have_value(QUESTION)
    chosen = form.get_by_role("checkbox", checked=True)
    expect(chosen).to_have_count(1)  # that it is answered: no page is right by itself
    form.get_by_role("button", name="Add").click()
    expect(form.get_by_role("alert")).to_contain_text("name the page that answers the question")
    form.get_by_role("checkbox", name="/en/volumes").first.check()
    form.get_by_label("Sentence that proves").fill("Write a file `volume.yaml` and apply it.")
    form.get_by_role("button", name="Add").click()
    expect(form.get_by_role("status")).to_have_text("Added to questions.jsonl.")
    axe(page, every=True)
    form.get_by_role("button", name="Add").click()
    expect(form.get_by_role("alert")).to_contain_text("questions.jsonl has this question already")
    path = service.folder / "question-sets" / "questions.jsonl"
    (row,) = map(json.loads, path.read_text("utf-8").splitlines())
    assert row["doc"].startswith("https://docs.example.org/en/volumes")
    assert (row["question"], row["lang"], row["evidence"]) == (
        QUESTION,
        "en",
        "Write a file `volume.yaml` and apply it.",
    )
    out = service.folder / "measured.json"
    measured = finished(service.folder, "eval", "retrieval", str(path), "--no-model", "--out", str(out))
    assert measured.returncode == 0, measured.stderr
    assert json.loads(out.read_text("utf-8"))["rows"][0]["n"] == 1


def test_it_is_czech_for_who_wants_that_and_fits_a_phone(
    page: Page, service: Program, axe: Callable[..., None]
) -> None:
    opened(page, service, q=QUESTION)
    expect(region(page, "Steps").locator(".tr-row").first).to_be_visible()
    for row in page.locator(".tr-row").all():
        row.click()
    page.get_by_label("Language", exact=True).first.select_option("cs")
    page.get_by_role("navigation", name="Části trace").get_by_role("link", name="Kandidáti").click()
    expect(page.get_by_role("heading", name="Kandidáti")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    axe(page, every=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    tabs = page.get_by_role("navigation", name="Části trace")
    heading = page.get_by_role("heading", name="Kandidáti")
    heading.evaluate("one => one.scrollIntoView()")
    below = tabs.bounding_box()["y"] + tabs.bounding_box()["height"]
    assert below <= heading.bounding_box()["y"] < below + 40  # jumped to, it isn't behind the tabs
    tabs.get_by_role("link", name="Zeptat se znovu").click()
    expect(tabs.get_by_role("link", name="Zeptat se znovu")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("heading", name="Zeptat se znovu")).to_be_in_viewport()


def test_an_answer_that_broke_off_still_has_its_trace(page: Page, service: Program, llm: FakeLLM) -> None:
    """The text so far, and what the model's server did."""
    llm.reply = lambda body: Reply(SAID * 4, dies_after=40) if body.get("stream") else said(body)
    opened(page, service, q=QUESTION)
    expect(page.get_by_text("ModelUnavailable")).to_be_visible()
    page.locator(".tr-row", has_text="synthesize").click()
    expect(page.locator(".tr-called .tr-problem")).to_contain_text("ModelUnavailable")


def test_a_table_that_is_wider_than_a_phone_has_a_shadow_where_it_goes_on(
    page: Page, service: Program, llm: FakeLLM
) -> None:
    """Until it is scrolled to its end."""
    wide = f"| volume | state |\n|---|---|\n| `{'a_volume_with_a_long_name_' * 3}` | ready [1] |"
    llm.reply = lambda body: replace(said(body), text=wide) if body.get("stream") else said(body)
    page.set_viewport_size(PHONE)
    opened(page, service, q=QUESTION)
    table = page.locator(".tr-answer .da-table")

    def edge() -> Any:
        """The colour at the right edge, below the words of the last row."""
        picture = Image.open(BytesIO(table.screenshot()))
        return picture.getpixel((picture.width - 4, picture.height - 4))

    shadow = edge()
    table.evaluate("one => { one.scrollLeft = one.scrollWidth }")
    assert sum(edge()[:3]) > sum(shadow[:3]) + 20
