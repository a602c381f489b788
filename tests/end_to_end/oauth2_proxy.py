"""A real oauth2-proxy before a service, and a real OpenID provider that lets everybody in."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.app.routes.scripted import wait_for
from tests.end_to_end.program import free_port

MODULE, VERSION = "github.com/oauth2-proxy/oauth2-proxy/v7", "v7.8.1"
CACHED = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "docs-assistant/bin"
BUILD_SECONDS = 900  # 113 s with two cores and an empty cache of modules
DOCUMENTED = Path(__file__).parents[2] / "docs/en/proxies.md"


def program(folder: Path) -> str:
    """The program, built once for all runs; the test skips where that can't be."""
    if found := shutil.which("oauth2-proxy", path=f"{CACHED}:{os.environ['PATH']}"):
        return found
    if not shutil.which("go"):
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "no oauth2-proxy and no Go here: apt install golang"
        )
    CACHED.mkdir(parents=True, exist_ok=True)
    # a module of its own: `go install` would ask for all versions
    (folder / "go.mod").write_text(f"module proxy\n\ngo 1.23\n\nrequire {MODULE} {VERSION}\n", "utf-8")
    command = ["go", "build", "-mod=mod", "-o", str(folder / "oauth2-proxy"), MODULE]
    built = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
        env=os.environ | {"GOFLAGS": ""},
    )
    assert built.returncode == 0, built.stderr[-2000:]
    shutil.move(folder / "oauth2-proxy", CACHED / "oauth2-proxy")
    return str(CACHED / "oauth2-proxy")


def documented_options() -> list[str]:
    """The options in the page about proxies, which are those that matter to the service."""
    _, _, text = DOCUMENTED.read_text("utf-8").partition("oauth2-proxy \\\n")
    text, _, _ = text.partition("```")
    return text.replace("\\\n", " ").replace("'", "").split()


@contextmanager
def signed_in_only(folder: Path, upstream: str) -> Iterator[str]:
    """oauth2-proxy before this service; the address that browsers use."""
    address, port = f"http://127.0.0.1:{free_port()}", free_port()
    own = {
        "--http-address": address.removeprefix("http://"),
        "--upstream": f"{upstream}/",
        "--oidc-issuer-url": f"http://127.0.0.1:{port}",
        "--redirect-url": f"{address}/oauth2/callback",
        "--client-id": "docs",
        "--client-secret": "secret",
        "--cookie-secret": "0123456789abcdef" * 2,
        "--cookie-secure": "false",
    }
    kept = [option for option in documented_options() if option.partition("=")[0] not in own]
    options = [*kept, *(f"{name}={value}" for name, value in own.items())]
    # a process of its own, because its libraries warn of each other
    with running([sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]):
        wait_for(lambda: answers(f"{own['--oidc-issuer-url']}/.well-known/openid-configuration"), 120)
        with running([program(folder), *options]) as proxy:
            wait_for(lambda: answers(f"{address}/ping") or proxy.poll() is not None, 120)
            assert proxy.poll() is None, options
            yield address


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """A program, which is ended afterwards."""
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(60)


def answers(address: str) -> bool:
    """Whether a GET of this address succeeds."""
    try:
        return httpx.get(address, trust_env=False).is_success
    except httpx.TransportError:
        return False
