"""Pages by number for the embedded store, and what lies in its directory."""

from __future__ import annotations

import json
from pathlib import Path

from app.core.generation import Recipe
from tests.contract import pages
from tests.contract.pages import RECIPE, SITE, vector


async def put(draft, number: int, *texts: str) -> None:
    await pages.put(draft, f"{SITE}/{number}", *texts)


async def publish(store, site: dict[int, tuple[str, ...]], recipe: Recipe = RECIPE):
    return await pages.publish(store, {f"/{number}": texts for number, texts in site.items()}, recipe)


async def texts_of(generation, question: str = "common") -> set[str]:
    lexical = set(await pages.found(generation, question, depth=5000))
    assert lexical == set(await pages.near(generation, vector(question), depth=5000))
    return lexical


def tables(directory: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for folder in directory.glob("*.lance"):
        found.setdefault(folder.stem.partition("_")[0], set()).add(folder.stem)
    return found


def pointer(directory: Path) -> dict:
    return json.loads((directory / "index.json").read_text())
