"""For all tests: no setting of the machine leaks in, and no connection leaves it."""

import asyncio
import fcntl
import functools
import gc
import logging
import os
import signal
import socket
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastapi.routing
import httpx
import pytest
from _pytest.unraisableexception import gc_collect_iterations_key

from app.core.settings import Settings
from tests.end_to_end.threads import llm_in_a_thread
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import WORDS_SETTING

SHARED = Path(__file__).parents[2] / "shared"
MEMORY = Path("/dev/shm")  # a file system in memory, on Linux
ENOUGH = 4 << 30  # bytes that must be free there


vars(httpx._config.DEFAULT_TIMEOUT_CONFIG).update(
    dict.fromkeys(("connect", "read", "write", "pool"), 60.0)
)  # a busy machine
httpx._transports.default.create_ssl_context = functools.cache(  # authorities are read once, not for each client
    httpx._transports.default.create_ssl_context
)
fastapi.routing.create_model_field = functools.cache(  # pydantic describes a response's form once, not for each service
    fastapi.routing.create_model_field
)

LONGEST = (
    "end_to_end/test_run",
    "end_to_end/test_opensearch",
    "end_to_end/test_privacy",
    "faults/test_readers",
    "end_to_end/test_kept_answers",
    "end_to_end/test_exact",
    "end_to_end/test_documented_clients",
    "frontend/test_admin",
    "test_wheel",
    "frontend/test_trace",
    "frontend/test_xss",
)
"""Files that begin first, so that no worker is left alone with one of them at the end."""

UNTRACED = frozenset(
    (
        "app/routes/test_long_texts",
        "test_architecture",
        "test_cost",
        "test_patterns",
    )
)
"""Files that run the same lines very often, or none of the program: coverage doubles their time, and others cover what they cover."""

gc.disable()  # until all tests are found: half a million objects that stay


FLAKY = tomllib.loads((Path(__file__).parent / "flaky.toml").read_text("utf-8"))
BROWSER = Path(__file__).parent / "frontend"
"""Its tests are tried once more without being listed, as Playwright's documentation advises for CI."""
MOST_RERUNS = 2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first; in CI, tests in a browser and listed tests get one more try; coverage leaves out what only
    costs time.
    """
    untraced = {Path(__file__).parent / f"{name}.py" for name in UNTRACED}
    for item in items:
        listed = item.nodeid.partition("[")[0] in FLAKY
        if listed and not any(item.iter_markers("slow")) and not any(item.iter_markers("server")):
            raise pytest.UsageError(f"{item.nodeid} is in flaky.toml, and marked neither slow nor server")
        if os.environ.get("CI") and (listed or BROWSER in item.path.parents):
            item.add_marker(pytest.mark.flaky(reruns=1))
        if item.path in untraced:
            item.add_marker(pytest.mark.no_cover)
    places = {Path(__file__).parent / f"{name}.py": place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test that passed is added to the file of PASSED_TESTS, for `tests.systems.ran`; workers leave it to their controller."""
    record = os.environ.get("PASSED_TESTS")
    if record and report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(record).open("a", encoding="utf-8") as passed:
            passed.write(f"{report.nodeid}\n")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """More than two tests that were tried again are a failure, which the closing lines name."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    again = reporter.stats.get("rerun", []) if reporter else []
    if len(again) > MOST_RERUNS:
        reporter.write_line(f"{len(again)} tests were tried again, at most {MOST_RERUNS} may be: mend them", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What tests want to be read in a log, also of other processes: `record_property("log", ...)`."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == "log" and report.when == "call":
                terminalreporter.write_line(value)


def pytest_collection_finish() -> None:
    """Collections of garbage don't look at modules and tests again and again."""
    gc.freeze()
    gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Tests embed with a model that takes no time. Their directories are in memory, if possible: on a disk they took half of the
    time.
    """
    os.environ["DOCS_EMBEDDING_MODEL"] = WORDS_SETTING
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its jobs in the background ignore it
    config.stash[gc_collect_iterations_key] = 1  # at the end, instead of five
    if MEMORY.is_dir() and os.access(MEMORY, os.W_OK):
        state = os.statvfs(MEMORY)
        if state.f_bavail * state.f_frsize > ENOUGH and not state.f_flag & os.ST_NOEXEC:
            os.environ.setdefault("TMPDIR", str(MEMORY))
            tempfile.tempdir = None  # read the variable again


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings of the person who runs the tests don't count; the address of a test OpenSearch does."""
    for name in list(os.environ):
        if name.startswith(("DOCS_", "OTEL_")) and not name.startswith("DOCS_TEST_") and name != "DOCS_EMBEDDING_MODEL":
            monkeypatch.delenv(name)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)  # a .env or data/ of the checkout doesn't count either


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """A command's log goes to this test's standard error, which is closed after it: later tests don't write there."""
    yield
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler:
            root.removeHandler(handler)


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection to another machine fails the test that tries it."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in {socket.AF_INET, socket.AF_INET6} and not str(address[0]).startswith(
            ("127.", "::1", "localhost")
        ):
            raise AssertionError(f"a test tried to reach {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture
def shared() -> Path:
    """The folder with real corpora beside the checkout; the test skips where there is none."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the shared corpora in {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def running_llm() -> Iterator[FakeLLM]:
    """A scripted OpenAI-compatible server in a thread of its own, so that tests may block."""
    with llm_in_a_thread() as llm:
        yield llm


@pytest.fixture
def llm(running_llm: FakeLLM) -> FakeLLM:
    """The same server, forgetful of what earlier tests told it."""
    running_llm.calls.clear()
    running_llm.embedded.clear()
    running_llm.cancelled, running_llm.embedding_status = 0, 200
    running_llm.reply = lambda _: Reply()
    return running_llm


@pytest.fixture(scope="session")
def own_docs(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings whose store is an index of our documentation, made once for all processes of a run; nobody writes to it."""
    from tests.docs_assistant.cli.stored_index import index_docs

    common = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        common = common.parent
    store, unfinished = common / "own-docs", common / "own-docs-unfinished"

    with (common / "own-docs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not store.is_dir():
            asyncio.run(index_docs(Settings.load(env_file=None), unfinished))
            unfinished.rename(store)
    return Settings.load(env_file=None, store=str(store), collection="docs")


@pytest.fixture(scope="session")
def few_docs(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """As `own_docs`, of two pages in two languages."""
    from tests.docs_assistant.cli.stored_index import copied_docs, index_docs

    folder = tmp_path_factory.mktemp("few-docs")
    docs = copied_docs(folder / "docs", "start", "sites")
    asyncio.run(index_docs(Settings.load(env_file=None), folder / "index", docs))
    return Settings.load(env_file=None, store=str(folder / "index"), collection="docs")
