"""assistants.toml: whatever is wrong in it is named with its file, table and key, what it is and what it must be."""

import re
from pathlib import Path

import pytest

from app.assistants.assembly import build
from app.assistants.file import (
    EMBEDDING_KEYS,
    MODEL_KEYS,
    AssistantsFile,
    AssistantTable,
    IndexTable,
    ModelTable,
    Persona,
    StepTable,
    read_assistants,
)
from app.core.errors import RequestError, SettingsError
from app.core.settings import Settings

A = '[[assistant]]\nid = "a"\n'
WHOLE = f'{A}steps = ["detect"]\n'
PERSONA = f'{WHOLE}[[assistant.persona]]\nid = "kids"\n'
MODEL = f'{WHOLE}[[model]]\nid = "m"\n'
INDEX = f'{WHOLE}[[index]]\nid = "i"\nstore = "x"\n'


def read(tmp_path: Path, text: str) -> AssistantsFile:
    file = tmp_path / "own.toml"
    file.write_text(text, "utf-8")
    return read_assistants(Settings.load(None, assistants=str(file)))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (A + "steps = [1]", "assistant 'a': steps = [1] must be a list of steps"),
        (A + "steps = 5", "assistant 'a': steps = 5 must be a list of steps"),
        (A + "steps = []", "assistant 'a': steps = [] must be a list of steps"),
        (A + "steps = [[]]", "assistant 'a': steps = [[]] must be a list of steps"),
        (A + 'steps = [["detect", ["probe"]]]', """assistant 'a': steps = [["detect", ["probe"]]] must be a list"""),
        (A, "assistant 'a': steps is missing"),
        ('[[assistant]]\nsteps = ["detect"]', "assistant 1: id is missing"),
        ('[[assistant]]\nid = " "\nsteps = ["detect"]', 'id = " " must be a name of its own'),
        (WHOLE + WHOLE, "assistant: each needs an id of its own, but it names 'a' twice"),
        (PERSONA + '[[assistant.persona]]\nid = "kids"', "persona: each needs an id of its own"),
        (WHOLE + '[[assistant.persona]]\nid = ["kids"]', """assistant 'a': persona 1: id = ["kids"] must be a name"""),
        (WHOLE + "[[assistant.persona]]\nid = 3", "persona 1: id = 3 must be a name of its own"),
        ("", "assistant is missing. It must be written as [[assistant]]"),
        ("assistant = 5", "assistant = 5 must be written as [[assistant]]"),
        ("assistant = [5]", "assistant = [5] must be written as [[assistant]]"),
        (WHOLE + 'langauges = ["cs"]\n', "unknown langauges. Did you mean languages? Known: id, "),
        ('persona = "x"\n' + WHOLE, "unknown persona. Known: assistant, model, index, step, brand."),
    ],
)
def test_an_error_names_table_key_and_value(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(tmp_path, text)
    assert str(raised.value).startswith(f"{tmp_path}/own.toml: ")
    assert said in str(raised.value)


STEP = f'{WHOLE}[[step]]\nid = "s"\nclass = "json:JSONDecoder"\n'
TABLES = {AssistantTable: WHOLE, Persona: PERSONA, ModelTable: MODEL, IndexTable: INDEX, StepTable: STEP}
KEYS = [
    (table, field.alias or name)
    for table in TABLES
    for name, field in table.model_fields.items()
    if name not in {"id", "steps", "store"} and (table, name) != (StepTable, "class_")
]


FITTING = {
    '"false"': {"model", "index", "key_env", "url", "class", *(key for _, key in KEYS if key.startswith("embedding_"))},
    "5.5": {"timeout", "embedding_timeout"},
    "true": {"listed"},
    '["x", 1]': set(),
    "{ x = [[1]] }": {"extra_body", "args", "embedding_extra_body", "embedding_args"},
    "2020-01-01": set(),
}


@pytest.mark.parametrize("value", FITTING)
def test_every_key_is_of_its_type(tmp_path: Path, value: str) -> None:
    """A value of another type is an error that says what the key must be."""
    for table, key in KEYS:
        try:
            read(tmp_path, f"{TABLES[table]}{key} = {value}\n")
        except SettingsError as error:
            assert re.search(rf": {key} = .* must be ", str(error))  # noqa: PT017
        else:
            assert key in FITTING[value], (table, key)


def test_a_file_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"id = \xff")
    with pytest.raises(SettingsError, match="isn't written in UTF-8"):
        read_assistants(Settings.load(None, assistants=str(tmp_path / "own.toml")))


def test_the_keys_of_models_and_indices_are_those_that_are_used() -> None:
    assert {f.alias or name for name, f in ModelTable.model_fields.items()} == {"id", "key_env", *MODEL_KEYS}
    assert set(IndexTable.model_fields) == {"id", "key_env", "store", *EMBEDDING_KEYS}


def test_an_assistant_with_a_colon_has_its_tones(tmp_path: Path) -> None:
    """The longest id that is known is the assistant."""
    file = tmp_path / "own.toml"
    steps = 'steps = ["detect", "retrieve", "synthesize"]\n'
    file.write_text(f'[[assistant]]\nid = "team"\n{steps}[[assistant]]\nid = "team:docs"\n{steps}', "utf-8")
    made = build(Settings.load(None, assistants=str(file), store=str(tmp_path / "data")))
    assert made.get("team:docs").persona == ""
    assert (made.get("team:docs:kids").id, made.get("team:docs:kids").persona) == ("team:docs:kids", "kids")
    assert made.get("team:kids").persona == "kids"
    with pytest.raises(RequestError, match="Tones of team:docs, as team:docs:name"):
        made.get("team:docs:pirate")
