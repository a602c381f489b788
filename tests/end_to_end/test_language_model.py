"""A whole service with a language model behind HTTP: cited answers, and every way in which the model can fail."""

from __future__ import annotations

import re
import shutil
import threading
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.end_to_end.asking import FAILED, QUESTIONS, SOURCES, ask, assert_links_lead_somewhere
from tests.end_to_end.program import Program, free_port, service
from tests.fake_llm import FakeLLM, Reply

TEXT = "The second passage says it [2], the first one as well [1], and the second again [2]."
IN_LANGUAGE = {"en": TEXT, "cs": "Druhá pasáž to říká [2], první také [1], a pak to říká druhá ještě jednou [2]."}
ASKED = {**QUESTIONS, "cs": "Co se stane, když model neodpovídá?"}  # answered on two pages at least
LONG = " ".join(f"word{n}" for n in range(200))
BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture(scope="module")
def assistant(newcomer: Program, running_llm: FakeLLM, tmp_path_factory) -> Iterator[Program]:
    """A service over the newcomer's index, with the scripted language model."""
    folder = tmp_path_factory.mktemp("assistant")
    shutil.copytree(newcomer.folder / "data", folder / "data")
    settings = {
        "DOCS_LLM_URL": running_llm.url,
        "DOCS_LLM_MODEL": "scripted",
        "DOCS_TUNING__HELPER_TIMEOUT": "1",
        "DOCS_TUNING__UNPROVEN": "off",
    }
    with service(folder, "serve", **settings) as running:
        yield running


def saying(synthesis: Reply, helper: Reply | None = None):
    """The answer is asked for as a stream, the helper steps are not."""

    def reply(body: dict[str, Any]) -> Reply:
        return synthesis if body.get("stream") else helper or Reply("en: index, site\ncs: index, web")

    return reply


@BOTH
@pytest.mark.parametrize("language", ["cs", "en"])
def test_an_answer_is_the_model_s_with_links_by_code(assistant: Program, llm: FakeLLM, language: str, stream: bool):
    """Numbers are in the order of their use, the list has the used sections alone, and the links work."""
    text = IN_LANGUAGE[language]
    llm.reply = saying(Reply(text))
    answer = ask(assistant.url, ASKED[language], stream=stream)
    assert answer.status == 200
    renumbered = text.replace("[2]", "[#]").replace("[1]", "[2]").replace("[#]", "[1]")
    assert answer.text.startswith(renumbered)
    assert answer.text.count(SOURCES[language]) == 1
    assert len(answer.links) == 2
    assert_links_lead_somewhere(answer.links)
    assert not answer.extractive


def test_a_stream_arrives_while_it_is_written(assistant: Program, llm: FakeLLM):
    """The first text is there long before the last."""
    go_on, texts = threading.Event(), []
    llm.reply = saying(Reply(LONG, held={100: go_on}))  # the rest follows when the first half was seen
    with openai.OpenAI(base_url=f"{assistant.url}/v1", api_key="any", max_retries=0) as client:
        messages = [{"role": "user", "content": QUESTIONS["en"]}]
        with client.chat.completions.create(model="docs-assistant", messages=messages, stream=True) as stream:
            for chunk in stream:
                texts += [choice.delta.content or "" for choice in chunk.choices]
                if "word50" in "".join(texts):
                    go_on.set()
    assert "word199" in "".join(texts)


@BOTH
@pytest.mark.parametrize(
    ("name", "helper"),
    [("slow", Reply(delay=600)), ("broken", Reply("down", status=500)), ("babbling", Reply("}{ no keywords here"))],
)
def test_helpers_never_hold_up_an_answer(assistant: Program, llm: FakeLLM, name: str, helper: Reply, stream: bool):
    """Refining and keywords that are slow, fail or say nonsense: the answer comes, from the same passages."""
    llm.reply = saying(Reply(TEXT), helper)
    began = time.monotonic()
    answer = ask(assistant.url, QUESTIONS["en"], stream=stream)
    assert time.monotonic() - began < 60
    assert answer.text.startswith("The second passage says it [1]")
    assert f"{SOURCES['en']}" in answer.text
    assert_links_lead_somewhere(answer.links)


@BOTH
@pytest.mark.parametrize("language", ["cs", "en"])
@pytest.mark.parametrize("reply", [Reply("down", status=500), Reply("", raw="not JSON"), Reply(dies_after=-1)], ids=str)
def test_a_model_that_is_down_means_an_extractive_answer(
    assistant: Program, llm: FakeLLM, reply: Reply, language: str, stream: bool
):
    """Status 200, a note in the question's language, a field that says so, and links."""
    llm.reply = lambda _: reply
    answer = ask(assistant.url, QUESTIONS[language], stream=stream)
    assert answer.status == 200
    assert answer.text.startswith(FAILED[language])
    assert answer.extractive
    assert answer.errors == []
    assert_links_lead_somewhere(answer.links)


@pytest.mark.slow
def test_a_model_that_nobody_listens_for(indexed):
    """Connection refused: extractive by default; an error with DOCS_TUNING__ON_MODEL_FAILURE=error. The log says why."""
    settings = {"DOCS_LLM_URL": f"http://127.0.0.1:{free_port()}/v1", "DOCS_LLM_MODEL": "gone"}
    with service(indexed, "serve", **settings) as running:
        assert ask(running.url, QUESTIONS["cs"]).text.startswith(FAILED["cs"])
        assert settings["DOCS_LLM_URL"] in running.err
    with service(indexed, "serve", **settings, DOCS_TUNING__ON_MODEL_FAILURE="error") as running:
        for stream in (False, True):
            answer = ask(running.url, QUESTIONS["cs"], stream=stream)
            assert answer.status == 502
            assert answer.errors[0]["code"] == "model_unavailable"
            assert not re.search(r"127\.0\.0\.1|Traceback", str(answer.errors))


def test_keys_are_asked_for_and_never_told(indexed, llm: FakeLLM):
    """401 without the key, an answer with it; neither output nor errors have our keys."""
    keys = {"DOCS_API_KEYS": "sesame-42-key-of-tests", "DOCS_LLM_KEY": "upstream-43", "DOCS_LOG_LEVEL": "debug"}
    llm.reply = lambda _: Reply("down", status=500)
    with service(indexed, "serve", **keys, DOCS_LLM_URL=llm.url, DOCS_LLM_MODEL="scripted") as running:
        assert ask(running.url, QUESTIONS["en"]).status == 401
        with openai.OpenAI(base_url=f"{running.url}/v1", api_key="sesame-42-key-of-tests", max_retries=0) as client:
            messages = [{"role": "user", "content": QUESTIONS["en"]}]
            answer = client.chat.completions.create(model="docs-assistant", messages=messages)
        assert str(answer.choices[0].message.content).startswith(FAILED["en"])
        assert not re.search("sesame-42-key-of-tests|upstream-43", running.out + running.err)
