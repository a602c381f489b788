"""The files of a release, of the last commit: wheel, source archive, context of the image, bill of materials, notes, checksums.

`python deploy/release.py [DIRECTORY]` (as `make release` does) builds all of them twice, in two directories, and refuses a build whose
files differ: who checks a release builds its commit and compares `SHA256SUMS`. All times are the commit's (`SOURCE_DATE_EPOCH`,
https://reproducible-builds.org/specs/source-date-epoch/); modes, owners and order of the archives are fixed.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAME = "docs-assistant"
SUMS = "SHA256SUMS"
DOCKERFILE = "deploy/Dockerfile"
MODES = {True: 0o755, False: 0o644}
"""Of files by whether they can be run."""


class ReleaseError(Exception):
    """What keeps a release from being built, and what to do."""


def version_of(tree: Path) -> str:
    """The version in pyproject.toml."""
    return str(tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]["version"])


def notes_of(changelog: str, version: str) -> str:
    """The section of CHANGELOG.md on this version, without its heading. Raises `ReleaseError` without one."""
    found = re.search(
        rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if not found:
        raise ReleaseError(
            f"CHANGELOG.md has no section `## {version} - YYYY-MM-DD`: rename `## Unreleased`, or set the version in pyproject.toml."
        )
    return f"{found[1].strip()}\n"


def build(tree: Path, into: Path, epoch: int) -> None:
    """Write the files of a release of the tree into an empty directory."""
    version = version_of(tree)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    for kind in ("wheel", "sdist"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
        done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ReleaseError(f"The {kind} can't be built: {(done.stderr or done.stdout).strip()[-2000:]}")
    (into / f"{NAME}-{version}-image.tar.gz").write_bytes(packed(tree, image_files(tree), epoch))
    (into / f"{NAME}-{version}.cdx.json").write_text(bill(tree, version), "utf-8")
    (into / f"{NAME}-{version}-notes.md").write_text(
        notes_of((tree / "CHANGELOG.md").read_text("utf-8"), version), "utf-8"
    )
    (into / SUMS).write_text(sums(into), "utf-8")


def image_files(tree: Path) -> Sequence[str]:
    """What the image is built from: the files that .dockerignore admits, and the Dockerfile."""
    from docker.utils.build import exclude_paths

    rules = [line for line in (tree / ".dockerignore").read_text("utf-8").splitlines() if line[:1] not in ("", "#")]
    return sorted(
        {name for name in exclude_paths(str(tree), rules) if (tree / name).is_file()} | {DOCKERFILE, ".dockerignore"}
    )


def packed(tree: Path, names: Sequence[str], epoch: int) -> bytes:
    """The files as a tar in gzip, the same for the same files."""
    raw = BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            content = (tree / name).read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), epoch, MODES[os.access(tree / name, os.X_OK)]
            archive.addfile(entry, BytesIO(content))
    return gzip.compress(raw.getvalue(), mtime=epoch)


def bill(tree: Path, version: str) -> str:
    """The bill of materials, with what it is the bill of."""
    found = json.loads((tree / "sbom.cdx.json").read_text("utf-8"))
    purl = f"pkg:pypi/{NAME}@{version}"
    component = {"type": "application", "name": NAME, "version": version, "purl": purl, "bom-ref": purl}
    return json.dumps({**found, "metadata": {"component": component}}, indent=1, ensure_ascii=False) + "\n"


def sums(folder: Path) -> str:
    """Checksums of the files of a directory, as `sha256sum --check` reads them."""
    files = sorted(file for file in folder.iterdir() if file.name not in (SUMS, ".gitignore"))
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)


def git(*command: str) -> str:
    """What git says. Raises `ReleaseError` with its last line."""
    done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607  # of the PATH
    if done.returncode:
        raise ReleaseError(f"git {command[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def release(to: Path) -> str:
    """Build the last commit twice into `to`, and return its checksums. Raises `ReleaseError`."""
    if changed := git("status", "--porcelain"):
        raise ReleaseError(f"These files aren't committed, and a release is built of a commit:\n{changed}")
    epoch = int(git("log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as temporary:
        built = [Path(temporary, name) for name in ("first", "second")]
        for folder in built:
            tree = folder.with_suffix(".tree")
            tree.mkdir()
            archive = Path(temporary, "tree.tar")
            git("archive", "--output", str(archive), "HEAD")
            with tarfile.open(archive) as files:
                files.extractall(tree, filter="data")
            folder.mkdir()
            build(tree, folder, epoch)
        first, second = ((folder / SUMS).read_text("utf-8") for folder in built)
        if first != second:
            raise ReleaseError(f"Two builds of one commit differ:\n{first}\n{second}")
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(built[0], to)
    return first


def main() -> int:
    """Build, and print the checksums."""
    parser = argparse.ArgumentParser(description="The files of a release of the last commit.")
    parser.add_argument(
        "directory", nargs="?", type=Path, default=ROOT / "dist", help="replaced by the files of the release"
    )
    try:
        print(release(parser.parse_args().directory), end="")
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
