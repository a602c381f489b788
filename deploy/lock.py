"""requirements.lock: every version that is installed, with the hashes of its files, and which extras need it.

`python deploy/lock.py WANTED...` prints the part of it that is wanted, for `pip install --require-hashes -r`. WANTED is the project with
its extras (`.[embedded,mcp]`), `build` for what builds it, or the name of a package. `python deploy/lock.py --renew` makes the lock of
pyproject.toml with uv, of versions that are at least a week old; `--keep` keeps those that still fit (`make lock`).
"""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LOCK = "requirements.lock"
AGE = 7  # days: most releases that somebody hijacked are taken back within hours or days
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin")
MACOS = "14.0"  # what ONNX Runtime needs
NO_WHEEL = "langdetect"
HEADER = """\
# Made by `make lock` of pyproject.toml: versions from before {day}, for Python {pythons} and newer.
# A part of it is installed with deploy/install.sh; "for" says which extras need a package, "project" is what all of them need.
"""
PROJECT = re.compile(r"\.(?:\[(?P<extras>[\w,.-]+)\])?")


def entries(lock: str) -> list[tuple[str, set[str], str]]:
    """Each locked version: the package's name, what needs that package, and its lines."""
    blocks = re.findall(r"^[a-zA-Z].*\n(?:\s.*\n)*", lock, re.MULTILINE)
    return [(_name(block), set(re.findall(r"[\w.-]+", _users(block))), block) for block in blocks]


def locked(wanted: list[str], root: Path = ROOT) -> dict[str, str]:
    """The lines of what is wanted and of all that it needs, by `name==version`. Raises `SystemExit` for what isn't in the lock."""
    extras = _project(root)["project"]["optional-dependencies"]
    groups, names = set(), set()
    for one in wanted:
        if own := PROJECT.fullmatch(one):
            groups |= {"project", *(own["extras"].split(",") if own["extras"] else [])}
        else:
            (groups if one == "build" else names).add(one)
    if unknown := groups - {"project", "build", *extras}:
        sys.exit(f"pyproject.toml has no extra {', '.join(sorted(unknown))}. It has: {', '.join(extras)}.")
    every = entries((root / LOCK).read_text("utf-8"))
    if missing := names - {name for name, _, _ in every}:
        sys.exit(f"{LOCK} lacks {', '.join(sorted(missing))}: run make lock, which makes it of pyproject.toml.")
    return {block.split()[0]: block for name, users, block in every if users & groups or name in names}


def renew(*, keep: bool) -> None:
    """Write the lock anew. Raises `CalledProcessError` when uv finds no versions that fit, or none for one of our platforms."""
    day = dt.datetime.now(dt.UTC).date() - dt.timedelta(days=AGE)
    project, lock = _project(ROOT), ROOT / LOCK
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder, "build.in")
        build.write_text("\n".join(project["build-system"]["requires"]), "utf-8")
        how = ["--all-extras", "--generate-hashes", "--exclude-newer", str(day), *([] if keep else ["--upgrade"])]
        _uv("compile", "pyproject.toml", build, *how, "-o", lock)
        text = re.sub(rf"{re.escape(folder)}/", "", lock.read_text("utf-8"))
        groups = {"project": ["pyproject.toml"], "build": [build]}
        groups |= {extra: ["pyproject.toml", "--extra", extra] for extra in project["project"]["optional-dependencies"]}
        needed = {
            group: set(map(_name, _uv("compile", *what, "-c", lock).splitlines())) for group, what in groups.items()
        }
    for extra in needed.keys() - {"project", "build"}:
        needed[extra] -= needed["project"]
    lines = [
        block.rstrip() + f"\n    # for {', '.join(sorted(g for g in needed if name in needed[g]))}\n"
        for name, _, block in entries(text)
    ]
    lock.write_text(HEADER.format(day=day, pythons=PYTHONS[0]) + "".join(lines), "utf-8")
    _check_platforms(project["project"]["optional-dependencies"].keys() - {"dev"})


def _check_platforms(extras: Iterable[str]) -> None:
    """Look for wheels of all that these extras need, for each Python and platform that we install for."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "wanted.txt")
        wanted.write_text("".join(locked([f".[{','.join(extras)}]"]).values()), "utf-8")
        only = ["--require-hashes", "--only-binary", ":all:", "--no-binary", NO_WHEEL, "-r", wanted]
        for python in PYTHONS:
            for platform in PLATFORMS:
                place = ["--target", folder, "--python-version", python, "--python-platform", platform]
                _uv("install", "--dry-run", *place, *only)


def _uv(command: str, *arguments: object) -> str:
    """What `uv pip` prints."""
    universal = ["--universal", "--no-header"] if command == "compile" else []
    words = [sys.executable, "-m", "uv", "pip", command, "--quiet", *universal, *map(str, arguments)]
    settings = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": MACOS}
    return subprocess.run(words, cwd=ROOT, env=settings, check=True, stdout=subprocess.PIPE, text=True).stdout


def _project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def _name(requirement: str) -> str:
    """The name of a requirement's package, as the lock writes it; empty for a comment."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]).lower()


def _users(block: str) -> str:
    found = re.search(r"# for (.*)", block)
    return found[1] if found else ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["--renew"]:
        renew(keep="--keep" in sys.argv)
    else:
        print(*locked(sys.argv[1:] or ["."]).values(), sep="", end="")
