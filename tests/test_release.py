"""What `make release` writes: everything that a release has, the same from two checkouts, or an error that says what is missing."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from deploy.release import NAME, SUMS, ReleaseError, notes_of, version_of

ROOT = Path(__file__).parents[1]
VERSION = version_of(ROOT)
SIGNED = {"GIT_AUTHOR_NAME": "T", "GIT_AUTHOR_EMAIL": "t@example.org"}
SIGNED |= {name.replace("AUTHOR", "COMMITTER"): value for name, value in SIGNED.items()}
DATES = {"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z"}


def git(folder: Path, *command: str) -> str:
    environment = {**os.environ, **SIGNED, **DATES}
    done = subprocess.run(["git", *command], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def checkout(folder: Path) -> Path:
    """What git keeps or would keep of this checkout, as a commit of a repository of its own."""
    for name in git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Release")
    return folder


def release(tree: Path, to: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "deploy/release.py", str(to)]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def built(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("release") / "dist"
    done = release(tree, to)
    assert done.returncode == 0, done.stderr
    return to


@pytest.mark.slow
def test_a_release_has_all_its_files_with_their_checksums(built: Path):
    wanted = {f"docs_assistant-{VERSION}-py3-none-any.whl", f"docs_assistant-{VERSION}.tar.gz", SUMS}
    wanted |= {f"{NAME}-{VERSION}{end}" for end in ("-image.tar.gz", ".cdx.json", "-notes.md")}
    assert {file.name for file in built.iterdir()} == wanted
    for line in (built / SUMS).read_text("utf-8").splitlines():
        checksum, name = line.split("  ")
        wanted.remove(name)
        assert hashlib.sha256((built / name).read_bytes()).hexdigest() == checksum
    assert wanted == {SUMS}
    with zipfile.ZipFile(built / f"docs_assistant-{VERSION}-py3-none-any.whl") as wheel:
        assert message_from_bytes(wheel.read(f"docs_assistant-{VERSION}.dist-info/METADATA"))["Version"] == VERSION
    component = json.loads((built / f"{NAME}-{VERSION}.cdx.json").read_text("utf-8"))["metadata"]["component"]
    assert (component["name"], component["version"]) == (NAME, VERSION)
    with tarfile.open(built / f"{NAME}-{VERSION}-image.tar.gz") as context:
        names = set(context.getnames())
    assert {
        "deploy/Dockerfile",
        "pyproject.toml",
        "requirements.lock",
        "app/static/page.js",
        "docs/cs/index.md",
    } <= names
    assert not [name for name in names if name.startswith(("tests", ".git/", ".venv", "app/site"))]


@pytest.mark.slow
def test_another_checkout_elsewhere_builds_the_same(built: Path, tmp_path: Path):
    """With another umask, another path, and other times of its files."""
    elsewhere, to = checkout(tmp_path / "a longer name"), tmp_path / "dist"
    to.mkdir()
    epoch = git(elsewhere, "log", "-1", "--format=%ct").strip()
    code = f"from deploy.release import *; build(ROOT, Path({str(to)!r}), {epoch})"
    done = subprocess.run([sys.executable, "-c", code], cwd=elsewhere, stderr=subprocess.PIPE, check=False, umask=0o077)
    assert done.returncode == 0, done.stderr
    assert (to / SUMS).read_text("utf-8") == (built / SUMS).read_text("utf-8")


@pytest.mark.slow
def test_what_is_not_committed_is_not_released(tree: Path, tmp_path: Path):
    (tree / "app/new.py").write_text("", "utf-8")
    try:
        done = release(tree, tmp_path / "dist")
    finally:
        (tree / "app/new.py").unlink()
    assert done.returncode == 1
    assert "aren't committed" in done.stderr
    assert "app/new.py" in done.stderr
    assert not (tmp_path / "dist").exists()


def test_notes_are_the_section_of_the_version():
    changelog = "# Changelog\n\n## 1.1.0 - 2027-02-01\n\n- New.\n\n## 1.0.0 - 2026-11-30\n\n- Old.\n"
    assert notes_of(changelog, "1.1.0") == "- New.\n"
    assert notes_of(changelog, "1.0.0") == "- Old.\n"
    with pytest.raises(ReleaseError, match=r"no section `## 1\.2\.0 - YYYY-MM-DD`"):
        notes_of(changelog, "1.2.0")


def test_this_version_has_notes_of_at_most_120_lines():
    """People read them."""
    assert 5 < len(notes_of((ROOT / "CHANGELOG.md").read_text("utf-8"), VERSION).splitlines()) <= 120
