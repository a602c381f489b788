"""The real Open WebUI before a real service, in a Chromium: `make test-openwebui`. Skipped unless OPEN_WEBUI names it."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.program import Program, environment, free_port, service
from tests.end_to_end.test_browser import NAMES, QUIET
from tests.end_to_end.threads import llm_in_a_thread
from tests.fake_llm import FakeLLM
from tests.open_webui.chat import Chat

ROOT = Path(__file__).parents[2]
PROGRAM = os.environ.get("OPEN_WEBUI", "")
ADMIN = {"name": "Admin", "email": "admin@example.org", "password": "an-admin-1"}
USER = {"name": "User", "email": "user@example.org", "password": "a-user-1", "role": "user"}
QUIETLY = {
    "USE_SLIM_DOCKER": "true",
    "OFFLINE_MODE": "true",
    "HF_HUB_OFFLINE": "1",
    "ENABLE_VERSION_UPDATE_CHECK": "false",
    "SCARF_NO_ANALYTICS": "true",
    "DO_NOT_TRACK": "true",
    "ANONYMIZED_TELEMETRY": "false",
    "RAG_EMBEDDING_ENGINE": "openai",  # else it wants a model from a hub
    "WEBUI_SECRET_KEY": "a-secret-of-the-tests-0123456789",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """770 MB that not everybody wants to install."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.server)
            if not PROGRAM:
                item.add_marker(pytest.mark.skip(reason="needs Open WebUI: make test-openwebui"))


def documented(address: str) -> dict[str, str]:
    """The variables of the `docker run` line in docs/en/clients.md, for a service at this address."""
    text = (ROOT / "docs/en/clients.md").read_text("utf-8").split("{#open-webui}")[1].split("\n## ")[0]
    given = {name: value.strip("'") for name, value in re.findall(r"-e ([A-Z_]+)=('[^']*'|\S+)", text)}
    assert given["OPENAI_API_BASE_URL"].endswith(":8000/v1")
    return given | {"OPENAI_API_BASE_URL": f"{address}/v1"}


@pytest.fixture(scope="session")
def running_llm() -> Iterator[FakeLLM]:
    """A scripted OpenAI-compatible server in a thread of its own."""
    with llm_in_a_thread() as llm:
        yield llm


@pytest.fixture(scope="session")
def assistant(running_llm: FakeLLM, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """`docs-assistant run` over our own documentation, with the key that the documentation shows."""
    settings = {
        "DOCS_LLM_URL": running_llm.url,
        "DOCS_LLM_MODEL": "scripted",
        "DOCS_API_KEYS": documented("")["OPENAI_API_KEY"],
        "DOCS_TUNING__ON_MODEL_FAILURE": "error",
    }
    with service(tmp_path_factory.mktemp("assistant"), "run", **settings) as running:
        yield running


@pytest.fixture(scope="session")
def open_webui(assistant: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A fresh Open WebUI that is set up as the documentation says, with an admin and a user: its address."""
    folder, port = tmp_path_factory.mktemp("open-webui"), free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {**QUIETLY, **documented(assistant.url), "DATA_DIR": str(folder)}
    with (folder / "log").open("wb") as log:
        command = [PROGRAM, "serve", "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen(command, cwd=folder, env=environment(settings), stdout=log, stderr=log)
    try:
        _wait_for(f"{url}/health", process, folder / "log")
        admin = _post(f"{url}/api/v1/auths/signup", ADMIN)
        _post(f"{url}/api/v1/auths/add", USER, token=admin["token"])
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 240
    while True:
        try:
            if httpx.get(url, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        assert process.poll() is None, log.read_text("utf-8")[-3000:]
        assert time.monotonic() < deadline, log.read_text("utf-8")[-3000:]
        time.sleep(0.5)


def _post(url: str, body: dict[str, str], token: str = "") -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    response = httpx.post(url, json=body, headers=headers, timeout=60)
    response.raise_for_status()
    found: dict[str, Any] = response.json()
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A Chromium of the system."""
    from playwright.sync_api import sync_playwright

    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    assert program, "no Chromium: install the package chromium"
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(
            executable_path=program, args=[option for option in QUIET if option != "--headless"]
        )


@pytest.fixture
def chat(browser: Any, open_webui: str, request: pytest.FixtureRequest) -> Iterator[Chat]:
    """The start page of an ordinary user who has just signed in."""
    pictures = Path(os.environ.get("OPEN_WEBUI_PICTURES") or request.getfixturevalue("tmp_path"))
    pictures.mkdir(parents=True, exist_ok=True)
    token = _post(f"{open_webui}/api/v1/auths/signin", USER)["token"]
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    context.add_init_script(f"localStorage.token = {token!r}")
    opened = Chat(context.new_page(), open_webui, pictures, request.node.name)
    opened.open()
    yield opened
    context.close()


@pytest.fixture
def llm(running_llm: FakeLLM) -> FakeLLM:
    """The language model, forgetful of what earlier tests told it."""
    running_llm.calls.clear()
    running_llm.cancelled = 0
    return running_llm
