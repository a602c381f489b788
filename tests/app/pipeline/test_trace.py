"""The trace: what each step got, gave, cost, and how long it took; nothing of it where nobody asks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.assistants import assistant
from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.settings import Settings
from app.core.turn import Done, Failure, Message, Request, Source, Text
from app.pipeline import trace as tracing
from app.pipeline.steps import cite
from tests.app.cli.stored_index import page_with, stored
from tests.fake_llm import FakeLLM, Reply

QUESTION = "How do I resize a volume?"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    with stored("embedded", tmp_path) as made:
        made.publish(
            page_with("/volumes", "Introduction.", "To resize a volume, detach the volume from its server first.")
        )
        yield made.address


@pytest.fixture
async def assistants(index: str, llm: FakeLLM) -> AsyncIterator[Assistants]:
    settings = Settings.load(None, store=index, llm_url=llm.url, llm_model="m", helper_timeout=1)
    async with opened(settings) as made:
        yield made


async def end(assistants: Assistants, *, trace: bool) -> Done | Failure:
    request = Request((Message("user", QUESTION),), id="t1", trace=trace)
    return [event async for event in assistants.get("").answer(request)][-1]


def by_name(trace: tuple) -> dict:
    return {step["step"]: step for step in trace}


async def test_each_step_tells_what_it_got_gave_and_cost(assistants: Assistants, llm: FakeLLM) -> None:
    """All steps in order, with calls, tokens, scores of both legs, and the time to the first text; it is JSON."""
    said = Reply("You detach it from its server first, and then the volume can be resized [1].", delay=0.05)
    llm.reply = lambda body: said if body.get("stream") else Reply("en: volume, resize\ncs: svazek")
    told = (await end(assistants, trace=True)).trace
    names = ["detect", "refine", "keywords", "probe", "retrieve", "relevance", "overview", "synthesize", "cite"]
    assert [step["step"] for step in told] == names
    steps = by_name(told)
    assert json.loads(json.dumps(told)) == list(told)
    assert steps["detect"]["output"]["language"] == "en"
    keywords = steps["keywords"]
    assert keywords["output"]["keywords"] == {"en": "volume, resize", "cs": "svazek"}
    assert (keywords["calls"], keywords["prompt_tokens"], keywords["completion_tokens"]) == (1, 11, 7)
    assert keywords["input"] == {"question": QUESTION, "language": "en"}
    assert steps["probe"]["output"]["vector"] == "256 numbers"
    for leg in ("lexical", "vector"):
        assert steps["retrieve"]["output"]["legs"][leg][0].keys() == {"chunk", "url", "score"}
    assert steps["retrieve"]["output"]["hits"][0]["lexical"] > 0
    written = steps["synthesize"]
    assert written["ms"] >= written["first_text_ms"] >= 50
    assert written["output"] == {"finish_reason": "stop", "extractive": False, "refused": False, "language": ""}
    assert written["calls"] == 1


async def test_the_trace_tells_why_each_link_is_there_and_what_was_removed(
    assistants: Assistants, llm: FakeLLM
) -> None:
    """The section is the one that is linked, and an answer that was asked for again is among the removals; it is JSON."""
    czech = "Nejprve je potřeba svazek odpojit od serveru a potom ho můžete zvětšit [1]."
    english = (
        "You detach it from its [server](https://evil.io/a) first [7], and then the volume can be resized [1]."
        " ![p](https://evil.io/p.png)\n\n## Sources\n\n1. [Evil](https://evil.io/s)"
    )
    said = iter([czech, english])
    llm.reply = lambda body: Reply(next(said)) if body.get("stream") else Reply("en: volume, resize")
    request = Request((Message("user", QUESTION),), id="t1", trace=True)
    events = [event async for event in assistants.get("").answer(request)]
    written = "".join(event.text for event in events if isinstance(event, Text))
    (source,) = (event for event in events if isinstance(event, Source))
    assert isinstance(events[-1], Done)
    steps = by_name(events[-1].trace)
    output = steps["cite"]["output"]
    assert json.loads(json.dumps(output)) == output
    hit = steps["retrieve"]["output"]["hits"][0]
    (link,) = output["links"]
    assert link["url"].endswith("/volumes#part-1")
    assert {**link, "reason": ""} == {
        "number": 1, "passage": 1, "chunk": hit["chunk"], "url": source.url, "section": source.section,
        "score": round(source.score, 4), "reason": "",
    }  # fmt: skip
    assert f"]({link['url']})" in written
    assert hit["url"] == link["url"].partition("#")[0]
    assert link["reason"] == "the passage's only section; text: resize, volume"
    assert sorted((one["kind"], one["text"]) for one in output["removed"]) == [
        ("address", "https://evil.io/a"), ("answer", "Nejprve je potřeba svazek odpojit od serveru a potom "),
        ("citation", "[7]"), ("image", "https://evil.io/p.png"),
        ("source list", "## Sources\n\n1. [Evil](https://evil.io/s)"),
    ]  # fmt: skip
    assert all(one["reason"] for one in output["removed"])
    assert "evil" not in written


async def test_failures_are_in_the_trace(assistants: Assistants, llm: FakeLLM) -> None:
    """Of helpers, of an answer in the wrong language, and of one that broke off."""
    czech = Reply("Nejprve je potřeba svazek odpojit od serveru a potom ho můžete zvětšit [1].")
    llm.reply = lambda body: czech if body.get("stream") else Reply("down", status=500)
    steps = by_name((await end(assistants, trace=True)).trace)
    assert "answered 500" in steps["keywords"]["error"]
    assert steps["synthesize"]["calls"] == 2
    assert steps["synthesize"]["output"]["language"] == "wrong"
    llm.reply = lambda _: Reply("You detach it from its server first, and then the rest.", dies_after=9)
    failed = await end(assistants, trace=True)
    assert isinstance(failed, Failure)
    assert "ModelUnavailable" in by_name(failed.trace)["synthesize"]["output"]["failure"]


async def test_nothing_is_told_where_nobody_asks(assistants: Assistants) -> None:
    """The end is the end and no more."""
    assert await end(assistants, trace=False) == Done()


async def test_nothing_is_collected_where_nobody_asks(assistants: Assistants, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event passes through the trace, no clock is made and no value rendered; asked for, all of that is done."""
    counted: Counter[str] = Counter()
    for module, name in (
        (tracing, "_shown"), (tracing, "_steps"), (tracing, "_Clock"), (assistant, "traced"), (cite, "Removals"),
        (cite, "cited_links"), (assistant, "CitingTrace"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, counting(getattr(module, name), counted))
    await end(assistants, trace=False)
    assert counted == Counter()
    await end(assistants, trace=True)
    assert counted.keys() == {"_shown", "_steps", "_Clock", "traced", "Removals", "cited_links", "CitingTrace"}
    assert counted["_shown"] > 50


def counting(work: Callable[..., Any], counted: Counter[str]) -> Callable[..., Any]:
    """The same work, counted."""

    def counts(*given: Any, **named: Any) -> Any:
        counted[work.__name__] += 1
        return work(*given, **named)

    return counts
