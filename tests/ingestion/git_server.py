"""Real git repositories, and a real HTTP server for them: git's own `http-backend` behind one of Python."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.serving import serving


@dataclass
class Repository:
    """A repository with a work tree."""

    root: Path

    def git(self, *arguments: str) -> str:
        """What git prints."""
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        made = subprocess.run(["git", *who, *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return made.stdout.strip()

    def commit(self, **files: str | bytes) -> None:
        """Write these files and commit all that changed."""
        for name, text in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text.encode() if isinstance(text, str) else text)
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")


def repository(root: Path) -> Repository:
    """An empty one, with a branch main, that servers may send in parts."""
    root.mkdir(parents=True)
    made = Repository(root)
    made.git("init", "--quiet", "--initial-branch=main", "--template=")
    made.git("config", "uploadpack.allowFilter", "true")
    return made


@dataclass
class GitServer:
    """`log` has (path, headers) of all requests. Where `token` is set, others get 401."""

    url: str = ""
    token: str = ""
    redirect: str = ""
    log: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@contextmanager
def git_server(root: Path) -> Iterator[GitServer]:
    """Serves the repositories below the directory on a free port of loopback."""
    server = GitServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            server.log.append((self.path, dict(self.headers.items())))
            if server.redirect:
                self.send_response(302)
                self.send_header("Location", server.redirect + self.path)
                self.end_headers()
                return
            if server.token and self.headers.get("Authorization") != server.token:
                self.send_response(401)
                self.send_header("WWW-Authenticate", 'Basic realm="git"')
                self.end_headers()
                return
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(path, query, body)

        do_POST = do_GET  # noqa: N815

        def _answer(self, path: str, query: str, body: bytes) -> None:
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            made = subprocess.run(
                ["git", "http-backend"], input=body, env=environment, check=False, capture_output=True
            ).stdout
            head, _, content = made.partition(b"\r\n\r\n")
            fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
            for name, value in fields.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    with serving(running) as server.url:
        yield server


def basic(user: str, password: str) -> str:
    """The value of a header Authorization."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
