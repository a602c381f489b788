"""The earlier conversation: what the model gets of it, and whether the question refers to it."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
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
FEWEST_CONTENT_WORDS = 2
MOST_REFERRING = 3  # content words: in a longer question "it" points to the question's own words
MOST_OPENED = 4  # content words after "And ..."
ABOUT_AS_GOOD = 0.8  # share of the best lexical score; a translation of the best page has at least as much
_CITATION = re.compile(r" ?\[\d{1,3}(?:\s*[,;]\s*\d{1,3})*\](?!\()")
_ITEM = re.compile(r"(?:[-*+]|\d+[.)])[ \t]")


def earlier(messages: Sequence[Message], prompts: Prompts) -> tuple[Message, ...]:
    """The last messages before the question, without our source lists, each of at most `KEPT_CHARACTERS`."""
    last_question = max((i for i, m in enumerate(messages) if m.role == "user"), default=0)
    talk = [m for m in messages[:last_question] if m.role in {"user", "assistant"}]
    heading = _heading(tuple(text for one in prompts.languages.values() for text in (one.sources, one.related)))
    texts = ((message.role, _clean(message, heading)) for message in reversed(talk))
    kept = list(islice((Message(role, text[:KEPT_CHARACTERS]) for role, text in texts if text), KEPT_MESSAGES))
    return tuple(reversed(kept))


def _clean(message: Message, heading: re.Pattern[str]) -> str:
    """The message without our lists of links and our citations, whose numbers would point to other passages now."""
    if message.role != "assistant":
        return message.content.strip()
    # array[1] in code is no citation
    return outside_code(_without_lists(message.content, heading), partial(_CITATION.sub, "")).strip()


def _without_lists(text: str, heading: re.Pattern[str]) -> str:
    """The text without our headings that have a list or nothing below them, and without those lists."""
    lines = text.replace("\r\n", "\n").split("\n")
    kept, at = list[str](), 0
    while at < len(lines):
        end = _list_end(lines, at + 1) if heading.fullmatch(lines[at]) else at
        kept.append("" if end > at else lines[at])
        at = max(end, at + 1)
    return "\n".join(kept)


def _list_end(lines: Sequence[str], start: int) -> int:
    """The end of the list that begins at this line, after blank lines; 0 if there is no list."""
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
    """The earlier question that the last one refers to; empty if the last one stands on its own.

    It refers to it if it has hardly a content word ("For how long?"), or few and a word that refers ("And ...", "it").
    """
    *before, last = [m.content.strip() for m in messages if m.role == "user" and m.content.strip()] or [""]
    before = [question for question in before if not is_smalltalk(question, language)]
    if not before:
        return ""
    written = re.findall(r"[^\W_]+", last)
    words = [fold(word) for word in written]
    content = [word for word in written if fold(word) not in language.stopwords]
    if words[:1] and words[0] in language.openers:
        refers = len(content) <= MOST_OPENED
    elif language.references.intersection(words):
        refers = len(content) <= MOST_REFERRING
    else:
        refers = len(content) < FEWEST_CONTENT_WORDS and not any(
            _is_name(word, language) for word in set(written[1:]).intersection(content)
        )
    return before[-1] if refers else ""


def _is_name(word: str, language: Language) -> bool:
    """Whether a word is a name ("Kubernetes"). An acronym such as CPU isn't: it is a property of many things."""
    capital = word[1:] != word[1:].lower() if language.nouns_capitalised else word[:1].isupper()
    return capital and not word.isupper()


def spelled_out(turn: Turn) -> Turn:
    """The turn with the refined question, in its language, in place of one that refers to an earlier question.

    A question that stands on its own stays unchanged: retrieval is better with the original.
    """
    if not (turn.refined and turn.referred):
        return turn
    return replace(turn, question=turn.refined, referred="", language=turn.refined_language or turn.language)


def searched(turn: Turn) -> Turn:
    """The turn with the question that is searched: spelled out, or without the time that it names."""
    asked = spelled_out(turn)
    return replace(turn, question=turn.topic) if asked is turn and turn.topic else asked


def with_answer_language(turn: Turn, configured: Container[str]) -> Turn:
    """The turn with the language of the answer. If it was a guess, the best pages decide, unless pages in the guessed
    language are about as good.

    A refined question in another language is dropped, because models answer in the language they are asked in.
    """
    if not turn.unsure and turn.refined_language in {"", turn.language}:
        return turn
    language = turn.language
    if turn.unsure and turn.hits:
        # the words alone: fused scores prefer the guessed language
        best = max(turn.hits, key=lambda hit: hit.lexical or 0.0)
        least = ABOUT_AS_GOOD * (best.lexical or 0.0)
        near = {hit.chunk.language for hit in turn.hits if (hit.lexical or 0.0) >= least}
        if language not in near and best.chunk.language in configured:
            language = best.chunk.language
    refined = turn.refined if turn.refined_language in {"", language} else ""
    return replace(turn, language=language, unsure=False, refined=refined)


def standalone(turn: Turn) -> str:
    """The question, understandable without the conversation: refined, else after the question that it refers to."""
    asked = spelled_out(turn)
    return f"{asked.referred} {asked.question}".strip()


def helper_messages(system: str, turn: Turn, prompts: Prompts) -> list[Message]:
    """The messages of a helper call: its prompt, then the question below the conversation."""
    history = earlier(turn.request.messages, prompts)
    return [Message("system", system), Message("user", conversation(turn.question, history))]


def conversation(question: str, history: Sequence[Message]) -> str:
    """The question below the earlier conversation, if there is one."""
    if not history:
        return question
    lines = [f"{m.role}: {m.content}" for m in history]
    return "\n".join(["<conversation>", *lines, "</conversation>", "", question])
