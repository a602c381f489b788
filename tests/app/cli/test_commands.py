"""What all commands have in common: help, wrong input, wrong settings, secrets."""

from __future__ import annotations

import argparse

import pytest

from app.cli import _parser
from app.core.errors import SettingsError

SECRETS = {
    "DOCS_LLM_KEY": "secret-llm",
    "DOCS_EMBEDDING_KEY": "secret-embedding",
    "DOCS_API_KEYS": "secret-one secret-two",
    "DOCS_ADMIN_KEYS": "secret-three",
    "DOCS_STORE": "opensearch://admin:secret-store@127.0.0.1:1/docs",
    "DOCS_LLM_ARGS": '{"api_key": "secret-argument", "default_headers": {"Authorization": "secret-header"}}',
    "DOCS_EMBEDDING_EXTRA_BODY": '{"token": "secret-body"}',
    "DOCS_SITES": "http://reader:secret-site@127.0.0.1:1/sitemap.xml",
}


def paths(parser: argparse.ArgumentParser, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                found += paths(child, (*path, name))
    return found


COMMANDS = paths(_parser())


def test_the_commands_are_known():
    """The parametrised tests below would pass over nothing."""
    names = {path[0] for path in COMMANDS if path}
    assert names == {"run", "serve", "ask", "assistants", "ingest", "pages", "generations", "rollback", "check", "eval"}


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "itself")
def test_every_command_explains_itself(cli, path: tuple[str, ...]):
    """--help ends well, shows how it is called, and explains each argument."""
    done = cli(*path, "--help")
    assert done.code == 0
    assert done.out.startswith(f"usage: docs-assistant {' '.join(path)}".strip())
    assert done.err == ""
    parser = _parser()
    for name in path:
        (choices,) = (a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
        parser = choices[name]
    assert all(action.help for action in parser._actions if not isinstance(action, argparse._SubParsersAction))


@pytest.mark.parametrize(
    "arguments",
    [(), ("nothing",), ("eval",), ("serve", "--port", "eight"), ("ask", "--unknown"), ("check", "more")],
    ids=" ".join,
)
def test_a_wrong_command_line_shows_the_usage(cli, arguments: tuple[str, ...]):
    """Exit code 2 and how it should be called."""
    done = cli(*arguments)
    assert done.code == 2
    assert done.out == ""
    assert "usage: docs-assistant" in done.err
    assert "error: " in done.err


@pytest.mark.parametrize("command", [("serve",), ("run",), ("ask", "x"), ("ingest", "http://127.0.0.1:1/"), ("check",)])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DOCS_PORT", "eight"),
        ("DOCS_PORT", "99999"),
        ("DOCS_FUSION", "best"),
        ("DOCS_LLM_EXTRA_BODY", "{not json"),
        ("DOCS_CHUNK_SIZE", "3"),
    ],
)
def test_a_wrong_setting_is_named(cli, command: tuple[str, ...], name: str, value: str):
    """Exit code 1 and a message with the setting's name; nothing on standard output."""
    done = cli(*command, **{name: value})
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("docs-assistant: ")
    assert name in done.err


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"DOCS_STORE": "ftp://host/index"}, ("DOCS_STORE=ftp://host/index", "unknown scheme")),
        ({"DOCS_STORE": "opensearch://host"}, ("opensearch://user:password@host:9200/index",)),
        ({"DOCS_DEFAULT_LANGUAGE": "de"}, ("DOCS_DEFAULT_LANGUAGE", "'de'")),
        ({"DOCS_LANGUAGES": "xx", "DOCS_DEFAULT_LANGUAGE": "xx"}, ("xx",)),
        ({"DOCS_ASSISTANTS": "missing.toml"}, ("DOCS_ASSISTANTS=missing.toml",)),
        ({"DOCS_LLM_URL": "http://127.0.0.1:1/v1"}, ("DOCS_LLM_MODEL",)),
        ({"DOCS_EMBEDDING_URL": "http://127.0.0.1:1/v1"}, ("DOCS_EMBEDDING_MODEL",)),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_are_one_line(cli, settings: dict[str, str], words: tuple[str, ...]):
    """`ask` and `check` say what is wrong in one line each, and end with 1."""
    for command in (("ask", "x"), ("check",)):
        done = cli(*command, **settings)
        assert (done.code, done.out) == (1, ""), done
        assert done.err.startswith("docs-assistant: ")
        assert len(done.err.splitlines()) == 1
        for word in words:
            assert word in done.err


def test_debug_shows_where_an_error_comes_from(cli):
    """With --debug the error itself goes up, as a traceback."""
    with pytest.raises(SettingsError, match="Wrong settings"):
        cli("--debug", "check", DOCS_PORT="eight")


@pytest.mark.parametrize(
    "command",
    [
        ("check",),
        ("check", "--json"),
        ("ask", "x"),
        ("ask", "x", "--json"),
        ("pages",),
        ("generations",),
        ("rollback",),
    ],
)
def test_no_command_prints_a_secret(cli, command: tuple[str, ...]):
    """Neither keys nor passwords, wherever they were put; check says that they are set."""
    done = cli(*command, **SECRETS)
    assert done.code == 1
    assert "secret-" not in done.out + done.err
    if command[0] == "check":
        assert "(set)" in done.out
        assert "opensearch://admin:…@127.0.0.1:1/docs" in done.out
