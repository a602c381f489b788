"""Steps of a project outside the package: by module:Class, by table, by entry point; with prompts and tests."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.assistants.assembly import build
from app.core import hooks
from app.core.errors import PromptError, SettingsError
from app.core.settings import Settings
from app.pipeline import registry
from tests.app.pipeline.test_postprocess import MODULE, asked, table
from tests.fake_llm import Reply

ROOT = Path(__file__).parents[3]


async def test_the_step_of_the_documentation_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a service, with the prompt beside it; a reply without a number leaves the order."""
    page = (ROOT / "docs/en/own-classes.md").read_text("utf-8")
    code = re.search(r"```python\n(# best_first\.py\n.*?)```", page, re.DOTALL)
    assert code
    (tmp_path / "best_first.py").write_text(code[1], "utf-8")
    for language in ("en", "cs"):
        prompt = tmp_path / f"prompts/{language}/best_first.md"
        prompt.parent.mkdir(parents=True)
        prompt.write_text("Which of these passages is best?\n\n$passages\n", "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    steps = ("retrieve", "best_first:BestFirst", "relevance")
    async with asked(tmp_path, "", *steps, with_model=True) as service:
        service.llm.reply = lambda body: Reply("2" if body["max_tokens"] == 300 else "It has some [1].")
        _, trace = await service.ask()
        own, before = (trace[name]["output"]["hits"] for name in ("best_first:BestFirst", "retrieve"))
        assert [one["chunk"] for one in own] == [before[1]["chunk"], before[0]["chunk"]]
        assert len(trace["best_first:BestFirst"]["calls"]) == 1
        assert "Which of these passages" in service.llm.calls[-2]["messages"][0]["content"]
        service.llm.reply = lambda body: Reply("None." if body["max_tokens"] == 300 else "It has some [1].")
        text, trace = await service.ask()
        assert "It has some" in text
        assert "no number of a passage" in trace["best_first:BestFirst"]["error"]
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
    """By the name that the class gives them."""
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
