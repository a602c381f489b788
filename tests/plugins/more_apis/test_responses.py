"""POST /v1/responses: what is taken, what comes back, whole and as a stream."""

import orjson
from openai.types.responses import Response as OpenAIResponse

from app.core.errors import ModelTimeout, ModelUnavailable
from app.core.settings import Settings
from app.core.turn import Done, Failure, Message, Sampling, Source, Status, Text, Usage, Verbatim
from app.routes.server import create_app
from tests.app.routes.scripted import Scripted, ScriptedAssistants, client_of

SOURCE = Source(1, "Volumes", "https://docs.test/volumes#create", "Create", "en", "snippet", 0.9)
SCRIPT = (Status("x"), Text("Ah"), Text("oj č [1]."), Usage(7, 2), SOURCE, Done())


async def post(script=SCRIPT, **fields):
    assistant = Scripted(script=script)
    app = create_app(ScriptedAssistants((assistant,)), Settings.load(None))
    async with client_of(app) as client:
        body = {"model": "docs-assistant", "input": "How?", **fields}
        return assistant, await client.post("/v1/responses", json=body)


def events(response):
    assert response.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in response.text.strip().split("\n\n"):
        kind, data = block.split("\n")
        found.append(orjson.loads(data.removeprefix("data: ")))
        assert kind == f"event: {found[-1]['type']}"
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


async def test_a_whole_answer_is_a_response_object():
    _, response = await post(metadata={"a": "b"}, instructions="Be brief.")
    body = response.json()
    assert OpenAIResponse.model_validate(body).output_text == "Ahoj č [1]."
    assert body["status"] == "completed"
    assert body["id"] == "resp_" + response.headers["x-request-id"]
    assert (body["metadata"], body["instructions"]) == ({"a": "b"}, "Be brief.")
    (content,) = body["output"][0]["content"]
    assert content["text"] == "Ahoj č [1]."
    (citation,) = content["annotations"]
    assert content["text"][citation["start_index"] : citation["end_index"]] == "[1]"
    assert (citation["url"], citation["title"]) == (SOURCE.url, "Volumes – Create")
    assert body["usage"]["total_tokens"] == 9
    assert body["sources"][0]["url"] == SOURCE.url


async def test_a_stream_has_the_events_of_the_api_in_order():
    _, response = await post(stream=True)
    found = events(response)
    begun = ["created", "in_progress", "output_item.added", "content_part.added"]
    ended = ["output_text.done", "content_part.done", "output_item.done", "completed"]
    kinds = [event["type"].removeprefix("response.") for event in found]
    assert kinds == [*begun, *["output_text.delta"] * 2, *ended]
    assert "".join(event.get("delta", "") for event in found) == found[6]["text"] == "Ahoj č [1]."
    _, whole = await post()
    same = {"id": None, "created_at": None}
    last, other = found[-1]["response"] | same, whole.json() | same
    assert last["output"][0].pop("id") != other["output"][0].pop("id")
    assert last == other


async def test_the_end_says_whether_the_answer_was_cut_or_is_extractive_and_an_early_error_is_an_http_status():
    for stream in (True, False):
        _, response = await post((Text("a"), Done("length")), stream=stream)
        body = events(response)[-1]["response"] if stream else response.json()
        assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
        _, response = await post((Text("a"), Done(extractive=True, verbatim=Verbatim(2, 2))), stream=stream)
        body = events(response)[-1]["response"] if stream else response.json()
        assert body["extractive"] is True
        assert body["verbatim"] == {"statements": 2, "found": 2}
        _, response = await post((ModelTimeout("x"),), stream=stream)
        assert (response.status_code, response.json()["error"]["code"]) == (504, "model_timeout")


async def test_an_error_in_a_stream_is_a_failed_response():
    _, response = await post((Text("a"), 0.01, Failure(ModelUnavailable("http://10.0.0.1"))), stream=True)
    last = events(response)[-1]
    assert last["type"] == "response.failed"
    assert last["response"]["error"]["code"] == "model_unavailable"
    assert last["response"]["output"][0]["content"][0]["text"] == "a"
    assert "10.0.0.1" not in response.text


async def test_the_conversation_reaches_the_assistant():
    given = [
        {"role": "developer", "content": "Be brief."},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "See"}, {"type": "input_image"}],
        },
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "f", "call_id": "1", "arguments": "{}"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Seen."}]},
        {"role": "user", "content": "And now?"},
    ]
    assistant, response = await post(
        input=given, instructions="In rhymes.", temperature=1, max_output_tokens=9, tools=[{"type": "web_search"}]
    )
    assert response.status_code == 200
    (asked,) = assistant.asked
    assert asked.messages == (
        Message("system", "In rhymes."),
        Message("system", "Be brief."),
        Message("user", "See\n[image]"),
        Message("assistant", "Seen."),
        Message("user", "And now?"),
    )
    assert asked.sampling == Sampling(1.0, 9)


WRONG = [
    ({"input": None}, "input"),
    ({"input": ""}, "input"),
    ({"input": []}, "input"),
    ({"input": 5}, "input"),
    ({"input": [{"role": "assistant", "content": "x"}]}, "input"),
    ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input[0].content[0]"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"previous_response_id": "resp_1"}, "previous_response_id"),
    ({"conversation": "c1"}, "conversation"),
    ({"background": True}, "background"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.type"),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"metadata": {"a": 1}}, "metadata.a"),
]


async def test_a_wrong_field_is_a_400_that_names_it():
    for fields, param in WRONG:
        assistant, response = await post(**fields)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)
        assert not assistant.asked
