"""POST /v1/ingest: the options of a run besides its sites."""

from __future__ import annotations

import json
import sys

import pytest

from tests.app.api.scripted import client_of
from tests.app.api.test_ingest import ADMIN, ended, service

SAYS_ITS_ARGUMENTS = "import sys; print('docs-assistant:', *sys.argv[1:], file=sys.stderr); sys.exit(1)"
REFUSED = {"published": None, "exit_code": 3, "refused": ["6 of 10 pages would be lost"], "counts": {"removed": 6}}


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ({}, ""),
        ({"force": False}, ""),
        ({"force": True}, "--force"),
        ({"collections": ["docs", "--only"], "force": True}, "--collection=docs --collection=--only --force"),
    ],
)
async def test_options_become_arguments(body: dict[str, object], arguments: str):
    """And nothing that a client sends becomes an option by itself."""
    async with client_of(service(command=(sys.executable, "-c", SAYS_ITS_ARGUMENTS))) as client:
        started = await client.post("/v1/ingest", json=body, headers=ADMIN)
        assert (await ended(client, started.json()["id"]))["error"].strip() == (arguments or "docs-assistant:")


@pytest.mark.parametrize(
    "body", [{"force": "perhaps"}, {"collections": []}, {"collections": [""]}, {"collections": "x"}]
)
async def test_a_wrong_option_is_named(body: dict[str, object]):
    """400, with the field."""
    async with client_of(service()) as client:
        answer = await client.post("/v1/ingest", json=body, headers=ADMIN)
    assert answer.status_code == 400
    assert answer.json()["error"]["param"].startswith(next(iter(body)))


async def test_a_refused_run_has_failed_and_keeps_its_report():
    """The state, the reason of the guard, its exit code, and what the run found."""
    script = (
        "import sys; print('docs-assistant: Nothing was published:\\n  6 of 10 pages', file=sys.stderr); "
        f"print({json.dumps(REFUSED)!r}); sys.exit(3)"
    )
    async with client_of(service(command=(sys.executable, "-c", script))) as client:
        started = await client.post("/v1/ingest", headers=ADMIN)
        run = await ended(client, started.json()["id"])
    assert (run["state"], run["exit_code"], run["counts"]) == ("failed", 3, {"removed": 6})
    assert "6 of 10 pages" in run["error"]
    assert run["report"]["refused"] == REFUSED["refused"]
