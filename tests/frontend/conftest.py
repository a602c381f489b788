"""The service as readers have it, and a Chromium that fails the test if a page asks another host or breaks its CSP."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.end_to_end.program import Program, finished
from tests.end_to_end.program import service as served
from tests.end_to_end.test_browser import NAMES, QUIET
from tests.fake_llm import FakeLLM

HERE = Path(__file__).parent
GRAVE = ("serious", "critical")
VIOLATIONS = (
    "addEventListener('securitypolicyviolation', e => console.error(`CSP: ${e.violatedDirective} ${e.blockedURI}`))"
)
Start = Callable[..., Program]
PATIENCE = 60_000  # milliseconds
expect.set_options(PATIENCE)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these start a real service and a browser."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.server)
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def handbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory whose `data/` is the index of `tests/frontend/handbook`: five English and three Czech pages."""
    folder = tmp_path_factory.mktemp("handbook")
    sources = folder / "sources.toml"
    sources.write_text(
        f'[[source]]\nurl = "https://docs.example.org/"\ncollection = "handbook"\ndirectory = "{HERE / "handbook"}"\n',
        "utf-8",
    )
    done = finished(folder, "ingest", str(sources))
    assert done.returncode == 0, done.stderr + done.stdout
    return folder


@pytest.fixture(scope="session")
def start(handbook: Path, tmp_path_factory: pytest.TempPathFactory, running_llm: FakeLLM) -> Iterator[Start]:
    """Starts a service: `start(DOCS_API_KEYS="some-key-of-tests")`, `start(indexed=False)`, `start(DOCS_LLM_URL="")` for none.

    Its language model is `llm`. One with the same settings is started once for all tests.
    """
    running: dict[Any, Program] = {}
    with ExitStack() as stack:

        def begin(*, indexed: bool = True, **settings: str) -> Program:
            key = (indexed, *sorted(settings.items()))
            if key not in running:
                folder = tmp_path_factory.mktemp("service")
                if indexed:
                    shutil.copytree(handbook / "data", folder / "data")
                model = {"DOCS_LLM_URL": running_llm.url, "DOCS_LLM_MODEL": "scripted"}
                model |= {"DOCS_LLM_TIMEOUT": "600", "DOCS_TUNING__HELPER_TIMEOUT": "60"}  # a model may be held
                given = {name: value for name, value in {**model, **settings}.items() if value}
                if "DOCS_LLM_URL" not in given:
                    given.pop("DOCS_LLM_MODEL", None)
                running[key] = stack.enter_context(served(folder, "serve", **given))
            return running[key]

        yield begin


@pytest.fixture
def service(start: Start, llm: FakeLLM) -> Program:
    """The service with a language model and an index, open to operators here; `service.url` is its address."""
    return start(DOCS_ADMIN_OPEN="true")


@pytest.fixture(scope="module")  # while Playwright runs, no async test of another file can
def chromium() -> Iterator[Browser]:
    """A Chromium of the system."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if not program:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no Chromium: install the package chromium")
    with sync_playwright() as playwright:
        arguments = [one for one in QUIET if one not in {"--headless", "--hide-scrollbars"}]
        browser = playwright.chromium.launch(executable_path=program, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """An empty page, 1280 by 800, in English; the test fails if it asks another host, has an error or breaks its CSP."""
    wrong: list[str] = []

    def requested(request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in {"data", "blob"} and address.hostname != "127.0.0.1":
            wrong.append(f"asks {request.url}")

    def printed(message: ConsoleMessage) -> None:
        # what the browser says of a status of 4xx or 5xx is no mistake
        if message.type == "error" and "Failed to load resource" not in message.text:
            wrong.append(message.text)

    context = chromium.new_context(viewport={"width": 1280, "height": 800}, locale="en-GB")
    context.set_default_timeout(PATIENCE)
    context.add_init_script(VIOLATIONS)
    context.on("request", requested)
    context.on("console", printed)
    context.on("weberror", lambda error: wrong.append(error.error.stack or str(error.error)))
    yield context.new_page()
    context.close()
    assert wrong == []


@pytest.fixture(scope="session")
def axe() -> Callable[..., None]:
    """`axe(page)` fails on what axe calls serious or critical; `axe(page, "dialog")` looks only into that element.

    `axe(page, every=True)` fails on everything that it finds.
    """
    checker = Axe()

    def check(page: Page, within: str | None = None, *, every: bool = False) -> None:
        found = checker.run(page, within).response["violations"]
        grave = [one for one in found if every or one["impact"] in GRAVE]
        assert [(one["id"], [node["html"][:150] for node in one["nodes"]]) for one in grave] == []

    return check
