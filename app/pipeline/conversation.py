"""The earlier conversation, as the language model may see it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice

from app.core.prompts import Language, Prompts
from app.core.turn import Message, Turn
from app.text.analysis import fold
from app.text.fences import outside_code
from app.text.language import is_smalltalk

KEPT_MESSAGES = 6
KEPT_CHARACTERS = 1500
FEWEST_TELLING = 2
MOST_REFERRING = 3  # telling words: a longer question says what it is about, and its "it" points to its own words
MOST_OPENED = 4  # behind "And ..."
_CITATION = re.compile(r" ?\[\d{1,3}(?:\s*[,;]\s*\d{1,3})*\](?!\()")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])[ \t]")


def earlier(messages: Sequence[Message], prompts: Prompts) -> tuple[Message, ...]:
    """The last messages before the question, our own source lists removed, each cut to a sensible length."""
    last_question = max((i for i, m in enumerate(messages) if m.role == "user"), default=0)
    talk = [m for m in messages[:last_question] if m.role in {"user", "assistant"}]
    heading = _heading(tuple(text for one in prompts.languages.values() for text in (one.sources, one.related)))
    texts = ((message.role, _clean(message, heading)) for message in reversed(talk))
    kept = list(islice((Message(role, text[:KEPT_CHARACTERS]) for role, text in texts if text), KEPT_MESSAGES))
    return tuple(reversed(kept))


def _clean(message: Message, heading: re.Pattern[str]) -> str:
    """What was said: without our lists of links, and without numbers that would point to passages of today."""
    if message.role != "assistant":
        return message.content.strip()
    # array[1] in code is no citation
    return outside_code(_without_lists(message.content, heading), partial(_CITATION.sub, "")).strip()


def _without_lists(text: str, heading: re.Pattern[str]) -> str:
    """The text without each heading that has a list below it, or nothing; and without that list."""
    lines = text.replace("\r\n", "\n").split("\n")
    kept, at = list[str](), 0
    while at < len(lines):
        end = _list_end(lines, at + 1) if heading.fullmatch(lines[at]) else at
        kept.append("" if end > at else lines[at])
        at = max(end, at + 1)
    return "\n".join(kept)


def _list_end(lines: Sequence[str], start: int) -> int:
    """Behind the list that begins at a line, or the blank ones before it; 0 where something else does."""
    end, items = start, 0
    while end < len(lines) and ((item := _ITEM.match(lines[end])) or not lines[end].strip()):
        items += item is not None
        end += 1
    return end if items or end == len(lines) else 0


@lru_cache(maxsize=8)
def _heading(texts: tuple[str, ...]) -> re.Pattern[str]:
    """The line above our lists of links, in whatever form models imitate it."""
    names = "|".join(re.escape(text.rstrip(":")) for text in texts)
    return re.compile(rf"[ \t]*+(?:#{{1,6}}[ \t]*+)?(?:\*\*)?[ \t]*+(?:{names})[ \t]*+:?[ \t]*+(?:\*\*)?:?[ \t]*+")


def referred(messages: Sequence[Message], language: Language) -> str:
    """The earlier question that the last one refers to; empty when it stands on its own.

    It refers when it names next to nothing itself ("For how long?"), or little and says so ("And ...", "it", "there").
    """
    *before, last = [m.content.strip() for m in messages if m.role == "user" and m.content.strip()] or [""]
    before = [question for question in before if not is_smalltalk(question, language)]
    if not before:
        return ""
    written = re.findall(r"[^\W_]+", last)
    words = [fold(word) for word in written]
    telling = [word for word in written if fold(word) not in language.stopwords]
    if words[:1] and words[0] in language.openers:
        refers = len(telling) <= MOST_OPENED
    elif language.references.intersection(words):
        refers = len(telling) <= MOST_REFERRING
    else:
        refers = len(telling) < FEWEST_TELLING and not any(
            _is_name(word, language) for word in set(written[1:]).intersection(telling)
        )
    return before[-1] if refers else ""


def _is_name(word: str, language: Language) -> bool:
    """Whether a word is the name of something ("Kubernetes"); an acronym such as CPU is a property of many things."""
    capital = word[1:] != word[1:].lower() if language.nouns_capitalised else word[:1].isupper()
    return capital and not word.isupper()


def spelled_out(turn: Turn) -> Turn:
    """The turn as if a question that refers to the one before had been asked the way the language model spelled it out.

    One that stands on its own stays as it was asked: retrieval does better with the original.
    """
    return replace(turn, question=turn.refined, referred="") if turn.refined and turn.referred else turn


def standalone(turn: Turn) -> str:
    """The question so that it needs no conversation: as `spelled_out`, else behind the one that it refers to."""
    asked = spelled_out(turn)
    return f"{asked.referred} {asked.question}".strip()


def prompted(system: str, turn: Turn, prompts: Prompts) -> list[Message]:
    """What a helper is asked: its prompt, and the question below the conversation that it may refer to."""
    history = earlier(turn.request.messages, prompts)
    return [Message("system", system), Message("user", conversation(turn.question, history))]


def conversation(question: str, history: Sequence[Message]) -> str:
    """The question, below the conversation that it may refer to; without one, the question alone."""
    if not history:
        return question
    lines = [f"{m.role}: {m.content}" for m in history]
    return "\n".join(["<conversation>", *lines, "</conversation>", "", question])
