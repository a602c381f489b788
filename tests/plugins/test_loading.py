"""Plugins as they are installed: one of a third party, those that are left out, and those that fail."""

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from app.core.hooks import hookimpl, plugins
from tests.app.routes.scripted import scripted, serving, until
from tests.fakes import WORDS_SETTING

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/textile-plugin"
SHIPPED = {"discord", "formats", "gaps", "more_apis", "slack", "steps", "vcs"}


def installed(folder: Path, module: str, code: str) -> Path:
    """A directory for PYTHONPATH with a package that has one plugin, as pip leaves it."""
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[docs_assistant]\n{module} = {module}\n", "utf-8")
    (folder / f"{module}.py").write_text(code, "utf-8")
    return folder


def ran(*words: str, cwd: Path, path: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, with an index in `cwd`."""
    python = os.pathsep.join([str(ROOT), *([str(path)] if path else [])])
    env = {name: value for name, value in os.environ.items() if not name.startswith("DOCS_")}
    env |= {"PYTHONPATH": python, "DOCS_STORE": str(cwd / "data"), "DOCS_EMBEDDING_MODEL": WORDS_SETTING, **variables}
    command = [sys.executable, "-m", "docs_assistant.cli", *words]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_the_shipped_ones_are_installed() -> None:
    assert {entry.name for entry in entry_points(group="docs_assistant")} >= SHIPPED


def test_the_shown_plugin_is_the_example_and_has_20_lines() -> None:
    """But for docstrings, which the page leaves out."""
    code = (EXAMPLE / "textile_plugin.py").read_text("utf-8")
    code = re.sub(r'^ *""".*"""\n', "", code, flags=re.MULTILINE).strip()
    for page in sorted((ROOT / "docs").glob("*/plugins.md")):
        shown = re.search(r'```python title="textile_plugin.py"\n(.*?)```', page.read_text("utf-8"), re.DOTALL)
        assert shown is not None
        assert _lines(shown[1]) == _lines(code), page
        project = re.search(r'```toml title="pyproject.toml"\n(.*?)```', page.read_text("utf-8"), re.DOTALL)
        assert project is not None
        assert project[1] == (EXAMPLE / "pyproject.toml").read_text("utf-8"), page
    assert len(_lines(code)) <= 20


def _lines(code: str) -> list[str]:
    return [line for line in code.splitlines() if line.strip()]


def test_a_converter_of_a_third_party_makes_pages(tmp_path: Path) -> None:
    pytest.importorskip("textile")
    plugin = installed(tmp_path / "site", "textile_plugin", (EXAMPLE / "textile_plugin.py").read_text("utf-8"))
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/volumes.textile").write_text(
        "h1. Volumes\n\nA *volume* keeps its files after a restart.", "utf-8"
    )
    sources = tmp_path / "sources.toml"
    sources.write_text('[[source]]\nurl = "https://docs.example.org/"\ndirectory = "pages"\n', "utf-8")
    without = ran("ingest", str(sources), cwd=tmp_path)
    assert without.returncode == 1, without.stdout + without.stderr
    done = ran("ingest", str(sources), cwd=tmp_path, path=plugin)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = ran("pages", "--url", "https://docs.example.org/volumes", "--full", cwd=tmp_path, path=plugin)
    assert "A **volume** keeps its files" in shown.stdout, shown.stdout + shown.stderr


def install_shown(folder: Path, anchor: str, *names: str) -> str:
    """Write these files as a section of the page shows them, install them by the page's command, and return the directory that it makes."""
    page = (ROOT / "docs/en/plugins.md").read_text("utf-8")
    section = page.partition(f"{{#{anchor}}}")[2].partition("\n## ")[0]
    for name in names:
        shown = re.search(rf'title="{name}"\n(.*?)```', section, re.DOTALL)
        assert shown is not None
        (folder / name).write_text(shown[1], "utf-8")
    commands = re.search(
        r"```sh\n(pip install --upgrade --no-deps.*)\nPYTHONPATH=(\w+) docs-assistant serve\n```", page
    )
    assert commands is not None
    # what builds comes from this environment: tests have no registry
    settings = {
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["sh", "-c", commands[1]],
        cwd=folder,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return commands[2]


def test_the_documented_commands_install_a_plugin_from_a_clean_directory(tmp_path: Path) -> None:
    """Both files as the page shows them, then its commands, beside a folder that is no part of it; no package of them is looked for by the
    name docs-assistant.
    """
    site = tmp_path / "site"
    (site / "pages").mkdir(parents=True)
    folder = install_shown(tmp_path, "write", "textile_plugin.py", "pyproject.toml")
    assert (
        "docs-assistant"
        not in tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    )
    (site / "pages/volumes.textile").write_text("h1. Volumes\n\nA *volume* keeps its files.", "utf-8")
    (site / "sources.toml").write_text('[[source]]\nurl = "https://docs.example.org/"\ndirectory = "pages"\n', "utf-8")
    assert ran("ingest", "sources.toml", cwd=site).returncode == 1
    tried = ran("ingest", "sources.toml", cwd=site, path=tmp_path / folder)
    assert tried.returncode == 0, tried.stdout + tried.stderr


def test_only_the_named_ones_are_loaded(tmp_path: Path) -> None:
    assert "report" in ran("--help", cwd=tmp_path).stdout
    assert "report" not in ran("--help", cwd=tmp_path, DOCS_PLUGINS="formats, steps").stdout.replace("reports", "")
    wrong = ran("--help", cwd=tmp_path, DOCS_PLUGINS="gap")
    assert wrong.returncode == 1
    assert "no plugin 'gap' is installed. Did you mean gaps?" in wrong.stderr


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import no_such", "No module named 'no_such'"),
        (
            "from docs_assistant import hookimpl\n@hookimpl\ndef register_routs(app): ...",
            "unknown hook 'register_routs'",
        ),
    ],
)
def test_a_plugin_that_fails_is_named(tmp_path: Path, code: str, says: str) -> None:
    failed = ran("--help", cwd=tmp_path, path=installed(tmp_path / "site", "broken", code))
    assert failed.returncode == 1
    assert "The plugin broken (broken) can't be loaded" in failed.stderr
    assert says in failed.stderr
    assert "Traceback" not in failed.stderr


async def test_work_of_a_plugin_goes_on_while_the_service_runs_and_its_failure_is_logged(caplog) -> None:
    done = []

    class Worker:
        @hookimpl
        def register_work(self, service: Any) -> list[Any]:
            return [self.count(), self.fail(service.settings.port)]

        async def count(self) -> None:
            try:
                while True:
                    done.append("counted")
                    await asyncio.sleep(0.01)
            finally:
                done.append("ended")

        async def fail(self, port: int) -> None:
            raise ValueError(f"nothing at {port}")

    plugins().register(worker := Worker())
    try:
        with serving(scripted()):
            await until(lambda: done.count("counted") > 2)
    finally:
        plugins().unregister(worker)
    assert done[-1] == "ended"
    assert "work in the background has ended" in caplog.text
    assert "nothing at 8000" in caplog.text


def test_the_shipped_assistant_does_without_steps_of_plugins_that_are_not_loaded(tmp_path: Path) -> None:
    """Its file names the step of curated answers, which a plugin has."""
    assert "curated" in ran("assistants", cwd=tmp_path).stdout
    without = ran("assistants", cwd=tmp_path, DOCS_PLUGINS="formats")
    assert (without.returncode, "curated" in without.stdout) == (0, False), without.stderr
    assert "step: relevance" in without.stdout
