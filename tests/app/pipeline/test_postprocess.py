"""Postprocessors and steps of a project: what they choose, where they may stand, and what happens where they fail."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from app.assistants.assembly import build, opened
from app.core import hooks
from app.core.errors import PromptError, SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.pipeline import registry
from app.pipeline.registry import OwnStep, Tools, known_steps, steps
from app.text.language import LanguageDetector
from tests.app.pipeline import plugged
from tests.app.pipeline.turns import SETTINGS, turn
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fake_llm import FakeLLM, Reply

MODULE = "tests.app.pipeline.plugged"
BY_NAME = f"{MODULE}:ByName"
SIMILAR = "llama_index.core.postprocessor:SimilarityPostprocessor"
PAGES = {f"page{n}": f"# Page {n}\n\nHow much memory a notebook has: memory number {n}." for n in range(1, 7)}
KEY = "key-of-an-operator"
QUESTION = "How much memory has a notebook?"


def table(id_: str, path: str, **keys: str) -> str:
    more = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return f'[[step]]\nid = "{id_}"\nclass = "{path}"\n{more}'


def file(folder: Path, tables: str, *steps: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / "assistants.toml"
    names = ", ".join(f'"{name}"' for name in ("detect", "probe", *(steps or ("retrieve",)), "synthesize", "cite"))
    path.write_text(f'{tables}[[assistant]]\nid = "docs-assistant"\nsteps = [{names}]\n', "utf-8")
    return str(path)


class Asked:
    """A service with these steps that can be asked over HTTP."""

    def __init__(self, client: httpx.AsyncClient, llm: FakeLLM) -> None:
        self._client, self.llm = client, llm

    async def search(self) -> list[dict[str, Any]]:
        answer = await self._client.post("/v1/search", json={"query": QUESTION})
        assert answer.status_code == 200, answer.text
        found: list[dict[str, Any]] = answer.json()["data"]
        return found

    async def ask(self) -> tuple[str, dict[str, dict[str, Any]]]:
        """The answer, and the trace of its steps by name."""
        key = {"Authorization": f"Bearer {KEY}"}
        answer = (await self._client.post(CHAT, json=chat(QUESTION, trace=True), headers=key)).json()
        return answer["choices"][0]["message"]["content"], {one["step"]: one for one in answer["trace"]["steps"]}


@asynccontextmanager
async def asked(
    folder: Path, tables: str, *steps: str, with_model: bool = False, **options: object
) -> AsyncIterator[Asked]:
    settings = {"top_k": 2, "assistants": file(folder, tables, *steps), "admin_keys": (KEY,), **options}
    async with (
        indexed(folder, with_model=with_model, more=PAGES, **settings) as service,
        client_of(service.app) as client,
    ):
        yield Asked(client, service.llm)


async def test_postprocessors_choose_among_more_hits_than_are_kept(tmp_path: Path) -> None:
    """One after the other: the second sees what the first left. Order and scores are those of the hits from then on."""
    names = '{ names = ["page6", "page5", "limits", "page1"] }'
    tables = table("filter", SIMILAR, args="{ similarity_cutoff = 0.2 }")
    tables += table("mine", BY_NAME, args=names, scores='"0..1"')
    async with asked(tmp_path, tables, "retrieve", "filter", "mine", "relevance") as service:
        plugged.GIVEN.clear()
        found = await service.search()
        assert [one["url"].rpartition("/")[2].partition("#")[0] for one in found] == ["page6", "page5"]
        assert [one["scores"]["rerank"] for one in found] == [0.9, 0.8]
        ((question, given),) = plugged.GIVEN
        assert question == QUESTION
        assert set(given) == {*PAGES, "limits"}  # without the page about volumes, which is too far from the question
        text, trace = await service.ask()
        assert "memory number 6" in text
        assert [one["chunk"] for one in trace["mine"]["output"]["hits"]] == ["page6", "page5"]


async def test_scores_that_only_compare_passages_are_no_evidence(tmp_path: Path) -> None:
    """They take the place of the fused ones, or give the order only; logits become shares where the table says so."""
    nothing: list[float | None] = [None, None]
    cases = (
        ("relative", 0.1, nothing, [0.9, 0.8]),
        ("relative", 9.0, nothing, None),
        ("sigmoid", 9.0, [0.711, 0.0], None),
    )
    for scores, step, rerank, fused in cases:
        names = f'{{ names = ["page6", "page5"], step = {step} }}'
        tables = table("mine", BY_NAME, args=names, scores=f'"{scores}"')
        async with asked(tmp_path / f"{scores}{step}", tables, "retrieve", "mine", "relevance") as service:
            found = await service.search()
            assert [one["id"] for one in found] == ["page6", "page5"]
            told = [one["scores"]["rerank"] for one in found]
            assert [None if one is None else round(one, 3) for one in told] == rerank
            got = [one["scores"]["fused"] for one in found]
            assert got == (fused or sorted(got, reverse=True)) or scores == "sigmoid"


async def test_a_postprocessor_that_fails_never_fails_the_answer(tmp_path: Path) -> None:
    """It raises, hangs in a thread or in the event loop, or returns what hits can't be: the hits stay as they were."""
    cases = {
        "Hangs": "ModelTimeout: tests.app.pipeline.plugged:Hangs did not answer within 0.1 s.",
        "HangsAsync": "ModelTimeout: tests.app.pipeline.plugged:HangsAsync did not answer within 0.1 s.",
        "Fails": "ModelError: tests.app.pipeline.plugged:Fails failed: no weights (RuntimeError)",
        "TakesNext": "ModelError: tests.app.pipeline.plugged:TakesNext failed: StopIteration, as of next() on nothing (RuntimeError)",
    }
    for name, says in cases.items():
        tables = table("mine", f"{MODULE}:{name}", timeout="0.1" if name.startswith("Hangs") else "60")
        async with asked(tmp_path / name, tables, "retrieve", "mine", "relevance") as service:
            turns = asyncio.create_task(_count())
            text, trace = await service.ask()
            turns.cancel()
            assert "memory number" in text, name
            assert trace["mine"]["error"] == says
            assert trace["mine"]["output"] == {}
            if name == "Hangs":
                assert await turns > 5  # the event loop went on
                errors = [(await service.ask())[1]["mine"]["error"] for _ in range(5)]
                assert "is not called" in errors[-1] or errors[-1].startswith("ModelUnavailable")
    plugged.STOPPED.set()


async def test_a_search_leaves_out_postprocessors_with_a_language_model(tmp_path: Path) -> None:
    """It promises no calls of one; an answer runs them."""
    tables = table("mine", f"{MODULE}:Asks", args='{ llm = { class = "llama_index.core.llms:MockLLM" } }')
    async with asked(tmp_path, tables, "retrieve", "mine", "relevance") as service:
        plugged.GIVEN.clear()
        assert len(await service.search()) == 2
        assert plugged.GIVEN == []
        _, trace = await service.ask()
        assert "mine" in trace
        assert plugged.GIVEN == [("Which?", [])]


async def _count() -> int:
    turns = 0
    try:
        while True:
            turns += 1
            await asyncio.sleep(0.005)
    except asyncio.CancelledError:
        return turns


STEPS_AND_ERRORS = {
    "mine retrieve relevance": "Step mine needs search, hits, which no earlier step writes: put retrieve before it",
    "retrieve relevance mine": "Step relevance uses hits.rerank, so it must come after mine",
    "mine+retrieve relevance": "Steps mine, retrieve write hits at the same time",
    "retrieve helpful mine relevance": "Step helpful needs hits.rerank, which no earlier step writes",
}
TABLES_AND_ERRORS = {
    'class = "no_such:X"': "step 'mine': class=no_such:X: there is no module no_such. Install the package",
    f'class = "{MODULE}:Nobody"': f"class={MODULE}:Nobody: {MODULE} has no class Nobody. Its classes: Annotated_",
    f'class = "{MODULE}"': f"step 'mine': class={MODULE}: write it as module:Class.",
    f'class = "{BY_NAME}"\nargs = {{ name = ["a"] }}': "has no argument name. Its arguments: callback_manager, names, step",
    f'class = "{BY_NAME}"': "needs the argument names.",
    f'class = "{BY_NAME}"\nargs = {{ names = 5 }}': "refuses its arguments: names: Input should be a valid list",
    f'class = "{MODULE}:Asks"\nargs = {{ llm = {{ class = "no_such:L" }} }}': "llm=no_such:L: there is no module no_such",
    f'class = "{MODULE}:Asks"\nargs = {{ llm = {{ class = 5 }} }}': 'llm: write it as { class = "module:Class", args = { … } }',
    f'class = "{MODULE}:Asks"\nargs = {{ llm = {{ class = "a:B", args = 5 }} }}': "llm: write it as",
    f'class = "{MODULE}:First"\nscores = "sigmoid"': "`scores` is for postprocessors of LlamaIndex, and this is none",
    f'class = "{MODULE}:First"\nargs = {{ hits = 5 }}': "refuses its arguments: First() takes no arguments",
    f'class = "{MODULE}:NoStep"': "is neither a step nor a postprocessor or retriever of LlamaIndex: it lacks uses, writes, optional",
    f'class = "{MODULE}:Blocking"': "it lacks async def __call__(self, turn)",
    f'class = "{MODULE}:OneName"': """reads must be a tuple, as ("hits",), not 'hits'.""",
    f'class = "{MODULE}:NoField"': "a turn has no glossary. It has: asked, calls, choices",
    f'class = "{MODULE}:Annotated_"': "write optional without a type, else it is an argument",
    f'class = "{MODULE}:NeedsUnknown"': "Step mine needs hits.stars, which no earlier step writes: put a step that does",
}
UNCHECKED = {
    "{ names = [], step = -9.0 }": 'scores outside of 0..1 (0.9 to 9.9): write scores = "sigmoid" in its [[step]]',
    "{ names = [], renamed = true }": "returns nodes that it wasn't given",
    "{ names = [], rewritten = true }": "changes the texts of passages",
}


@pytest.mark.plugins
async def test_what_is_wrong_is_named_when_the_service_starts(tmp_path: Path) -> None:
    """The order, the class, its arguments, what it declares; and what it does with two passages, which are tried."""

    def settings(tables: str, steps: str = "retrieve mine relevance") -> Settings:
        names = re.sub(r'"(\w+)\+(\w+)"', r'["\1", "\2"]', Path(file(tmp_path, tables, *steps.split())).read_text())
        (tmp_path / "assistants.toml").write_text(names, "utf-8")
        return Settings.load(None, store=str(tmp_path / "data"), assistants=str(tmp_path / "assistants.toml"))

    similar = table("mine", SIMILAR)
    cases = [(settings_, says) for steps, says in STEPS_AND_ERRORS.items() for settings_ in [(similar, steps)]]
    cases += [
        ((f'[[step]]\nid = "mine"\n{keys}\n', "retrieve mine relevance"), says)
        for keys, says in TABLES_AND_ERRORS.items()
    ]
    cases += [((table("rerank", SIMILAR), "retrieve relevance"), "step 'rerank': a shipped step has this name")]
    cases += [(("", "retrieve no_such:X relevance"), "steps=no_such:X: there is no module no_such")]
    shipped = '[[step]]\nid = "multi_query"\n{}\n'
    cases += [
        ((shipped.format(keys), "multi_query+probe retrieve relevance"), says)
        for keys, says in {
            "args = { wording = 3 }": "unknown setting wording. Did you mean wordings? It has: wordings, depth.",
            "args = { wordings = 2.5 }": "step 'multi_query': wordings = 2.5 must be a whole number of at least 0, as 5.",
            "timeout = 3.0": "`timeout` and `scores` are for steps of your own, not for multi_query.",
        }.items()
    ]
    cases += [(('[[step]]\nid = "mine"\nargs = { a = 1 }\n', "retrieve relevance"), "It is no shipped step, either.")]
    for given, says in cases:
        with pytest.raises(SettingsError) as raised:
            build(settings(*given))
        assert says in str(raised.value), given
        assert "assistants.toml: " in str(raised.value)
    for arguments, says in UNCHECKED.items():
        with pytest.raises(SettingsError) as raised:
            async with opened(settings(table("mine", BY_NAME, args=arguments, scores='"0..1"'))):
                pass
        assert "The step mine can't be used: " in str(raised.value)
        assert says in str(raised.value)


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
    prompts, asking = load_prompts(("cs", "en")), known_steps({}, ("best_first:BestFirst",))["best_first:BestFirst"]
    detector, model = LanguageDetector(prompts.languages, "en"), SimpleNamespace(name="m")
    tools: Any = Tools(SETTINGS, prompts, detector, model, None, quoted=frozenset({"cs"}))  # type: ignore[arg-type]
    assert [asking.make(tools).applies(turn(language=code)) for code in ("cs", "en")] == [False, True]
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
        "from docs_assistant import hookimpl\n\n\n@hookimpl\ndef register_steps():\n"
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


@pytest.mark.plugins
def test_a_shipped_step_has_the_settings_of_its_table() -> None:
    """Under its own name, and a second time under another one; without a table it has its defaults."""
    tables = {"helpful": OwnStep("", {"unsure": 0.4}), "strict": OwnStep("helpful", {"good": 0.5, "enough": 1})}
    known = known_steps(tables)
    prompts = load_prompts(("en",))
    tools = Tools(SETTINGS, prompts, LanguageDetector(prompts.languages, "en"), None, None)  # type: ignore[arg-type]
    own, strict, default = (factory.make(tools) for factory in (known["helpful"], known["strict"], steps()["helpful"]))
    assert (own.name, own.unsure, own.good) == ("helpful", 0.4, 0.2)
    assert (strict.name, strict.unsure, strict.good, strict.enough) == ("strict", 0.3, 0.5, 1)
    assert (default.unsure, default.good, default.fair, default.enough) == (0.3, 0.2, 0.1, 3)
    assert known["strict"].step.name == "strict"
