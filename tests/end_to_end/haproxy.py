"""The configuration of deploy/haproxy in a real HAProxy, before instances on this machine."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.program import free_port

PROGRAM = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
CONFIGURATION = Path(__file__).parents[2] / "deploy/haproxy/haproxy.cfg"
NAME = "docs.example.org"
"""The host name in the file."""


def configuration(folder: Path, port: int, instances: Sequence[int]) -> str:
    """The shipped file with these ports, as the user of the tests, without TLS, and with its socket in the folder."""
    text = CONFIGURATION.read_text("utf-8")
    for old, new in {
        ":443 ssl crt /etc/ssl/docs-assistant/haproxy.pem alpn h2,http/1.1": f"127.0.0.1:{port}",
        "    user haproxy\n    group haproxy\n": "",
        "/run/haproxy/admin.sock": str(folder / "admin.sock"),
        "10.0.0.1:8000": f"127.0.0.1:{instances[0]}",
        "10.0.0.2:8000": f"127.0.0.1:{instances[1]}",
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextmanager
def haproxy(folder: Path, instances: Sequence[int]) -> Iterator[str]:
    """A running HAProxy before the instances on these ports; the address for its clients. It takes a second to know who is ready."""
    port = free_port()
    (folder / "haproxy.cfg").write_text(configuration(folder, port, instances), encoding="utf-8")
    with (folder / "haproxy.log").open("wb") as log:
        process = subprocess.Popen([str(PROGRAM), "-db", "-f", str(folder / "haproxy.cfg")], stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)
