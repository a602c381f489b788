"""`docs-assistant assistants` prints the steps that run."""

import json
from pathlib import Path

import pytest

from app.assistants.assembly import build
from app.core.settings import Settings
from docs_assistant.cli.serve import log_left_out
from tests.fakes import WORDS

FILE = """
[[model]]
id = "small"
url = "http://127.0.0.1:9/v1"
model = "tiny-1"

[[assistant]]
id = "docs"
names = { en = "Docs" }
steps = ["detect", ["refine", "keywords", "probe"], "retrieve", "relevance", "synthesize", "cite"]
models = { refine = "small", keywords = "small" }
collections = ["handbook"]
languages = ["cs"]

[[assistant.persona]]
id = "kids"
"""


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    file = tmp_path / "own.toml"
    file.write_text(FILE, "utf-8")
    monkeypatch.setenv("DOCS_ASSISTANTS", str(file))
    monkeypatch.setenv("DOCS_STORE", str(tmp_path / "data"))
    monkeypatch.setenv("DOCS_LLM_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("DOCS_LLM_MODEL", "large-1")
    return file


def test_the_steps_are_shown_with_their_groups_and_models(cli, configured: Path) -> None:
    """No index and no model server is needed for it."""
    assistant, persona = cli("assistants").ok.split("\n\n")
    assert "- id: docs:kids\n" in persona
    assert "    collections:\n    - handbook\n" in assistant
    assert "  - - {step: detect, optional: false}\n" in assistant
    assert "    - {step: keywords, model: tiny-1, seconds: 6.0, optional: true}\n" in assistant
    assert f"    - {{step: probe, embedder: '{WORDS}', optional: false}}\n" in assistant


def test_as_json(cli, configured: Path) -> None:
    plain, kids = json.loads(cli("assistants", "--json").ok)
    assert [[step["step"] for step in group] for group in plain["steps"]][1] == ["refine", "keywords", "probe"]
    assert plain["steps"][1][1] == {"step": "keywords", "model": "tiny-1", "seconds": 6.0, "optional": True}
    assert (kids["id"], kids["persona"], kids["steps"]) == ("docs:kids", "kids", plain["steps"])


def test_too_few_helper_calls_are_a_warning(cli, configured: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Here and in the service's log, once for an assistant with its personas."""
    said = "steps may make up to 2 helper calls a question, but DOCS_TUNING__HELPER_CALLS is 1"
    assert f"{said}: if the others use them up" in cli("assistants", DOCS_TUNING__HELPER_CALLS="1").ok
    log_left_out(build(Settings.load(None, helper_calls=1)))
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert line.startswith(said)
    assert line.endswith(" assistant=docs")


def test_steps_without_a_language_model_are_shown_and_logged(cli, caplog: pytest.LogCaptureFixture) -> None:
    """The steps that the shipped assistant leaves out."""
    assert "  left_out:\n  - refine\n  - keywords\n" in cli("assistants").out
    caplog.set_level("INFO")
    log_left_out(build(Settings.load(None)))
    assert caplog.messages == ["steps left out, no language model assistant=docs-assistant steps=refine,keywords"]


def test_a_wrong_order_is_an_error(cli, configured: Path) -> None:
    configured.write_text('[[assistant]]\nid = "a"\nsteps = ["detect", "cite", "retrieve", "synthesize"]', "utf-8")
    done = cli("assistants")
    assert (done.code, "put retrieve before it" in done.err) == (1, True)
