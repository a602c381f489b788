"""The pictures of README.md and of the operators' documentation, over the index of our own documentation: `make pictures`.

`make screens` takes all of them at two widths, light and dark, into results/screens: those of two commits show what a change did.

The language model is the scripted one; it writes what the documentation says. The question log has 2,000 questions of three weeks.
"""

import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from app.conversations.opening import open_conversations
from app.conversations.records import Found, KeptAnswer
from app.core.settings import Settings
from eval.files import json_lines
from eval.questions.own_docs import ANSWERABLE, UNANSWERABLE, own_set
from tests.app.http.test_keys import entry, write
from tests.app.routes.test_interface import own_brand
from tests.end_to_end.program import READY, free_port, service
from tests.end_to_end.program import program as started
from tests.end_to_end.test_browser import NAMES, QUIET
from tests.end_to_end.threads import llm_in_a_thread
from tests.fake_llm import FakeLLM, Reply
from tests.ingestion.local_site import LocalSite, local_site

Show = Callable[[Page, str], None]
ROOT = Path(__file__).parents[2]
NIGHTLY, ALLOWED = "How do I index every night?", "Which sites may use the widget?"
PORT = "Which setting changes the port?"
READING, WRITING = "Which metrics does the service have?", "How do I restore a backup?"
QUOTED = ("How do I index another site?", PORT, "what does 421 mean", "jak nainstalovat", "kolik stojí licence")
ANSWERS = {
    NIGHTLY: """Put the addresses of your sites into `DOCS_SITES`, and schedule `docs-assistant ingest` for the night [1]. \
With systemd, copy `deploy/systemd/` to `/etc/systemd/system/`, then enable the timer:

```sh
sudo systemctl enable --now docs-assistant.service docs-assistant-ingest.timer
systemctl list-timers docs-assistant-ingest.timer
```

A run that was published although some pages failed is a success for systemd; the next run tries those pages again [1].
""",
    ALLOWED: """Only sites that you allow. List their origins, then start the service again [1]:

```sh
export DOCS_ORIGINS="https://docs.example.org"
```

An origin is the scheme, the host and the port of a page's address, without a path [1].
""",
    PORT: """`DOCS_PORT` sets the port to listen on; the default is 8000 [1]. `DOCS_PORT_RANGE` tries the next ones when it is taken [1].
""",
    READING: "See the table [1].",
    WRITING: """Stop the service, put the saved files in place of the directory, then start the service again [1]. It answers at once, \
because the index is complete in it [1]. What was asked since the backup was made is lost, and the next run reads what has changed since.
""",
}
PACE = {READING: (60.0, 0.0), WRITING: (0.5, 0.25)}  # seconds until the first word, and between words
KEY = "docs-key"  # of the service that has a brand of its own
ICON = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><path d="M16 1l13 30H3z" fill="#b3261e"/></svg>'


def said(body: dict[str, Any]) -> Reply:
    """The answer to the question at the end of a prompt; helpers repeat it, as keywords if those are asked for."""
    asked = str(body["messages"][-1]["content"]).lower()
    question, text = next(((one, text) for one, text in ANSWERS.items() if one.lower() in asked), ("", ""))
    if body.get("stream"):
        delay, piece_delay = PACE.get(question, (0.5, 0.015))
        return Reply(text, delay=delay, piece_delay=piece_delay)
    return Reply(f"en: {question}" if "keywords" in str(body["messages"]) else question, delay=0.4)


def start(page: Page, url: str) -> None:
    """The page before a question; behind a key, after that."""
    page.goto(url)
    key = page.get_by_label("Key", exact=True)
    expect(page.get_by_role("textbox", name="Your question").or_(key)).to_be_visible()
    if key.is_visible():
        key.fill(KEY)
        key.press("Enter")
    expect(page.locator(".da-questions button").first).to_be_visible()


def asked(page: Page, url: str, question: str = NIGHTLY) -> None:
    """A question on the page."""
    start(page, url)
    field = page.get_by_role("textbox", name="Your question")
    field.fill(question)
    field.press("Enter")


def reading(page: Page, url: str) -> None:
    """The model has the sections, but writes nothing yet."""
    asked(page, url, READING)
    expect(page.locator(".da-status", has_text="Reading")).to_be_visible()


def writing(page: Page, url: str) -> None:
    """The model writes."""
    asked(page, url, WRITING)
    expect(page.locator(".da-answer[aria-busy=true]")).to_contain_text("start the service again")


def answer(page: Page, url: str) -> None:
    """An answer on the page, with a source opened."""
    asked(page, url)
    expect(page.locator(".da-answer[aria-busy=false] .da-card").first).to_be_visible()
    page.locator(".da-card > button").first.click()
    expect(page.locator("mark").first).to_be_visible()
    page.evaluate("scrollTo(0, 0)")


def shared(page: Page, url: str) -> None:
    """The answer as somebody sees it who has a link to it."""
    answer(page, url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Share this answer").click()
    expect(page.get_by_role("status").filter(has_text="Link copied")).to_be_visible()
    page.goto(page.evaluate("navigator.clipboard.readText()"))
    expect(page.locator(".da-card").first).to_be_visible()


def search(page: Page, url: str) -> None:
    """Half a query in the search."""
    page.goto(f"{url}/?search=rate+lim")
    expect(page.locator("mark").first).to_be_visible()


def widget(page: Page, url: str, question: str = ALLOWED) -> None:
    """An answer in the panel on a page of a documentation site."""
    page.goto(url)
    page.locator("docs-assistant .da-launch").click()
    field = page.locator("docs-assistant dialog").get_by_role("textbox")
    field.fill(question)
    field.press("Enter")
    expect(page.locator("docs-assistant .da-answer[aria-busy=false] .da-card").first).to_be_visible()


def dark_widget(page: Page, url: str) -> None:
    """The same in the dark."""
    page.emulate_media(color_scheme="dark")
    widget(page, url)


def trace(page: Page, url: str, part: str = "steps") -> None:
    """An answer and a part of its trace; at first, its steps."""
    page.goto(f"{url}/admin/ask?q={NIGHTLY.replace(' ', '+')}&part={part}")
    expect(page.get_by_role("navigation", name="Parts of the trace")).to_be_visible()
    if part == "steps":
        page.get_by_role("heading", name="Steps", exact=True).evaluate("one => one.scrollIntoView()")
    else:
        whole(page)


def compared(page: Page, url: str) -> None:
    """Two answers to a question, with other settings."""
    page.goto(f"{url}/admin/ask?q={NIGHTLY.replace(' ', '+')}&again.top_k=2")
    expect(page.locator(".tr-side").nth(1)).to_be_visible()
    whole(page)


QUESTIONS, DAYS, DAY = 2000, 21, 86_400.0


def logged(folder: Path) -> Path:
    """The folder, with a question log in it."""
    asyncio.run(_log(folder))
    return folder


async def _log(folder: Path) -> None:
    """Writes questions: more on working days, a tenth without an answer, some rated."""
    settings, chance, now = Settings.load(None, store="data"), random.Random(5), time.time()
    known = list[tuple[str, str, bool]]()
    for name in (ANSWERABLE, UNANSWERABLE):
        with own_set(name) as path:
            known += [(row["question"], row["lang"], name == ANSWERABLE) for _, row in json_lines(path)]
    (folder / "data").mkdir()
    store = open_conversations(settings, folder / "data")
    assert store
    for number in range(QUESTIONS):
        ago = chance.random() * DAYS
        while time.gmtime(now - ago * DAY).tm_wday > 4 and chance.random() < 0.8:
            ago = chance.random() * DAYS
        question, language, there = chance.choices(known, [5 if there else 2 for *_, there in known])[0]
        sure = chance.betavariate(6, 1.5) if there else 0.0
        outcome = "refused" if not there else "marked" if sure < 0.55 else "written"
        answer = KeptAnswer(
            f"chatcmpl-{number}", "", question, "", now - ago * DAY, assistant="docs-assistant", language=language,
            outcome=outcome, found=Found(tokens=chance.randrange(900, 4000) if there else 0),
        )  # fmt: skip
        await store.keep(answer)
        if chance.random() < 0.06:
            await store.rate("", answer.id, "up" if sure > chance.random() else "down", None)
    await store.close()


def questions(page: Page, url: str) -> None:
    """What was asked, and how it was answered."""
    page.goto(f"{url}/admin/questions")
    expect(page.get_by_role("region", name="Questions").locator("tbody tr").nth(8)).to_be_visible()


def sites(page: Page, url: str) -> None:
    """The sites that runs read, and what a new one would fetch."""
    page.goto(f"{url}/admin/sites")
    expect(page.locator("tbody tr").first).to_be_visible()


def quoted(page: Page, url: str) -> None:
    """Five questions in a row without a language model, as high as they are."""
    page.goto(url)
    for number, question in enumerate(QUOTED, start=1):
        field = page.get_by_role("textbox").first
        field.fill(question)
        field.press("Enter")
        expect(page.locator(".da-answer[aria-busy=false]")).to_have_count(number)
    whole(page)


def quotations(folder: Path, docs: Path, browser: Browser) -> None:
    """Pictures of answers without a language model at two widths."""
    model = {"DOCS_EMBEDDING_MODEL": "local:multilingual-e5-small"}  # that of readers; the one of the tests finds less
    with started(folder, "run", "--port", str(port := free_port()), **model) as running:
        running.wait_for(READY, 300)
        for name, width in (("quoted", 1280), ("quoted-phone", 390)):
            page = browser.new_page(viewport={"width": width, "height": 800}, locale="en-GB")
            take(docs, name, quoted, page, f"http://127.0.0.1:{port}")
            page.close()


def put_docs(site: LocalSite, service: str) -> None:
    """Our documentation in English as a site with the widget; the page `/beside` has it as a panel."""
    kind = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
    for file in sorted((ROOT / "app/site/en").rglob("*.*")):
        path = "/" + file.relative_to(ROOT / "app/site/en").as_posix().removesuffix(".html")
        for at, attribute in ((path, ""), *([("/beside", 'data-layout="panel"')] if path == "/widget" else [])):
            script = f'<script src="{service}/static/widget.js" {attribute} async></script></head>'
            body = file.read_bytes().replace(b"</head>", script.encode())
            site.put(at, body, kind.get(file.suffix, "text/plain"))


def taken(show: Show, page: Page, url: str) -> bytes:
    """The picture of what is shown."""
    show(page, url)
    page.wait_for_timeout(500)  # the code's colours follow
    shot: bytes = page.screenshot(animations="disabled")
    return shot


def take(folder: Path, name: str, show: Show, page: Page, url: str) -> None:
    """Write NAME.png into the folder, with 128 colours, which include the few of small signs."""
    shot = Image.open(BytesIO(taken(show, page, url)))
    shot.convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE).save(folder / f"{name}.png", optimize=True)


def whole(page: Page) -> None:
    """Makes the window as high as the page."""
    page.set_viewport_size(page.viewport_size | {"height": page.evaluate("document.documentElement.scrollHeight")})


def opened(page: Page, url: str, path: str = "", within: str = "") -> None:
    """What is at the path, or where the first link there leads that the selector chooses; whole."""
    page.goto(f"{url}/{path}")
    for selector in filter(None, within.split(" / ")):
        page.locator(selector).first.click()
        expect(page.locator(".da-spinner")).to_have_count(0)
    expect(page.locator(".da-spinner")).to_have_count(0)
    page.wait_for_timeout(500)
    whole(page)


PARTS = ("candidates", "links", "again", "add")
EMPTY = ("", "pages", "questions", "gaps", "runs", "sites", "generations", "errors")
VIEWS = {  # by their paths, and where others lead to
    "overview": ("", ""), "pages": ("pages", ""), "gaps": ("gaps", ""), "curated": ("curated", ""),
    "generations": ("generations", ""), "runs": ("runs", ""), "keys": ("keys", ""), "errors": ("errors", ""),
    "settings": ("settings?changed=1", ""), "settings-all": ("settings", "summary"),
    "question": ("questions", "tbody th a"), "page": ("pages", "tbody a"),
    "markdown": ("pages", "tbody a / .ad-switch a:last-child"), "chunk": ("pages", "tbody a / .ad-chunk-head a"),
}  # fmt: skip
VIEWED: dict[str, Show] = {
    f"admin-{name}": partial(opened, path=f"admin/{path}", within=within) for name, (path, within) in VIEWS.items()
}
TRACED: dict[str, Show] = {f"trace-{part}": partial(trace, part=part) for part in PARTS}
UNINDEXED: dict[str, Show] = {f"empty-{path or 'overview'}": partial(opened, path=f"admin/{path}") for path in EMPTY}
SCREENS: dict[str, dict[str, Show]] = {  # of the usual service, one with a brand of its own, one without an index, and a site
    "usual": {
        "start": start, "reading": reading, "writing": writing, "answer": answer, "shared": shared,
        "search": search, "search-empty": partial(opened, path="?search="),
        "search-nothing": partial(opened, path="?search=xylophone"),
        "trace": trace, "compared": compared, "questions": questions, "sites": sites, **TRACED, **VIEWED,
    },
    "branded": {
        "sign-in": opened, "admin-sign-in": partial(opened, path="admin"), "brand": start, "brand-answer": answer,
    },
    "empty": {"empty-start": opened, **UNINDEXED},
    "site": {
        "widget": lambda page, url: widget(page, f"{url}/widget"),
        "panel": lambda page, url: widget(page, f"{url}/beside"),
    },
}  # fmt: skip


def screens(folder: Path, browser: Browser, urls: dict[str, str]) -> None:
    """Pictures of all screens, light and dark, of a computer and a phone."""
    for width, scheme, (name, url) in product((1440, 390), ("light", "dark"), urls.items()):
        for screen, show in SCREENS[name].items():
            page = browser.new_page(
                viewport={"width": width, "height": 900}, locale="en-GB", color_scheme=scheme, reduced_motion="reduce"
            )
            (folder / f"{screen}-{width}-{scheme}.png").write_bytes(taken(show, page, url))
            page.close()


def documented(folder: Path, docs: Path, browser: Browser, url: str, site: str) -> None:
    """Pictures of README.md in the folder, and of the documentation in `docs`."""
    for into, name, show, address, width in (
        (folder, "answer", answer, url, 1280),
        (folder, "search", search, url, 1280),
        (folder, "widget", dark_widget, f"{site}/widget", 1280),
        (folder, "trace", trace, url, 1280),
        (docs, "questions", questions, url, 1280),
        (docs, "sites", sites, url, 1280),
        (docs, "marked-widget", partial(widget, question=PORT), f"{site}/widget", 480),
    ):
        page = browser.new_page(viewport={"width": width, "height": 800}, locale="en-GB")
        take(into, name, show, page, address)
        page.close()
    with tempfile.TemporaryDirectory() as other:
        quotations(Path(other), docs, browser)


def main(folder: Path, docs: Path | None = None) -> None:
    """Take all pictures: those of README.md into the folder, those of operators into that of the documentation.

    Without the latter, take all screens into the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    expect.set_options(60_000)  # milliseconds
    chromium = next(found for name in NAMES if (found := shutil.which(name)))
    with (
        tempfile.TemporaryDirectory() as temporary,
        llm_in_a_thread() as llm,
        local_site() as site,
        started(logged(Path(temporary)), "run", "--port", str(port := free_port()), **_settings(llm, site)) as running,
        sync_playwright() as playwright,
    ):
        running.wait_for(READY, 300)
        url, llm.reply = f"http://127.0.0.1:{port}", said
        put_docs(site, url)
        arguments = [one for one in QUIET if one not in {"--headless", "--hide-scrollbars"}]
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        if docs:
            documented(folder, docs, browser, url, site.url)
        else:
            with others(Path(temporary), _settings(llm, site)) as more:
                screens(folder, browser, {"usual": url, "site": site.url} | more)
        browser.close()


@contextmanager
def others(folder: Path, settings: dict[str, Any]) -> Iterator[dict[str, str]]:
    """A service with the brand of somebody else, where people sign in, and one without an index; by their addresses."""
    (branded := folder / "branded").mkdir()
    shutil.copytree(folder / "data", branded / "data", ignore=shutil.ignore_patterns("conversations*"))
    (icon := branded / "icon.svg").write_text(ICON, "utf-8")
    brand = {"name": "Rocket Motors Handbook", "color": "#b3261e", "welcome": "Ask the handbook", "icon": str(icon)}
    provider = {"issuer": "https://login.example.org", "client_id": "docs", "client_secret": "a-secret-of-the-client"}
    sign_in = "\n".join(f'{name} = "{value}"' for name, value in provider.items())
    keys = write(branded / "keys.toml", entry("docs"), entry("operator", "admin"), f"[sign_in]\n{sign_in}\n")
    own: dict[str, Any] = {
        "DOCS_ASSISTANTS": own_brand(branded, **brand),
        "DOCS_KEYS": keys,
        "DOCS_ADMIN_OPEN": "false",
    }
    with (
        service(branded, "serve", **settings | own) as one,
        service(folder / "empty", "serve", **settings) as another,
    ):
        yield {"branded": one.url, "empty": another.url}


def _settings(llm: FakeLLM, site: LocalSite) -> dict[str, str]:
    model = {"DOCS_LLM_URL": llm.url, "DOCS_LLM_MODEL": "scripted"}
    return model | {"DOCS_ADMIN_OPEN": "true", "DOCS_ORIGINS": site.url, "DOCS_RETENTION_DAYS": "30"}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
