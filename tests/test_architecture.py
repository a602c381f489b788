"""The shape of the code: sizes, directions of imports, no prints, nothing of the machine it was written on."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("app", "ingestion", "eval", "prompts")
SOURCES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
LONGEST_FILE = 350
LONGEST_FUNCTION = 50
NOT_OURS = {".git", ".venv", "__pycache__", "node_modules", "data", "dist", "results"}
# written so that it doesn't find itself
FOREIGN = re.compile(r"(?<![\w.~$}-])/(?:wor[k]|roo[t])/|bash[_]jobs")


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"), str(file))


def repository() -> Iterator[Path]:
    """Every file that belongs to the project; an installation beside it has a hundred times as many."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [one for one in folders if one not in NOT_OURS and (one == ".ci" or not one.startswith("."))]
        yield from (Path(folder, file) for file in files if file not in NOT_OURS)


def test_the_sources_are_found():
    """Otherwise, the tests below would check nothing."""
    assert len(SOURCES) > 90
    assert {file.relative_to(ROOT).parts[0] for file in SOURCES} == set(PACKAGES)


def test_files_are_short():
    """At most 350 lines; most have far fewer."""
    lengths = {name(file): len(file.read_text("utf-8").splitlines()) for file in SOURCES}
    assert {file: lines for file, lines in lengths.items() if lines > LONGEST_FILE} == {}
    assert sorted(lengths.values())[len(lengths) // 2] <= 150


def test_functions_are_short():
    """At most 50 lines, so that one fits on a screen."""
    long = {
        f"{name(file)}:{node.name}": lines
        for file in SOURCES
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert long == {}


def test_every_module_says_what_it_is_for():
    """In one to four lines at its top (the tree of errors is longer, it is the point of its file)."""
    for file in SOURCES:
        docstring = ast.get_docstring(tree(file))
        assert docstring, name(file)
        assert len(docstring.splitlines()) <= (31 if file.name == "errors.py" else 7), name(file)


def test_only_the_command_line_prints():
    """Other code returns or logs text."""
    printing = [
        f"{name(file)}:{node.lineno}"
        for file in SOURCES
        if file.parent != ROOT / "app/cli"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_no_module_has_a_vague_name():
    """Names such as utils or helpers are forbidden."""
    empty_words = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}
    assert [name(file) for file in SOURCES if file.stem in empty_words] == []


def test_imports_go_one_way():
    """The contracts of pyproject.toml hold."""
    lint_imports = Path(sys.executable).with_name("lint-imports")
    if not lint_imports.exists():
        pytest.fail("import-linter isn't installed: run `make install-dev`")
    done = subprocess.run([lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", done.stdout)


def test_no_file_names_places_of_somebody_s_machine():
    """No absolute paths of the machine that something was written or measured on."""
    found = []
    for file in repository():
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:  # a picture
            continue
        found += [f"{name(file)}: {text[max(0, m.start() - 30) : m.end() + 20]!r}" for m in FOREIGN.finditer(text)]
    assert found == []


def test_no_two_tests_of_a_file_have_the_same_name():
    """No two tests of one file have the same name: the second would silently replace the first."""
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        names = [n.name for n in tree(file).body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert len(names) == len(set(names)), name(file)
