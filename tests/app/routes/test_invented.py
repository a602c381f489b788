"""Plainly invented answers: whatever the check marks of them, nothing in the response says that they are true."""

import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.app.routes.indexed import Indexed, indexed
from tests.app.routes.scripted import client_of
from tests.app.routes.test_chat import events
from tests.fake_llm import Reply

SET = Path(__file__).parents[3] / "eval" / "sets" / "invented.jsonl"
ROWS = [json.loads(line) for line in SET.read_text("utf-8").splitlines()]
SAMPLES = [row for row in ROWS if "answer" in row]
CITATION = re.compile(r" \[\d+\]")
CLAIMS = re.compile(r"(?i)confiden|well supported|\bsupport\b|jistota|doloženo|belegt")


@pytest.fixture
async def handbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Indexed]:
    """A service over the pages of the set; as in a large index, statements are compared in meaning, and all are near to all pages."""
    for place in ("index.ranking.units", "pipeline.steps.cite"):
        monkeypatch.setattr(f"app.{place}.FEWEST_CHUNKS", 2)
    pages = defaultdict[str, list[str]](list)
    for row in ROWS:
        if "passage" in row:
            name = row["passage"].removeprefix("v-").rpartition("-")[0]
            pages[f"cs-{name}" if row["language"] == "cs" else name].append(row["text"])
    more = {name: "\n\n".join(texts) for name, texts in pages.items()}
    async with indexed(tmp_path, more=more, min_evidence=0.0) as running:
        yield running


async def answered(service: Indexed, client: httpx.AsyncClient, sample: dict[str, Any], said: str, stream: bool) -> Any:
    """The text without the list of sources, and the object that ends the answer."""
    service.llm.reply = lambda body: Reply(said if body.get("stream") else "")
    asked = {"messages": [{"role": "user", "content": sample["question"]}], "stream": stream, "events": True}
    response = await client.post("/v1/chat/completions", json={"model": "docs-assistant", **asked})
    assert response.status_code == 200, response.text
    assert not CLAIMS.search(response.text)
    if not stream:
        body = response.json()
        return body["choices"][0]["message"]["content"], body
    chunks = events(response)[:-1]
    last = next(one for one in chunks if one["choices"] and one["choices"][0]["finish_reason"])
    return "".join(one["choices"][0]["delta"].get("content", "") for one in chunks if one["choices"]), last


def test_the_set_is_large_enough():
    """Otherwise, the tests below would show nothing."""
    languages = [sample["language"] for sample in SAMPLES]
    assert min(languages.count("en"), languages.count("cs")) >= 5
    assert len(SAMPLES) >= 15


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_an_invented_answer_carries_no_positive_claim(handbook: Indexed, stream: bool):
    """No confidence and no label; what is counted is that none of it is word for word in the pages, which is so."""
    async with client_of(handbook.app) as client:
        unmarked = 0
        for sample in SAMPLES:
            text, end = await answered(handbook, client, sample, sample["answer"], stream)
            assert sample["text"].split()[0] in text, text
            if not end.get("refused"):
                assert end["verbatim"] == {"statements": 1, "found": 0}, text
            unmarked += not end.get("unsupported") and not end.get("refused")
        assert unmarked >= 5  # which is why nothing but what was counted is said


async def test_no_citation_is_added_to_an_invented_answer(handbook: Indexed):
    """Only the model cites, also where it copied a sentence; what is copied is counted."""
    async with client_of(handbook.app) as client:
        for sample in SAMPLES:
            text, _ = await answered(handbook, client, sample, CITATION.sub("", sample["answer"]), stream=False)
            assert not CITATION.search(text), text
        copied = "Volumes of the class `nfs-csi` are copied every night at two o'clock."
        text, end = await answered(handbook, client, SAMPLES[3], copied, stream=False)
        assert not CITATION.search(text.partition("\n")[0])
        assert end["verbatim"] == {"statements": 1, "found": 1}
