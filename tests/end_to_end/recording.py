"""Records where programs want to go: a proxy that passes on to allowed addresses only, and the calls of the kernel as strace sees them."""

import http.client
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

from tests.serving import serving

HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "host"}
ADDRESS = re.compile(
    r"^.*?(connect|sendto|sendmsg|sendmmsg)\(.*?sa_family=AF_INET6?, sin6?_port=htons\((?P<port>\d+)\).*?"
    r'inet_(?:addr\(|pton\(AF_INET6, )"(?P<host>[^"]+)"',
    re.MULTILINE,
)


class RecordingProxy(ThreadingHTTPServer):
    """Its `asked` are the places that were asked for, `host:port` each; only those of `allowed` are reached."""

    def __init__(self, allowed: Collection[str]) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.allowed, self.asked = frozenset(allowed), set[str]()

    @property
    def settings(self) -> dict[str, str]:
        """The variables that lead programs here."""
        names = ("http_proxy", "https_proxy", "all_proxy")
        address = f"http://127.0.0.1:{self.server_port}"
        return {form: address for name in names for form in (name, name.upper())}


class _Passing(BaseHTTPRequestHandler):
    server: RecordingProxy

    def do_CONNECT(self) -> None:
        self.server.asked.add(self.path)
        self.send_error(502, "Nothing is reached through this proxy")

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        self.server.asked.add(place.netloc)
        if place.netloc not in self.server.allowed:
            self.send_error(502, "Nothing else is reached through this proxy")
            return
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP}
        upstream = http.client.HTTPConnection(place.netloc, timeout=60)
        upstream.request(self.command, place._replace(scheme="", netloc="").geturl(), body or None, headers)
        answer = upstream.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        self.end_headers()
        shutil.copyfileobj(answer, self.wfile)
        upstream.close()

    do_POST = do_GET  # noqa: N815  # as in the library

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as in the library
        pass


@contextmanager
def recording_proxy(*allowed: str) -> Iterator[RecordingProxy]:
    """A running proxy; `allowed` are addresses that begin with http://."""
    proxy = RecordingProxy([urlsplit(one).netloc for one in allowed])
    with serving(proxy):
        yield proxy


def traced(to: Path) -> tuple[str, ...]:
    """The words before a command that have its calls written to this file; none where processes can't be traced."""
    strace = shutil.which("strace")
    words = (
        strace or "",
        "-f",
        "--seccomp-bpf",
        "-qq",
        "-e",
        "trace=connect,sendto,sendmsg,sendmmsg",
        "-e",
        "signal=none",
        "-o",
        str(to),
    )
    works = (
        strace and subprocess.run([*words, sys.executable, "-c", ""], capture_output=True, check=False).returncode == 0
    )
    return words if works else ()


def places(trace: Path) -> set[str]:
    """The addresses that a traced program wanted to reach, `host:port` each, also those of name servers."""
    text = trace.read_text("utf-8", "replace") if trace.exists() else ""
    return {f"{found['host']}:{found['port']}" for found in ADDRESS.finditer(text)}
