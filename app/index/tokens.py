"""The tokens that a chunk is found by: those of its text, of the symbols that it describes, and of the questions that a
language model wrote for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from app.core.types import Chunk
from app.text.analysis import HEADED_MARK, analyse, fold, runs

_NAME = re.compile(r"[^\W_][._][^\W_]|[^\W\d_][A-Z]")
"""An identifier: parts joined by a dot or an underscore, or capitals inside."""


def tokens_of(chunk: Chunk) -> list[str]:
    """The analysed text, the symbols in its headings, then the analysed questions, each in its own language."""
    tokens = list(analyse(chunk.embedded_text, chunk.language))
    tokens += dict.fromkeys(token for section in chunk.sections for token in _headed(section.path))
    for language, text in chunk.questions:
        tokens += analyse(text, language)
    return tokens


def tokens_of_question(text: str, language: str) -> list[str]:
    """The tokens that a search for the text counts, each once: its words, and sections headed by a symbol that it names."""
    named = [fold(run) + HEADED_MARK for run in runs(text) if _NAME.search(run)]
    return list(dict.fromkeys([*analyse(text, language), *named]))


def _headed(path: Sequence[str]) -> Iterator[str]:
    """The names that people call the symbol by which is the last heading: `MultiDict.items`, `items`."""
    own, parent = (_symbol(heading) for heading in (*path[-1:], *path[-2:-1], "", "")[:2])
    if not own:
        return
    name = own.rpartition(".")[2]
    yield own + HEADED_MARK
    yield name + HEADED_MARK
    if parent:
        yield f"{parent.rpartition('.')[2]}.{name}{HEADED_MARK}"


def _symbol(heading: str) -> str:
    """The heading folded if it is one identifier, else empty."""
    found = runs(heading)
    return fold(found[0]) if len(found) == 1 and " " not in heading.strip() else ""
