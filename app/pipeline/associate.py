"""Which parts of the site a question belongs to: picked by the language model from their real list, then lifted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote

from app.core.errors import ModelError
from app.core.models.base import Model
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.store.base import Generation
from app.core.turn import Message, Turn
from app.core.types import Boost, Page
from app.pipeline.calls import ask_helper
from app.pipeline.step import Changes

FEWEST_PAGES = 2
MOST_SECTIONS = 40
MOST_PICKED = 5


@dataclass(frozen=True)
class Associate:
    """Shows the model the sections of the index, those that an address begins with, and lifts what it picks."""

    model: Model
    prompts: Prompts
    settings: Settings
    _known: dict[int, tuple[str, ...]] = field(default_factory=dict, compare=False)
    name = "associate"
    reads = ("question", "language", "generation")
    uses = ("smalltalk",)
    writes = ("sections",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """A boost of the picked sections; nothing where none fits or there is nothing to pick from."""
        generation: Generation = turn.generation
        listed = [] if turn.smalltalk else await self._sections(generation, turn)
        if len(listed) < 2:
            return {}
        lines = "\n".join(f"{number}. {unquote(url)}" for number, url in enumerate(listed, start=1))
        system = self.prompts.render(turn.language, "associate", sections=lines)
        messages = [Message("system", system), Message("user", turn.question)]
        picked = parse(await ask_helper(self.name, self.model, messages, turn, self.settings), listed)
        return {"sections": Boost(self.settings.section_boost, url_prefixes=picked)} if picked else {}

    async def _sections(self, generation: Generation, turn: Turn) -> list[str]:
        """Sections that the reader may find something in."""
        if generation.info.id not in self._known:
            self._known.clear()  # an older generation isn't asked again
            self._known[generation.info.id] = sections(await generation.pages())
        prefixes = turn.request.filters.url_prefixes
        return [url for url in self._known[generation.info.id] if not prefixes or url.startswith(prefixes)]


def sections(pages: Sequence[Page]) -> tuple[str, ...]:
    """Directories of addresses with several pages in them but not all, the largest ones, in the order of their names."""
    counted = Counter(folder for page in pages for folder in _folders(page.url))
    several = [(count, url) for url, count in counted.items() if FEWEST_PAGES <= count < len(pages)]
    largest = sorted(several, key=lambda found: (-found[0], found[1]))[:MOST_SECTIONS]
    return tuple(sorted(url for _, url in largest))


def _folders(url: str) -> list[str]:
    start = url.index("//") + 2
    return [url[: match.end()] for match in re.finditer("/", url) if match.start() >= start]


def parse(answer: str, listed: Sequence[str]) -> tuple[str, ...]:
    """The sections whose numbers or addresses the answer names; others that it names don't exist and are dropped."""
    text = unquote(answer)
    if re.search(r"[a-z]{3,}", text.casefold()) and "/" not in text:
        if re.search(r"\b(?:none|nothing|žádn\w*|zadn\w*|nic)\b", text.casefold()):
            return ()
        raise ModelError(f"No sections can be read from {answer[:200]!r}: none is preferred.")
    named = [url for url in listed if re.search(rf"(?<!\w){re.escape(unquote(url))}(?![\w/])", text)]
    numbers = [] if named else [int(number) for number in re.findall(r"\d+", text)]
    picked = named or [listed[number - 1] for number in numbers if 1 <= number <= len(listed)]
    return tuple(dict.fromkeys(picked))[:MOST_PICKED]
