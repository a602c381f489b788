"""The built files of the front end, which the package has and nobody builds to run it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.core.settings import Settings
from app.core.turn import Done, Text
from app.routes.server import create_app
from tests import frontend_types
from tests.app.routes.scripted import Scripted, ScriptedAssistants, serving

ROOT = Path(__file__).parents[1]
FRONTEND, BUILT = ROOT / "frontend", ROOT / "app/static"


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def require_node() -> None:
    if not (shutil.which("node") and (FRONTEND / "node_modules").is_dir()):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no Node, or no frontend/node_modules")


def run(*command: str, stdin: str = "") -> str:
    done = subprocess.run(command, cwd=FRONTEND, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_built_files_are_those_of_the_sources(tmp_path: Path) -> None:
    """`make frontend` was run after the last change of frontend/, and the sources have no errors of types."""
    require_node()
    run("node_modules/.bin/tsc", "--noEmit")
    run("node", "build.mjs", str(tmp_path))
    made, kept = files(tmp_path), files(BUILT)
    # by name: the difference of the contents takes pytest a quarter of an hour to show
    assert [name for name in sorted(made | kept) if made.get(name) != kept.get(name)] == [], "run `make frontend`"


def test_the_types_are_those_of_the_api() -> None:
    """`make frontend` was run after the last change of what the API answers on /admin."""
    assert frontend_types.FILE.read_text("utf-8") == frontend_types.types(), "run `make frontend`"


def test_the_widget_reads_markdown_as_the_page_does() -> None:
    """The part of marked that is in the widget gives the same tokens."""
    require_node()
    texts = [
        file.read_text("utf-8") for folder in ("en", "cs") for file in (FRONTEND.parent / "docs" / folder).glob("*.md")
    ]
    texts += [
        "a  \nb\nc ~~d~~ ~e~ www.x.test me@x.test <https://x.test> [r] [s][r]\n\n[r]: <https://x.test> 'T'",
        "> - [x] *a **b***\n>   1. `c`\n\n    code\n\n| a | b |\n|:-|-:|\n| \\| | __c__ |\n\nT\n===\n<b>x</b> &amp; \\*",
        '<details>\n\n- a\n\n  - b\n\n</details>\n\n# #\n\n***\n```js\nx\n```\n![i](<a b> "t") [l](x(y)) [n](',
    ]
    assert len(texts) > 60
    assert json.loads(run("node", "../tests/frontend_lexer.mjs", stdin=json.dumps(texts))) == []


@pytest.mark.server
def test_readers_see_what_ended_an_answer_and_why_their_key_is_refused(tmp_path: Path) -> None:
    """An answer that the reader stopped isn't one that was broken off, and many wrong keys aren't many questions."""
    require_node()
    script = tmp_path / "parts.mjs"
    options = ("--bundle", "--platform=node", "--format=esm", "--jsx=automatic", "--jsx-import-source=preact")
    run(
        "node_modules/.bin/esbuild", "../tests/frontend_parts.mjs", *options, "--log-level=error", f"--outfile={script}"
    )
    slow = Scripted(script=(Text("Begun"), 20.0, Done()))
    app = create_app(ScriptedAssistants((slow,)), Settings.load(None, api_keys=("right-key-of-tests",)))
    with serving(app) as base:
        found = json.loads(run("node", str(script), f"{base}/"))
    assert found["typed"] == ["cd a && \\\n  ls  # b\npwd", "dir", "for a in b:\n    a\n", "# no session\n> a"]
    assert [text.split(",")[0] for text in found["about"]] == [
        "A machine answers from the page of the documentation",
        "Odpovídá stroj",
        "Eine Maschine antwortet aus der Seite der Dokumentation und verweist auf die Abschnitte.",
    ]
    assert found["sections"] == ["First.", "Of `the` page.", ""]
    assert found["cells"] == ["DOCS_PORT", "server.port", "8000", "port to listen on"]
    assert found["stopped"] == {"now": "stopped", "later": "stopped"}
    assert found["left"] == {"now": "interrupted", "later": "interrupted"}
    assert found["crashed"] == {"now": "writing", "later": "interrupted"}
    assert found["widget"] == ["interrupted", "stopped", "done"]
    assert len(set(filter(None, found["interrupted"]))) == 3
    assert found["blocked"]["kind"] == "blocked"
    assert found["blocked"]["retryAfter"] > 0
    titles = ["Too many wrong keys", "Příliš mnoho chybných klíčů", "Zu viele falsche Schlüssel"]
    assert found["blocked"]["titles"] == titles
