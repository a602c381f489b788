"""What was seen, and whether a fault explains it. Times are seconds since the start of the measurement."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

MODEL = frozenset({"extractive", "model_unavailable", "model_timeout", "model_error", "rate_limit_exceeded"})
STORE = frozenset({"store_unavailable", "store_error", "no_index", "not ready"})
FORGOTTEN = frozenset({"conversation_not_found", "answer_not_found", "response_not_found"})
EXPLAINS: Mapping[str, frozenset[str]] = {
    "model down": MODEL,
    "model hangs": MODEL,
    "model slow": frozenset(),
    "model 500": MODEL,
    "model 429": MODEL,
    "model cut": MODEL,
    "store away": STORE,
    "store stopped": STORE | {"timeout"},
    "store killed": STORE,
    "database locked": FORGOTTEN | {"database_unavailable"},
    "database killed": FORGOTTEN | {"database_unavailable"},
    "service restarted": frozenset({"no connection", "server_error", "overloaded"}),
    "site down": frozenset({"exit 1"}),
    "site half": frozenset({"exit 1", "exit 2", "exit 3"}),
    "site fifth": frozenset({"exit 2"}),
    "run killed": frozenset({"exit -9", "exit 1"}),
    "disk full": frozenset({"exit 1"}),
}
"""The outcomes that a fault explains; faults of the site and of runs explain no error of an answer. A run may fail with
the store; that is added below.
"""
STORE_FAULTS = frozenset({"store away", "store stopped", "store killed"})
GRACE: Mapping[str, float] = {"run killed": 60.0, "model hangs": 20.0}
USUAL_GRACE = 15.0
"""Seconds after the end of a fault in which its errors are still explained: the breaker tries a failed part again after
10 s. The lock of a killed run ends after at most 60 s, and calls that hung may fail a little later than the server works.
"""
FINE = frozenset({"ok", "refused", "cancelled", "exit 0"})
NOTICE = 10.0  # seconds in which the service answers from the index before


@dataclass
class Fault:
    """Something that was broken on purpose."""

    kind: str
    began: float
    ended: float = float("inf")
    detail: str = ""


@dataclass
class Seen:
    """A request or a run. `since` is the beginning of what it depends on, such as the answer that it rates."""

    kind: str
    began: float
    ended: float
    outcome: str
    since: float = -1.0
    retries: int = 0
    first: float = 0.0
    detail: str = ""
    links: dict[str, str] = field(default_factory=dict)
    note: Mapping[str, Any] = field(default_factory=dict)


def explained(seen: Seen, faults: Iterable[Fault]) -> str:
    """The fault that explains the outcome; empty if there is none."""
    start = seen.began if seen.since < 0 else min(seen.since, seen.began)
    for fault in faults:
        grace = GRACE.get(fault.kind, USUAL_GRACE)
        outcomes = EXPLAINS[fault.kind] | ({"exit 1", "exit 2"} if fault.kind in STORE_FAULTS else set())
        if seen.outcome in outcomes and fault.began <= seen.ended and start <= fault.ended + grace:
            return fault.kind
    return ""


Served = Mapping[str, tuple[int, frozenset[str]] | None]
"""The version and the anchors of each page that was sent, None for one that isn't there."""


@dataclass
class State:
    """What the index held, or may have held: the anchors of each page, and the versions that its pages are from."""

    pages: Mapping[str, tuple[int, frozenset[str]]]
    since: float
    until: float = float("inf")


class Index:
    """The states that the index went through, as the site's answers to the runs tell."""

    def __init__(self) -> None:
        self.states: list[State] = []

    def ran(self, run: Seen, served: Served, listed: frozenset[str] | None) -> None:
        """A run ended, after the site had sent it these pages and this list; one that was killed may have published."""
        published, killed = run.outcome in {"exit 0", "exit 2"}, run.outcome == "exit -9"
        if not published and not killed:
            return
        before = [state for state in self.states if state.until == float("inf")]
        after = []
        for pages in [state.pages for state in before] or [{}]:
            kept = {path: page for path, page in pages.items() if listed is None or path in listed}
            kept |= {path: page for path, page in served.items() if page is not None}
            after.append({path: page for path, page in kept.items() if served.get(path, page) is not None})
        for state in before if published else ():
            state.until = run.ended + NOTICE
        self.states += [State(pages, run.began) for i, pages in enumerate(after) if pages not in after[:i]]

    def verdict(self, url: str, began: float, ended: float, versions: Sequence[Mapping[str, Any]]) -> str:
        """`ok` if an index of that time had the page and the section; `stale` if a page that couldn't be read since then
        led there; `missing`.
        """
        parts = urlsplit(url)
        path, anchor = unquote(parts.path), unquote(parts.fragment)
        held = [state for state in self.states if state.since <= ended and state.until >= began]
        for state in held:
            if path in state.pages and (not anchor or anchor in state.pages[path][1]):
                return "ok"
        old = {number for state in held for number, _ in state.pages.values()}
        for number in old:
            page = versions[number].get(path)
            if page is not None and (not anchor or anchor in page.anchors):
                return "stale"
        return "missing"
