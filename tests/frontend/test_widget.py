"""The widget inside sites as MkDocs Material, Sphinx and Docusaurus build them, under a strict content security policy."""

import gzip
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.end_to_end.program import finished, free_port
from tests.end_to_end.program import service as served
from tests.fake_llm import FakeLLM, Reply
from tests.frontend.sites import GENERATORS, built, serve
from tests.ingestion.local_site import LocalSite, local_site

BUTTON, ALL = 20_000, 42_700  # bytes, compressed
STATIC = Path(str(files("app"))) / "static"
ENGLISH = {
    "button": "Ask",
    "close": "Close",
    "sources": "Sources",
    "question": "How do I make a volume larger?",
    "answer": (
        "Change `storage` in the file to the new size and apply it again [1].\n\n```yaml\nresources:\n  requests:\n    storage: "
        "40Gi\n```\n\nA volume can't be made smaller. To get a smaller one, create another volume and copy the data [1]."
    ),
    "page": "volumes",
}
CZECH = {
    "button": "Zeptat se",
    "close": "Zavřít",
    "sources": "Zdroje",
    "question": "Jak zvětším svazek?",
    "answer": (
        "Změňte v souboru hodnotu `storage` a použijte ho znovu [1].\n\nSvazek nejde zmenšit. Menší získáte tak, že vytvoříte jiný "
        "a data do něj zkopírujete [1]."
    ),
    "page": "svazky",
}
SWITCHES = {
    "mkdocs": "label[for=__palette_1]:visible",
    "sphinx": ".theme-toggle:visible",
    "docusaurus": "button[class*=toggleButton]:visible",
}


@dataclass
class Built:
    """A built site with the widget, and the service whose index has its pages."""

    generator: str
    site: LocalSite
    service: str
    folder: Path

    @property
    def words(self) -> dict[str, str]:
        """What its readers read and ask."""
        return CZECH if self.generator == "mkdocs" else ENGLISH


@pytest.fixture(scope="module", params=list(GENERATORS))
def a_site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, running_llm: FakeLLM
) -> Iterator[Built]:
    """A site on one origin, its service on another."""
    folder, port = tmp_path_factory.mktemp(request.param), free_port()
    service = f"http://127.0.0.1:{port}"
    with local_site() as site:
        pages = serve(site, built(request.param, folder / "site"), service)
        done = finished(folder, "ingest", pages)
        assert done.returncode == 0, done.stderr + done.stdout
        model = {"DOCS_LLM_URL": running_llm.url, "DOCS_LLM_MODEL": "scripted"}
        model |= {"DOCS_LLM_TIMEOUT": "600", "DOCS_TUNING__HELPER_TIMEOUT": "60"}  # a model may be held
        with served(folder, "serve", port=port, DOCS_ORIGINS=site.url, **model):
            yield Built(request.param, site, service, folder)


@pytest.fixture
def site(a_site: Built, llm: FakeLLM) -> Built:
    """The site, with a model that answers what its pages say."""
    llm.reply = lambda _: Reply(a_site.words["answer"])
    return a_site


def ask(page: Page, question: str) -> Locator:
    """Ask in the open panel; gives the element of the answer."""
    page.locator("docs-assistant dialog").get_by_role("textbox").fill(question)
    page.keyboard.press("Enter")
    return page.locator("docs-assistant .da-answer").last


def test_a_reader_asks_on_the_page_and_goes_to_the_source(site: Built, page: Page, llm: FakeLLM):
    """By the button: a streamed answer in the page's language, with its source as a card that leads to the section."""
    words = site.words
    page.goto(site.site.url)
    page.get_by_role("button", name=words["button"], exact=True).click()
    dialog = page.locator("docs-assistant dialog")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    expect(dialog.locator(".da-questions button").first).to_be_visible()
    go_on = threading.Event()
    llm.reply = lambda _: Reply(words["answer"], held={10: go_on})
    answer = ask(page, words["question"])
    # it is written before one's eyes
    expect(page.locator("docs-assistant .da-answer[aria-busy=true] .da-markdown")).to_be_visible()
    go_on.set()
    expect(answer.get_by_role("heading", name=words["sources"])).to_be_visible()
    card = answer.locator(".da-card").first
    card.get_by_role("button").click()
    link = card.get_by_role("link")
    assert link.get_attribute("href").startswith(f"{site.site.url}/{words['page']}")
    link.click()
    page.wait_for_url(re.compile(words["page"]))
    expect(page.locator("docs-assistant dialog")).to_be_hidden()
    # the conversation stays with the tab, and the next question is a follow-up
    page.get_by_role("button", name=words["button"], exact=True).click()
    expect(page.locator("docs-assistant .da-question")).to_have_text([words["question"]])
    ask(page, words["question"])
    expect(page.locator("docs-assistant .da-question")).to_have_count(2)
    assert page.context.cookies() == []


def test_the_keyboard_opens_keeps_and_gives_back_the_focus(site: Built, page: Page):
    """The shortcut opens, Tab goes through the panel and on, Escape closes from within and returns the focus."""
    page.goto(site.site.url)
    page.locator("docs-assistant .da-launch").wait_for()
    before = page.locator("a[href]:visible").first
    before.focus()
    page.keyboard.press("Control+k")
    dialog = page.locator("docs-assistant dialog")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    expect(dialog.locator("li button")).not_to_have_count(0)
    focused = ["DOCS-ASSISTANT"]
    while focused[-1] == "DOCS-ASSISTANT" and len(focused) < 30:
        page.keyboard.press("Tab")
        focused.append(page.evaluate("document.activeElement.tagName"))
    assert focused[-1] != "DOCS-ASSISTANT"
    page.keyboard.press("Escape")  # of the page, not of the panel
    expect(dialog).to_be_visible()
    page.keyboard.press("Control+k")
    expect(dialog.get_by_role("textbox")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(before).to_be_focused()


def test_dark_follows_the_switch_of_the_site(site: Built, page: Page, axe: Callable[..., None]):
    """And the panel has no serious problem for axe in either."""
    page.goto(site.site.url)
    host = page.locator("docs-assistant")
    expect(host).to_have_attribute("data-theme", "light")
    page.keyboard.press("Control+k")
    answer = ask(page, site.words["question"])
    answer.locator(".da-card").first.get_by_role("button").click()
    expect(answer.locator(".da-actions")).to_be_visible()
    axe(page, "docs-assistant")
    page.keyboard.press("Escape")
    for _ in range(3):  # some switches have three positions
        if host.get_attribute("data-theme") == "dark":
            break
        page.locator(SWITCHES[site.generator]).first.click()
        with suppress(AssertionError):
            expect(host).to_have_attribute("data-theme", "dark", timeout=2_000)
    expect(host).to_have_attribute("data-theme", "dark")
    page.keyboard.press("Control+k")
    expect(page.locator("docs-assistant dialog")).to_have_css("opacity", "1")  # it fades in
    axe(page, "docs-assistant")


def test_a_phone_gets_a_sheet(site: Built, page: Page):
    """390 pixels: the panel fills the screen, and nothing is wider."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(site.site.url)
    page.locator("docs-assistant .da-launch").click()
    ask(page, site.words["question"])
    page.locator("docs-assistant .da-actions").wait_for()
    dialog = page.locator("docs-assistant dialog")
    dialog.evaluate("dialog => Promise.all(dialog.getAnimations().map(({ finished }) => finished))")  # it slides in
    assert dialog.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    assert (
        page.evaluate("document.querySelector('docs-assistant').shadowRoot.querySelector('.da-scroll').scrollWidth")
        <= 390
    )


def imported(script: Path, found: set[Path]) -> set[Path]:
    """This script and those that the browser fetches with it."""
    if script not in found:
        found.add(script)
        for name in re.findall(r'(?:from|import)"\./([^"]+)"', script.read_text("utf-8")):
            imported(script.parent / name, found)
    return found


def test_the_widget_is_small():
    """What a reader fetches for an answer and a search, with styles and texts, compressed; every page of a site fetches less than half, also
    where the panel is beside the page.
    """
    script, button = STATIC / "widget.js", STATIC / "widget/widget.js"
    if not button.exists():
        pytest.skip("not built: make frontend")
    panel, side = (next(STATIC.glob(f"widget/{part}-*.js")) for part in ("panel", "side"))
    for language in ("en", "cs", "de"):
        every = {script} | imported(next(STATIC.glob(f"widget/{language}-*.js")), imported(button, set()))
        sizes = [
            sum(len(gzip.compress(file.read_bytes())) for file in files)
            for files in (every | {side}, imported(panel, set(every)))
        ]
        assert sizes[0] < BUTTON
        assert sizes[1] < ALL
