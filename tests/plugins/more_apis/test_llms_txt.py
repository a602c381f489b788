"""/llms.txt and the Markdown of pages, within the limits of the key."""

from pathlib import Path

import pytest

from tests.app.http.test_keys import entry, key, write
from tests.app.routes.indexed import URL, VOLUME, indexed
from tests.app.routes.scripted import client_of, refused

pytestmark = pytest.mark.plugins


async def test_each_page_is_listed_with_a_link_to_its_markdown(tmp_path: Path):
    """By collection and language; the link works, and says where the page is."""
    async with (
        indexed(tmp_path, more={"cs-svazky": "# Svazky\n\nSvazek vytvoříte."}) as service,
        client_of(service.app) as client,
    ):
        listed = await client.get("/llms.txt")
        lines = listed.text.splitlines()
        assert lines[0].startswith("# ")
        assert [line for line in lines if line.startswith("## ")] == ["## docs (cs)", "## docs (en)"]
        link = next(line for line in lines if line.startswith("- [Volumes]")).rpartition("(")[2].rstrip(")")
        page = await client.get(link)
        assert (page.headers["content-type"], page.text) == ("text/markdown; charset=utf-8", VOLUME)
        assert page.headers["link"] == f'<{URL}volumes>; rel="canonical"'
        missing = await client.get("/llms/page.md", params={"url": "file:///etc/passwd"})
        assert refused(missing) == (404, "page_not_found")


async def test_a_key_sees_its_pages_only_and_nobody_without_one(tmp_path: Path):
    keys = write(tmp_path / "keys.toml", entry("all"), entry("docs", collections='["docs"]'))
    async with (
        indexed(tmp_path, more={"secret-plan": "# Plan"}, keys=keys) as service,
        client_of(service.app) as client,
    ):
        for path in ("/llms.txt", f"/llms/page.md?url={URL}secret-plan"):
            assert (await client.get(path)).status_code == 401
            every, own = [await client.get(path, headers=key(name)) for name in ("all", "docs")]
            assert "Plan" in every.text
            assert "Plan" not in own.text
        assert refused(own) == (404, "page_not_found")


async def test_an_operator_publishes_none_of_it(tmp_path: Path):
    file = tmp_path / "assistants.toml"
    file.write_text(
        '[[assistant]]\nid = "d"\nsteps = ["detect", "retrieve", "synthesize", "cite"]\n[brand]\nllms_txt = false\n',
        "utf-8",
    )
    async with indexed(tmp_path, assistants=str(file)) as service, client_of(service.app) as client:
        assert (await client.get("/llms.txt")).status_code == 404
