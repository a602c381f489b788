"""Several language models and embedders: who asks which, and what is wrong at the start."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from app.assistants.assembly import build, opened
from app.core.errors import SettingsError
from app.core.settings import Settings
from app.core.turn import Message, Request
from eval.questions.own_docs import indexed_docs
from tests.fake_llm import Reply, fake_llm
from tests.fakes import WORDS

STEPS = 'steps = ["detect", ["refine", "keywords", "probe"], "retrieve", "synthesize", "cite"]\n'
MODELS = """
[[model]]
id = "small"
url = "{url}"
model = "small-1"
key_env = "SMALL_KEY"
context_window = 4000

[[model]]
id = "large"
url = "{url}"
model = "large-1"
extra_body = {{ top_k = 7 }}
form = "short"
"""
QUESTION = Request((Message("user", "How do I index another site?"),))


def written(tmp_path: Path, text: str, **more: object) -> Settings:
    file = tmp_path / "own.toml"
    file.write_text(text, "utf-8")
    return Settings.load(None, **{"store": str(tmp_path / "data"), "assistants": str(file), **more})


def answers(body: dict) -> Reply:
    return Reply("en: site, index\ncs: web" if "one line per language" in body["messages"][0]["content"] else "So [1].")


@pytest.mark.server
async def test_each_assistant_and_each_step_asks_its_own_model(
    tmp_path: Path, few_docs: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By request bodies: model names, extra fields; without any model in the settings."""
    monkeypatch.setenv("SMALL_KEY", "secret")
    async with fake_llm() as llm:
        llm.reply = answers
        models = 'model = "large"\nmodels = { refine = "small", keywords = "small" }'
        text = f'{MODELS.format(url=llm.url)}[[assistant]]\nid = "one"\n{models}\n{STEPS}'
        text += f'[[assistant]]\nid = "two"\nmodel = "small"\n{STEPS}'
        async with opened(written(tmp_path, text, store=few_docs.store)) as made:
            for id_, expected in (("one", {"small-1": 2, "large-1": 1}), ("two", {"small-1": 3})):
                llm.calls.clear()
                async for _ in made.get(id_).answer(QUESTION):
                    pass
                assert Counter(call["model"] for call in llm.calls) == expected
                assert [call.get("top_k") for call in llm.calls if call["model"] == "large-1"] in ([7], [])
            sizes = {step.name: step.settings.llm_context_window for step in made.get("two").plans.answer[-2]}
            assert sizes == {"synthesize": 4000}
            (writer,) = made.get("one").plans.answer[-2]
            assert writer.settings.tuning.llm_form == "short"


@pytest.mark.server
async def test_an_assistant_may_have_an_index_with_an_embedder_of_its_own(tmp_path: Path, few_docs: Settings) -> None:
    """Two stores with vectors of different models in one service; each question is embedded by its index's own."""
    page = Path(__file__).parents[2] / "docs/en/indexing.md"
    (tmp_path / "docs/en").mkdir(parents=True)
    (tmp_path / "docs/en/index.md").write_text(page.read_text("utf-8"), "utf-8")
    async with (
        fake_llm() as llm,
        indexed_docs(Settings.load(None, embedding_url=llm.url, embedding_model="other-e"), tmp_path / "docs") as other,
    ):
        text = f'[[index]]\nid = "other"\nstore = "{other.store}"\nembedding_url = "{llm.url}"\n'
        text += 'embedding_model = "other-e"\nembedding_query_prefix = "query: "\n'
        text += f'[[assistant]]\nid = "one"\n{STEPS}[[assistant]]\nid = "two"\nindex = "other"\n{STEPS}'
        async with opened(written(tmp_path, text, store=few_docs.store)) as made:
            for id_, embedder, embedded in (("one", WORDS, 0), ("two", "other-e", 1)):
                llm.embedded.clear()
                turn = await made.get(id_).find(QUESTION)
                assert turn.hits
                assert turn.generation.info.recipe.embedder == embedder
                assert llm.embedded == [["query: How do I index another site?"]] * embedded
            assert (await made.get("two").find(QUESTION)).search.query.vector_weight == 0.6


ASSISTANT = '[[assistant]]\nid = "a"\n'
SMALL = '[[model]]\nid = "small"\nurl = "http://127.0.0.1:9/v1"\nmodel = "s"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ASSISTANT + 'model = "gone"\n' + STEPS, "own.toml: assistant 'a': it uses the model 'gone'.*Available: none"),
        (SMALL + ASSISTANT + 'models = { keywords = "gone" }\n' + STEPS, "model 'gone'.*Available: small"),
        (SMALL + ASSISTANT + 'models = { hyde = "small" }\n' + STEPS, "for the step 'hyde', which isn't among"),
        (SMALL + ASSISTANT + 'models = { probe = "small" }\n' + STEPS, "for the step probe, which asks none"),
        (SMALL + ASSISTANT + 'models = { keywords = "small" }\n' + STEPS, "Steps refine, synthesize have no language model"),
        (SMALL + ASSISTANT + 'models = "small"\n' + STEPS, 'models = "small" must be ids of models by step'),
        (SMALL + SMALL + ASSISTANT + STEPS, "needs an id of its own"),
        ('[[model]]\nid = "x"\nmodel = "s"\n' + ASSISTANT + STEPS, "own.toml: model 'x': it needs a url"),
        ('[[model]]\nid = "x"\nurl = "http://h"\n' + ASSISTANT + STEPS, "own.toml: model 'x': url is set, but model"),
        (SMALL + 'colour = "red"\n' + ASSISTANT + STEPS, "model 'small': unknown colour"),
        (SMALL + "timeout = -1\n" + ASSISTANT + STEPS, "model 'small': timeout has value -1.0: it must be a number above 0"),
        (SMALL + 'key_env = "NOT_SET"\n' + ASSISTANT + STEPS, "model 'small': it has its key in NOT_SET, which isn't set"),
        ('[[index]]\nid = "i"\n' + ASSISTANT + STEPS, "index 'i': store is missing"),
        (ASSISTANT + 'index = "i"\n' + STEPS, "uses the index 'i'"),
        ('[model]\nid = "x"\n' + ASSISTANT + STEPS, r"model = .* must be written as \[\[model\]\]"),
        ('[[gadget]]\nid = "x"\n' + ASSISTANT + STEPS, "unknown gadget"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_at_the_start(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        build(written(tmp_path, text))
