"""All commands: help, invalid input, invalid settings, secrets."""

import ast
import re
import subprocess
import sys
from importlib.metadata import version

import click
import pytest

from app.core.errors import SettingsError
from docs_assistant.cli.commands import root
from tests.docs_assistant.cli.conftest import every_command

SECRETS = {
    "DOCS_LLM_URL": "http://127.0.0.1:1/v1",
    "DOCS_LLM_MODEL": "m",
    "DOCS_LLM_KEY": "secret-llm",
    "DOCS_EMBEDDING_URL": "http://127.0.0.1:1/v1",
    "DOCS_EMBEDDING_MODEL": "e",
    "DOCS_EMBEDDING_KEY": "secret-embedding",
    "DOCS_API_KEYS": "secret-one-of-three secret-two-of-three",
    "DOCS_ADMIN_KEYS": "secret-three-of-three",
    "DOCS_STORE": "opensearch://admin:secret-store@127.0.0.1:1/docs",
    "DOCS_LLM_ARGS": '{"api_key": "secret-argument", "default_headers": {"Authorization": "secret-header"}}',
    "DOCS_TUNING__EMBEDDING_EXTRA_BODY": '{"token": "secret-body"}',
    "DOCS_SITES": "http://reader:secret-site@127.0.0.1:1/sitemap.xml",
}


@pytest.mark.plugins
def test_every_command_explains_itself(cli):
    """--help succeeds, shows the usage, and explains each argument."""
    commands = every_command()
    names = " ".join(sorted({path[0] for path in commands if path}))
    assert (
        names
        == "ask assistants briefing check eval generations ingest init key pages prompts report rollback run serve"
    )
    for path, command in commands.items():
        done = cli(*path, "--help")
        assert (done.code, done.err) == (0, ""), path
        assert done.out.startswith(f"Usage: docs-assistant {' '.join(path)}".strip())
        assert command.help, path
        assert all(param.help for param in command.params if not getattr(param, "hidden", False)), path


def test_help_imports_no_command():
    """The list of commands, and an error in it, come without what the commands need."""
    script = "import sys; from docs_assistant.cli import main; main(sys.argv[1:]); print(list(sys.modules))"
    for words in ([], ["--help"], ["eval", "--help"], ["ingset"]):
        done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
        loaded = set(ast.literal_eval(done.stdout.splitlines()[-1]))
        assert "click" in loaded
        assert not loaded & {"pydantic", "httpx", "numpy", "rich", "app.core.settings", "ingestion", "eval"}, words


def test_a_plugin_adds_a_command(cli, monkeypatch: pytest.MonkeyPatch):
    """It stands in the list, runs, and its mistakes are one line."""
    monkeypatch.setattr(root, "commands", dict(root.commands))

    @click.command(help="says a word")
    @click.option("--word", type=int, default=1)
    def echo(word: int) -> int:
        print(word)
        return 3

    root.add_command(echo)
    assert "echo         says a word" in cli("--help").out
    assert (cli("echo", "--word", "7").code, cli("echo", "--word", "7").out) == (3, "7\n")
    assert (
        "docs-assistant echo: Invalid value for '--word': 'x' is not a valid integer." in cli("echo", "--word", "x").err
    )
    assert "Did you mean echo?" in cli("ecko").err


def test_an_invalid_command_line_is_one_line_with_the_nearest_word(cli):
    """Exit code 2, what is wrong, the nearest command or option, and where help is; not the whole usage."""
    wrong = {
        "": "a command is missing. The commands are init, run, serve",
        "ingset": "there is no command 'ingset'. Did you mean ingest?",
        "nothing": "there is no command 'nothing'. The commands are init, run, serve",
        "eval": "docs-assistant eval: a command is missing. The commands are docs, retrieval",
        "eval retreival x": "docs-assistant eval: there is no command 'retreival'. Did you mean retrieval?",
        "ingest --rebiuld": "docs-assistant ingest: there is no option --rebiuld. Did you mean --rebuild?",
        "eval gate x --basline y": "docs-assistant eval gate: there is no option --basline. Did you mean --baseline?",
        "serve --port eight": "Invalid value for '--port': 'eight' is not a valid integer.",
        "--port 8001 serve": "--port is an option of init, run, serve: write it after the command.",
        "serve --debug": "write --debug before the command",
        "init --access key": "'key' is not one of 'this-machine', 'keys'.",
        "check more": "docs-assistant check: Got unexpected extra argument (more)",
    }
    for line, message in wrong.items():
        done = cli(*line.split())
        assert (done.code, done.out) == (2, ""), line
        assert message in done.err
        assert len(done.err.splitlines()) == 2
        assert re.search(r"^Help: docs-assistant( \w+)* --help$", done.err, re.MULTILINE)


def test_the_version_is_that_of_the_package(cli):
    """One line."""
    assert cli("--version").out == f"docs-assistant {version('docs-assistant')}\n"


def test_an_invalid_setting_is_named(cli):
    """Exit code 1 and a message with the setting's name; nothing on standard output."""
    wrong = {
        "DOCS_PORT": ("eight", "99999"),
        "DOCS_TUNING__FUSION": ("best",),
        "DOCS_LLM_EXTRA_BODY": ("{not json",),
        "DOCS_TUNING__CHUNK_SIZE": ("3",),
    }
    for line in ("serve", "run", "ask x", "ingest http://127.0.0.1:1/", "check"):
        for name, value in ((name, value) for name, values in wrong.items() for value in values):
            done = cli(*line.split(), **{name: value})
            assert (done.code, done.out) == (1, ""), (line, name)
            assert done.err.startswith("docs-assistant: ")
            assert name in done.err


def test_debug_shows_the_traceback(cli):
    """With --debug, the error is raised, so that its traceback is shown."""
    with pytest.raises(SettingsError, match="DOCS_PORT has value"):
        cli("--debug", "check", DOCS_PORT="eight")


def test_no_command_prints_a_secret(cli):
    """Neither keys nor passwords, wherever they are; check says that they are set."""
    for line in ("check", "check --json", "ask x", "ask x --json", "pages", "generations", "rollback"):
        done = cli(*line.split(), **SECRETS)
        assert done.code == 1, line
        assert "secret-" not in done.out + done.err
        if line.startswith("check"):
            assert "(set)" in done.out
            assert "opensearch://admin:…@127.0.0.1:1/docs" in done.out
