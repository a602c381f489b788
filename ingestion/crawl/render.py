"""Pages that JavaScript makes -> their HTML, by a Chromium of the system; an optional extra, off by default."""

import asyncio
import os
import shutil
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

from app.core.errors import SettingsError
from app.core.settings import Settings
from ingestion.crawl.fetch import Fetcher
from ingestion.errors import ConversionError, PageError

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PAGES = 2
QUIET = 500
"""Milliseconds without a change after which a page is complete."""

_OFFLINE = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--proxy-server=http://127.0.0.1:9",
    "--proxy-bypass-list=<-loopback>",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
)
"""The browser itself reaches nothing: the crawler fetches for it, through the same guard as all pages."""

_NOT_PASSED_ON = frozenset({"content-encoding", "content-length", "transfer-encoding", "connection", "set-cookie"})
_LOADED = frozenset({"document", "script", "stylesheet", "xhr", "fetch"})
_SETTLED = """quiet => new Promise(done => {
  let timer = setTimeout(done, quiet);
  new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(done, quiet); })
    .observe(document, {childList: true, subtree: true, characterData: true});
})"""


_REMOVE_NOSCRIPT = "() => document.querySelectorAll('noscript').forEach(tag => tag.remove())"


class RenderError(ConversionError):
    """A page that needs JavaScript can't be rendered; the message says what to do."""


@dataclass
class Renderer:
    """Opens pages in one headless browser, started with the first of them. Close it when done.

    Only what the fetcher may fetch is loaded, and nothing is sent: no images, no forms, no trackers.
    """

    settings: Settings
    fetcher: Fetcher
    _browser: Any = None
    _running: AsyncExitStack = field(default_factory=AsyncExitStack)
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PAGES))

    async def html(self, url: str) -> str:
        """The page's HTML once it stops changing, or as it is when the time is over. Raises `RenderError`."""
        browser = await self._started()
        from playwright.async_api import Error

        try:
            async with self._slots, asyncio.timeout(self.settings.tuning.crawl_timeout + 5):
                context = await browser.new_context(user_agent=self.settings.user_agent, service_workers="block")
                await context.route_web_socket("**", _refused)
                await context.route("**/*", self._answer)
                try:
                    return await self._rendered(context, url)
                finally:
                    await context.close()
        except (Error, TimeoutError) as error:
            reason = str(error).partition("\n")[0] or f"no page within {self.settings.tuning.crawl_timeout:g} s"
            raise RenderError(f"{url} is made by JavaScript, and the browser failed: {reason}") from error

    async def close(self) -> None:
        """End the browser, if it was started."""
        if self._browser is not None:
            self._browser = None
            await self._running.aclose()

    async def _rendered(self, context: Any, url: str) -> str:
        from playwright.async_api import Error

        limit = self.settings.tuning.crawl_timeout * 1000
        page = await context.new_page()
        await page.goto(url, wait_until="domcontentloaded", timeout=limit)
        try:
            async with asyncio.timeout(self.settings.tuning.crawl_timeout):
                await page.wait_for_load_state("networkidle", timeout=limit)
                await page.evaluate(_SETTLED, QUIET)
        except (TimeoutError, Error):
            pass  # a page that keeps changing or redirects is read as it is
        await page.evaluate(_REMOVE_NOSCRIPT)
        return str(await page.content())

    async def _answer(self, route: Any) -> None:
        from playwright.async_api import Error

        request = route.request
        try:
            if request.method != "GET" or request.resource_type not in _LOADED:
                await route.abort()
                return
            accept = request.headers.get("accept", "*/*")
            status, headers, body = await self.fetcher.subresource(request.url, accept)
            passed_on = {name: value for name, value in headers.items() if name not in _NOT_PASSED_ON}
            await route.fulfill(status=status, headers=passed_on, body=body)
        except (Error, PageError):  # the host doesn't answer or isn't allowed, or the page is closed already
            with suppress(Error):
                await route.abort()

    async def _started(self) -> Any:
        async with self._starting:
            if self._browser is None:
                async with AsyncExitStack() as running:
                    self._browser = await _start(self.settings.tuning.browser, running)
                    self._running = running.pop_all()
        return self._browser


async def _refused(socket: Any) -> None:
    await socket.close()


async def _start(program: str, running: AsyncExitStack) -> Any:
    """An installed browser, with a home of its own until `running` is closed. Nothing is downloaded."""
    try:
        from playwright.async_api import Error, async_playwright
    except ImportError as error:
        raise RenderError(
            "It is made by JavaScript, and DOCS_RENDER=auto needs playwright, which isn't installed: "
            "install docs-assistant[browser]."
        ) from error
    path = program or next((program_path for name in PROGRAMS if (program_path := shutil.which(name))), "")
    if program and not shutil.which(program):
        raise SettingsError(f"DOCS_TUNING__BROWSER={program} isn't a program that can be run.")
    if not path:
        raise RenderError(
            "It is made by JavaScript, and no Chromium is installed here: install one, or set DOCS_TUNING__BROWSER."
        )
    home = running.enter_context(TemporaryDirectory(prefix="docs-assistant-browser-", ignore_cleanup_errors=True))
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), home)
    playwright = await running.enter_async_context(async_playwright())
    root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium refuses its sandbox to root
    try:
        browser = await playwright.chromium.launch(
            executable_path=path, chromium_sandbox=not root, args=list(_OFFLINE), env={**os.environ, **homes}
        )
    except Error as error:
        raise RenderError(f"The browser {path} can't be started: {str(error).partition(chr(10))[0]}") from error
    running.push_async_callback(browser.close)
    return browser
