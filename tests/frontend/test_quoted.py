"""What readers get of a service without a language model, on its page and in the widget of the site that it has indexed."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.end_to_end.program import finished as ran
from tests.end_to_end.program import free_port
from tests.end_to_end.program import service as served
from tests.frontend.test_page import ask, finished
from tests.ingestion.local_site import LocalSite, local_site

ROWS = "".join(
    f"<tr><td><code>{name}</code></td><td>{what}</td></tr>"
    for name, what in {
        "paper_size": "the format of the sheets that lie in the tray",
        "ink_level": "how much ink is left before somebody is told",
        "quiet_hours": "hours of the night in which nothing is printed",
        "spool_port": "the port on which the spooler waits for documents",
        "retry_after": "seconds after which a failed document comes again",
    }.items()
)
STEPS = "".join(f"<li>Turn screw number {n} to the left, and put it into the box.</li>" for n in range(1, 13))
CODE = "\n".join(f"calibrate --head {n} --slowly" for n in range(1, 17))
PRINTERS = f"""<h1>Printers</h1><p>The house has nine printers.</p>
<h2>Settings of the spooler</h2><table><tr><th>setting</th><th>what it is</th></tr>{ROWS}</table>
<h2>How do I open the case?</h2><ol>{STEPS}<li>Lift the lid with the yellow handle.</li><li>Wait for the green lamp.</li></ol>
<h2>How do I calibrate the heads?</h2><p>Calibrate all heads after you have changed the ink:</p><pre><code>{CODE}</code></pre>
<p>The heads are warm after that.</p>"""
OTHERS = {"/lamps": "Lamps", "/doors": "Doors"}
CZECH = """<h1>Výtah</h1><p>Výtah v domě jezdí od šesti hodin ráno do desíti hodin večer a uveze čtyři osoby.</p>
<h2>Jak přivolám výtah?</h2><p>Stiskněte tlačítko u dveří a počkejte, až se rozsvítí zelené světlo.</p>"""


@dataclass(frozen=True)
class Quoting:
    """A site with the widget, and the service without a model that has indexed it."""

    site: LocalSite
    url: str

    def put(self, path: str, main: str, language: str = "en") -> None:
        """A page of the site."""
        script = f'<script src="{self.url}/static/widget.js" async></script>'
        lang = f' lang="{language}"' if language else ""
        self.site.put(
            path,
            f"<!doctype html><html{lang}><head><title>House</title>{script}</head><body><main>{main}</main></body></html>",
        )

    def ask(self, page: Page, question: str, path: str = "/printers") -> Locator:
        """The answer in the panel on this page of the site."""
        page.goto(f"{self.site.url}{path}")
        page.locator("docs-assistant .da-launch").click()
        page.locator("docs-assistant textarea").fill(question)
        page.keyboard.press("Enter")
        answer = page.locator("docs-assistant .da-answer[aria-busy=false]").last
        expect(answer.locator("blockquote")).to_be_visible()
        return answer


@pytest.fixture(scope="module")
def quoting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Quoting]:
    """The site of a house."""
    folder, port = tmp_path_factory.mktemp("quoting"), free_port()
    with local_site() as site:
        house = Quoting(site, f"http://127.0.0.1:{port}")
        house.put("/printers", PRINTERS)
        for path, title in OTHERS.items():
            questions = "".join(
                f"<h2>How do I {verb} the {title.lower()}?</h2><p>Press the {verb} button of the {title.lower()}.</p>"
                for verb in ("clean", "move")
            )
            house.put(path, f"<h1>{title}</h1>{questions}")
        house.put("/vytah", CZECH, language="")
        done = ran(folder, "ingest", site.sitemap("/printers", *OTHERS, "/vytah"))
        assert done.returncode == 0, done.stderr + done.stdout
        with served(folder, "serve", port=port, DOCS_ORIGINS=site.url):
            yield house


def test_of_a_table_the_row_that_answers_is_shown_until_all_is_wanted(page: Page, quoting: Quoting, axe):
    """By the keyboard, too; what is copied and printed is the whole, and the panel folds as the page does."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(quoting.url)
    ask(page, "On which port does the spooler wait for documents?")
    answer = finished(page)
    rows = answer.locator("blockquote tbody tr:visible")
    assert [row.split()[0] for row in rows.all_inner_texts()] == ["spool_port"]
    expect(answer.locator("blockquote thead")).to_be_visible()
    expect(answer.locator("blockquote mark").first).to_be_in_viewport()
    expect(answer.locator(".da-card").first).to_be_in_viewport()
    expect(answer.locator(".da-thumbs")).to_be_in_viewport()
    assert "".join(answer.locator(".da-actions").inner_text().split()) == "LinkShare"  # with one icon
    paths = {
        one.locator("path").get_attribute("d") for one in answer.locator(".da-actions > button", has_text="").all()[2:4]
    }
    assert len(paths) == 1
    page.emulate_media(media="print")
    expect(rows).to_have_count(5)
    expect(answer.get_by_role("button", name="Show all")).to_be_hidden()
    page.emulate_media(media="screen")
    expect(rows).to_have_count(1)
    answer.get_by_role("button", name="Copy the answer").click()
    assert "paper_size" in page.evaluate("navigator.clipboard.readText()")
    button = answer.get_by_role("button", name="Show all", expanded=False)
    button.focus()
    page.keyboard.press("Enter")
    expect(answer.get_by_role("button", name="Show all", expanded=True)).to_be_focused()
    expect(rows).to_have_count(5)
    axe(page)
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    expect(
        quoting.ask(page, "On which port does the spooler wait for documents?").locator("tbody tr:visible")
    ).to_have_count(1)


def test_of_a_long_list_the_items_around_the_answer_keep_their_numbers(page: Page, quoting: Quoting):
    page.goto(quoting.url)
    ask(page, "How do I lift the lid with the yellow handle?")
    answer = finished(page)
    items = answer.locator("blockquote li:visible")
    expect(items.filter(has=page.locator("mark"))).to_have_text("Lift the lid with the yellow handle.")
    assert 2 <= items.count() <= 12
    numbers = items.evaluate_all("items => items.map(({ value }) => value)")
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert numbers[items.all_inner_texts().index("Lift the lid with the yellow handle.")] == 13


def test_code_that_is_announced_is_shown_whole(page: Page, quoting: Quoting):
    page.goto(quoting.url)
    ask(page, "How do I calibrate the heads?")
    code = finished(page).locator("blockquote pre")
    expect(code).to_be_visible()
    assert code.inner_text().count("calibrate") == 16


def test_the_panel_begins_with_the_questions_of_its_page(page: Page, quoting: Quoting):
    """On a page that isn't in the index, with those of the site."""
    quoting.put("/not-indexed", "<h1>Cellar</h1>")
    questions = page.locator("docs-assistant .da-questions button")
    for path, asked in (("/lamps", "lamps"), ("/doors", "doors")):
        page.goto(f"{quoting.site.url}{path}")
        page.locator("docs-assistant .da-launch").click()
        expect(questions.first).to_be_visible()
        own = {f"How do I {verb} the {asked}?" for verb in ("clean", "move")}
        assert set(questions.all_inner_texts()[:2]) == own
    page.goto(f"{quoting.site.url}/not-indexed")
    page.locator("docs-assistant .da-launch").click()
    expect(questions.first).to_be_visible()
    assert len({question.split()[-1] for question in questions.all_inner_texts()}) > 1


def test_a_page_that_says_no_language_has_that_of_the_index(page: Page, quoting: Quoting):
    """The browser's is English; it is used where the index doesn't know the page."""
    quoting.put("/unknown", "<h1>Sklep</h1>", language="")
    page.goto(f"{quoting.site.url}/vytah")
    button = page.locator("docs-assistant .da-launch")
    expect(button).to_have_text("Zeptat se")
    button.click()
    expect(page.locator("docs-assistant .da-questions button").first).to_have_text("Jak přivolám výtah?")
    page.goto(f"{quoting.site.url}/unknown")
    expect(button).to_have_text("Ask")
    page.evaluate("document.documentElement.lang = 'de'")
    expect(button).to_have_text("Fragen")


def test_the_button_gets_the_focus_back_and_a_phone_keeps_it_in_the_panel(page: Page, quoting: Quoting):
    """Beside the page, Tab goes on to the page, which stays of use; on a phone, the panel covers the page."""
    page.goto(f"{quoting.site.url}/lamps")
    button, dialog = page.locator("docs-assistant .da-launch"), page.locator("docs-assistant dialog")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 844})
        button.focus()
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("textbox")).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(button).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.locator(".da-questions button").first).to_be_visible()
    page.evaluate("document.querySelector('main').innerHTML += '<a href=/doors>Doors</a><input>'")
    for _ in range(20):  # those of the browser itself are outside of the page
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.tagName") in {"DOCS-ASSISTANT", "BODY"}
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
