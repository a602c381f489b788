"""Turns and hits to test steps with."""

from app.core.settings import Settings
from app.core.turn import Event, Events, Message, Question, Request, Text, Turn
from app.core.types import Chunk, Hit, Section

SETTINGS = Settings.load(None, helper_timeout=60.0, llm_timeout=60.0)
HURRIED = SETTINGS.model_copy(update={"helper_timeout": 0.1, "llm_timeout": 0.1})
"""For models that never answer."""


def hit(
    number: int, text: str = "Text.", *, url: str = "", anchor: str = "", path: tuple[str, ...] = (), title: str = ""
) -> Hit:
    url, title = url or f"https://docs.example.org/page-{number}", title or f"Page {number}"
    chunk = Chunk(f"c{number}", "docs", url, 0, text, "en", title, (Section(0, path, anchor),))
    return Hit(chunk, lexical=1.0, cosine=0.5, fused=1 / number)


def turn(
    question: str = "How much memory can I get?", language: str = "en", *, hits: tuple[Hit, ...] = (), **more: object
) -> Turn:
    request = more.pop("request", None) or Request((Message("user", question),), id="t1")
    asked = Question(question, language, more.pop("unsure", False), more.pop("referred", ""))
    refined = Question(text) if (text := more.pop("refined", "")) else None
    return Turn(request=request, asked=asked, refined=refined, hits=hits, **more)


async def stream(*events: Event) -> Events:
    """What a step before would pass on."""
    for event in events:
        yield event


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Text))
