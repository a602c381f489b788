"""Asks questions in the terminal until the answers work, or takes them from options."""

from __future__ import annotations

import getpass
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TypeVar

from app.cli.output import print_error
from app.core.errors import AssistantError, SettingsError

T = TypeVar("T")


class UnusableAnswer(SettingsError):
    """An answer that can't be used, however much the person insists."""


@dataclass
class Dialogue:
    """Questions with their `texts` in a language. Each of the `given` answers is used once, before a question is asked.

    Without `asks`, the default is taken for what isn't given, and an answer that doesn't work is an error unless `force` is set.
    """

    texts: Mapping[str, str]
    given: dict[str, str]
    asks: bool = True
    force: bool = False

    def say(self, name: str, /, **values: object) -> None:
        """Print a text."""
        print(self.texts[name].format_map(values), flush=True)

    def say_trying(self) -> None:
        """Say that something is tried that takes a while."""
        if self.asks:
            self.say("trying")

    def ask(self, name: str, default: str = "", shown: str = "", *, secret: bool = False) -> str:
        """The answer to a question; `shown` stands for the default in brackets. Raises `SettingsError` at the end of the input."""
        if (answer := self.given.pop(name, None)) is not None:
            return answer
        if not self.asks:
            return default
        question = f"{self.texts[name]} [{self.texts.get(shown, shown) or default}] "
        return _typed(question, secret=secret) or default

    def confirmed(self, name: str, /, **values: object) -> bool:
        """True if the answer is yes, or begins like it; without questions, if `force` is set."""
        if not self.asks:
            return self.force
        question = self.texts[name].format_map(values)
        yes, no = self.texts["yes"], self.texts["no"]
        typed = _typed(f"{question} {yes}/{no} [{no}] ").casefold()
        return bool(typed) and yes.startswith(typed)

    def settle(self, ask: Callable[[], T], attempt: Callable[[T], T]) -> T:
        """What `attempt` makes of the answer: `ask` is repeated until that works, or until the person insists."""
        while True:
            answer = ask()
            try:
                return attempt(answer)
            except AssistantError as error:
                unusable = isinstance(error, UnusableAnswer)
                if not self.asks and (unusable or not self.force):
                    raise
                print_error(error)
                if not unusable and self.confirmed("insist"):
                    return answer


def _typed(question: str, *, secret: bool = False) -> str:
    try:
        return (getpass.getpass(question) if secret and sys.stdin.isatty() else input(question)).strip()
    except EOFError as error:
        print()
        raise SettingsError(
            "init asks questions, and nobody answers. In a script: docs-assistant init --yes with --site, --store, --model-url … (see --help)."
        ) from error


def texts_of(language: str) -> Mapping[str, str]:
    """The texts in this language, otherwise in English."""
    folder = files("app.cli").joinpath("templates/init")
    file = folder.joinpath(f"{language}.toml")
    found = file if file.is_file() else folder.joinpath("en.toml")
    return tomllib.loads(found.read_text(encoding="utf-8"))
