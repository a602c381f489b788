"""The table of fields once more, by the official client for JavaScript."""

import json
from pathlib import Path

import pytest

from app.api.server import create_app
from app.core.errors import ModelTimeout
from app.core.settings import Settings
from app.core.turn import Text
from tests.app.api.scripted import Scripted, ScriptedAssistants, serving
from tests.app.api.test_contract import ACCEPTED, IGNORED, QUESTION, REFUSED, SCRIPT, SOURCE, USED
from tests.node import run_node

pytestmark = pytest.mark.server
SCRIPT_FILE = Path(__file__).with_name("contract.mjs")


def answers(folder, requests, script=SCRIPT):
    """What the client says of each request, and what the assistant was asked."""
    assistant = Scripted(script=script)
    requests = [{"model": "docs-assistant", **request} for request in requests]
    with serving(create_app(ScriptedAssistants((assistant,)), Settings.load(None))) as base:
        given = json.dumps({"baseURL": f"{base}/v1", "requests": requests})
        return json.loads(run_node(SCRIPT_FILE.read_text("utf-8"), folder, given)), assistant.asked


def both(fields):
    return [{"messages": QUESTION, "stream": stream, **fields} for stream in (False, True)]


def test_every_field_that_is_taken_is_taken(tmp_path):
    fields = [{field: value} for field, values in IGNORED.items() for value in values]
    fields += [{field: value} for field, value in ACCEPTED.items()]
    fields += [{field: value} for field, (value, _) in USED.items()]
    found, asked = answers(tmp_path, [request for each in fields for request in both(each)])
    assert len(found) == 2 * len(fields)
    assert {(answer["text"], answer["reason"]) for answer in found} == {("Ahoj [1]", "stop")}
    assert all(answer["sources"][0]["url"] == SOURCE.url for answer in found)
    assert [each.sampling for each in asked[-2 * len(USED) :: 2]] == [sampling for _, sampling in USED.values()]


def test_every_field_that_is_refused_is_a_400_that_names_it(tmp_path):
    fields = [(field, value) for field, values in REFUSED.items() for value in values]
    found, asked = answers(tmp_path, [request for field, value in fields for request in both({field: value})])
    assert not asked
    for (field, _), answer in zip([each for each in fields for _ in (1, 2)], found, strict=True):
        assert (answer["error"], answer["status"]) == ("BadRequestError", 400)
        assert answer["param"].startswith(field)


def test_other_answers_of_the_service(tmp_path):
    """Usage of a stream, an unknown model, the Responses API."""
    usage = {"messages": QUESTION, "stream": True, "stream_options": {"include_usage": True}}
    (counted, unknown, response), _ = answers(
        tmp_path, [usage, {"messages": QUESTION, "model": "gpt-4"}, {"input": "How?"}]
    )
    assert counted["usage"] == 9
    assert (unknown["error"], unknown["status"]) == ("NotFoundError", 404)
    assert response["text"] == "Ahoj [1]"
    assert response["annotations"][0]["url"] == SOURCE.url


def test_an_error_in_mid_answer_is_raised(tmp_path):
    (broken,), _ = answers(
        tmp_path, [{"messages": QUESTION, "stream": True}], script=(Text("a"), 0.05, ModelTimeout("x"))
    )
    assert broken["error"] == "APIError"
    assert "took too long" in broken["message"]
