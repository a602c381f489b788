"""uvicorn's HTTP protocol with limits of sizes and times, which apply before authentication, and without other protocols.

With httptools, uvicorn limits none of these (h11 limits the size of headers): a client could send one byte at a time. It also drops the body
of a request that offers another protocol, as each Java client does on plain HTTP.
"""

from __future__ import annotations

import math
from asyncio import Transport
from typing import Any

from httptools import HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.core.errors import RequestError
from app.http.connections import Connections, Phase
from app.http.errors import api_error

MAX_URL = 8_192
MAX_HEAD = 32_768
MAX_FIELDS = 100
MAX_PIPELINED = 16
_OFFER = frozenset({b"http2-settings", b"upgrade"})


class BoundedProtocol(HttpToolsProtocol):
    """A connection that `all_` limits. Responds with 408, 414 or 431 when a limit is exceeded, if the client can still read it, and closes."""

    def __init__(self, all_: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.parser: Any = _Parser(self)
        self.phase = Phase.HEAD
        self._all = all_
        self._limits = all_.limits
        self._due = self.loop.time() + self._limits.head
        self._unread_due = math.inf
        self._unparsed = 0  # bytes since the last callback of the parser
        self._head_size = 0
        self._body_size = 0
        self._in_head = self._in_body = self._is_offer = False
        self._refusal: RequestError | None = None
        self._running: RequestResponseCycle | None = None

    @property
    def deadline(self) -> float:
        """The time of the next check, in the time of the event loop."""
        return min(self._due, self._unread_due)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Closes the connection at once if the limit is reached."""
        super().connection_made(transport)
        if not self._all.opened(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Removes the connection and cancels its running request; uvicorn notifies only the last of several."""
        self._all.forget(self)
        self._disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feeds the parser; a single field may not exceed the size limit of all headers."""
        if self.phase is Phase.IDLE:
            self._wait(Phase.HEAD, self._limits.head)
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > MAX_HEAD and not self.transport.is_closing():
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        """Starts the headers of a request."""
        super().on_message_begin()
        self._unparsed = self._head_size = 0
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """Raises `RequestError` if the URL is too long."""
        super().on_url(url)
        if len(self.url) > MAX_URL:
            self._raise(
                RequestError(f"The URL is longer than {MAX_URL} bytes, which is the limit.", code="url_too_long")
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        """Raises `RequestError` if the headers, including trailers, are too many or too large."""
        self._unparsed = 0
        self._head_size += len(name) + len(value)
        if self._head_size > MAX_HEAD or len(self.headers) >= MAX_FIELDS:
            self._raise(_too_large())
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Passes the request on to the application; one that offers another protocol comes again without the offer."""
        self._is_offer = self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"
        if self._is_offer:
            return
        self._unparsed = self._body_size = 0
        self._in_head, self._in_body = False, True
        if len(self.pipeline) >= MAX_PIPELINED:
            self._raise(RequestError("Too many requests at once on one connection.", code="head_too_large"))
        self._wait(Phase.BODY, self._limits.body)
        super().on_headers_complete()
        if not self.pipeline:
            self._running = self.cycle

    def on_body(self, body: bytes) -> None:
        """Counts the received bytes."""
        self._unparsed = 0
        self._body_size += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete: waits for the response."""
        if self._is_offer:
            return
        self._unparsed = 0
        self._in_body = False
        answered_already = self.cycle.response_complete
        super().on_message_complete()
        if answered_already:
            self._wait(Phase.IDLE, self.timeout_keep_alive)
        else:
            self._wait(Phase.SERVED, math.inf)

    def on_response_complete(self) -> None:
        """Waits for the next request, or briefly for the rest of a body that the response didn't need."""
        another = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        self._running = another
        if self.transport.is_closing():
            self._wait(Phase.CLOSING, self._limits.unread)
        elif not another and self._in_body:
            self._wait(Phase.CLOSING, self._limits.rest)
        elif not another:
            self._wait(*((Phase.HEAD, self._limits.head) if self._in_head else (Phase.IDLE, self.timeout_keep_alive)))

    def pause_writing(self) -> None:
        """Starts the timeout for a client that doesn't read."""
        super().pause_writing()
        self._unread_due = self.loop.time() + self._limits.unread

    def resume_writing(self) -> None:
        """Stops the timeout for a client that doesn't read."""
        super().resume_writing()
        self._unread_due = math.inf

    def timeout_keep_alive_handler(self) -> None:
        """Does nothing: the sweep closes idle connections without waiting for a client that doesn't read."""

    def end(self) -> bool:
        """Close the connection after a timeout. False if it gets more time, because the client isn't the cause."""
        now = self.loop.time()
        if now < self._unread_due and self.phase is Phase.BODY:
            if self.flow.read_paused or self.cycle.waiting_for_100_continue:
                self._due = now + self._limits.body
                return False
            earned = self._body_size / self._limits.body_rate
            self._body_size = 0
            if earned >= 1:
                self._due = now + min(earned, self._limits.body)
                return False
        if self.phase is Phase.BODY or (self.phase is Phase.HEAD and self._in_head):
            self._refuse(RequestError("The request took too long to arrive.", code="request_too_slow"))
        elif self.phase is Phase.HEAD or (self.phase is Phase.IDLE and not self.transport.get_write_buffer_size()):
            self._all.put(self, Phase.CLOSING)
            self._due = now + self._limits.rest
            self.transport.close()
        else:
            self.abort()
        return True

    def abort(self) -> None:
        """Close the connection immediately."""
        self._disconnect()
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Responds to a request that the parser or a limit rejected."""
        self._refuse(self._refusal or RequestError(msg))

    def without_offer(self) -> bytes:
        """The head of the request, without the fields that offer another protocol."""
        line = b"%b %b HTTP/%b\r\n" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        fields = [(name, _kept(value) if name == b"connection" else value) for name, value in self.headers]
        return line + b"".join(b"%b: %b\r\n" % field for field in fields if field[0] not in _OFFER) + b"\r\n"

    def _wait(self, phase: Phase, seconds: float) -> None:
        self._all.put(self, phase)
        self._due = self.loop.time() + seconds

    def _disconnect(self) -> None:
        if self._running and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def _raise(self, error: RequestError) -> None:
        self._refusal = error
        raise error

    def _refuse(self, error: RequestError) -> None:
        """Send an error as the last response; just close if another response is pending or has started."""
        cycle = self.cycle
        if cycle and not cycle.response_complete:
            if not self._in_body or cycle.response_started or self.pipeline:
                self.abort()
                return
            self._disconnect()
        answer = api_error(error, "")
        fields = [*self.server_state.default_headers, (b"content-type", b"application/json"), (b"connection", b"close")]
        fields.append((b"content-length", b"%d" % len(answer.body)))
        head = b"".join(b"%b: %b\r\n" % field for field in fields)
        self.transport.write(STATUS_LINE[answer.status] + head + b"\r\n" + answer.body)
        self._wait(Phase.CLOSING, self._limits.rest)
        self.transport.close()


class _Parser:
    """httptools' parser of requests, which goes on where a request offers another protocol: a server may ignore the offer (RFC 9110, 7.8)."""

    def __init__(self, protocol: BoundedProtocol) -> None:
        self._protocol = protocol
        self._begin()

    def _begin(self) -> None:
        self._parser = HttpRequestParser(self._protocol)
        self.get_method, self.get_http_version = self._parser.get_method, self._parser.get_http_version
        self.should_upgrade, self.should_keep_alive = self._parser.should_upgrade, self._parser.should_keep_alive

    def feed_data(self, data: bytes) -> None:
        """Parse the data; raises errors of httptools."""
        while True:
            try:
                self._parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                data = self._protocol.without_offer() + data[upgrade.args[0] :]
                self._begin()
            else:
                return


def _kept(connection: bytes) -> bytes:
    return b", ".join(one for one in map(bytes.strip, connection.split(b",")) if one.lower() not in _OFFER)


def _too_large() -> RequestError:
    return RequestError(
        f"The headers are too large: at most {MAX_FIELDS} headers with {MAX_HEAD} bytes in total are allowed.",
        code="head_too_large",
    )
