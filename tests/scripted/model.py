"""The scripted model: recognises our prompts by their first lines and answers from the script."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Sequence

from app.core.errors import ModelError, PromptError
from app.core.prompts import Prompts, placeholders
from app.core.turn import Completion, Done, Message, Text, Usage
from app.models.protocols import CallOptions
from tests.scripted.script import Line, Script

NAME = "scripted"
_CUT = "\0"
_KINDS = ("refine_question", "refine_keywords", "analyze", "hyde", "synthesize")


class ScriptedModel:
    """A `Model` that answers from the script to these prompts and the others, and raises `ModelError` for a question that the script lacks.

    `calls` counts the prompts by kind; `unknown` has the questions that the script lacks.
    """

    def __init__(self, script: Script, prompts: Prompts, *others: Prompts) -> None:
        self.name = NAME
        self.calls: Counter[str] = Counter()
        self.unknown: set[str] = set()
        self._script = script
        self._prompts = prompts
        self._marks = {mark: kind for one in (prompts, *others) for mark, kind in _marks(one).items()}

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer; options are ignored."""
        del options
        text = self._answer(messages)
        return Completion(text, usage_of(messages, text))

    async def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Usage | Done, None]:
        """The same answer, word by word."""
        del options
        text = self._answer(messages)
        for word in words(text):
            yield Text(word)
        yield usage_of(messages, text)
        yield Done()

    async def close(self) -> None:
        """Does nothing: it holds no connection."""

    def _answer(self, messages: Sequence[Message]) -> str:
        system = "\n".join(message.content for message in messages if message.role == "system")
        kind, language = self._recognise(system)
        self.calls[kind] += 1
        if kind == "synthesize":
            return f"{self._prompts.language(language).found} [1].".replace("{count}", "1")
        question = next((m.content for m in reversed(messages) if m.role == "user"), "")
        line = self._script.find(question)
        if line is None:
            self.unknown.add(question)
            raise ModelError(f"The scripted model has no line for the question {question[:200]!r}.")
        if kind == "hyde":
            return _imagined(line, language, question)
        if kind == "analyze":
            return json.dumps({"question": line.refined, **line.keywords}, ensure_ascii=False)
        return line.refined if kind == "refine_question" else _keywords(line, system)

    def _recognise(self, system: str) -> tuple[str, str]:
        for mark, found in self._marks.items():
            if mark in system:
                return found
        self.calls["unknown prompt"] += 1
        raise ModelError(
            f"The scripted model knows only our own prompts ({', '.join(_KINDS)}), this one begins {system[:80]!r}."
        )


def words(text: str) -> list[str]:
    """The pieces of a streamed answer; joined they are the text."""
    return re.findall(r"\s*\S+\s*", text)


def _marks(prompts: Prompts) -> dict[str, tuple[str, str]]:
    """The first line of each prompt in each language, up to the first placeholder."""
    marks: dict[str, tuple[str, str]] = {}
    for language in prompts.languages:
        for kind in _KINDS:
            text = prompts.render(language, kind, **dict.fromkeys(placeholders()[kind], _CUT))
            marks[text.splitlines()[0].split(_CUT)[0].strip()] = (kind, language)
    clash = any(a in b for a in marks for b in marks if a is not b)
    if clash or "" in marks or len(marks) != len(_KINDS) * len(prompts.languages):
        raise PromptError(
            f"The prompts {', '.join(_KINDS)} must begin differently, in each language and among the languages:"
            " the scripted model recognises them by their first lines."
        )
    return marks


def _imagined(line: Line, language: str, question: str) -> str:
    if language not in line.imagined:
        raise ModelError(f"The scripted model has no made-up answer in {language} for {question[:200]!r}.")
    return line.imagined[language]


def _keywords(line: Line, system: str) -> str:
    asked = [code for code in line.keywords if re.search(rf"^{re.escape(code)}:", system, re.MULTILINE)]
    return "\n".join(f"{code}: {', '.join(line.keywords[code])}" for code in asked or line.keywords)


def usage_of(messages: Sequence[Message], text: str) -> Usage:
    """The number of words as the number of tokens."""
    return Usage(sum(len(message.content.split()) for message in messages), len(text.split()))
