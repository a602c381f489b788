"""The project of examples/json-dump: four classes of its own, answering over HTTP."""

import shutil
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.asking import ask
from tests.end_to_end.program import finished, service

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/json-dump"
DESK = "https://desk.example.org/articles"


def test_the_example_project_answers_over_http(tmp_path: Path):
    """Reader, splitter, postprocessor and own step, each at work, in at most 60 lines of Python."""
    code = [line for file in EXAMPLE.rglob("*.py") for line in file.read_text("utf-8").splitlines()]
    assert len(code) <= 60
    folder = shutil.copytree(EXAMPLE, tmp_path / "project")
    path = {"PYTHONPATH": f".:{ROOT}"}
    done = finished(folder, "ingest", **path)
    assert done.returncode == 0, done.stderr
    with service(folder, "serve", **path) as running:
        assert httpx.get(f"{running.url}/health").json()["index"]["pages"] == 4  # without the draft
        answer = ask(running.url, "I lost my phone, what about 2FA?")
        assert answer.links[0] == f"{DESK}/102"  # the newer of two articles; neither has "2FA"
        body = {"query": "backup codes for 2FA"}
        best, *others = httpx.post(f"{running.url}/v1/search", json=body).json()["data"]
        assert "ten backup codes" in best["text"]
        assert "Your files" not in best["text"]  # a chunk is a sentence with its neighbours
        assert best["modified"].startswith("2026-05-01")
        assert [one for one in (best, *others) if "draft" in one["text"]] == []
        assert ask(running.url, "Jak si nastavím nové heslo?").links == [f"{DESK}/104"]
