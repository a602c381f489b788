"""The table of fields in docs/*/api.md, row by row: what it says of each is what happens, by the official client and raw."""

import re
from itertools import product
from pathlib import Path

import httpx
import openai
import pytest
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from app.core.settings import Settings
from app.core.turn import Done, Sampling, Source, Text, Usage
from app.routes.server import create_app
from tests.app.routes.scripted import Scripted, ScriptedAssistants, serving

pytestmark = pytest.mark.server
DOCS = Path(__file__).parents[3] / "docs"
WORDS = {"used": "used", "ignored": "ignored", "refused": "refused"} | {
    "použije se": "used",
    "ignoruje se": "ignored",
    "odmítne se": "refused",
}
FUNCTION = {"name": "f", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}
IGNORED = {
    "tools": [[TOOL] * 36, [{"type": "made_up"}], []],
    "tool_choice": ["auto", "required", {"type": "function", "function": {"name": "f"}}],
    "parallel_tool_calls": [True],
    "functions": [[FUNCTION]],
    "function_call": ["auto"],
    "user": ["u1"],
    "safety_identifier": ["s"],
    "metadata": [{"a": "b"}],
    "top_p": [0.5],
    "frequency_penalty": [1.0],
    "presence_penalty": [-1.0],
    "logit_bias": [{"50256": -100}],
    "logprobs": [True],
    "top_logprobs": [5],
    "reasoning_effort": ["low"],
    "verbosity": ["low"],
    "prediction": [{"type": "content", "content": "x"}],
    "service_tier": ["flex"],
    "moderation": [{"model": "m"}],
    "prompt_cache_key": ["k"],
    "prompt_cache_options": [{}],
    "prompt_cache_retention": ["24h"],
    "audio": [{"voice": "alloy", "format": "mp3"}],
    "web_search_options": [{}],
}
USED = {
    "temperature": (0.5, Sampling(temperature=0.5)),
    "max_tokens": (7, Sampling(max_tokens=7)),
    "max_completion_tokens": (8, Sampling(max_tokens=8)),
    "stop": (["a", "b"], Sampling(stop=("a", "b"))),
    "seed": (3, Sampling(seed=3)),
}
REFUSED = {
    "n": [2, 0],
    "response_format": [{"type": "json_object"}, SCHEMA],
    "modalities": [["text", "audio"]],
}
ACCEPTED = {"n": 1, "response_format": {"type": "text"}, "modalities": ["text"]}
OWN = {"trace", "overrides", "language", "conversation", "events", "page"}
ELSEWHERE = {"model", "messages", "stream", "stream_options", "store", *OWN}
QUESTION = [{"role": "user", "content": "How?"}]
SOURCE = Source(1, "Volumes", "https://docs.test/v#create", "Create", "en", "snippet", 0.9)
SCRIPT = (Text("Ah"), Text("oj [1]"), Usage(7, 2), SOURCE, Done())


@pytest.fixture(scope="module")
def served():
    assistant = Scripted(script=SCRIPT)
    with serving(create_app(ScriptedAssistants((assistant,)), Settings.load(None))) as base:
        yield assistant, base


@pytest.fixture
def client(served):
    with openai.OpenAI(base_url=f"{served[1]}/v1", api_key="any", max_retries=0) as client:
        yield client


def table(language):
    """Field -> word of the documented table."""
    text = (DOCS / language / "api.md").read_text(encoding="utf-8").split("{#fields}")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \| (\w[\w ]*) \|", text, re.MULTILINE)
    return {name: WORDS[word] for names, word in rows for name in re.findall(r"`(\w+)`", names)}


def test_the_table_has_every_field_of_the_official_client_and_says_what_is_tested_here():
    tested = {**dict.fromkeys(IGNORED, "ignored"), **dict.fromkeys(REFUSED, "refused")}
    tested |= dict.fromkeys({*USED, *ELSEWHERE}, "used")
    assert set(tested) == {*CompletionCreateParamsBase.__annotations__, "stream", *OWN}
    assert table("en") == table("cs") == tested


def call(client, **fields):
    return client.chat.completions.create(**{"model": "docs-assistant", "messages": QUESTION, **fields})


def test_an_ignored_field_changes_nothing(served, client):
    for field, value in ((field, value) for field, values in IGNORED.items() for value in values):
        whole = call(client, **{field: value}).choices[0]
        assert (whole.message.content, whole.message.tool_calls, whole.finish_reason) == ("Ahoj [1]", None, "stop")
        chunks = call(client, stream=True, **{field: value})
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Ahoj [1]", field
        assert served[0].asked[-1].sampling == Sampling()


def test_an_ignored_field_may_have_any_value_and_null_is_as_if_any_field_were_absent(served):
    odd = [(field, value) for field in IGNORED for value in (0, -1.5, "", "x", [], [None], {}, {"a": [1]}, True)]
    with httpx.Client() as raw:
        for field, value in [
            *odd,
            *((field, None) for field in (*USED, *REFUSED, *IGNORED, "stream", "stream_options")),
        ]:
            body = {"model": "docs-assistant", "messages": QUESTION, field: value}
            assert raw.post(f"{served[1]}/v1/chat/completions", json=body).status_code == 200, (field, value)


def test_a_used_field_reaches_the_assistant(served, client):
    for field, (value, sampling) in USED.items():
        call(client, **{field: value})
        assert served[0].asked[-1].sampling == sampling


def test_a_refused_field_is_a_400_that_names_it_and_its_one_value_that_fits_is_accepted(client):
    for field, values in REFUSED.items():
        for value, stream in product(values, (False, True)):
            with pytest.raises(openai.BadRequestError) as refused:
                call(client, stream=stream, **{field: value})
            assert refused.value.param.startswith(field)
            assert field in refused.value.body["message"]
            assert refused.value.type == "invalid_request_error"
        assert call(client, **{field: ACCEPTED[field]}).choices[0].message.content == "Ahoj [1]"


def test_usage_and_sources_are_read_by_the_official_client(client):
    *chunks, usage = list(call(client, stream=True, stream_options={"include_usage": True}))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert (usage.choices, usage.usage.total_tokens) == ([], 9)
    whole = call(client)
    assert whole.usage.total_tokens == 9
    assert whole.sources == chunks[-1].sources
    assert whole.sources[0]["url"] == SOURCE.url
