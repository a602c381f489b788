"""`overrides` of a chat request: other settings and prompts for one answer; other requests never notice."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.core.trace import Trace
from tests.app.routes.indexed import URL, Indexed, helped, indexed
from tests.app.routes.scripted import CHAT, chat, client_of, refused
from tests.fake_llm import Reply

ADMIN, READER = {"authorization": "Bearer admin-key-of-tests"}, {"authorization": "Bearer reader-key-of-tests"}
QUESTION = "How do I create a persistent volume?"
MORE = {f"more-{n}": f"# More {n}\n\nCreate a persistent volume, way {n}, of the class nfs-csi." for n in range(4)}
PROMPT = "Say it as a poem about $passages"


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Indexed]:
    keys = {"admin_keys": "admin-key-of-tests", "api_keys": "reader-key-of-tests"}
    monkeypatch.setattr("app.routes.admin.routes.QUESTION_SETS", tmp_path / "sets")
    steps = helped(tmp_path)
    async with indexed(tmp_path, more=MORE, assistants=steps, **keys) as made:
        made.llm.reply = lambda body: Reply("Use the class nfs-csi [1].") if body.get("stream") else Reply("en: volume")
        yield made


async def asked(service: Indexed, headers: dict[str, str] = ADMIN, **fields: Any) -> httpx.Response:
    async with client_of(service.app) as client:
        return await client.post(CHAT, json=chat(QUESTION, **fields), headers=headers)


async def traced(service: Indexed, **overrides: Any) -> dict[str, Any]:
    response = await asked(service, trace=True, **({"overrides": overrides} if overrides else {}))
    assert response.status_code == 200, response.text
    return response.json()["trace"]


async def test_each_override_is_in_force_for_its_request_alone(service: Indexed) -> None:
    """The trace of the request shows it; the next request has the settings again."""
    before = await traced(service)
    for overrides, path, value in (
        ({"top_k": 2}, ("fusion", "top_k"), 2),
        ({"per_page": 1}, ("fusion", "per_page"), 1),
        ({"vector_weight": 1.0}, ("fusion", "vector_weight_used"), 1.0),
        ({"vector_weight": 0}, ("fusion", "words_weight_used"), 1.0),
        ({"fusion": "rrf"}, ("fusion", "fusion"), "rrf"),
        ({"min_evidence": 0.7}, ("evidence", "needed"), 0.91),
    ):
        told = await traced(service, **overrides)
        assert told[path[0]][path[1]] == value, overrides
    warm = await traced(service, temperature=1.5, prompts={"en/synthesize.md": PROMPT, "refine_question.md": "Refine."})
    steps = {step["step"]: step for step in warm["steps"]}
    (written,), (refined,) = steps["synthesize"]["calls"], steps["refine"]["calls"]
    assert written["temperature"] == 1.5
    assert written["messages"][0]["content"].startswith("Say it as a poem about [1] ")
    assert refined["messages"][0]["content"] == "Refine."
    after = await traced(service)
    for kept in ("fusion", "evidence", "passages"):
        assert after[kept] == before[kept]
    assert prompts_of(after) == prompts_of(before)
    shipped = await traced(service, prompts="shipped")
    assert prompts_of(shipped) == prompts_of(before)


def prompts_of(trace: dict[str, Any]) -> list[Any]:
    return [call["messages"] for step in trace["steps"] for call in step["calls"]]


async def test_overrides_do_not_leak_into_requests_at_the_same_time(service: Indexed) -> None:
    """Of 12 requests at once, each has its own top_k, prompt and weight; the model waits until all of them are there."""
    service.llm.reply = lambda body: Reply("Use nfs-csi [1].", delay=0.2) if body.get("stream") else Reply("en: volume")
    wanted = [
        {"top_k": 1 + n % 4, "prompts": {"synthesize.md": f"Poem {n}: $passages"}} if n % 3 else {} for n in range(12)
    ]
    told = await asyncio.gather(*(traced(service, **overrides) for overrides in wanted))
    assert service.llm.open == 0
    for number, (overrides, trace) in enumerate(zip(wanted, told, strict=True)):
        (call,) = next(step["calls"] for step in trace["steps"] if step["step"] == "synthesize")
        assert trace["fusion"]["top_k"] == overrides.get("top_k", 5)
        assert call["messages"][0]["content"].startswith(f"Poem {number}:") == bool(overrides)


async def test_wrong_overrides_name_the_field(service: Indexed) -> None:
    """Unknown fields, values out of range, unknown prompts with the one that was meant, and wrong placeholders."""
    for overrides, param, words in (
        ({"topk": 3}, "overrides.topk", "there is no such field"),
        ({"top_k": 0}, "overrides.top_k", "greater than or equal to 1"),
        ({"vector_weight": 1.1}, "overrides.vector_weight", "less than or equal to 1"),
        ({"fusion": "sum"}, "overrides.fusion", "'weighted' or 'rrf'"),
        ({"prompts": 3}, "overrides.prompts", "must be the texts of prompts by file, or 'shipped'"),
        ({"prompts": {"synthesise.md": "x"}}, "overrides.prompts", "Did you mean synthesize.md?"),
        ({"prompts": {"de/synthesize.md": "x"}}, "overrides.prompts", "no step of this assistant has a prompt"),
        ({"prompts": {"synthesize.md": "No passages."}}, "overrides.prompts", "$passages is missing"),
        ({"prompts": {"synthesize.md": "Only $5: $passages"}}, "overrides.prompts", "write '$$'"),
        ({"prompts": "/etc"}, "overrides.prompts", "there are no prompts '/etc'"),
    ):
        response = await asked(service, overrides=overrides)
        error = response.json()["error"]
        assert (response.status_code, error["param"]) == (400, param), overrides
        assert words in error["message"]


async def test_overrides_and_questions_and_prompts_need_an_admin_key(service: Indexed, tmp_path: Path) -> None:
    """A reader's key gets none of them, whatever it sends."""
    asking = [{"overrides": {"top_k": 2}}, {"overrides": {}, "trace": True}]
    responses = [await asked(service, READER, **fields) for fields in asking]
    async with client_of(service.app) as client:
        responses.append(await client.get("/v1/admin/prompts", headers=READER))
        responses.append(await client.post("/v1/admin/questions", headers=READER, json={}))
    assert {response.status_code for response in responses} <= {401, 403}
    assert not (tmp_path / "sets").exists()
    async with indexed(tmp_path / "open", api_keys="reader-key-of-tests") as without:
        assert refused(await asked(without, READER, overrides={"top_k": 2})) == (403, "admin_disabled")


async def test_the_prompts_in_force_can_be_read(service: Indexed) -> None:
    """Each by its file, with its text, and whether it differs from the shipped one."""
    async with client_of(service.app) as client:
        data = (await client.get("/v1/admin/prompts", headers=ADMIN)).json()["data"]
    prompts = {one["file"]: one for one in data}
    assert {"en/synthesize.md", "cs/synthesize.md", "en/refine_question.md"} <= prompts.keys()
    assert "$passages" in prompts["en/synthesize.md"]["text"]
    assert not any(one["changed"] for one in data)
    # what is read can be sent back
    assert (await asked(service, overrides={"prompts": {one["file"]: one["text"] for one in data}})).status_code == 200


async def test_the_form_of_a_trace_is_in_the_description_of_the_api(service: Indexed) -> None:
    """/openapi.json names each field of a trace, of its steps, calls and candidates; a real trace has these fields."""
    async with client_of(service.app) as client:
        schemas = (await client.get("/openapi.json", headers=READER)).json()["components"]["schemas"]
    told = await traced(service)
    assert told.keys() == schemas["Trace"]["properties"].keys() == set(Trace.__dataclass_fields__)
    for name, value in (
        ("TraceStep", told["steps"][0]),
        ("TraceCall", told["steps"][1]["calls"][0]),
        ("TraceSearch", told["searches"][0]),
        ("TraceCandidate", told["candidates"][0]),
        ("TraceFusion", told["fusion"]),
        ("TraceEvidence", told["evidence"]),
        ("TracePassage", told["passages"][0]),
        ("Link", told["links"][0]),
    ):
        assert value.keys() == schemas[name]["properties"].keys(), name
    assert told["candidates"][0]["url"].startswith(URL)
    assert "overrides" in schemas["ChatRequest"]["properties"]
