"""Steps of a project outside the package: by module:Class, by table, by entry point; with prompts, tests and ablation."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.assistants.assembly import build
from app.assistants.file import read_assistants
from app.cli import main
from app.core import hooks
from app.core.errors import PromptError, SettingsError
from app.core.settings import Settings
from app.pipeline import registry
from eval.grid.configurations import Variant, chosen_assistant, variants, write_assistants
from tests.app.pipeline.test_postprocess import MODULE, SIMILAR, asked, file, table
from tests.app.pipeline.test_registry import tools
from tests.fake_llm import Reply

ROOT = Path(__file__).parents[3]


async def test_a_new_step_runs_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its test passes, it answers in a service with the prompt beside it, and nothing is overwritten."""
    assert main(["new", "step", "best_first"]) == 0
    assert '"best_first:BestFirst"' in capsys.readouterr().out
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_best_first.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False, env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    assert "3 passed" in ran.stdout, ran.stdout + ran.stderr
    for name in ("best_first", "retrieve", "Best", "best-first"):
        assert main(["new", "step", name]) == 1
    assert "best_first.py, test_best_first.py, prompts/" in capsys.readouterr().err
    monkeypatch.syspath_prepend(str(tmp_path))
    steps = ("retrieve", "best_first:BestFirst", "relevance")
    async with asked(tmp_path, "", *steps, with_model=True) as service:
        service.llm.reply = lambda body: Reply("2" if body["max_tokens"] == 300 else "It has some [1].")
        _, trace = await service.ask()
        own, before = (trace[name]["output"]["hits"] for name in ("best_first:BestFirst", "retrieve"))
        assert [one["chunk"] for one in own] == [before[1]["chunk"], before[0]["chunk"]]
        assert len(trace["best_first:BestFirst"]["calls"]) == 1
        assert "Which of these passages" in service.llm.calls[-2]["messages"][0]["content"]
    (tmp_path / "prompts/cs/best_first.md").unlink()
    with pytest.raises(PromptError, match=r"prompts/cs/best_first.md can't be read"):
        build(Settings.load(None, assistants=str(tmp_path / "assistants.toml"), llm_url="http://x", llm_model="m"))


async def test_a_step_that_does_wrong_never_fails_the_answer(tmp_path: Path) -> None:
    """It takes too long, changes what it doesn't declare, or returns no changes: they are left out, and the trace says why."""
    cases = {
        "Late": "StepError: The step mine took over 0.1 s.",
        "Undeclared": "StepError: The step mine changes hitz, which it doesn't declare in `writes`.",
        "Nothing": "StepError: The step mine returned NoneType instead of a dict of changed fields.",
    }
    for name, says in cases.items():
        tables = table("mine", f"{MODULE}:{name}", timeout="0.1" if name == "Late" else "60")
        async with asked(tmp_path / name, tables, "retrieve", "mine", "relevance") as service:
            text, trace = await service.ask()
            assert "memory number" in text, name
            assert trace["mine"]["error"] == says


@pytest.fixture
def look_again() -> Iterator[Callable[[], None]]:
    """Plugins are looked for again, in the test and after it."""

    def cleared() -> None:
        hooks.plugins.cache_clear()
        registry.steps.cache_clear()

    cleared()
    yield cleared
    cleared()


async def test_a_plugin_brings_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look_again) -> None:
    """By the name that the class gives them; `eval grid --steps` also tries those that no assistant uses."""
    info = tmp_path / "own_steps-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-steps\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text("[docs_assistant]\nonly_first = first_plugin\n", "utf-8")
    (tmp_path / "first_plugin.py").write_text(
        "from app.core.hooks import hookimpl\n\n\n@hookimpl\ndef register_steps():\n"
        f"    from {MODULE} import First\n\n    return [type('OnlyFirst', (First,), {{'name': 'only_first'}})]\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    async with asked(tmp_path, "", "retrieve", "only_first", "relevance") as service:
        assert len(await service.search()) == 1
    look_again()
    (info / "entry_points.txt").write_text("[docs_assistant]\nonly_first = no_such\n", "utf-8")
    says = r"The plugin only_first \(no_such\) can't be loaded: No module named 'no_such'"
    with pytest.raises(SettingsError, match=says):
        build(Settings.load(None, assistants=str(tmp_path / "assistants.toml")))


def test_steps_from_outside_are_added_and_removed_by_the_grid(tmp_path: Path) -> None:
    """Those in use are left out, those in the file are put where they can stand first, and their tables are kept."""
    tables = table("cut", SIMILAR, args="{ similarity_cutoff = 0.3 }") + table("mine", f"{MODULE}:First")
    path = file(tmp_path, tables, "retrieve", "cut", "relevance")
    written = read_assistants(Settings.load(None, assistants=path))
    entry = chosen_assistant(written, "")
    found: dict[str, Variant] = {one.name: one for one in variants(entry.steps, tools(), written.known_steps())}
    base = [("detect",), ("probe",), ("retrieve",), ("cut",), ("relevance",), ("synthesize",), ("cite",)]
    assert list(found["without cut"].steps) == base[:3] + base[4:]
    assert list(found["with mine"].steps) == [*base[:3], ("mine",), *base[3:]]
    write_assistants(written, entry, [one for one in found.values() if not one.needs], tmp_path / "grid.toml")
    again = build(Settings.load(None, assistants=str(tmp_path / "grid.toml")))
    assert "with mine" in again.by_id
