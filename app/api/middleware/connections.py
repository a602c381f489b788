"""ConnectionLimits on what connections cost before anybody is known: their number, heads, bodies and times, over uvicorn's protocol.

uvicorn itself bounds none of these with httptools (h11 bounds the size of a head): a connection that says nothing, or
says it byte by byte, stays open for ever.
"""

from __future__ import annotations

import logging
import math
import resource
from asyncio import AbstractEventLoop, TimerHandle, Transport
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.api.errors import api_error
from app.core.errors import RequestError

log = logging.getLogger("app.api")

MAX_URL = 8_192
MAX_HEAD = 32_768
MAX_FIELDS = 100
MAX_PIPELINED = 16


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections may be open, and for how many seconds each may keep us waiting."""

    connections: int = 4096
    head: float = 10.0
    body: float = 15.0  # and one more for each `body_rate` bytes that came
    body_rate: float = 16_384
    unread: float = 60.0  # an answer that the client doesn't read
    rest: float = 2.0  # the rest of a body that was answered already
    sweep: float = 0.5  # how often all are looked at


class Phase(IntEnum):
    """What a connection is doing; where room is needed, the lower ones are closed first."""

    CLOSING = 0
    HEAD = 1
    IDLE = 2
    BODY = 3
    SERVED = 4


def descriptors(most: int = 65_536) -> int:
    """How many descriptors this process may have, after raising the soft limit to the hard one or to `most`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return most if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def connection_limits() -> ConnectionLimits:
    """Those of a service: each connection may need a second descriptor, towards a model or the store."""
    return ConnectionLimits(connections=min(ConnectionLimits().connections, descriptors() // 2))


class Connections:
    """The open connections of a server by phase, the longest in it first; closes those whose time is over."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._by_phase: dict[Phase, dict[BoundedProtocol, None]] = {phase: {} for phase in Phase}
        self._timer: TimerHandle | None = None
        self._closed: Counter[str] = Counter()

    def protocol(self, **arguments: Any) -> BoundedProtocol:
        """A connection of this server; for `http` of uvicorn's configuration."""
        return BoundedProtocol(self, **arguments)

    def opened(self, connection: BoundedProtocol) -> bool:
        """False when there is no room for it, though others that only keep us waiting are closed."""
        if sum(map(len, self._by_phase.values())) >= self.limits.connections and not self._make_room():
            self._closed["refused"] += 1
            return False
        self.put(connection, Phase.HEAD)
        if not self._timer:
            self._sweep_later(connection.loop)
        return True

    def put(self, connection: BoundedProtocol, phase: Phase) -> None:
        """The connection is in this phase from now on."""
        self.forget(connection)
        connection.phase = phase
        self._by_phase[phase][connection] = None

    def forget(self, connection: BoundedProtocol) -> None:
        """The connection is closed."""
        self._by_phase[connection.phase].pop(connection, None)

    def _make_room(self) -> bool:
        for phase in (Phase.CLOSING, Phase.HEAD, Phase.IDLE, Phase.BODY):
            for connection in self._by_phase[phase]:
                self._closed[f"{phase.name.lower()}_for_room"] += 1
                self.forget(connection)
                connection.abort()
                return True
        return False

    def _sweep_later(self, loop: AbstractEventLoop) -> None:
        self._timer = loop.call_later(self.limits.sweep, self._sweep, loop)

    def _sweep(self, loop: AbstractEventLoop) -> None:
        now = loop.time()
        for phase, connections in self._by_phase.items():
            over = [connection for connection in connections if now >= connection.deadline]
            for connection in over:
                self._closed[phase.name.lower()] += connection.end()
        if self._closed:  # one line for all: an attacker must not fill the disk
            log.info("connections closed %s", " ".join(f"{name}={n}" for name, n in sorted(self._closed.items())))
            self._closed.clear()
        self._timer = None
        if any(self._by_phase.values()):
            self._sweep_later(loop)


class BoundedProtocol(HttpToolsProtocol):
    """One connection. What goes beyond a limit is answered with 408, 414 or 431 where that can still be read, and closed."""

    def __init__(self, all_: Connections, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.phase = Phase.HEAD
        self._all = all_
        self._limits = all_.limits
        self._due = self.loop.time() + self._limits.head
        self._unread_due = math.inf
        self._unparsed = 0  # bytes since the parser last told something
        self._head_size = 0
        self._body_size = 0
        self._in_head = self._in_body = False
        self._refusal: RequestError | None = None
        self._running: RequestResponseCycle | None = None

    @property
    def deadline(self) -> float:
        """When to look at it, in seconds of the loop."""
        return min(self._due, self._unread_due)

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Closes it at once when there is no room."""
        super().connection_made(transport)
        if not self._all.opened(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets it, and ends the work on its request: uvicorn tells only the last one of several."""
        self._all.forget(self)
        self._disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Feeds the parser, which may hold no more of one field than a head may have."""
        if self.phase is Phase.IDLE:
            self._wait(Phase.HEAD, self._limits.head)
        self._unparsed += len(data)
        super().data_received(data)
        if self._unparsed > MAX_HEAD and not self.transport.is_closing():
            self._refuse(_too_large())

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._unparsed = self._head_size = 0
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        """Raises `RequestError` for a long address."""
        super().on_url(url)
        if len(self.url) > MAX_URL:
            self._raise(
                RequestError(f"The address is longer than {MAX_URL} bytes, which is the limit.", code="url_too_long")
            )

    def on_header(self, name: bytes, value: bytes) -> None:
        """Raises `RequestError` for too many or too large ones; those behind a body are counted as well."""
        self._unparsed = 0
        self._head_size += len(name) + len(value)
        if self._head_size > MAX_HEAD or len(self.headers) >= MAX_FIELDS:
            self._raise(_too_large())
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The request is handed on."""
        self._unparsed = self._body_size = 0
        self._in_head, self._in_body = False, True
        if len(self.pipeline) >= MAX_PIPELINED:
            self._raise(RequestError("Too many requests at once on one connection.", code="head_too_large"))
        self._wait(Phase.BODY, self._limits.body)
        super().on_headers_complete()
        if not self.pipeline:
            self._running = self.cycle

    def on_body(self, body: bytes) -> None:
        """Counts it."""
        self._unparsed = 0
        self._body_size += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """From now on the client waits for us."""
        self._unparsed = 0
        self._in_body = False
        answered_already = self.cycle.response_complete
        super().on_message_complete()
        if answered_already:
            self._wait(Phase.IDLE, self.timeout_keep_alive)
        else:
            self._wait(Phase.SERVED, math.inf)

    def on_response_complete(self) -> None:
        """The next request may come; one that was answered before its body was read has little time to end it."""
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
        """The client doesn't read."""
        super().pause_writing()
        self._unread_due = self.loop.time() + self._limits.unread

    def resume_writing(self) -> None:
        """It reads."""
        super().resume_writing()
        self._unread_due = math.inf

    def timeout_keep_alive_handler(self) -> None:
        """Leaves the end of an idle connection to the sweep: closing would wait for a client that doesn't read."""

    def end(self) -> bool:
        """Close it, as its time is over; False when it got more time, since it isn't the client that it waits for."""
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
        """Close it without waiting for anything."""
        self._disconnect()
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answers what the parser, or a limit in it, refused."""
        self._refuse(self._refusal or RequestError(msg))

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
        """The last answer on this connection; none where another one is due first or has begun."""
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


def _too_large() -> RequestError:
    return RequestError(
        f"The headers are too large: at most {MAX_FIELDS} with {MAX_HEAD} bytes together are taken.",
        code="head_too_large",
    )
