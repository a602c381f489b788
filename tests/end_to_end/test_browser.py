"""Our documentation in a real Chromium: it loads whole, asks nobody else, and its language can be switched."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx
import lxml.html
import pytest
from websockets.sync.client import ClientConnection, connect

from tests.end_to_end.program import Program, environment
from tests.ingestion.local_site import local_site

pytestmark = pytest.mark.slow

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # what it asks of its maker never leaves the machine
)


ROOT = Path(__file__).parents[2]
EVERYWHERE = "const all = (r, s) => [...r.querySelectorAll('*')].flatMap(e => [...(e.matches(s) ? [e] : []), ...(e.shadowRoot ? all(e.shadowRoot, s) : [])]);"
# The search has its input and its results in a shadow tree. A click before its script has run opens nothing, so that a
# reader clicks again: true only once the input has the focus.
OPEN_SEARCH = f"""(() => {{ {EVERYWHERE}
const box = all(document, 'input[type=text], input[type=search], input:not([type])')[0];
box?.focus();
const open = Boolean(box) && box.getRootNode().activeElement === box;
if (!open) document.querySelector('label[for=__search]').click();
return open; }})()"""
FOUND = f"(() => {{ {EVERYWHERE} return all(document, 'a[href*=\"?h=\"]').map(a => a.href); }})()"


def until(value: Callable[[], Any], seconds: float = 120) -> Any:
    """The first value that is true; fails when none is in time."""
    deadline = time.monotonic() + seconds
    while not (found := value()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return found


def call(socket: ClientConnection, method: str, **params: Any) -> Any:
    """The browser's answer to a command of its debugging protocol."""
    socket.send(json.dumps({"id": 1, "method": method, "params": params}))
    while (message := json.loads(socket.recv(120))).get("id") != 1:
        pass
    return message["result"]


class Browser:
    """A Chromium with an empty profile."""

    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder = program, folder

    def run(self, url: str, *arguments: str) -> str:
        """Open the address; gives what was written to standard output. Its log goes to `log`."""
        command = [self.program, *QUIET, f"--user-data-dir={self.folder / 'profile'}", *arguments, url]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=240, check=True, env=environment({}), cwd=self.folder
        )
        self.log = done.stderr
        return done.stdout

    def search(self, url: str, word: str) -> tuple[list[str], int]:
        """The links that the site's search shows for the word, on a phone, and how wide the page is there."""
        port = self.folder / "profile/DevToolsActivePort"
        port.unlink(missing_ok=True)
        arguments = ["--remote-debugging-port=0", f"--user-data-dir={self.folder / 'profile'}", url]
        process = subprocess.Popen(
            [self.program, *QUIET, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder
        )
        try:
            address = f"http://127.0.0.1:{until(lambda: port.exists() and port.read_text().splitlines()[0])}/json"
            pages = until(lambda: [page for page in httpx.get(address).json() if page["url"] == url])
            with connect(pages[0]["webSocketDebuggerUrl"], max_size=None) as socket:
                phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
                call(socket, "Emulation.setDeviceMetricsOverride", **phone)
                evaluate = partial(call, socket, "Runtime.evaluate", returnByValue=True)
                until(lambda: evaluate(expression=OPEN_SEARCH)["result"].get("value"))
                call(socket, "Input.insertText", text=word)
                links = until(lambda: evaluate(expression=FOUND)["result"].get("value"))
                return links, evaluate(expression="document.documentElement.scrollWidth")["result"]["value"]
        finally:
            process.kill()
            process.wait(10)

    def requests(self, url: str) -> list[str]:
        """The addresses that the page asked for over the network, its own first; not what the browser itself asks for."""
        netlog = self.folder / "net.json"
        netlog.unlink(missing_ok=True)
        self.run(url, "--dump-dom", f"--log-net-log={netlog}", "--enable-logging=stderr")
        events = [event.get("params", {}) for event in json.loads(netlog.read_text("utf-8"))["events"]]
        origin = "/".join(url.split("/")[:3])
        return [url, *sorted({event["url"] for event in events if event.get("initiator") == origin and "url" in event})]


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if not program:
        message = "no Chromium: install the package chromium"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(message)
    return Browser(program, tmp_path)


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """The site as every installation has it."""
    subprocess.run([sys.executable, str(ROOT / "hatch_build.py")], check=True)


@pytest.mark.parametrize("path", ["docs/en/", "docs/cs/settings", "api-docs"])
def test_a_page_loads_whole_and_asks_nobody_else(browser: Browser, newcomer: Program, path: str):
    """Every request goes to our own service, its style sheet among them, and the console has no errors.

    /api-docs shows our routes without anybody's CDN.
    """
    asked = browser.requests(f"{newcomer.url}/{path}")
    assert [url for url in asked if not url.startswith(newcomer.url)] == []
    assert "CONSOLE" not in browser.log
    if path == "api-docs":
        dom = browser.run(f"{newcomer.url}/api-docs", "--dump-dom", "--virtual-time-budget=5000")
        assert "/v1/chat/completions" in dom
    else:
        assert any("/assets/stylesheets/" in url for url in asked)


def test_search_finds_a_word_with_diacritics_and_a_phone_scrolls_down_only(browser: Browser, newcomer: Program):
    """In both languages; typing is done as by a reader, through the browser's debugging protocol."""
    for path, word, found in (("cs/start", "měření", "/cs/evaluate"), ("en/start", "reranker", "/en/settings")):
        links, width = browser.search(f"{newcomer.url}/docs/{path}", word)
        assert any(found in link for link in links), links
        assert width == 390


def test_the_language_switch_leads_to_the_same_page(browser: Browser, newcomer: Program):
    """The page as it is shown links to its counterpart, which links back."""
    address = f"{newcomer.url}/docs/en/start"
    for language in ("cs", "en"):
        dom = lxml.html.document_fromstring(browser.run(address, "--dump-dom"))
        (switch,) = {link.get("href") for link in dom.xpath(f"//body//a[@hreflang='{language}']")}
        address = urljoin(address, switch)
        assert address == f"{newcomer.url}/docs/{language}/start"
        shown = lxml.html.document_fromstring(browser.run(address, "--dump-dom"))
        assert shown.get("lang") == language


def test_what_a_page_must_not_do_would_be_seen(browser: Browser):
    """The tests above can fail: a page that asks another host and logs an error is told."""
    with local_site() as site:
        site.put("/bad", '<img src="http://elsewhere.invalid/x.png"><script>console.error("broken")</script>')
        assert "http://elsewhere.invalid/x.png" in browser.requests(f"{site.url}/bad")
    assert "CONSOLE" in browser.log
