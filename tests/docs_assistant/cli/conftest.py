"""Runs commands in this process and captures their output and exit code."""

import asyncio
import io
import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from app.core.settings import Settings
from docs_assistant.cli import main
from docs_assistant.cli.commands import root, with_plugins
from docs_assistant.cli.ingest import index as index_sites
from tests.end_to_end.threads import llm_in_a_thread
from tests.fake_llm import FakeLLM
from tests.ingestion.local_site import LocalSite, local_site


def every_command(group: click.Group | None = None, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], click.Command]:
    """All commands by their words, with the groups."""
    group = group or with_plugins([])
    commands: dict[tuple[str, ...], click.Command] = {path: group}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command
        inner = every_command(command, (*path, name)) if isinstance(command, click.Group) else {(*path, name): command}
        commands |= inner
    return commands


def options_of(command: click.Command) -> set[str]:
    """Its options, as they are typed."""
    return {name for param in command.get_params(click.Context(command)) for name in param.opts if name[:1] == "-"}


def parse(words: Sequence[str]) -> None:
    """Read a command line without running it. Raises `click.UsageError`."""
    context = root.make_context(root.name, list(words))
    name, command, rest = root.resolve_command(context, list(words))
    assert command
    command.make_context(name, rest, parent=context)


LOGGERS = ("", "docs_assistant", "app", "ingestion", "eval", "uvicorn", "app.pipeline")


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def ok(self) -> str:
        """Standard output of a command that succeeded."""
        assert self.code == 0, self.err
        return self.out

    @property
    def one_line(self) -> str:
        """The line on standard error of a command that failed, which printed nothing else."""
        assert (self.code, self.out, self.err.count("\n")) == (1, "", 1), self
        return self.err.rstrip("\n")


def model_at(llm: FakeLLM) -> dict[str, str]:
    """Settings of a language model on this server."""
    return {"DOCS_LLM_URL": llm.url, "DOCS_LLM_MODEL": "scripted"}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Runs a command line with these settings and this standard input."""

    def run(*arguments: str, stdin: str | bytes = "", **settings: str) -> Done:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        with monkeypatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
            capsys.readouterr()
            return Done(main(arguments), *capsys.readouterr())

    root = logging.getLogger()
    handlers, levels = root.handlers[:], {name: logging.getLogger(name).level for name in LOGGERS}
    yield run
    root.handlers[:] = handlers
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@contextmanager
def gauges() -> Iterator[LocalSite]:
    """Three pages about gauges and their sitemap."""
    with local_site() as running:
        for n in range(3):
            running.page(f"/gauge-{n}", f"Gauge {n}", f"Gauge number {n} measures pressure in boiler {n}.")
        running.sitemap("/gauge-0", "/gauge-1", "/gauge-2")
        yield running


@pytest.fixture
def site() -> Iterator[LocalSite]:
    """A site that the test may change."""
    with gauges() as running:
        yield running


@pytest.fixture(scope="session")
def indexed_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalSite, Path]]:
    """A site and its index, for all tests that only ask."""
    data = tmp_path_factory.mktemp("gauges") / "data"
    with gauges() as running:
        settings = Settings.load(None, store=str(data))
        asyncio.run(index_sites(settings, [f"{running.url}/sitemap.xml"]))
        yield running, data


@pytest.fixture
def indexed(indexed_once: tuple[LocalSite, Path]) -> LocalSite:
    """The site of the index that the working directory has; don't change it."""
    running, data = indexed_once
    shutil.copytree(data, "data")
    return running


@pytest.fixture
def llm() -> Iterator[FakeLLM]:
    """A scripted language model."""
    with llm_in_a_thread() as running:
        yield running
