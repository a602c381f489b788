"""The pages of operators at /admin in a real browser, on a real service."""

import re
import sqlite3
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.app.routes.scripted import wait_for
from tests.end_to_end.program import Program, finished
from tests.ingestion.local_site import local_site

KEY = {"DOCS_ADMIN_KEYS": "the-admin-key-of-tests"}
OPEN_EMPTY = {"DOCS_ADMIN_OPEN": "true", "indexed": False}
BROKEN_MODEL = {**KEY, "DOCS_LLM_URL": "http://127.0.0.1:9/v1"}
VIEWS = (
    "",
    "pages?language=en",
    "questions",
    "quality",
    "generations",
    "runs",
    "sites",
    "keys",
    "curated",
    "settings?changed=1",
    "errors",
    "nowhere",
)


UNNAMED = """all => all.filter(one => getComputedStyle(one, "::before").content === "none" && one.checkVisibility()
    && !one.matches(".ad-page:nth-child(1), td:not(.ad-page) + .ad-page:nth-child(2)")).map(one => one.outerHTML)"""
"""The cells of cards that don't say what they are, except those that a card is about."""


def opened(page: Page, service: Program, path: str = "") -> None:
    """Go to the view with the admin key."""
    page.goto(f"{service.url}/admin/{path}")
    page.get_by_label("Key", exact=True).fill("the-admin-key-of-tests")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Admin key")


def searched(service: Program, query: str) -> set[str]:
    found = httpx.post(f"{service.url}/v1/search", json={"query": query, "limit": 20}, trust_env=False)
    return {one["url"] for one in found.json()["data"]}


@pytest.fixture
def operated(start) -> Program:
    """A service with an admin key, whose index nobody changes."""
    return start(**KEY)


def test_only_a_key_opens_and_a_wrong_one_is_told(page: Page, operated: Program, axe):
    """The key lasts as long as the tab; nothing is shown before, and nothing after it is forgotten."""
    page.goto(f"{operated.url}/admin/pages?language=cs")
    expect(page.get_by_role("heading", name="Admin key")).to_be_visible()
    axe(page, every=True)
    page.get_by_label("Key", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("isn't an admin key")
    assert "Svazky" not in page.content()
    page.get_by_label("Key", exact=True).fill("the-admin-key-of-tests")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Svazky")).to_be_visible()
    page.reload()
    expect(page.get_by_role("link", name="Svazky")).to_be_visible()
    page.get_by_role("button", name="Forget the key").click()
    expect(page.get_by_role("heading", name="Admin key")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Admin key")).to_be_visible()


def test_without_keys_the_pages_are_closed_and_may_be_open_on_this_machine(page: Page, start):
    """Then no form asks for a key."""
    page.goto(f"{start().url}/admin/")
    expect(page.get_by_role("heading", name="These pages are closed")).to_be_visible()
    expect(page.locator("main")).to_contain_text("DOCS_ADMIN_KEYS")
    page.goto(f"{start(**OPEN_EMPTY).url}/admin/")
    expect(page.locator(".ad-state")).to_be_visible()


def test_from_the_overview_to_a_chunk_and_its_neighbours(page: Page, operated: Program, axe):
    """Each step is a link with an address of its own, which also works by itself, and back leads back."""
    opened(page, operated)
    expect(page.locator(".ad-state")).to_contain_text("8 pages")
    page.get_by_role("link", name="Czech").click()
    expect(page).to_have_url(re.compile(r"/admin/pages\?.*language=cs$"))
    expect(page.get_by_role("status").filter(has_text="3 of 8 pages")).to_be_visible()
    page.get_by_role("searchbox").fill("SVAZ")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("searchbox").fill("nowhere")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Why isn't a page found?")).to_have_attribute(
        "href", "docs/en/admin#not-found"
    )
    page.go_back()
    page.get_by_role("link", name="Svazky").click()
    expect(page.locator(".ad-chunk").first).to_contain_text("Svazek je úložiště")
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()  # of this view
    expect(page.locator(".ad-chunk").first).to_be_visible()
    page.get_by_role("link", name="Markdown").click()
    expect(page.locator("pre.ad-source").first).to_contain_text("# Svazky")
    assert "".join(page.locator("pre.ad-source").all_inner_texts()).count("## Jak vytvořím svazek?") == 1
    page.get_by_role("link", name=re.compile("^Chunk 1 ")).click()
    expect(page.get_by_role("heading", name="Nearest chunks")).to_be_visible()
    near = page.get_by_role("region", name="Nearest chunks").locator("tbody tr")
    expect(near).to_have_count(7)
    cosines = [float(text) for text in near.locator("td:first-child").all_inner_texts()]
    assert cosines == sorted(cosines, reverse=True)
    axe(page, every=True)
    here, first = page.url, near.first.get_by_role("link")
    name = first.inner_text()
    first.click()
    expect(page.locator(".ad-title")).to_have_text(name)
    page.go_back()
    expect(page).to_have_url(here)
    with page.expect_response(lambda response: "/v1/admin/chunks/" in response.url) as response:
        page.reload()
    assert response.value.ok
    made_from = page.locator(".ad-json")
    expect(made_from.last).to_contain_text(f"{urlsplit(response.value.url).path.removesuffix('/neighbours')} ")
    assert made_from.last.evaluate("one => !one.nextElementSibling && one.parentElement.matches('main')")


def test_going_back_a_generation_changes_the_answers(page: Page, start, axe, tmp_path: Path):
    """After a question in the page."""
    service = start(**KEY, DOCS_TOP_K="7")
    (tmp_path / "zebra.md").write_text("# Zebra\n\nThe zebra crosses.\n", "utf-8")
    sources = tmp_path / "sources.toml"
    sources.write_text(f'[[source]]\nurl = "https://zoo.example.org/"\ndirectory = "{tmp_path}"\n', "utf-8")
    done = finished(service.folder, "ingest", str(sources))
    assert done.returncode == 0, done.stderr
    zebra = "https://zoo.example.org/zebra"
    assert zebra in searched(service, "zebra crosses")
    opened(page, service, "generations")
    page.get_by_role("button", name="Go back to generation 1").click()
    expect(page.get_by_role("alertdialog")).to_contain_text("generation 2 will be dropped")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    axe(page, every=True)
    page.get_by_role("button", name="Go back", exact=True).click()
    expect(page.get_by_text("No earlier generation is kept")).to_be_visible()
    expect(page.get_by_role("rowheader", name="1")).to_be_visible()
    assert zebra not in searched(service, "zebra crosses")


def test_a_run_is_started_watched_to_its_end_and_reported(page: Page, start, axe):
    """Of the site that the index records, because none is configured; what failed is in the report by reason."""
    service = start(**BROKEN_MODEL)
    opened(page, service, "runs")
    expect(page.get_by_label(re.compile("https://docs.example.org/"))).to_be_checked()
    axe(page, every=True)
    page.locator("form").get_by_role("button", name="Start a run").click()
    expect(page).to_have_url(re.compile("/admin/runs/run-"))
    expect(page.get_by_role("progressbar")).to_be_visible()
    expect(page.get_by_role("heading", name="Report")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("status").first).to_have_text("unchanged")  # so nothing was published
    expect(page.locator(".ad-figures div", has_text="unchanged")).to_contain_text("8")
    page.get_by_role("link", name="Runs", exact=True).click()
    rows = page.get_by_role("region", name="Last runs").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("button or HTTP")
    expect(rows.last).to_contain_text("command")  # in another process, before the service was started
    expect(rows.last).to_contain_text("generation 1")
    axe(page, every=True)


def test_an_editor_writes_an_answer_tries_and_saves_it(page: Page, start, axe, tmp_path: Path):
    """Readers get it at once, and an earlier version can be taken back; in Czech on a phone, too."""
    steps = '["detect", "probe", "retrieve", "relevance", "overview", "curated", "synthesize", "cite"]'
    own = tmp_path / "assistants.toml"
    own.write_text(f'[[assistant]]\nid = "docs-assistant"\nsteps = {steps}\n', encoding="utf-8")
    service = start(**KEY, DOCS_LLM_URL="", DOCS_ASSISTANTS=str(own))
    ask = {"model": "docs-assistant", "messages": [{"role": "user", "content": "How do I create a volume?"}]}

    def answer() -> str:
        response = httpx.post(f"{service.url}/v1/chat/completions", json=ask, timeout=60, trust_env=False)
        return response.json()["choices"][0]["message"]["content"]

    assert "Ask Jana" not in answer()
    opened(page, service, "curated")
    page.get_by_label("Questions, one a line").fill("How do I create a volume?\nCreate a new volume")
    expect(page.get_by_label("Language of the questions")).to_have_value("en")
    expect(page.get_by_role("heading", name="Versions")).to_have_count(0)
    page.get_by_label("Answer in Markdown").fill("Ask Jana.")
    page.get_by_label("Page that is cited").fill(str(min(searched(service, "create volume"))))
    page.get_by_role("button", name="Add an entry").click()
    save = page.get_by_role("button", name="Save as a new version")
    expect(save).to_be_disabled()
    page.get_by_role("button", name="Try against the question log").click()
    expect(page.get_by_text("1 of the last 1 different questions would get an entry")).to_be_visible()
    axe(page, every=True)
    save.click()
    expect(page.get_by_role("listitem").filter(has_text="version 1, entries: 1")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Language of the questions")).to_have_value("en")
    wait_for(lambda: answer().startswith("Ask Jana. [1]"))
    page.get_by_label("Language", exact=True).select_option("cs")
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Odebrat").click()
    page.get_by_role("button", name="Uložit jako novou verzi").click()
    page.get_by_role("button", name="Vrátit verzi 1").click()
    expect(page.get_by_role("listitem").filter(has_text="verze 3, položek: 1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe(page, every=True)


def test_a_site_is_looked_at_added_paused_and_removed(page: Page, start, axe):
    """What would be fetched is seen before; all of it in Czech on a phone, too."""
    service = start(**KEY, DOCS_CRAWL_ALLOW="127.0.0.1", DOCS_LLM_URL="")
    with local_site() as site:
        for path in ("/guide/pumps", "/guide/valves", "/old/pumps"):
            site.page(path, path, f"All about {path}, and what they are good for.")
        url = site.sitemap("/guide/pumps", "/guide/valves", "/old/pumps")
        opened(page, service, "sites")
        rows = page.get_by_role("region", name="Sites").locator("tbody tr")
        expect(rows).to_have_count(1)
        expect(rows.first).to_contain_text("recorded with the index")
        axe(page, every=True)
        page.get_by_label("Address of a sitemap or a site").fill(url)
        page.get_by_label("Not these paths").fill("/old/*")
        form = page.locator("form")
        form.get_by_role("button", name="What would be fetched").click()
        seen = page.get_by_role("region", name="What would be fetched")
        expect(seen.get_by_role("status")).to_have_text("2 pages would be fetched")
        expect(seen).to_contain_text("1 × skipped: excluded by /old/*")
        assert site.statuses("/guide/pumps") == []
        axe(page, every=True)
        form.get_by_role("button", name="Add a site").click()
        expect(rows).to_have_count(2)
        expect(rows.nth(0)).to_contain_text("waits for the next run")
        page.get_by_role("link", name="Start a run").click()
        page.locator("form").get_by_role("button", name="Start a run").click()
        expect(page.get_by_role("status").filter(has_text="published")).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="Sites", exact=True).click()
        expect(rows.nth(0)).to_contain_text("read by runs")
        rows.nth(0).get_by_role("button", name="Pause").click()
        expect(rows.nth(0)).to_contain_text("paused")
        page.get_by_label("Language", exact=True).select_option("cs")
        page.set_viewport_size({"width": 390, "height": 844})
        rows = page.get_by_role("region", name="Weby").locator("tbody tr")
        box = rows.nth(0).get_by_role("button", name="Pokračovat").bounding_box()
        assert box["x"] > 0
        assert box["x"] + box["width"] < 390  # in sight, however wide the table is
        assert rows.nth(0).get_by_role("button", name="Odebrat").bounding_box()["x"] > box["x"] + box["width"] + 3
        rows.nth(0).get_by_role("button", name="Pokračovat").click()
        expect(rows.nth(0)).to_contain_text("běhy jej čtou")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        rows.nth(0).get_by_role("button", name="Odebrat").click()
        expect(page.get_by_role("alertdialog")).to_contain_text("opustí index")
        axe(page, every=True)
        page.get_by_role("alertdialog").get_by_role("button", name="Odebrat").click()
        expect(page).to_have_url(re.compile("/admin/runs/run-"))
        expect(page.get_by_role("status").filter(has_text="zveřejněno")).to_be_visible(timeout=60_000)
        page.get_by_role("link", name="Weby", exact=True).click()
        expect(rows).to_have_count(1)


def test_a_key_is_made_copied_limited_and_revoked(page: Page, start, axe, tmp_path: Path):
    """The key is shown once and works until it is revoked; all of it in Czech on a phone, too."""
    file = tmp_path / "keys.toml"
    file.write_text("# ours\n", "utf-8")
    service = start(**KEY, DOCS_KEYS=str(file))
    opened(page, service, "keys")
    rows = page.get_by_role("region", name="Keys").locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("in the settings")
    expect(rows.get_by_role("button")).to_have_count(0)
    form = page.locator("form")
    form.get_by_label("Name, which logs show").fill("robot")
    form.get_by_label("Questions over time").fill("often")
    form.get_by_role("button", name="Make a key").click()
    expect(form.get_by_role("alert")).to_contain_text("rate")
    form.get_by_label("Questions over time").fill("60/minute")
    form.get_by_role("button", name="Make a key").click()
    key = form.get_by_role("status").locator("code").inner_text()
    models = f"{service.url}/v1/models"

    def status() -> int:
        return httpx.get(models, headers={"authorization": f"Bearer {key}"}, trust_env=False).status_code

    assert status() == 200
    assert file.read_text("utf-8").startswith("# ours\n")
    expect(form.get_by_role("button", name="Copy the key")).to_be_visible()
    expect(rows.nth(1)).to_contain_text("60/minute")
    axe(page, every=True)
    page.reload()
    expect(rows).to_have_count(2)
    assert key not in page.content()
    rows.nth(1).get_by_role("button", name="Change limits").click()
    rows.nth(1).get_by_label("Answers at the same time").fill("4")
    axe(page, every=True)
    rows.nth(1).locator("form").get_by_role("button", name="Change limits").click()
    expect(rows.nth(1)).to_contain_text("Answers at the same time: 4")
    page.get_by_label("Language", exact=True).select_option("cs")
    page.set_viewport_size({"width": 390, "height": 844})
    rows = page.get_by_role("region", name="Klíče").locator("tbody tr")
    rows.nth(1).get_by_role("button", name="Zneplatnit").click()
    expect(page.get_by_role("alertdialog")).to_contain_text("robot")
    axe(page, every=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("alertdialog").get_by_role("button", name="Zneplatnit").click()
    expect(rows).to_have_count(1)
    assert status() == 401
    page.goto(f"{start(**KEY).url}/admin/keys")
    page.get_by_role("textbox").fill("the-admin-key-of-tests")
    page.keyboard.press("Enter")
    expect(page.get_by_role("note")).to_contain_text("DOCS_KEYS")


def test_settings_say_where_they_come_from_and_errors_appear(page: Page, start):
    """The filter is part of the address; an answer whose model fails leaves an error with the id of its request."""
    service = start(**BROKEN_MODEL, DOCS_RETENTION_DAYS="30")
    opened(page, service, "settings?changed=1")
    row = page.get_by_role("row", name=re.compile("DOCS_ADMIN_KEYS"))
    expect(row).to_contain_text("(set)")
    expect(row).to_contain_text("environment")
    assert "the-admin" not in page.content()
    expect(page.get_by_role("row", name=re.compile("DOCS_RETENTION_DAYS"))).to_have_count(0)  # set to its default
    page.get_by_role("checkbox").uncheck()
    expect(page.locator("tbody tr:visible")).to_have_count(0)  # groups, closed at first
    page.get_by_text("[server]").click()
    expect(page.get_by_role("row", name=re.compile("DOCS_PORT"))).to_contain_text("server.port")
    page.get_by_role("checkbox").check()
    page.get_by_role("searchbox").fill("llm_url")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"settings\?q=llm_url&changed=1$"))
    manual = page.get_by_role("link", name="What each setting does").get_attribute("href")
    assert httpx.get(f"{service.url}/{manual}", trust_env=False).status_code == 200
    page.get_by_role("link", name="Errors").click()
    expect(page.get_by_text("Nothing went wrong")).to_be_visible()
    question = {"model": "docs-assistant", "messages": [{"role": "user", "content": "How do I create a volume?"}]}
    headers = {"x-request-id": "told-by-a-reader"}
    httpx.post(f"{service.url}/v1/chat/completions", json=question, headers=headers, timeout=60, trust_env=False)
    page.reload()
    expect(page.get_by_text("told-by-a-reader").first).to_be_visible()
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".ad-state")).to_contain_text("needs attention")
    expect(page.get_by_role("heading", name="A language model fails").first).to_be_visible()


def test_an_index_that_is_missing_is_red_and_says_what_to_do(page: Page, start, axe):
    page.goto(f"{start(**OPEN_EMPTY).url}/admin/")
    expect(page.locator(".ad-state")).to_contain_text("Questions can't be answered")
    expect(page.locator(".ad-problems li").first).to_contain_text("docs-assistant ingest")
    axe(page, every=True)
    expect(page.get_by_role("heading", name="Index", exact=True)).to_have_count(0)  # of which there is nothing to say
    page.get_by_role("link", name="Pages").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing is indexed yet")
    page.get_by_role("link", name="Add a site").click()
    expect(page.get_by_label("Address of a sitemap or a site")).to_be_visible()


def test_every_view_is_accessible_in_the_dark_in_czech_and_fits_a_phone(page: Page, operated: Program, axe):
    """No view is wider than a phone, and no table either: its rows are cards, whose cells say what they are."""
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    opened(page, operated)
    page.get_by_label("Language").select_option("cs")  # and gone at once: the choice is kept
    for view in VIEWS:
        page.goto(f"{operated.url}/admin/{view}")
        expect(page.locator("header").get_by_role("combobox", name="Jazyk")).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".da-spinner")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        widths = "all => all.every(one => one.scrollWidth <= one.clientWidth)"
        assert page.locator(".ad-table").evaluate_all(widths), view
        assert page.locator(".ad-table td[data-head]:not([data-head=''])").evaluate_all(UNNAMED) == [], view
        if (current := page.locator("header nav [aria-current]")).count():
            expect(current).to_be_in_viewport(ratio=1)
        axe(page, every=True)
    expect(page.get_by_role("heading", level=1)).to_have_text("Na této adrese nic není")
    page.goto(f"{operated.url}/admin/generations")
    # the shadow at the edge, as in answers
    expect(page.locator(".ad-table")).to_have_css("background-attachment", "local, local, scroll, scroll")
    cell = page.get_by_role("cell").filter(has_text="words").first
    assert cell.evaluate("one => getComputedStyle(one, '::before').content") == '"Embedder "'
    page.get_by_role("link", name="Stránky").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_a_docs_editor_sees_what_to_write(page: Page, start, axe):
    """What readers asked without an answer is the first subject, in their words; also in Czech on a phone."""
    service = start(DOCS_ADMIN_KEYS="the-admin-key-of-tests", DOCS_LLM_URL="", DOCS_LOG_LEVEL="warning")
    page.goto(f"{service.url}/admin/gaps")
    page.get_by_label("Key", exact=True).fill("the-admin-key-of-tests")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("No question was logged", timeout=60_000)
    expect(page.locator("main")).to_contain_text("Choose a longer one")
    others = ("Jira", "Telegram", "Kafka", "Jenkins", "Grafana", "Ansible", "Trello", "Notion", "Windows", "Slack")
    questions = ["How do I connect SharePoint?", "Jak propojím SharePoint?", "How do I create a volume?"]
    for question in questions + [f"Is {one} possible?" for one in others]:
        asked = {"model": "docs-assistant", "messages": [{"role": "user", "content": question}]}
        httpx.post(f"{service.url}/v1/chat/completions", json=asked, timeout=60, trust_env=False).raise_for_status()
    page.get_by_label("Period").select_option("7 days")
    expect(page.get_by_role("status").filter(has_text="The report is being made")).to_be_visible()
    first = page.locator(".ad-gaps > li").first
    expect(first).to_contain_text("SharePoint", timeout=60_000)
    expect(page.get_by_text("Pass over the others")).to_have_count(1)
    expect(first.locator(".ad-gap-count")).to_have_text("2of 2 not answered well")
    expect(first.locator(".ad-asked li", has_text="SharePoint?")).to_have_count(2)
    expect(page.locator(".ad-gaps > li:visible")).to_have_count(10)
    page.get_by_text("and 1 more").click()
    expect(page.locator(".ad-gaps > li:visible")).to_have_count(11)
    expect(page).to_have_url(re.compile(r"/admin/gaps\?since=7d$"))
    axe(page, every=True)
    page.get_by_label("Language").select_option("cs")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".ad-gaps > li").first).to_contain_text("z 2 bez dobré odpovědi")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe(page, every=True)


def test_an_editor_takes_up_words_in_which_readers_asked_again(page: Page, start, axe, tmp_path: Path):
    """The proposal has both questions and goes when it was added; then the first words are answered, too."""
    (tmp_path / "synonyms.toml").write_text("# words of readers = words of the pages\n")
    service = start(DOCS_ADMIN_KEYS="the-admin-key-of-tests", DOCS_LLM_URL="", DOCS_PROMPTS=str(tmp_path))
    with httpx.Client(base_url=service.url, timeout=60, trust_env=False) as client:

        def answer(word: str) -> str:
            asked = {
                "model": "docs-assistant",
                "messages": [{"role": "user", "content": f"How many {word}s may I have?"}],
            }
            reply = client.post("/v1/chat/completions", json={**asked, "conversation": conversation})
            return reply.raise_for_status().json()["choices"][0]["message"]["content"]

        for _ in range(2):  # one alone may be a change of subject, as both share no word
            conversation = client.post("/v1/conversations", json={}).json()["id"]
            assert "found nothing" in answer("zettastore")
            assert "found nothing" not in answer("volume")
        opened(page, service, "gaps")
        row = page.get_by_role("row").filter(has_text="zettastores → volumes")
        expect(row).to_contain_text("How many zettastores may I have? → How many volumes may I have?", timeout=60_000)
        axe(page, every=True)
        row.get_by_role("button", name="Add as a synonym").click()
        expect(row).to_have_count(0, timeout=60_000)
        assert (tmp_path / "synonyms.toml").read_text().splitlines()[1:] == ['"zettastores" = ["volumes"]']
        assert "found nothing" not in answer("zettastore")


def test_an_editor_sees_what_was_asked_and_how_it_was_answered(page: Page, start, axe, tmp_path: Path):
    """Each question with its answer and its trace; filters are addresses; all of it in Czech on a phone, too."""
    service = start(DOCS_ADMIN_KEYS="the-admin-key-of-tests", DOCS_LLM_URL="", DOCS_TOP_K="6")
    opened(page, service, "questions")
    expect(page.get_by_text("No question was logged in this period")).to_be_visible()
    for question in ("How do I create a volume?", "Jak propojím SharePoint?", "=How do I create volumes?"):
        asked = {"model": "docs-assistant", "messages": [{"role": "user", "content": question}]}
        answer = httpx.post(f"{service.url}/v1/chat/completions", json=asked, timeout=60, trust_env=False).json()
    feedback = f"{service.url}/v1/answers/{answer['id']}/feedback"
    httpx.post(feedback, json={"rating": "down"}, trust_env=False).raise_for_status()
    page.reload()
    rows = page.get_by_role("region", name="Questions").locator("tbody tr")
    expect(rows.locator("th > a:first-child")).to_have_text([
        "=How do I create volumes?", "Jak propojím SharePoint?", "How do I create a volume?",
    ])  # fmt: skip
    expect(page.locator(".ad-figures div", has_text="Rated down")).to_contain_text("1")
    kept = sqlite3.connect(service.folder / "data/conversations.db")
    kept.execute("update questions set created = created - 172800 where text = 'How do I create a volume?'")
    kept.commit()
    kept.close()
    page.reload()
    plots = page.get_by_role("slider")
    expect(plots).to_have_count(6)
    plot, days = page.locator(".ad-plot").first, page.locator(".ad-days").first
    expect(plot.locator(".ad-scale > span")).to_have_text(["2", "0"])
    expect(plot.locator(".ad-dates > span")).to_have_text([re.compile(r"^\w+ \d+$")] * 2)
    expect(plot.locator("p")).to_have_text("questions a day")
    days.hover(position={"x": 2, "y": 20})
    expect(plot.locator("p")).to_have_text(re.compile(r"\d{4}: 1$"))
    expect(page.locator(".ad-plot p").last).to_have_text(re.compile(r"\d{4}: 0$"))  # the same day everywhere
    page.mouse.move(0, 0)
    page.get_by_label("Words").focus()
    for _ in range(2):
        page.keyboard.press("Tab")  # over the button
    expect(page.get_by_role("slider", name="Questions, questions a day")).to_be_focused()
    expect(plots.first).to_have_attribute("aria-valuetext", re.compile(": 2$"))
    page.keyboard.press("ArrowLeft")
    expect(plots.first).to_have_attribute("aria-valuetext", re.compile(": 0$"))
    expect(plot.locator("p")).to_have_text(re.compile(": 0$"))
    axe(page, every=True)
    page.get_by_label("Outcome").focus()
    page.get_by_label("Outcome").select_option("refused")
    expect(page).to_have_url(re.compile("outcome=refused"))
    expect(rows).to_have_count(1)
    expect(page.get_by_label("Outcome")).to_be_focused()  # nothing was taken away meanwhile
    page.get_by_role("link", name="Show all questions").click()
    page.get_by_label("Words").fill("VOLUM")
    page.keyboard.press("Enter")
    expect(rows).to_have_count(2)
    page.get_by_label("Rating").select_option("down")
    expect(page).to_have_url(re.compile(r"q=VOLUM.*rating=down"))
    expect(rows).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("button", name="Save all as CSV").click()
    download.value.save_as(tmp_path / "questions.csv")
    saved = (tmp_path / "questions.csv").read_text("utf-8-sig").splitlines()
    assert (len(saved), "'=How do I create volumes?" in saved[1]) == (2, True)
    page.get_by_role("link", name="=How do I create volumes?").click()
    expect(page.locator("article")).to_contain_text("word for word")
    axe(page, every=True)
    page.get_by_label("Language").select_option("cs")
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.get_by_role("heading", name="Konverzace")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name="Otázky", exact=True).click()
    expect(page.get_by_role("region", name="Otázky").locator("tbody tr")).to_have_count(3)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    axe(page, every=True)
    page.get_by_role("link", name="Průběh").last.click()
    expect(page).to_have_url(re.compile(r"/admin/ask\?q=How\+do\+I\+create\+a\+volume"))
    expect(page.locator(".tr-answer")).to_be_visible()
