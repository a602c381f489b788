"""Each kept installation (`keep.py`) under this version: it answers at once, loses nothing, and goes on with cheap runs."""

import shutil
import tarfile
from pathlib import Path

import httpx
import pytest

from deploy.release import version_of
from tests.end_to_end.program import finished, service
from tests.upgrade.keep import (
    ADMIN,
    ANSWERED,
    COMMENT,
    CURATED,
    HANDBOOK,
    PRICE,
    REASON,
    REFUSED,
    SITE,
    chat,
    posted,
    settings,
)

HERE = Path(__file__).parent
KEPT = sorted(HERE.glob("*.tar.xz"))
pytestmark = [pytest.mark.slow, pytest.mark.server]


def test_the_first_release_is_kept():
    """Otherwise, the tests below would check nothing."""
    assert "1.0.0.tar.xz" in {file.name for file in KEPT}
    assert version_of(HERE.parents[1]).startswith("1."), "a new major version says what it reads in docs/en/upgrade.md"


@pytest.mark.parametrize("kept", KEPT, ids=lambda file: file.name)
def test_a_kept_installation_works_with_this_version(kept: Path, tmp_path: Path):
    with tarfile.open(kept) as archive:
        archive.extractall(tmp_path, filter="data")
    shutil.copytree(HANDBOOK, tmp_path / "handbook")
    (tmp_path / "keys.toml").chmod(0o600)
    given = settings(tmp_path)

    with (
        service(tmp_path, "serve", **given) as running,
        httpx.Client(base_url=running.url, headers=ADMIN, timeout=60) as client,
    ):
        before = generation(client)
        assert SITE in str(posted(client, "chat/completions", chat(ANSWERED))["sources"])
        assert PRICE in str(posted(client, "chat/completions", chat(CURATED)))
        own = {"authorization": f"Bearer {(tmp_path / 'data/key.txt').read_text('utf-8')}"}
        assert client.get("/v1/models", headers=own).status_code == 200
        log = client.get("/v1/admin/question-log").json()["data"]
        assert {ANSWERED, REFUSED} <= {one["question"] for one in log}
        assert COMMENT in client.get("/v1/admin/feedback").text
        assert REASON in client.get("/v1/admin/verdicts").text
        assert not [one for one in client.get("/v1/admin/index").json()["problems"] if one["severity"] == "error"]

        page = tmp_path / "handbook/en/backups.md"
        page.write_text(f"{page.read_text('utf-8')}\n\nKept for a week.\n", "utf-8")
        done = finished(tmp_path, "ingest", "sources.toml", **given)
        assert done.returncode == 0, done.stderr
        assert "1 changed, 7 unchanged" in done.stderr + done.stdout
        assert generation(client) > before
        body = {"generation": before}
        assert posted(client, "admin/rollback", body)["live"]


def generation(client: httpx.Client) -> int:
    """The live generation, as the service says."""
    found: int = client.get("/v1/interface").json()["index"]["generation"]
    return found
