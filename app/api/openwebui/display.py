"""Open WebUI: how its requests are recognised, and the form in which it shows sources and status lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from app.core.turn import Source, Status

PREFIXES = ("x-owui-", "x-openwebui-")
WRAPPED = "Respond to the user query using the provided context"
_ID = re.compile(r'\bid="(\d{1,4})"')


@dataclass(frozen=True, slots=True)
class Display:
    """How a client is sent what is not text: status lines, sources as events, and as links in the text."""

    status: bool = False
    events: bool = False
    links: bool = True


def display(headers: Headers, sources: str, *, stream: bool) -> Display:
    """What this client can show. `sources` is events, links or both; empty: events for Open WebUI, else links."""
    known = is_open_webui(headers)
    if not stream:  # Open WebUI doesn't keep the sources of whole answers
        return Display()
    sources = sources or ("events" if known else "links")
    events = sources in ("events", "both")
    return Display(status=known or events, events=events, links=sources != "events")


def is_open_webui(headers: Headers) -> bool:
    """True where the request has a header that only Open WebUI sends."""
    return any(name.startswith(PREFIXES) for name in headers)


def unwrap_question(text: str) -> tuple[str, tuple[str, ...]]:
    """The user's own question and the material that Open WebUI put around it; most texts have none."""
    # found letter by letter, as these texts may be as long as a request
    head, _, rest = text.partition("\n<context>\n")
    context, closed, question = rest.rpartition("\n</context>")
    task, _, told = head.lstrip().partition("\n")
    if not closed or task.rstrip() != "### Task:" or not told.lstrip().startswith(WRAPPED):
        return text, ()
    question = question.strip().removeprefix("<user_query>").removesuffix("</user_query>")
    sources = tuple(_sources(context)) or (context.strip(),)
    return question.strip(), tuple(source for source in sources if source)


def _sources(context: str) -> Iterator[str]:
    """Each element `source`, with its tags."""
    end = 0
    while (start := context.find("<source", end)) >= 0:
        end = start + len("<source")
        if context[end : end + 1].isalnum():  # <sources>
            continue
        if (closing := context.find("</source>", end)) < 0:
            return
        end = closing + len("</source>")
        yield context[start:end]


def highest_source_number(attached: Iterable[str]) -> int:
    """The highest number that Open WebUI gave to attached material: it shows these as sources of its own."""
    ids = (_ID.search(source.partition(">")[0]) for source in attached)
    return max((int(found[1]) for found in ids if found), default=0)


def source_event(source: Source) -> dict[str, Any]:
    """A source as Open WebUI takes it. `external` keeps it from asking Google for an icon of the host."""
    data = {
        "source": {"id": source.url, "name": source.name, "url": source.url},
        "document": [source.snippet],
        "metadata": [{"source": source.url, "name": source.name, "external": True}],
        "distances": [source.score],
    }
    return {"type": "source", "data": data}


def status_event(status: Status) -> dict[str, Any]:
    """A line that Open WebUI shows above the answer."""
    return {"type": "status", "data": {"description": status.text, "done": status.done}}
