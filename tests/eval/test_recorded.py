"""The recorded model: repeats what was answered to exactly these messages, and keeps what it lacks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.core.errors import ModelError
from app.core.prompts import load_prompts
from app.core.turn import Done, Message, Text
from app.models.protocols import CallOptions
from eval.files import EvaluationError
from tests.scripted import Line, RecordedModel, Script, ScriptedModel, key_of, load_record, missing_lines

ASKED = (Message("system", "Pick sections:\n1. /a/"), Message("user", "quota?"))
OTHER = (Message("system", "Pick sections:\n1. /b/"), Message("user", "quota?"))


async def test_exactly_these_messages_are_answered() -> None:
    """Another section in the prompt is another question; a role is part of it as well."""
    model = RecordedModel({key_of(ASKED): "1"})
    answer = await model.complete(ASKED, CallOptions())
    assert (answer.text, answer.usage.completion_tokens) == ("1", 1)
    pieces = [event async for event in model.stream(ASKED, CallOptions())]
    assert pieces[0] == Text("1")
    assert isinstance(pieces[-1], Done)
    with pytest.raises(ModelError, match="no recorded answer to 'quota"):
        await model.complete(OTHER, CallOptions())
    assert key_of(ASKED) != key_of([Message("user", ASKED[0].content), ASKED[1]])
    assert list(model.missing) == [key_of(OTHER)]
    assert model.name != RecordedModel({key_of(ASKED): "2"}).name


async def test_the_rest_is_asked_of_another_model() -> None:
    """What that one can't answer either is missing."""
    prompts = load_prompts(("en",))
    script = Script({"quota?": Line("What is the quota?", {"en": ("quota",)})})
    model = RecordedModel({key_of(ASKED): "1"}, ScriptedModel(script, prompts))
    refine = Message("system", prompts.render("en", "refine_question"))
    assert (await model.complete([refine, Message("user", "quota?")], CallOptions())).text == "What is the quota?"
    assert not model.missing
    with pytest.raises(ModelError):
        await model.complete([refine, Message("user", "unknown?")], CallOptions())
    assert len(model.missing) == 1


async def test_what_is_missing_is_a_record_once_it_is_answered(tmp_path: Path) -> None:
    """The lines name the messages; a text that nobody wrote yet is refused."""
    model = RecordedModel({})
    with pytest.raises(ModelError):
        await model.complete(OTHER, CallOptions())
    path = tmp_path / "record.jsonl"
    path.write_text(missing_lines(model), encoding="utf-8")
    with pytest.raises(EvaluationError, match="'text' is missing"):
        load_record(path)
    line = json.loads(path.read_text("utf-8"))
    assert line["messages"][0] == {"role": "system", "content": OTHER[0].content}
    for text in ("none", ""):
        path.write_text(json.dumps({**line, "text": text}), encoding="utf-8")
        assert (await RecordedModel(load_record(path)).complete(OTHER, CallOptions())).text == text


def test_an_empty_record_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "record.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(EvaluationError, match="contains no line"):
        load_record(tmp_path / "record.jsonl")
