"""Limits the number of open connections and their times: a connection that sends nothing would stay open forever."""

from __future__ import annotations

import logging
import resource
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from app.core.log_message import LogMessage

log = logging.getLogger("app.http")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The number of open connections, and the times in seconds after which one is closed."""

    connections: int = 4096
    head: float = 10.0
    body: float = 15.0  # plus one second for each `body_rate` bytes received
    body_rate: float = 16_384
    unread: float = 60.0  # for a client that doesn't read the response
    rest: float = 2.0  # for the rest of a body after the response
    sweep: float = 0.5  # interval between checks of all connections


class Phase(IntEnum):
    """The state of a connection. At the limit, connections in lower states are closed first."""

    CLOSING = 0
    HEAD = 1
    IDLE = 2
    BODY = 3
    SERVED = 4


class Connection(Protocol):
    """A connection that `Connections` closes when its `deadline` is over."""

    loop: AbstractEventLoop
    phase: Phase

    @property
    def deadline(self) -> float:
        """The time of the next check, in the time of the event loop."""

    def abort(self) -> None:
        """Close it at once."""

    def end(self) -> bool:
        """Close it after a timeout; False if it gets more time."""


def descriptors(most: int = 65_536) -> int:
    """The number of file descriptors this process may open, after raising the soft limit to the hard limit or `most`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(hard, most)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return most if soft == resource.RLIM_INFINITY else soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


def connection_limits() -> ConnectionLimits:
    """The limits of a service. Each connection may need a second descriptor for a model or the store."""
    return ConnectionLimits(connections=min(ConnectionLimits().connections, descriptors() // 2))


class Connections:
    """The open connections of a server by phase, oldest first; closes those that exceed their time."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._by_phase: dict[Phase, dict[Connection, None]] = {phase: {} for phase in Phase}
        self._timer: TimerHandle | None = None
        self._closed: Counter[str] = Counter()

    def opened(self, connection: Connection) -> bool:
        """Register a new connection, closing a waiting one at the limit. False if none could be closed."""
        if sum(map(len, self._by_phase.values())) >= self.limits.connections and not self._make_room():
            self._closed["refused"] += 1
            return False
        self.put(connection, Phase.HEAD)
        if not self._timer:
            self._sweep_later(connection.loop)
        return True

    def put(self, connection: Connection, phase: Phase) -> None:
        """Move the connection to this phase."""
        self.forget(connection)
        connection.phase = phase
        self._by_phase[phase][connection] = None

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection."""
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
        if self._closed:  # one line for all, so that an attacker can't fill the disk
            log.info(LogMessage("connections closed", **dict(sorted(self._closed.items()))))
            self._closed.clear()
        self._timer = None
        if any(self._by_phase.values()):
            self._sweep_later(loop)
