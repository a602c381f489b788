"""What a site can set and do with the widget, and what the widget says when something goes wrong."""

import json
import re
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.end_to_end.program import Program
from tests.fake_llm import FakeLLM, Reply
from tests.frontend.conftest import Start
from tests.ingestion.local_site import LocalSite, local_site

STRICT = "default-src 'none'; script-src 'self' {0}; connect-src {0}; img-src {0}; require-trusted-types-for 'script'"
QUESTION = "How do I create a volume?"
OTHER = "How do I restore a file?"
PAGE = f"""<!doctype html><html lang="en"><head><title>A page</title><script type="module" src="/own.js"></script></head>
<body><input aria-label="Name"><a href="/elsewhere" data-docs-assistant="{QUESTION}">How?</a></body></html>"""


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    """A site on which each test puts its own page."""
    with local_site() as site:
        yield site


@pytest.fixture
def service(start: Start, site: LocalSite, llm: FakeLLM) -> Program:
    """A service that the site may ask."""
    return start(DOCS_ORIGINS=site.url, DOCS_ADMIN_OPEN="true")


def put(site: LocalSite, service: str, page: str, script: str = "") -> None:
    """A page under a strict policy, with its own script."""
    site.put("/", page, headers={"content-security-policy": STRICT.format(service)})
    site.put("/own.js", script.replace("SERVICE", service), "text/javascript")


def plain(service: str, attributes: str = "", language: str = "en") -> str:
    """A page with the widget."""
    script = f'<script src="{service}/static/widget.js" {attributes} async></script>'
    return f'<!doctype html><html lang="{language}"><head><title>A page</title>{script}</head><body><h1>A page</h1></body></html>'


def questions(page: Page) -> list[dict[str, Any]]:
    """The bodies of what is asked from now on."""
    asked: list[dict[str, Any]] = []

    def requested(request: Request) -> None:
        if request.url.endswith("/v1/chat/completions") and request.post_data:
            asked.append(json.loads(request.post_data))

    page.on("request", requested)
    return asked


def test_a_module_mounts_it_with_options_and_it_knows_the_page(
    site: LocalSite, page: Page, service: Program, llm: FakeLLM
):
    """Without a button; elements of the site open it. Each question has the address and the language that the page has then."""
    mount = "mount({ hidden: true, shortcut: 'Mod+I', greeting: 'Hello there', color: '#7a2ea0', collections: ['handbook'] })"
    put(site, service.url, PAGE, f"import {{ mount }} from 'SERVICE/static/widget.mjs';\n{mount};")
    asked = questions(page)
    page.goto(site.url)
    page.get_by_label("Name").click()
    expect(page.locator("docs-assistant")).to_be_attached()
    page.keyboard.press("Control+i")
    panel = page.locator("docs-assistant dialog")
    expect(panel.get_by_text("Hello there")).to_be_visible()
    expect(page.locator("docs-assistant .da-launch")).to_have_count(0)
    color = page.evaluate("getComputedStyle(document.querySelector('docs-assistant')).getPropertyValue('--da-accent')")
    assert color.startswith("light-dark(#7a2ea0,")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="How?").click()
    expect(panel.locator(".da-actions")).to_have_count(1)
    page.evaluate("history.pushState(null, '', '/other?x=1#part'); document.documentElement.lang = 'cs-CZ'")
    panel.get_by_label("Vaše otázka").fill(OTHER)
    page.keyboard.press("Enter")
    expect(panel.locator(".da-actions")).to_have_count(2)
    assert [(one["page"], one["language"], one["messages"][-1]["content"]) for one in asked] == [
        (f"{site.url}/", "en", QUESTION),
        (f"{site.url}/other?x=1#part", "cs", OTHER),
    ]
    assert [one["filters"] for one in asked] == [{"collections": ["handbook"]}] * 2


def test_what_no_passage_proves_is_underlined_in_the_panel(
    site: LocalSite, page: Page, service: Program, llm: FakeLLM, axe
):
    """In the language of the page; still so when the conversation goes on after a reload."""
    llm.reply = lambda _: Reply("A volume can't be made smaller [1]. Each project may have 25 volumes [1].")
    put(site, service.url, plain(service.url, language="de"))
    page.set_viewport_size({"width": 390, "height": 700})
    page.goto(site.url)
    panel = page.locator("docs-assistant dialog")
    for reloaded in (False, True):
        page.locator("docs-assistant .da-launch").click()
        if not reloaded:
            panel.get_by_role("textbox").fill(QUESTION)
            page.keyboard.press("Enter")
        expect(panel.locator(".da-markdown u")).to_have_text("Each project may have 25 volumes.")
        panel.get_by_role("button", name="Steht nicht in der Dokumentation").click()
        expect(panel.get_by_role("tooltip")).to_contain_text("Eine Zahl, ein Name")
        expect(panel.get_by_role("tooltip")).to_be_in_viewport(ratio=1)
        axe(page, "docs-assistant")
        page.reload()


def test_the_panel_searches_as_one_types(site: LocalSite, page: Page, service: Program, llm: FakeLLM):
    """Sections of pages as links in this tab, and from one of them back to a question."""
    put(site, service.url, plain(service.url))
    page.goto(site.url)
    page.locator("docs-assistant .da-launch").click()
    panel = page.locator("docs-assistant dialog")
    panel.get_by_role("button", name="Search").click()
    panel.get_by_role("combobox", name="Search", exact=True).press_sequentially("create a vol", delay=20)
    expect(panel.get_by_role("row").first).to_contain_text("olume")
    assert panel.locator(".da-found").first.get_attribute("target") == "_self"
    panel.locator(".da-found-ask button").first.click()
    expect(panel.locator(".da-answer .da-actions")).to_have_count(1)


def test_first_questions_that_are_still_being_made_come_later(page: Page, site: LocalSite, service: Program):
    looks = []

    def early(route: Route) -> None:
        looks.append(1)
        response = route.fetch()
        body = response.json()
        for assistant in body["assistants"] if len(looks) == 1 else ():
            assistant["suggestions"] = {}
        route.fulfill(response=response, json=body | {"preparing": len(looks) == 1})

    put(site, service.url, plain(service.url))
    page.route("**/v1/interface*", early)
    page.goto(site.url)
    page.locator("docs-assistant .da-launch").click()
    expect(page.locator("docs-assistant .da-questions button").first).to_be_visible()
    assert len(looks) == 2


def test_selected_text_of_the_site_can_be_asked_about(page: Page, site: LocalSite, service: Program):
    """Also by keyboard, and under a strict policy; not where the site switches it off, and not in its fields."""
    text = '<p>Take a <b>storage quota</b> first.</p><input value="typed text">'
    put(site, service.url, plain(service.url).replace("<h1>", f"{text}<h1>"))
    page.goto(site.url)
    asked, offer = questions(page), page.locator("docs-assistant").get_by_role("button", name="Ask about this")
    expect(page.locator("docs-assistant .da-launch")).to_be_visible()
    page.get_by_role("textbox").dblclick()
    page.locator("b").dblclick(position={"x": 8, "y": 8})  # a word, whatever the font
    page.keyboard.press("Shift+End")
    expect(offer).to_be_visible()
    page.locator("h1").click()
    expect(offer).to_have_count(0)
    page.locator("b").select_text()
    page.locator("b").press("Shift")
    offer.click()
    expect(
        page.locator("docs-assistant").get_by_role("heading", name="What does “storage quota” mean here?")
    ).to_be_visible()
    expect(offer).to_have_count(0)
    assert [body["messages"][-1]["content"] for body in asked] == ["What does “storage quota” mean here?"]
    put(site, service.url, plain(service.url, 'data-selection="false"').replace("<h1>", f"{text}<h1>"))
    page.goto(site.url)
    expect(page.locator("docs-assistant .da-launch")).to_be_visible()
    page.locator("b").dblclick(position={"x": 8, "y": 8})  # a word, whatever the font
    page.wait_for_timeout(300)
    expect(offer).to_have_count(0)


BESIDE = """<p>Take a <b>storage quota</b> first.</p><button>Of the page</button>"""


def test_the_page_below_the_bubble_stays_of_use(site: LocalSite, page: Page, service: Program, axe):
    """It can be clicked and scrolled, and keeps its own Escape; the panel has the site's icon and leads to the page of the service."""
    long = "<pre>" + "A line\n" * 200 + "</pre></body>"
    put(site, service.url, plain(service.url).replace("<h1>", f"{BESIDE}<h1>").replace("</body>", long))
    page.goto(site.url)
    host, panel = page.locator("docs-assistant"), page.locator("docs-assistant dialog")
    host.locator(".da-launch").click()
    expect(panel.get_by_role("textbox")).to_be_focused()
    expect(panel.get_by_text("A machine answers, first from pages near yours.")).to_be_visible()
    expect(panel.locator(".da-head img")).not_to_have_js_property("naturalWidth", 0)
    expect(host.locator(".da-launch")).to_be_hidden()
    axe(page, "docs-assistant")
    page.get_by_role("button", name="Of the page").click()
    expect(page.get_by_role("button", name="Of the page")).to_be_focused()
    page.keyboard.press("Escape")
    page.mouse.move(100, 400)
    page.mouse.wheel(0, 500)
    expect(page.locator("html")).not_to_have_js_property("scrollTop", 0)
    expect(panel).to_be_visible()
    panel.locator(".da-questions button").first.click()  # goes away, and the focus stays in the panel
    expect(panel.locator(".da-actions")).to_be_visible()
    with page.expect_popup() as opened:
        panel.get_by_role("link", name="Open in full").click()
    expect(opened.value.locator(".da-question bdi")).to_have_text(panel.locator(".da-question").inner_text())
    assert opened.value.url.startswith(service.url)
    panel.get_by_role("button", name="Search").click()
    panel.get_by_role("combobox", name="Search", exact=True).fill("backup")
    expect(panel.get_by_role("status").filter(has_text="result")).to_be_visible()
    panel.get_by_role("button", name="Back to the conversation").click()
    panel.get_by_role("button", name="Search").click()
    expect(panel.get_by_role("combobox", name="Search", exact=True)).to_have_value(
        "backup"
    )  # while one reads an answer
    with page.expect_popup() as opened:
        panel.get_by_role("link", name="Open in full").click()
    expect(opened.value.get_by_role("combobox", name="Search", exact=True)).to_have_value("backup")
    panel.get_by_role("button", name="Back to the conversation").click()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    page.route("**/brand/icon", lambda route: route.abort())  # as a policy of the site may
    page.reload()
    host.locator(".da-launch").click()
    expect(panel.locator(".da-exchanges > li")).to_have_count(1)
    expect(panel.locator(".da-head img")).to_be_hidden()


def test_a_panel_beside_the_page_leaves_it_to_read_and_stays_open(site: LocalSite, page: Page, service: Program, axe):
    """Without a backdrop; the reader makes it wider by mouse and keyboard. On the next page it is as it was, and the focus stays with the page."""
    put(site, service.url, plain(service.url, 'data-layout="panel"').replace("<h1>", f"{BESIDE}<h1>"))
    page.goto(site.url)
    host, panel = page.locator("docs-assistant"), page.locator("docs-assistant dialog")
    launch, edge = host.locator(".da-launch"), host.get_by_role("separator", name="Width of the panel")
    launch.click()
    expect(panel.get_by_role("textbox")).to_be_focused()
    expect(launch).to_be_hidden()
    assert panel.bounding_box() == {"x": 860, "y": 0, "width": 420, "height": 800}
    expect(page.locator("html")).to_have_css("margin-right", "420px")
    axe(page, "docs-assistant")
    page.get_by_role("button", name="Of the page").click()
    page.keyboard.press("Escape")  # of the page, not of the panel
    page.locator("b").dblclick(position={"x": 8, "y": 8})  # a word, whatever the font
    host.get_by_role("button", name="Ask about this").click()
    link = panel.locator(".da-card-link").first
    expect(link).to_have_attribute("target", "_self")
    edge.press("ArrowLeft")
    expect(edge).to_have_attribute("aria-valuenow", "444")
    page.mouse.move(840, 300)
    page.mouse.down()
    page.mouse.move(700, 320, steps=3)
    page.mouse.up()
    expect(edge).to_have_attribute("aria-valuenow", "580")
    expect(page.locator("html")).to_have_css("margin-right", "580px")
    assert page.evaluate("getSelection().toString()").strip() in ("", "quota", "storage")

    page.reload()
    expect(panel.locator(".da-card-link").first).to_be_visible()
    assert panel.bounding_box()["width"] == 580
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    page.set_viewport_size({"width": 900, "height": 800})  # no room for both
    expect(page.locator("html")).to_have_css("margin-right", "0px")
    panel.get_by_role("textbox").focus()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(launch).to_be_visible()
    page.reload()
    expect(launch).to_be_visible()
    expect(panel).to_be_hidden()


def test_a_panel_on_the_left_is_a_sheet_on_a_phone(site: LocalSite, page: Page, service: Program, axe):
    """In Czech; a page that can't become narrower lies below the panel."""
    wide = '<p style="width: 1200px">Široká</p><h1>'
    attributes = 'data-layout="panel" data-position="bottom-left"'
    put(site, service.url, plain(service.url, attributes, "cs"))
    page.goto(site.url)
    panel = page.locator("docs-assistant dialog")
    page.locator("docs-assistant .da-launch").click()
    expect(panel.get_by_role("textbox")).to_be_focused()
    assert panel.bounding_box() == {"x": 0, "y": 0, "width": 420, "height": 800}
    expect(page.locator("html")).to_have_css("margin-left", "420px")
    page.locator("docs-assistant").get_by_role("separator", name="Šířka panelu").press("ArrowRight")
    expect(page.locator("html")).to_have_css("margin-left", "444px")
    site.put("/wide", plain(service.url, attributes, "cs").replace("<h1>", wide))
    page.goto(f"{site.url}/wide")
    expect(panel).to_be_visible()
    expect(page.locator("html")).to_have_css("margin-left", "0px")

    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(site.url)
    expect(panel).to_be_hidden()
    page.locator("docs-assistant .da-launch").click()
    panel.evaluate("dialog => Promise.all(dialog.getAnimations().map(({ finished }) => finished))")
    assert panel.bounding_box() == {"x": 0, "y": 0, "width": 390, "height": 844}
    expect(panel.locator(".da-edge")).to_be_hidden()
    axe(page, "docs-assistant")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_thumbs_and_a_comment_are_stored_changed_and_taken_back(
    site: LocalSite, page: Page, service: Program, llm: FakeLLM
):
    """From another origin, and after the reader has gone to another page."""

    def stored() -> list[tuple[str, str, str]]:
        given = httpx.get(f"{service.url}/v1/admin/feedback", trust_env=False).json()["data"]
        return [(one["question"], one["rating"], one["comment"]) for one in given]

    put(site, service.url, plain(service.url))
    page.goto(site.url)
    page.locator("docs-assistant .da-launch").click()
    panel = page.locator("docs-assistant dialog")
    panel.get_by_role("textbox").fill(QUESTION)
    page.keyboard.press("Enter")
    panel.get_by_role("button", name="Not helpful").click()
    panel.get_by_label("What was good or missing?").fill("It says nothing of the size.")
    panel.get_by_role("button", name="Send", exact=True).first.click()
    expect(panel.get_by_label("What was good or missing?")).to_have_count(0)
    assert stored() == [(QUESTION, "down", "It says nothing of the size.")]
    page.reload()
    page.locator("docs-assistant .da-launch").click()
    thumb = panel.get_by_role("button", name="Not helpful")
    expect(thumb).to_have_attribute("aria-pressed", "true")
    thumb.click()
    expect(thumb).to_have_attribute("aria-pressed", "false")
    assert stored() == []


def test_keys_belong_to_who_uses_them(site: LocalSite, page: Page, service: Program, llm: FakeLLM):
    """A shortcut that the site handles stays the site's, and what is typed into the panel is no shortcut of the site.

    Escape stops an answer first, whatever the site does with it.
    """
    own = """window.seen = [];
    addEventListener("load", () => setTimeout(() => addEventListener("keydown", (event) => {
      seen.push(event.key);
      if (event.key === "Escape" || (event.ctrlKey && event.key === "k")) event.preventDefault();
    }) || (document.documentElement.dataset.ready = ""), 100));"""
    put(site, service.url, plain(service.url).replace("</head>", '<script src="/own.js"></script></head>'), own)
    page.goto(site.url)
    page.locator("html[data-ready]").wait_for(state="attached")
    page.keyboard.press("Control+k")
    panel = page.locator("docs-assistant dialog")
    expect(panel).to_be_hidden()
    assert page.evaluate("seen") == ["Control", "k"]
    page.locator("docs-assistant .da-launch").click()
    stopped = threading.Event()
    llm.reply = lambda _: Reply("Slowly " * 60, held={30: stopped})
    panel.get_by_role("textbox").press_sequentially("How do I create a volume / a claim?")
    page.keyboard.press("Enter")
    expect(panel.get_by_role("button", name="Stop")).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel.locator(".da-note")).to_be_visible()
    stopped.set()
    expect(panel).to_be_visible()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    assert page.evaluate("seen") == ["Control", "k"]


def test_it_says_what_goes_wrong(site: LocalSite, page: Page, chromium: Browser, start: Start, llm: FakeLLM):
    """A key that is missing, an origin that isn't allowed; a browser that stores nothing is no problem."""
    closed = start(DOCS_ORIGINS=site.url, DOCS_API_KEYS="secret-key-of-tests")
    put(site, closed.url, plain(closed.url))
    page.goto(site.url)
    page.locator("docs-assistant .da-launch").click()
    expect(page.locator("docs-assistant [role=alert]")).to_contain_text("A key is needed")
    put(site, closed.url, plain(closed.url, 'data-key="secret-key-of-tests"', "de"))
    page.add_init_script("Object.defineProperty(window, 'sessionStorage', { get() { throw new Error('blocked'); } })")
    page.goto(site.url)
    page.get_by_role("button", name="Fragen", exact=True).click()
    page.locator("docs-assistant textarea").fill(QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator("docs-assistant .da-answer")).to_contain_text(re.compile("answer"))
    context = chromium.new_context()
    stranger = context.new_page()  # Chromium complains of CORS, which the fixture would not allow
    with local_site() as elsewhere:
        put(elsewhere, closed.url, plain(closed.url, 'data-key="secret-key-of-tests"'))
        stranger.goto(elsewhere.url)
        stranger.locator("docs-assistant .da-launch").click()
        alert = stranger.locator("docs-assistant [role=alert]")
        expect(alert).to_contain_text("This isn't allowed here")
        expect(alert).to_contain_text(f"DOCS_ORIGINS: {elsewhere.url}")
        context.close()
