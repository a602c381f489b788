"""`docs-assistant init`: options become files that the next command works with."""

import re
import stat
from pathlib import Path

import httpx
import pytest

from app.core.settings import FILE_KEYS, Settings
from app.core.settings_sources import FILE
from tests.end_to_end.program import READY, Program, finished, free_port
from tests.ingestion.local_site import LocalSite

SITE = "https://docs.example.org/sitemap.xml"


def test_options_are_written_and_keys_apart(cli, monkeypatch: pytest.MonkeyPatch):
    """Keys are in .env, which only its owner can read; the other settings are comments."""
    monkeypatch.setenv("DOCS_LLM_KEY", "secret-model")
    done = cli(
        "init", "--site", "docs.example.org/sitemap.xml", "--model-url", "http://localhost:1/v1", "--model", "other",
        "--languages", "cs,en", "--access", "keys", "--host-name", "docs.example.org", "--port", "8123",
    )  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert "DOCS_LLM_KEY is set in the environment and overrides" in done.out
    monkeypatch.delenv("DOCS_LLM_KEY")
    settings = Settings.load()
    assert (settings.sites, settings.llm_url, settings.llm_model) == ((SITE,), "http://localhost:1/v1", "other")
    assert settings.llm_key.get_secret_value() == "secret-model"
    assert (settings.languages, settings.default_language) == (("cs", "en"), "cs")
    assert (settings.host, settings.port, settings.allowed_hosts) == ("0.0.0.0", 8123, ("docs.example.org",))
    (key,) = settings.api_keys
    assert key.get_secret_value() in done.out
    assert stat.S_IMODE(Path(".env").stat().st_mode) == 0o600
    written = Path(FILE).read_text("utf-8")
    assert "secret-model" not in written + done.out
    assert key.get_secret_value() not in written
    assert "# key is in .env: DOCS_LLM_KEY" in written
    assert '#level = "info"   # or "debug", "warning", "error"' in written


def test_existing_files_change_only_by_force(cli, monkeypatch: pytest.MonkeyPatch):
    """Their other settings and their modes stay, and the old files are kept."""
    with_password = SITE.replace("//", "//reader:secret@")
    assert cli("init", "--site", with_password, "--store", "here", "--access", "keys").code == 0
    assert Settings.load().sites == (with_password,)
    assert "secret" not in Path(FILE).read_text("utf-8")
    with Path(FILE).open("a", encoding="utf-8") as file:
        file.write("[tuning]\nrerank_candidates = 7\n")
    Path(FILE).chmod(0o640)  # it may have a key
    before, keys = Path(FILE).read_text("utf-8"), Settings.load().api_keys
    refused = cli("init", "--site", SITE)
    assert (refused.code, Path(FILE).read_text("utf-8")) == (1, before)
    assert "already exists. Add --force" in refused.err
    monkeypatch.setenv("DOCS_PORT", "8123")
    assert cli("init", "--force", "--site", SITE, "--port", "8124", "--access", "keys").code == 0
    settings = Settings.load()
    assert (settings.store, settings.tuning.rerank_candidates, settings.api_keys) == ("here", 7, keys)
    assert settings.sites == (SITE,)
    assert Path(f"{FILE}.bak").read_text("utf-8") == before
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in Path().iterdir() if path.is_file()}
    assert modes == {FILE: 0o640, ".env": 0o600, ".env.bak": 0o600, f"{FILE}.bak": 0o600}


def test_a_mistake_in_an_option_writes_nothing(cli):
    done = cli("init", "--port", "70000", "--site", SITE)
    assert (done.code, "DOCS_PORT" in done.err, list(Path().iterdir())) == (1, True, [])


@pytest.mark.slow
def test_the_command_that_is_printed_last_works(site: LocalSite, tmp_path: Path):
    """It indexes the site and serves it, and says at its start where, to whom, and what it answers from."""
    port = str(free_port())
    done = finished(tmp_path, "init", "--site", f"{site.url}/sitemap.xml", "--port", port)
    assert done.returncode == 0
    *program, command = done.stdout.splitlines()[-1].split()
    started = Program(tmp_path, command, command=program)
    try:
        started.wait_for(READY)
        assert (
            f"Serving on http://127.0.0.1:{port} (this machine only, no key needed); the index is empty so far"
            in started.err
        )
        assert httpx.get(f"http://127.0.0.1:{port}/health").json()["index"]["pages"] == 3
    finally:
        started.end(group=True)


def test_the_printed_file_has_every_setting_with_its_default(cli, tmp_path: Path, monkeypatch):
    """Without the #, it is valid and changes nothing; its comments are the descriptions in the code."""
    text = cli("init", "--print").out
    monkeypatch.delenv("DOCS_EMBEDDING_MODEL")
    (tmp_path / FILE).write_text(re.sub(r"^#(?=\w+ = )", "", text, flags=re.MULTILINE), encoding="utf-8")
    loaded, origins = Settings.load_with_origins(tmp_path / ".env")
    assert {name: origin.name for name, origin in origins.items()} == FILE_KEYS
    keys = {"api_keys": (), "admin_keys": (), "keys": ""}  # empty ones would be an error
    assert loaded.model_copy(update=keys) == Settings.load(None)
