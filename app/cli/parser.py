"""argparse in our words: one line that says what is wrong, with the nearest command or option."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, NoReturn, TypeVar

from app.core.masking import masked
from app.core.nearest import did_you_mean

T = TypeVar("T", int, float)
BEFORE_COMMANDS = ("--debug", "--version")


class Version(argparse.Action):
    """Prints the version; reads it only when asked, because that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        """Print it and exit."""
        print(f"docs-assistant {version('docs-assistant')}")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """A parser whose commands refuse unknown arguments themselves, so that they can name their nearest option."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.register("type", int, _number(int, "a whole number"))
        self.register("type", float, _number(float, "a number"))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The namespace, and no rest: an argument that isn't known is an error."""
        given = list(sys.argv[1:] if args is None else args)
        if problem := self._problem_of_commands(given) if self._commands() else self._unknown_option(given):
            self.error(problem)
        found, rest = super().parse_known_args(given, namespace)
        if rest:
            self.error(f"there is nothing to do with {rest[0]!r} here.")
        return found, rest

    def error(self, message: str) -> NoReturn:
        """Print the message, and where help is. Exits with 2."""
        self.exit(2, masked(f"{self.prog}: {message}\nHelp: {self.prog} --help\n"))

    def _problem_of_commands(self, given: Sequence[str]) -> str:
        """A missing command, or an option in the place of the command; empty if there is none."""
        commands = self._commands()
        if not given:
            return f"a command is missing. The commands are {', '.join(commands)}."
        option = given[0].partition("=")[0]
        owners = [name for name, parser in commands.items() if option in parser._option_string_actions]  # noqa: SLF001
        if option in self._option_string_actions or not owners:
            return self._unknown_option(given[:1])
        return f"{option} is an option of {', '.join(owners)}: write it after the command."

    def _commands(self) -> dict[str, Parser]:
        subparsers = (action for action in self._actions if isinstance(action, argparse._SubParsersAction))  # noqa: SLF001
        return {name: parser for action in subparsers for name, parser in action.choices.items()}

    def _unknown_option(self, given: Sequence[str]) -> str:
        """The first option that is none, before argparse complains of what else is missing; empty if there is none."""
        for argument in given:
            option = argument.partition("=")[0]
            if option == "--":
                break
            known = any(name.startswith(option) for name in self._option_string_actions)  # argparse takes abbreviations
            if option.startswith("--") and " " not in option and not known:
                if option in BEFORE_COMMANDS:
                    return f"write {option} before the command: docs-assistant {option} …"
                return f"there is no option {option}.{did_you_mean(option, self._option_string_actions)}"
        return ""

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        there = list(map(str, action.choices))
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001  # argparse has no public name for it
            listed = f" The commands are {', '.join(there)}."
            self.error(f"there is no command {value!r}.{did_you_mean(value, there) or listed}")
        raise argparse.ArgumentError(action, f"{value!r} is not one of {', '.join(there)}.{did_you_mean(value, there)}")


def _number(make: Callable[[str], T], what: str) -> Callable[[str], T]:
    def read(text: str) -> T:
        try:
            return make(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}") from error

    return read
