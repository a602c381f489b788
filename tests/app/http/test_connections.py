"""What a connection may cost before anybody is known, over real sockets against uvicorn with our limits."""

import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit

import httpx
import pytest

from app.core.settings import Settings
from app.core.turn import Done, Text
from app.http.connections import ConnectionLimits, Connections, descriptors
from app.http.protocol import MAX_FIELDS, MAX_HEAD, MAX_URL, BoundedProtocol
from app.routes.server import create_app
from tests.app.routes.scripted import HELLO, Scripted, ScriptedAssistants, serving, wait_for

pytestmark = pytest.mark.server
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
BODY = b'{"model": "docs-assistant", "messages": [{"role": "user", "content": "x"}]}'
WHOLE = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
ASKED = b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


@dataclass
class RequestCheck:
    """A service on a loopback port, and connections to it that are closed with it."""

    base: str
    stack: ExitStack
    assistant: Scripted
    opened: list[socket.socket] = field(default_factory=list)

    def connect(self, first: bytes = b"") -> socket.socket:
        address = urlsplit(self.base)
        made = self.stack.enter_context(socket.create_connection((address.hostname, address.port), timeout=60))
        made.sendall(first)
        return made


@contextmanager
def limited_server(*script, keep_alive=120, **limits):
    assistant = Scripted(script=script or HELLO)
    app = create_app(ScriptedAssistants((assistant,)), Settings.load(None))
    options = {
        "http": partial(BoundedProtocol, Connections(ConnectionLimits(**{"sweep": 0.05} | limits))),
        "timeout_keep_alive": keep_alive,
    }
    with ExitStack() as stack:
        base = stack.enter_context(serving(app, **options))
        yield RequestCheck(base, stack, assistant)


def answer(connection: socket.socket) -> bytes:
    """Everything until the service closes the connection."""
    data = b""
    try:
        while piece := connection.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data


def status(connection: socket.socket) -> int:
    return int(answer(connection).split(b" ")[1])


def drip(connection: socket.socket, pieces: bytes, pause: float) -> float:
    """Seconds until the service closed a connection that sends byte by byte."""
    began = time.monotonic()
    for byte in pieces:
        try:
            connection.sendall(bytes([byte]))
        except OSError:
            break
        time.sleep(pause)
    return time.monotonic() - began


def test_who_says_nothing_or_too_slowly_is_closed_while_others_are_served():
    with limited_server(head=0.3, body=0.3) as service:
        silent, slow_head = service.connect(), service.connect(b"GET / HT")
        slow_body = service.connect(HEAD + b"content-length: 100\r\n\r\n")
        drip(slow_head, b"TP/1.1\r\nhost: localhost\r\nx-a: " + b"a" * 30, 0.04)
        assert drip(slow_body, b"{" * 90, 0.04) < 3
        assert answer(silent) == b""
        assert (status(slow_head), status(slow_body)) == (408, 408)
        assert httpx.get(f"{service.base}/health").status_code == 200
        assert not service.assistant.asked


def test_a_body_that_comes_at_a_fair_rate_has_its_time():
    with limited_server(body=1, body_rate=1) as service:
        connection = service.connect(HEAD + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(BODY))
        assert drip(connection, BODY, 0.02) > 1.2
        assert status(connection) == 200


def test_a_connection_that_has_asked_may_rest_between_two_requests():
    with limited_server(head=1.5, body=1.5) as service:
        connection = service.connect(ASKED + b"\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        time.sleep(2)
        connection.sendall(ASKED + b"connection: close\r\n\r\n")
        assert status(connection) == 200
        again = service.connect(ASKED + b"\r\n")
        again.recv(65536)
        again.sendall(b"GET / HT")  # the next head has the same limit as the first
        assert status(again) == 408
    with limited_server(keep_alive=0.2) as service:
        connection = service.connect(ASKED + b"\r\n")
        assert answer(connection).startswith(b"HTTP/1.1 200")


def test_what_is_too_large_is_refused_before_it_is_kept():
    cases = [
        (b"GET /" + b"a" * MAX_URL + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", 414),
        (ASKED + b"x-a: b\r\n" * MAX_FIELDS + b"\r\n", 431),
        (ASKED + b"x-a: " + b"a" * MAX_HEAD + b"\r\n\r\n", 431),
        (ASKED + b"x-a: " + b"a" * 10 * MAX_HEAD, 431),  # a value that never ends
        (ASKED + b"a" * 10 * MAX_HEAD, 431),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n1;a=" + b"a" * 10 * MAX_HEAD, 431),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\nx: " + b"a" * 10 * MAX_HEAD, 431),
        (b"\r\n" * 10 * MAX_HEAD, 431),
        (b"nonsense\r\n\r\n", 400),
    ]
    with limited_server() as service:
        for sent, expected in cases:
            connection = service.connect()
            with suppress(OSError):
                connection.sendall(sent)
            assert status(connection) == expected, sent[:60]
        assert not service.assistant.asked
        assert httpx.get(f"{service.base}/health").status_code == 200


def test_a_body_that_was_refused_is_not_read_for_ever():
    with limited_server(rest=0.2) as service:
        connection = service.connect(HEAD + b"content-length: 3000000\r\n\r\n" + b"x" * 1000)
        assert drip(connection, b"x" * 100, 0.05) < 3
        assert status(connection) == 413


def test_who_does_not_read_an_answer_is_closed():
    with limited_server(*(Text("x" * 10_000) for _ in range(2000)), Done(), unread=0.3) as service:
        body = BODY.replace(b"{", b'{"stream": true, ', 1)
        connection = service.connect(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
        wait_for(lambda: service.assistant.asked)
        time.sleep(2)
        assert not answer(connection).endswith(b"[DONE]\n\n\r\n0\r\n\r\n")


def test_when_all_places_are_taken_the_silent_give_way_and_the_answered_stay():
    with limited_server(0.5, *HELLO, connections=20) as service:
        served = [service.connect(WHOLE) for _ in range(5)]
        wait_for(lambda: len(service.assistant.asked) == 5)
        rested = service.connect(ASKED + b"\r\n")
        assert rested.recv(65536).startswith(b"HTTP/1.1 200")
        for _ in range(100):
            service.connect(b"GET / HT")
            assert status(service.connect(HEALTH)) == 200
        rested.sendall(ASKED + b"\r\n")
        assert rested.recv(65536).startswith(b"HTTP/1.1 200")
        for connection in served:
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")


def test_when_all_places_are_served_one_more_is_closed():
    with limited_server(2.0, *HELLO, connections=3) as service:
        served = [service.connect(WHOLE) for _ in range(3)]
        wait_for(lambda: len(service.assistant.asked) == 3)
        assert answer(service.connect(WHOLE)) == b""
        assert all(connection.recv(65536).startswith(b"HTTP/1.1 200") for connection in served)


def test_endless_pipelining_is_refused():
    with limited_server(1.0, *HELLO) as service:
        assert answer(service.connect(WHOLE + (ASKED + b"\r\n") * 100)) == b""
        assert httpx.get(f"{service.base}/health").status_code == 200


def test_hanging_up_ends_the_work_though_more_requests_wait():
    with limited_server(30.0, *HELLO) as service:
        connection = service.connect(WHOLE + ASKED + b"\r\n")
        wait_for(lambda: service.assistant.asked)
        connection.close()
        wait_for(lambda: service.assistant.closed == ["cancelled"])


def test_the_soft_limit_of_descriptors_is_raised():
    code = "from app.http.connections import connection_limits, descriptors; print(descriptors(), connection_limits().connections)"
    low = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 600)); {code}"
    done = subprocess.run([sys.executable, "-c", low], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["600", "300"]
    assert descriptors() <= resource.getrlimit(resource.RLIMIT_NOFILE)[1]
