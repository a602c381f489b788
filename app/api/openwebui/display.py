"""Recognises requests of Open WebUI and writes sources and status lines in its form."""

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
    """What a client receives besides the text: status lines, sources as events, sources as links in the text."""

    status: bool = False
    events: bool = False
    links: bool = True


def display(headers: Headers, sources: str, *, stream: bool) -> Display:
    """What this client can display. `sources` is events, links, both, or empty: events for Open WebUI, else links."""
    known = is_open_webui(headers)
    if not stream:  # Open WebUI drops the sources of answers that aren't streamed
        return Display()
    sources = sources or ("events" if known else "links")
    events = sources in ("events", "both")
    return Display(status=known or events, events=events, links=sources != "events")


def is_open_webui(headers: Headers) -> bool:
    """True if the request has a header that only Open WebUI sends."""
    return any(name.startswith(PREFIXES) for name in headers)


def unwrap_question(text: str) -> tuple[str, tuple[str, ...]]:
    """The user's question and the attachments that Open WebUI's template wraps around it, if there is such a template."""
    # no regular expressions, because the text may be as long as a request
    head, _, rest = text.partition("\n<context>\n")
    context, closed, question = rest.rpartition("\n</context>")
    task, _, instructions = head.lstrip().partition("\n")
    if not closed or task.rstrip() != "### Task:" or not instructions.lstrip().startswith(WRAPPED):
        return text, ()
    question = question.strip().removeprefix("<user_query>").removesuffix("</user_query>")
    sources = tuple(_sources(context)) or (context.strip(),)
    return question.strip(), tuple(source for source in sources if source)


def _sources(context: str) -> Iterator[str]:
    """Each `<source>` element, including its tags."""
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
    """The highest number that Open WebUI gave to an attachment; it shows attachments as numbered sources."""
    ids = (_ID.search(source.partition(">")[0]) for source in attached)
    return max((int(found[1]) for found in ids if found), default=0)


def source_event(source: Source) -> dict[str, Any]:
    """A source as an event of Open WebUI. `external` prevents a request to Google for the icon of the host."""
    data = {
        "source": {"id": source.url, "name": source.name, "url": source.url},
        "document": [source.snippet],
        "metadata": [{"source": source.url, "name": source.name, "external": True}],
        "distances": [source.score],
    }
    return {"type": "source", "data": data}


def status_event(status: Status) -> dict[str, Any]:
    """A status line, which Open WebUI shows above the answer."""
    return {"type": "status", "data": {"description": status.text, "done": status.done}}
