"""Long passages are shortened for the answer, and only to what they say themselves."""

from collections.abc import Mapping

import pytest

from app.core.errors import ModelError
from app.core.prompts import load_prompts
from app.core.types import Passage
from app.models import Model
from app.pipeline.conversation import numbered
from plugins.steps.choices import Condense, faithful, parse_picked
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
LONG = (
    "A project may have 64 GB of memory. Ask with `kubectl get quota`. The port is 2049, see https://example.org/a/b.\n\n"
    "```sh\nkubectl delete pod web --now\nrm -rf ./build\n```\n\n" + "Other things follow. " * 300
)


def condensed(changes: Mapping[str, tuple[Passage, ...]]) -> dict[str, str]:
    """The shorter texts by the ids of their chunks."""
    return {passage.chunk.id: passage.condensed for passage in changes["passages"] if passage.condensed}


def condense(model: Model, **settings: object) -> Condense:
    return Condense(model, PROMPTS, SETTINGS.model_copy(update={"helper_timeout": 6.0} | settings))


async def test_long_passages_are_condensed_and_short_ones_stay_as_they_are(llm: FakeLLM, model: Model) -> None:
    """By default from five of 1,500 characters on; a text that was cut off isn't used, and one without numbers is an error."""
    assert condensed(await condense(model)(turn(hits=(hit(1),)))) == {}
    assert llm.calls == []
    two = turn(hits=(hit(1, LONG), hit(2, LONG)))
    llm.reply = lambda _: Reply("[1] A project may have 64 GB of memory.\n[2] A project may", finish="length")
    assert set(condensed(await condense(model)(two))) == {"c1"}
    assert await condense(model)(turn(hits=tuple(hit(n, LONG[:1500]) for n in range(1, 6))))
    llm.reply = lambda _: Reply("A project may have 64 GB.")
    with pytest.raises(ModelError, match="used unchanged"):
        await condense(model)(two)


async def test_a_text_stays_with_its_passage(llm: FakeLLM, model: Model) -> None:
    """Whatever a later step does to the hits; a passage that the model leaves out or changes is used as it is."""
    llm.reply = lambda _: Reply("[1] A project may have 64 GB of memory.\n\n**[3]**: A project may have 128 GB.")
    hits = (hit(1, LONG), hit(2, LONG), hit(3, LONG))
    changes = await condense(model)(turn(hits=hits))
    assert condensed(changes) == {"c1": "A project may have 64 GB of memory."}
    shown = numbered(changes["passages"])
    site, text = "docs.example.org > Page", "A project may have 64 GB of memory."
    assert f"[1] {site} 1\n{text}\n\n[2] {site} 2\nA project" in shown


async def test_only_the_longest_passages_are_shown_and_only_whole(llm: FakeLLM, model: Model) -> None:
    """As many as it takes, none that the model's window has no room for, and no more is asked than there is time for."""
    llm.reply = lambda _: Reply("[1] A project may have 64 GB of memory.")
    hits = (hit(1, "Short. " * 100), hit(2, LONG), hit(3, "Short. " * 100))
    assert set(condensed(await condense(model)(turn(hits=hits)))) == {"c2"}
    body = llm.calls[0]
    assert "[1] docs.example.org > Page 2" in body["messages"][0]["content"]
    assert "Short." not in body["messages"][0]["content"]
    assert "1800 characters" in body["messages"][0]["content"]
    assert body["max_tokens"] == 600
    assert condensed(await condense(model, llm_context_window=4000)(turn(hits=hits))) == {}


FAITHFUL = (
    "A project may have 64 GB.",
    "Ask with `kubectl get quota`.",
    "A project may have 64.",
    "```sh\nkubectl delete pod web --now\n```",
    "A `project` may have **64 GB** of memory.",
    "See https://example.org/a/b.",
)
NUMBERS = ("A project may have 65 GB.", "A project may have at most 6 GB.", "A project may have 64 MB.", "Port 49.")
ADDRESSES = ("See https://example.org/quota.", "See https://example.org/a.")
COMMANDS = ("Ask with `kubectl get quotas`.", "Run `rm -rf .`", "Run `kubectl delete pod web`")
BLOCKS = tuple(f"```sh\n{code}\n```" for code in ("kubectl delete pod web", "kubectl delete namespace web", "rm -rf ."))
INVENTED = (*NUMBERS, *ADDRESSES, *COMMANDS, *BLOCKS, "", LONG + ".")


def test_nothing_is_invented() -> None:
    assert [text for text in (*FAITHFUL, *INVENTED) if faithful(text, LONG)] == [*FAITHFUL]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Here:\n[2] second\nmore [1] inside\n[10]: tenth", {2: "second\nmore [1] inside", 10: "tenth"}),
        ("[1] See:\n```\n[1] 3.14\n[2] 2.71\n```\nThat is R.", {1: "See:\n```\n[1] 3.14\n[2] 2.71\n```\nThat is R."}),
        ("[1] ~~~\n[2] a\n```\n~~~\n[2] b", {1: "~~~\n[2] a\n```\n~~~", 2: "b"}),
        ("[1] first\n[2] second\n[1] first again", {2: "second"}),
        ("[1] first\n[2] ```\nnever closed\n[3] third", {1: "first"}),
        ("nothing", {}),
    ],
    ids=["plain", "marks in code", "two fences", "twice", "open code", "none"],
)
def test_what_is_read_of_an_answer(answer: str, expected: dict[int, str]) -> None:
    assert parse_picked(answer) == expected
