"""Measuring over our own documentation, and over another state of it."""

import json

import pytest

from docs_assistant.cli import main
from eval.measure.result import load_result

pytestmark = pytest.mark.server


def test_another_state_of_the_documentation_is_measured_with_its_own_questions(tmp_path):
    pages = {
        "en": "# Home\n\nThe zeppelin leaves at noon from the tower of the castle.\n",
        "cs": "# Domů\n\nVzducholoď odlétá v poledne z věže hradu.\n",
    }
    for language, text in pages.items():
        (tmp_path / "docs" / language).mkdir(parents=True)
        page = f"---\ntitle: {text.splitlines()[0][2:]}\norder: 1\n---\n\n{text}"
        (tmp_path / "docs" / language / "index.md").write_text(page, encoding="utf-8")
    questions = tmp_path / "questions.jsonl"
    asked = {"id": "1", "question": "When does the zeppelin leave?", "doc": "docs/en", "lang": "en"}
    asked["evidence"] = "leaves at noon"
    other = asked | {"id": "2", "evidence": "leaves at midnight"}
    questions.write_text(f"{json.dumps(asked)}\n{json.dumps(other)}\n", encoding="utf-8")
    arguments = ["eval", "docs", "--docs", str(tmp_path / "docs"), "--questions", str(questions)]
    assert main([*arguments, "--out", str(tmp_path / "result.json")]) == 0
    result = load_result(str(tmp_path / "result.json"))
    assert result.outcomes[0].details["ranked"][0].endswith("/docs/en/")
    (quoted,) = result.config["quotations"]
    shares = {"first": 0.5, "anywhere": 0.5, "sure": 1.0, "right": 0.5}
    assert quoted | {"characters": 0} == {"language": "en", "n": 2, **shares, "characters": 0}
    assert 50 < quoted["characters"] < 500


def test_a_directory_that_is_not_there_is_named(tmp_path, capsys):
    assert main(["eval", "docs", "--docs", str(tmp_path / "gone")]) == 2
    assert "gone: there is no such directory" in capsys.readouterr().err
