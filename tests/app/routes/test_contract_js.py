"""Answers of the service as the official client for JavaScript reads them; fields of requests are in test_contract.py."""

import json
from pathlib import Path

import pytest

from app.core.errors import ModelTimeout
from app.core.settings import Settings
from app.core.turn import Text
from app.routes.server import create_app
from tests.app.routes.scripted import Scripted, ScriptedAssistants, serving
from tests.app.routes.test_contract import QUESTION, SCRIPT, SOURCE
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
