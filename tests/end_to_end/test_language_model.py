"""A whole service with a language model behind HTTP: cited answers, streams, and keys."""

import re
import shutil
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.end_to_end.asking import FAILED, QUESTIONS, SOURCES, ask, assert_links_lead_somewhere
from tests.end_to_end.program import Program, service
from tests.fake_llm import FakeLLM, Reply

TEXT = "The second section says it [2], the first one as well [1], and the second again [2]."
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


def saying(synthesis: Reply):
    """The answer is asked for as a stream, the helper steps are not."""

    def reply(body: dict[str, Any]) -> Reply:
        return synthesis if body.get("stream") else Reply("en: index, site\ncs: index, web")

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
