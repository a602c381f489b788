"""Pages that JavaScript makes: told from others, opened in a real browser when asked to, and never beyond the site."""

import importlib.util
import shutil
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.errors import SettingsError
from app.core.settings import Settings
from ingestion.convert import SourceText, convert
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.render import PROGRAMS, Renderer, RenderError
from tests.ingestion.index import Index, outcomes, reasons
from tests.ingestion.local_site import LocalSite, local_site

browser = [
    pytest.mark.server,
    pytest.mark.skipif(importlib.util.find_spec("playwright") is None, reason="needs docs-assistant[browser]"),
    pytest.mark.skipif(not any(map(shutil.which, PROGRAMS)), reason="needs a Chromium"),
]

APP = """<!doctype html><html lang=en><head><title>App</title></head><body><noscript>Please enable JavaScript.</noscript>
<div id=root></div><script src=/app.js></script></body></html>"""
SCRIPT = """
fetch('/text.json').then(r => r.json()).then(d => setTimeout(() => {
  document.getElementById('root').innerHTML =
    `<main><h1 id=top>${d.title}</h1><p>${d.text}</p><h2 id=more>More</h2><pre><code>run --all</code></pre></main>`
}, 150));
"""
ATTACK = """
const at = 'http://localhost:PORT', ip = 'http://127.0.0.1:PORT', quiet = () => 0;
for (const url of [at, ip, '/moved', 'http://[::ffff:127.0.0.1]:PORT', 'http://2130706433:PORT']) {
  fetch(url + '/fetch', {mode: 'no-cors'}).catch(quiet);
  import(url + '/module.js').catch(quiet);
  const request = new XMLHttpRequest(); request.open('GET', url + '/xhr'); request.send();
  for (const [tag, name] of [['script', 'src'], ['iframe', 'src'], ['img', 'src'], ['link', 'href'], ['object', 'data']]) {
    const made = document.createElement(tag); made.rel = 'stylesheet'; made[name] = url + '/' + tag; document.body.append(made);
  }
  navigator.sendBeacon(url + '/beacon', 'x');
  new EventSource(url + '/events');
  window.open(url + '/popup');
}
new WebSocket('ws://127.0.0.1:PORT/ws');
new Worker('/worker.js');
new SharedWorker('/worker.js');
new RTCPeerConnection({iceServers: [{urls: 'turn:127.0.0.1:PORT?transport=tcp', username: 'u', credential: 'c'}]})
  .createDataChannel('x');
navigator.serviceWorker && navigator.serviceWorker.register('/worker.js').catch(quiet);
document.getElementById('root').innerHTML = '<main><h1>made here</h1></main>';
"""
WORKER = "fetch('http://127.0.0.1:PORT/worker').catch(() => 0); new WebSocket('ws://127.0.0.1:PORT/worker');"
TEXT = '{"title": "Made page", "text": "Words that only a browser sees."}'


WORDS = "Enable JavaScript in the browser as follows. " * 8


@pytest.mark.parametrize(
    "body",
    [
        f"<div id=app><h1>Home</h1><p>{WORDS}</p></div><script>x</script>",
        "<main><h1>TBD</h1></main><script>x</script>",
        f"<main><h1>JavaScript</h1><p>{WORDS}</p></main><script>x",
        "<div id=root>Short.</div>",
    ],
)
def test_a_page_with_words_is_no_shell(body: str) -> None:
    """A stub, a page about JavaScript, or an application that the server filled is read as it is."""
    assert convert(SourceText("https://docs.example.org/a", f"<html><body>{body}")).markdown.strip()


@pytest.fixture
async def index(site: LocalSite, tmp_path: Path) -> AsyncIterator[Index]:
    """An empty index of a site with one page that JavaScript makes."""
    async with Index(tmp_path / "data", site) as made:
        site.put("/a", APP)
        site.put("/app.js", SCRIPT, "text/javascript")
        site.put("/text.json", TEXT, "application/json")
        site.page("/b", "B", "Plain words.")
        site.sitemap("/a", "/b")
        yield made


@pytest.mark.parametrize(
    ("settings", "said"), [({}, "DOCS_RENDER=auto"), ({"render": "auto"}, "install docs-assistant[browser]")]
)
async def test_the_report_says_what_would_help(
    index: Index, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], said: str
) -> None:
    """The setting where it is off, and the extra where that is missing: no error, and plain pages are indexed."""
    monkeypatch.setitem(sys.modules, "playwright", None)
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    report = await index.run(**settings)
    assert outcomes(report) == {"/a": "skipped", "/b": "new"}
    assert all(words in reasons(report)["/a"] for words in ("made by JavaScript", said, "docs-assistant[browser]"))
    assert report.exit_code == 0


@pytest.mark.slow
class TestBrowser:
    """With the extra and a Chromium."""

    pytestmark = browser

    async def test_a_page_is_indexed_as_a_reader_sees_it(self, index: Index) -> None:
        """Text that a script fetched later, headings with ids, and code are there; it is made anew in each run."""
        report = await index.run(render="auto")
        assert report.counts["new"] == 2
        text = (await index.texts())["/a"]
        assert "# Made page {#top}" in text
        assert "Words that only a browser sees." in text
        assert "run --all" in text
        index.site.put("/text.json", TEXT.replace("Words", "Other words"), "application/json")
        assert (await index.run(render="auto")).counts["changed"] == 1
        assert "Other words" in (await index.texts())["/a"]

    async def test_nothing_is_left_in_the_home_directory(
        self, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The browser would write settings, a cache and reports of crashes there."""
        home = tmp_path / "home"
        home.mkdir()
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(home))
        assert (await index.run(render="auto")).counts["new"] == 2
        assert list(home.rglob("*")) == []

    async def test_nothing_beyond_the_site_is_asked(self, index: Index) -> None:
        """Scripts, requests, sockets and redirects to another host, posts and images never leave the browser."""
        with local_site() as other:
            other.put("/t.js", "document.title = 'tracked'", "text/javascript")
            index.site.put("/away", "", status=302, headers={"Location": f"{other.url}/secret"})
            socket = other.url.replace("http", "ws")
            script = (
                f"import('{other.url}/t.js').catch(() => 0); fetch('{other.url}/x').catch(() => 0);"
                f"fetch('/away').catch(() => 0); fetch('/post', {{method: 'POST', body: 'x'}}).catch(() => 0);"
                f"new Image().src = '{other.url}/pixel.png'; new WebSocket('{socket}/ws');"
            )
            index.site.put("/app.js", script + SCRIPT, "text/javascript")
            assert (await index.run(render="auto")).counts["new"] == 2
            assert other.log == []
        assert "Words that only a browser sees." in (await index.texts())["/a"]
        assert not [path for path, _, _ in index.site.log if path == "/post"]

    async def test_nothing_inside_the_network_is_reached(self, site: LocalSite) -> None:
        """The guard sees every request of a page, and what it doesn't see has no network: no connection is made at all."""
        with socket.create_server(("127.0.0.1", 0)) as inside:
            inside.setblocking(False)
            port = inside.getsockname()[1]
            site.put("/app.js", ATTACK.replace("PORT", str(port)), "text/javascript")
            site.put("/a", APP.replace("</head>", f"<link rel=preconnect href=http://127.0.0.1:{port}></head>"))
            site.put("/moved", "", status=302, headers={"Location": f"http://localhost:{port}/moved"})
            site.put("/worker.js", WORKER.replace("PORT", str(port)), "text/javascript")
            settings = Settings.load(None, render="auto", crawl_timeout=30)
            async with Fetcher(settings) as fetcher:
                # hosts that pages may name, as a site's pattern would: the address behind the name is still not public
                fetcher.allow([site.url], [f"localhost:{port}"])
                renderer = Renderer(settings, fetcher)
                try:
                    assert "made here" in await renderer.html(f"{site.url}/a")
                finally:
                    await renderer.close()
            with pytest.raises(BlockingIOError):
                inside.accept()

    async def test_a_page_that_never_rests_is_taken_when_the_time_is_over(self, index: Index) -> None:
        """What is there by then counts."""
        endless = "setInterval(() => document.getElementById('root').append('tick '), 50);"
        index.site.put("/app.js", SCRIPT.replace("innerHTML =", "innerHTML +=") + endless, "text/javascript")
        report = await index.run(render="auto", crawl_timeout=8)
        assert report.counts["new"] == 2
        assert "tick" in (await index.texts())["/a"]

    async def test_a_page_that_stays_empty_is_skipped(self, index: Index) -> None:
        """A browser can't help it either."""
        index.site.put("/app.js", "throw new Error('broken')", "text/javascript")
        report = await index.run(render="auto", crawl_timeout=60)
        assert next(page.reason for page in report.pages if page.outcome == "skipped").endswith(
            "it is made by JavaScript"
        )

    async def test_a_browser_that_cannot_start_is_told(self, site: LocalSite) -> None:
        """A program that is no browser names itself; one that isn't there is a wrong setting."""
        async with Fetcher(Settings.load(None)) as fetcher:
            with pytest.raises(RenderError, match="can't be started"):
                await Renderer(Settings.load(None, browser=shutil.which("false")), fetcher).html(site.url)
            with pytest.raises(SettingsError, match="DOCS_TUNING__BROWSER"):
                await Renderer(Settings.load(None, browser="/nowhere/chromium"), fetcher).html(site.url)
