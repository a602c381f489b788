"""`docs-assistant init`: five questions, each answer tried, and files that the next command works with."""

import os
import pty
import re
import select
import signal
import socket
import stat
import sys
from pathlib import Path
from string import Formatter

import httpx
import pytest

from app.cli.init import LANGUAGES, texts_of
from app.core.settings import FILE_KEYS, Settings
from app.core.settings_sources import FILE
from tests.end_to_end.program import READY, Program, environment, finished, free_port
from tests.fake_llm import FakeLLM
from tests.ingestion.local_site import LocalSite


def lines(*answers: str) -> str:
    return "".join(f"{answer}\n" for answer in answers)


def test_answers_are_tried_and_written(cli, site: LocalSite, llm: FakeLLM):
    """In English and Czech. Keys are in .env, which only its owner can read; the service answers from what was written."""
    llm.key = "secret-model"
    sitemap = f"{site.url}/sitemap.xml"
    for language, said in (("en", "3 pages"), ("cs", "počet stránek 3")):
        Path(FILE).unlink(missing_ok=True)
        Path(".env").unlink(missing_ok=True)
        url = llm.url.removesuffix("/v1")
        answers = lines(sitemap, "", url, "secret-model", "2", "cs,en", "2", "docs.example.org", "")
        done = cli("init", "--language", language, stdin=answers)
        assert (done.code, done.err) == (0, "")
        assert said in done.out
        settings = Settings.load()
        assert (settings.sites, settings.llm_url, settings.llm_model) == ((sitemap,), llm.url, "other")
        assert settings.llm_key.get_secret_value() == "secret-model"
        assert (settings.languages, settings.default_language) == (("cs", "en"), "cs")
        assert (settings.host, settings.allowed_hosts) == ("0.0.0.0", ("docs.example.org",))
        (key,) = settings.api_keys
        assert key.get_secret_value() in done.out
        assert stat.S_IMODE(Path(".env").stat().st_mode) == 0o600
        written = Path(FILE).read_text("utf-8")
        assert "secret-model" not in written + done.out
        assert key.get_secret_value() not in written
        assert "# key is in .env: DOCS_LLM_KEY" in written
        assert '#level = "info"   # or "debug", "warning", "error"' in written
    assert llm.calls


def test_an_answer_that_does_not_work_is_asked_for_again_or_taken_when_the_person_insists(cli, site: LocalSite):
    """The error says what is wrong; an answer that can never work can't be insisted on."""
    site.put("/html", "<html><body>Hello</body></html>")
    site.sitemap(at="/empty.xml")
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        answers = lines(
            f"{site.url}/html", "", f"{site.url}/empty.xml", "", f"{site.url}/sitemap.xml", "/dev/null/index", "n", "index",
            "localhost:1", "", "http://127.0.0.1:1/v1", "", "y", "name", "y", "en xx", "n", "en", "3", "1", taken, "", "70000", taken, "y",
        )  # fmt: skip
        done = cli("init", "--language", "en", stdin=answers)
    assert done.code == 0
    for problem in (
        "is an HTML page, not a sitemap",
        "lists no page",
        "/dev/null/index can't be written to",
        "'localhost:1' isn't a web address",
        "http://127.0.0.1:1/v1/models can't be reached",
        "there are no prompts for it",
        "'3' is neither 1 nor 2",
        f"Port {taken} on 127.0.0.1 is taken",
        "'70000' isn't a port",
    ):
        assert problem in done.err
    settings = Settings.load()
    assert (settings.store, settings.llm_url, settings.llm_model) == ("index", "http://127.0.0.1:1/v1", "name")
    assert (settings.host, str(settings.port), settings.api_keys) == ("127.0.0.1", taken, ())
    assert not Path(".env").exists()


def test_a_script_gives_options(cli, site: LocalSite, monkeypatch: pytest.MonkeyPatch):
    """--yes asks nothing; what doesn't work is an error that writes nothing, unless --force is given."""
    sitemap = f"{site.url}/sitemap.xml".replace("//", "//reader:secret@")
    for answers in ("", lines(f"{site.url}/missing.xml")):  # the second ends at a question for yes or no
        assert "init asks questions, and nobody answers" in cli("init", stdin=answers).err
    done = cli("init", "--yes", "--site", f"{site.url}/missing.xml")
    assert (done.code, "answered 404" in done.err, list(Path().iterdir())) == (1, True, [])
    done = cli("init", "--yes", "--site", sitemap, "--store", "here", "--access", "keys")
    assert done.code == 0
    assert Settings.load().sites == (sitemap,)
    assert "secret" not in Path(FILE).read_text("utf-8")
    assert "already exists. Add --force" in cli("init", "--yes").err
    with Path(FILE).open("a", encoding="utf-8") as file:
        file.write("[tuning]\nrerank_candidates = 7\n")
    before, keys = Path(FILE).read_text("utf-8"), Settings.load().api_keys
    monkeypatch.setenv("DOCS_PORT", "8123")
    Path(FILE).chmod(0o640)  # it may have a key
    done = cli("init", "--yes", "--force", "--site", f"{site.url}/missing.xml", "--language", "en")
    assert done.code == 0
    assert "Warning: DOCS_PORT is set in the environment" in done.out
    settings = Settings.load()
    assert (settings.store, settings.tuning.rerank_candidates, settings.api_keys) == ("here", 7, keys)
    assert settings.sites == (f"{site.url}/missing.xml",)
    assert Path(f"{FILE}.bak").read_text("utf-8") == before
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in Path().iterdir() if path.is_file()}
    assert modes == {FILE: 0o640, ".env": 0o600, ".env.bak": 0o600, f"{FILE}.bak": 0o600}


def test_files_stay_unless_the_person_agrees(cli):
    """No is the default."""
    Path(FILE).write_text("[index]\n", encoding="utf-8")
    done = cli("init", "--language", "en", stdin="\n")
    assert (done.code, Path(FILE).read_text("utf-8"), [*Path().iterdir()]) == (1, "[index]\n", [Path(FILE)])
    assert "Already here: docs-assistant.toml." in done.out
    assert "Nothing was changed." in done.out
    unanswered = cli("init", "--language", "en")
    assert (unanswered.code, "nobody answers" in unanswered.err, "Traceback" in unanswered.err) == (1, True, False)


@pytest.mark.slow
def test_the_command_that_is_printed_last_works(site: LocalSite, tmp_path: Path):
    """It indexes the site and serves it, and says at its start where, to whom, and what it answers from."""
    port = str(free_port())
    done = finished(tmp_path, "init", "--yes", "--site", f"{site.url}/sitemap.xml", "--port", port, "--language", "en")
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


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_leaves_nothing(tmp_path: Path):
    """A real process in a real terminal, stopped at its second question."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for background processes
        settings = environment({"PYTHONPATH": str(Path(__file__).parents[3])})
        os.execve(sys.executable, [sys.executable, "-P", "-m", "app.cli", "init", "--language", "en"], settings)
    shown = b""
    for typed, awaited in ((b"", b"1/5"), (b"\n", b"2/5"), (b"\x03", b"Nothing was changed.")):
        os.write(terminal, typed)
        for _ in range(600):
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 4096)
            elif typed == b"\x03":  # one between the prompt and the wait for input is noticed only with more input
                os.write(terminal, b"\n")  # a second Ctrl-C would end it at once
            if awaited in shown:
                break
        assert awaited in shown
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 128 + signal.SIGINT
    os.close(terminal)
    assert b"Traceback" not in shown
    assert list(tmp_path.iterdir()) == []


def test_the_printed_file_has_every_setting_with_its_default(cli, tmp_path: Path, monkeypatch):
    """Without the #, it is valid and changes nothing; its comments are the descriptions in the code."""
    text = cli("init", "--print").out
    monkeypatch.delenv("DOCS_EMBEDDING_MODEL")
    (tmp_path / FILE).write_text(re.sub(r"^#(?=\w+ = )", "", text, flags=re.MULTILINE), encoding="utf-8")
    loaded, origins = Settings.load_with_origins(tmp_path / ".env")
    assert {name: origin.name for name, origin in origins.items()} == FILE_KEYS
    keys = {"api_keys": (), "admin_keys": (), "keys": ""}  # empty ones would be an error
    assert loaded.model_copy(update=keys) == Settings.load(None)


def test_the_questions_are_the_same_in_each_language():
    """Each text is in each language, with the same placeholders."""
    placeholders = [
        {name: {key for _, key, _, _ in Formatter().parse(text) if key} for name, text in texts_of(language).items()}
        for language in LANGUAGES
    ]
    assert placeholders[0] == placeholders[1]
    assert texts_of("en") != texts_of("cs")
