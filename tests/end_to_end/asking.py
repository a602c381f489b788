"""Asking a service over HTTP, and what a reader can check of an answer."""

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urldefrag

import httpx
import lxml.html

from app.core.prompts import load_prompts

_LANGUAGES = load_prompts(("cs", "en")).languages
INTRO = {
    code: (language.texts.extractive_intro, language.texts.extractive_unsure) for code, language in _LANGUAGES.items()
}
"""What a quoted answer begins with: the vectors of letters that most tests have don't always find the page that the words find."""
FAILED = {code: language.texts.extractive_failed for code, language in _LANGUAGES.items()}
SOURCES = {code: f"**{language.texts.sources}**" for code, language in _LANGUAGES.items()}
QUESTIONS = {code: language.texts.example_question for code, language in _LANGUAGES.items()}
_LINK = re.compile(r"\]\((https?://[^)\s]+)\)")


@dataclass
class Answer:
    """What came back: the text, the status, and of a stream all its events in order."""

    status: int
    text: str = ""
    body: dict[str, Any] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    done: bool = False

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The error events of a stream, or the error of a whole answer."""
        return [event["error"] for event in [self.body, *self.events] if "error" in event]

    @property
    def extractive(self) -> bool:
        """Whether the answer says that no language model wrote it."""
        return any(event.get("extractive") for event in [self.body, *self.events])

    @property
    def links(self) -> list[str]:
        """The addresses in the list of sources, in its order."""
        tail = max((self.text.rpartition(heading)[2] for heading in SOURCES.values() if heading in self.text), key=len)
        return _LINK.findall(tail)


def ask(url: str, question: str, *, stream: bool = False, timeout: float = 120, **fields: Any) -> Answer:
    """The answer to one question."""
    messages = [{"role": "user", "content": question}]
    body = {"model": "docs-assistant", "messages": messages, "stream": stream, **fields}
    with httpx.stream("POST", f"{url}/v1/chat/completions", json=body, timeout=timeout) as response:
        if not response.headers["content-type"].startswith("text/event-stream"):
            whole = json.loads(response.read())
            choices = whole.get("choices", [])
            return Answer(response.status_code, choices[0]["message"]["content"] if choices else "", whole)
        return _read(response)


def _read(response: httpx.Response) -> Answer:
    answer = Answer(response.status_code)
    for line in response.iter_lines():
        if not line.startswith("data: "):
            assert not line or line.startswith(":"), line
            continue
        assert not answer.done, f"{line} after [DONE]"
        if line == "data: [DONE]":
            answer.done = True
            continue
        event = json.loads(line.removeprefix("data: "))
        answer.events.append(event)
        answer.text += "".join(choice["delta"].get("content") or "" for choice in event.get("choices", []))
    return answer


def assert_links_lead_somewhere(links: list[str]) -> None:
    """Each address answers 200, and has an element with the id that its fragment names."""
    assert links
    for link in links:
        address, fragment = urldefrag(link)
        page = httpx.get(address, timeout=60)
        assert page.status_code == 200, link
        ids = lxml.html.document_fromstring(page.text).xpath("//@id")
        assert not fragment or fragment in ids, link
