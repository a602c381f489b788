"""`docs-assistant check`: prints the configuration and checks store, index and models."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Awaitable, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from app.cli.options import Commands
from app.core.errors import AssistantError, NoIndex
from app.core.settings import Settings

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant
    from app.index import Store
    from app.models import Embedder

SET = "(set)"
_SECRET = re.compile(r"(key|token|secret|password|authorization|credential)s?$", re.IGNORECASE)


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser("check", help="say what is configured, reachable and indexed")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(handler=check)


def check(arguments: argparse.Namespace) -> int:
    """Print the findings. Returns 1 if a configured part doesn't work or nothing is indexed."""
    settings = Settings.load()
    findings = asyncio.run(_findings(settings))
    if arguments.json:
        print(json.dumps(findings, ensure_ascii=False, indent=2))
    else:
        _print(findings)
    return 0 if findings["ok"] else 1


async def _findings(settings: Settings) -> dict[str, Any]:
    from app.assistants.assembly import opened
    from app.core.turn import Message
    from app.models.protocols import CallOptions

    async with opened(settings) as assistants:
        named = {name: await _index_state(name, *parts) for name, parts in assistants.used().items()}
        model: dict[str, Any] = {"name": None, "problem": ""}
        if assistants.model:
            call = assistants.model.complete([Message("user", "Say OK.")], CallOptions(max_tokens=16, timeout=20))
            model = {"name": assistants.model.name, "problem": await _problem(call)}
        empty_collections = _empty_collections(assistants.by_id.values(), named)
        unused = {"index": None, "index_problem": "", "embedder": {"name": assistants.embedder.name, "problem": ""}}
    shown, indexing = _settings(settings), _indexing_problem(settings)
    problems = [text for one in named.values() for text in (one["index_problem"], one["embedder"]["problem"])]
    return {
        "ok": not any((*problems, model["problem"], *empty_collections, indexing)),
        "settings": shown,
        "store": shown["DOCS_STORE"],
        "indexing_problem": indexing,
        **named.pop("", unused),
        "indices": named,
        "collections_without_pages": empty_collections,
        "language_model": model,
    }


def _indexing_problem(settings: Settings) -> str:
    """What is wrong with the configured sources or the splitter; reads nothing of the sources."""
    from ingestion.sources import as_sources, configured
    from ingestion.split import open_splitter

    try:
        open_splitter(settings)
        as_sources(configured(settings))
    except AssistantError as error:
        return str(error)
    return ""


async def _index_state(name: str, store: Store, embedder: Embedder) -> dict[str, Any]:
    """The index with its embedder, and their problems."""
    from app.models.protocols import for_index

    index, problem = await _index(name, store, embedder)
    embedder = for_index(embedder, index["embedder"] if index else "")
    answers = {"name": embedder.name, "problem": await _problem(embedder.embed_queries(["check"]))}
    return {"index": index, "index_problem": problem, "embedder": answers}


async def _problem(call: Awaitable[object]) -> str:
    try:
        await call
    except AssistantError as error:
        return str(error)
    return ""


async def _index(name: str, store: Store, embedder: Embedder) -> tuple[dict[str, Any] | None, str]:
    from app.assistants.health import embedder_mismatch, empty_index_message

    try:
        generation = await store.live()
        pages = await generation.pages()
    except NoIndex as error:
        return None, empty_index_message(name, error)
    except AssistantError as error:
        return None, str(error)
    info = generation.info
    age = datetime.now(UTC) - datetime.fromisoformat(info.built_at)
    return {
        "generation": info.id,
        "built_at": info.built_at,
        "age_hours": round(age.total_seconds() / 3600, 1),
        "pages": info.pages,
        "chunks": info.chunks,
        "pages_by_language": dict(Counter(page.language for page in pages).most_common()),
        "pages_by_collection": dict(Counter(page.collection for page in pages).most_common()),
        "embedder": info.recipe.embedder,
        "dimension": info.recipe.dimension,
        "splitter": info.recipe.splitter,
    }, embedder_mismatch(info, embedder)


def _empty_collections(
    assistants: Iterable[Assistant], states: Mapping[str, Mapping[str, Any]]
) -> dict[str, list[str]]:
    """For each assistant, its collections without a page in its index. Assistants without an index are left out."""
    filled = {name: one["index"]["pages_by_collection"] for name, one in states.items() if one["index"]}
    lacking = {
        a.id: [name for name in a.collections if name not in filled[a.index]] for a in assistants if a.index in filled
    }
    return {id_: names for id_, names in lacking.items() if names}


def _settings(settings: Settings) -> dict[str, Any]:
    """Every setting with its value; of a secret only whether it is set."""
    from app.core.masking import masked

    def shown(name: str, value: Any) -> Any:
        match value:
            case SecretStr():
                return SET if value.get_secret_value() else ""
            case str() if _SECRET.search(name) and value:
                return SET
            case str():
                return masked(value)
            case dict():
                return {key: shown(key, inner) for key, inner in value.items()}
            case tuple() | list():
                return [shown(name, inner) for inner in value]
            case _:
                return value

    return {f"DOCS_{name.upper()}": shown(name, getattr(settings, name)) for name in type(settings).model_fields}


def _as_written(value: Any) -> str:
    """The value of a setting in the form of an environment variable."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value != {} else ""


def _print(findings: dict[str, Any]) -> None:
    width = max(map(len, findings["settings"]))
    for name, value in findings["settings"].items():
        print(f"{name:{width}}  {_as_written(value)}".rstrip())
    model = findings["language_model"]
    print(f"\nstore           {findings['store']}")
    if findings["indexing_problem"]:
        print(f"indexing        PROBLEM: {findings['indexing_problem']}")
    _print_index(findings)
    for name, one in findings["indices"].items():
        print(f"\n[[index]] {name}")
        _print_index(one)
    if findings["indices"]:
        print()
    for assistant, names in findings["collections_without_pages"].items():
        print(f"assistant       PROBLEM: {assistant} answers from {', '.join(names)}, where no page is indexed")
    state = "PROBLEM: " + model["problem"] if model["problem"] else "answers"
    print(
        f"language model  {model['name'] + ': ' + state if model['name'] else 'none (DOCS_LLM_URL): answers are extractive'}"
    )


def _print_index(state: dict[str, Any]) -> None:
    index, embedder = state["index"], state["embedder"]
    if index:
        languages = ", ".join(f"{code} {n}" for code, n in index["pages_by_language"].items())
        print(
            f"index           generation {index['generation']}, {index['pages']} pages ({languages}), {index['chunks']} chunks"
        )
        print(
            f"                built {index['built_at']} ({index['age_hours']} h ago) with {index['embedder']}, {index['dimension']} numbers"
        )
    if state["index_problem"]:
        print(f"index           PROBLEM: {state['index_problem']}")
    elif not index:
        print("index           not used: each assistant has an [[index]] of its own")
        return
    print(
        f"embedder        {embedder['name']}: {'PROBLEM: ' + embedder['problem'] if embedder['problem'] else 'answers'}"
    )
