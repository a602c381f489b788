"""What the commands share: how an assistant is opened for them, exit codes, kinds of arguments."""

from __future__ import annotations

import argparse
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from app.core.models.base import Model
from app.core.settings import Settings
from eval.errors import EvaluationError
from eval.measure.retrieval import Finder

OK = 0
FAILED = 1
WRONG_INPUT = 2

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # as typeshed names it


class OpenFinder(Protocol):
    """Opens an assistant with some settings replaced, and with this language model instead of the configured one."""

    def __call__(self, overrides: Mapping[str, Any], model: Model | None = None) -> AbstractAsyncContextManager[Finder]:
        """The assistant, closed at the end."""
        ...


NO_MODEL: Mapping[str, Any] = {"llm_url": "", "llm_class": ""}
"""Settings without the configured language model."""

Handler = Callable[[argparse.Namespace, Settings, OpenFinder], Awaitable[int]]


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} isn't from 0 to 1")
    return number


def refuse_unwritable(path: str, option: str) -> None:
    """Said before a run: a long one must not lose its result at the end."""
    if path and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
        raise EvaluationError(f"{option} {path}: that is a directory, or its directory doesn't exist.")


def as_json(value: Any) -> str:
    """JSON as it is printed."""
    return json.dumps(value, ensure_ascii=False, indent=1)


def write_text(text: str, path: str) -> None:
    """Write a file. Raises `EvaluationError` where that can't be done."""
    try:
        Path(path).write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"{path} can't be written: {error}") from error
