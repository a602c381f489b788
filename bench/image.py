"""The image without a Docker engine: `python -m bench.image FOLDER` (as root, ten minutes; needs debootstrap, buildah, bubblewrap).

Builds deploy/Dockerfile with buildah, then runs it as deploy/compose.yaml does: the image's user, no capabilities, a read-only
root, `/tmp` in memory, a volume at `/data`. Indexes some pages, asks, and runs the health check. Debian 13 with its own Python
stands for the base image, which a registry would give. Before each release; a line of `bench/image_runs.md` says how it went.
"""

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "bench/image_runs.md"
BASE = "docker.io/library/python:3.12-slim"
IMAGE = "localhost/docs-assistant"
PACKAGES = "ca-certificates,netbase,tzdata,python3,python3-venv,python-is-python3"
PORT = "18765"
SETTINGS = {
    "DOCS_PORT": PORT,
    "DOCS_OPEN": "true",
    "HOME": "/tmp",
}  # in the image
STARTS_WITHIN = 120.0  # seconds


def told(*command: object) -> str:
    """What the program prints. Raises `CalledProcessError`."""
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def make_base(folder: Path) -> None:
    """Debian with a pip of its own: Debian's can't replace what it brought itself."""
    root = folder / "root"
    if not root.exists():
        told("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "trixie", root)
        for file in root.glob("usr/lib/python3*/EXTERNALLY-MANAGED"):
            file.unlink()
        told(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", root / "tmp", "pip")
        install = "PYTHONPATH=$(ls /tmp/pip*.whl) python -m pip install --no-index /tmp/pip*.whl && rm -r /tmp/pip* /var/lib/apt/lists/*"
        told("chroot", root, "sh", "-c", install)
    container = told("buildah", "from", "scratch")
    told("buildah", "add", "--quiet", container, root, "/")
    told("buildah", "config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", container)
    told("buildah", "commit", "--quiet", "--rm", "--format", "docker", container, BASE)


def build() -> None:
    """All steps of the Dockerfile."""
    options = ["--format", "docker", "--layers", "--pull-never", "--isolation", "chroot"]
    certificates = ["--volume", "/etc/ssl/certs:/etc/ssl/certs:ro"]  # also those of this machine
    told("buildah", "bud", *options, *certificates, "--file", ROOT / "deploy/Dockerfile", "--tag", IMAGE, ROOT)


@dataclass(frozen=True)
class Sandbox:
    """The files of the image and what it says of itself."""

    files: Path
    config: dict[str, Any]
    data: Path

    def command(self, *arguments: str) -> list[str]:
        """The command that runs the arguments in the image."""
        user = (self.files / "etc/passwd").read_text().partition(f"\n{self.config['User']}:")[2].split(":")[1]
        environment = [*self.config["Env"], *(f"{name}={value}" for name, value in SETTINGS.items())]
        mounts = [
            "--ro-bind",
            str(self.files),
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--perms",
            "1777",
            "--tmpfs",
            "/tmp",
        ]
        mounts += ["--bind", str(self.data), "/data", "--ro-bind", str(ROOT / "docs/en"), "/srv"]
        rights = [
            "setpriv",
            "--reuid",
            user,
            "--regid",
            user,
            "--clear-groups",
            "--bounding-set=-all",
            "--no-new-privs",
        ]
        place = ["--unshare-pid", "--die-with-parent", "--chdir", self.config["WorkingDir"]]
        return ["bwrap", "--cap-add", "ALL", *mounts, *place, *rights, "env", "-i", *environment, *arguments]

    def run(self, *arguments: str) -> str:
        """What a program of the image prints."""
        return told(*self.command(*arguments))


def opened(folder: Path) -> Sandbox:
    """The built image, with an empty volume."""
    described = json.loads(told("buildah", "inspect", "--type", "image", IMAGE))
    data = folder / f"data-{os.getpid()}"
    data.mkdir()
    (data / "sources.toml").write_text('[[source]]\nurl = "https://docs.example.org/en/"\ndirectory = "/srv"\n')
    container = told("buildah", "from", "--pull-never", IMAGE)
    sandbox = Sandbox(Path(told("buildah", "mount", container)), described["Docker"]["config"], data)
    told("chown", "--recursive", told("stat", "--format=%u:%g", sandbox.files / "data"), data)
    return sandbox


def healthy(sandbox: Sandbox, check: Sequence[str]) -> bool:
    """True if the health check of the image succeeds, before the time is over."""
    until = time.monotonic() + STARTS_WITHIN
    while subprocess.run(sandbox.command(*check), check=False, stderr=subprocess.DEVNULL).returncode:
        if time.monotonic() > until:
            return False
        time.sleep(1)
    return True


def record(commit: str, outcome: str, megabytes: int) -> None:
    """A line of `bench/image_runs.md`: when, of which commit, how large, how it ended."""
    with RUNS.open("a", encoding="utf-8") as file:
        file.write(f"| {dt.datetime.now(dt.UTC):%Y-%m-%d} | {commit} | {megabytes:,} MB | {outcome} |\n")


def main() -> int:
    """Build, run, print and record; 1 if the health check fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="an empty directory, or that of an earlier run")
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    commit = told("git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude", "*")
    make_base(folder)
    megabytes = 0
    try:
        build()
        sandbox = opened(folder)
        sizes = [int(told("du", "-sm", place).split()[0]) for place in (sandbox.files, folder / "root")]
        megabytes = sizes[0] - sizes[1]
        print(f"{sizes[0]} MB, of which {sizes[1]} MB are the stand-in of the base image")
        outcome = tried(sandbox)
    except (subprocess.CalledProcessError, AssertionError) as error:
        outcome = f"failed: {error}"
    record(commit, outcome, megabytes)
    print(outcome)
    return int(outcome != "healthy")


def tried(sandbox: Sandbox) -> str:
    """How the image does: `healthy` if it answers and its health check succeeds. Raises `CalledProcessError` and `AssertionError`."""
    for place in ("/usr/x", "/home/assistant/x"):
        written = subprocess.run(sandbox.command("touch", place), check=False, stderr=subprocess.DEVNULL)
        assert written.returncode, f"{place} can be written"
    print(sandbox.run("id"), sandbox.run("git", "--version"), sandbox.run("python", "--version"), sep="; ")
    print(sandbox.run("docs-assistant", "ingest", "/data/sources.toml"))
    print(sandbox.run("docs-assistant", "ask", "How do I run it in Docker?"))
    with subprocess.Popen(sandbox.command(*sandbox.config["Entrypoint"], *sandbox.config["Cmd"])) as service:
        is_healthy = healthy(sandbox, sandbox.config["Healthcheck"]["Test"][1:])
        service.terminate()
    return "healthy" if is_healthy else "not healthy"


if __name__ == "__main__":
    sys.exit(main())
