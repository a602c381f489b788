"""`docs-assistant check`: says whether store, index and models work, and shows the settings."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli.options import Commands
from app.core.errors import AssistantError, NoIndex
from app.core.masking import masked
from app.core.settings import Settings
from app.core.shown_settings import setting_lines, shown_settings

if TYPE_CHECKING:
    from app.index import Store
    from app.models import Embedder


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "check", help="say whether everything works, and what is configured, reachable and indexed"
    )
    parser.add_argument(
        "--all", action="store_true", help="show all settings, not only those that differ from the defaults"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(handler=check)


def check(arguments: argparse.Namespace) -> int:
    """Print the findings, the verdict first. Returns 1 if a configured part doesn't work or nothing is indexed."""
    try:
        settings, origins = Settings.load_with_origins()
        findings = asyncio.run(_findings(settings))
    except AssistantError as error:
        if arguments.debug or not arguments.json:
            raise
        problems = [line.strip() for line in masked(str(error)).splitlines() if not line.endswith(":")]
        findings = {"ok": False, "verdict": _verdict({"problems": problems}), "problems": problems}
    else:
        findings |= {"settings": shown_settings(settings, origins, all_=arguments.all)}
    if arguments.json:
        print(json.dumps(findings, ensure_ascii=False, indent=2))
    else:
        _print(findings, all_=arguments.all)
    return 0 if findings["ok"] else 1


async def _findings(settings: Settings) -> dict[str, Any]:
    from app.assistants.assembly import opened
    from app.assistants.findings import empty_collections
    from app.conversations.opening import look
    from app.core.turn import Message
    from app.index import directory_of
    from app.models.protocols import CallOptions

    async with opened(settings) as assistants:
        named = {name: await _index_state(name, *parts) for name, parts in assistants.used().items()}
        model: dict[str, Any] = {"name": None, "problem": ""}
        if assistants.model:
            call = assistants.model.complete([Message("user", "Say OK.")], CallOptions(max_tokens=16, timeout=20))
            model = {"name": assistants.model.name, "problem": await _problem(call)}
        filled = {name: one["index"]["pages_by_collection"] for name, one in named.items() if one["index"]}
        lacking = empty_collections(assistants.by_id.values(), filled)
        unused = {"index": None, "index_problem": "", "embedder": {"name": assistants.embedder.name, "problem": ""}}
    findings = {
        "store": masked(settings.store),
        "service_problem": _service_problem(settings),
        "indexing_problem": _indexing_problem(settings),
        **named.pop("", unused),
        "indices": named,
        "collections_without_pages": lacking,
        "language_model": model,
        "conversations": asdict(look(settings, directory_of(settings) or Path("data"))),
    }
    problems = list(_problems(findings))
    findings |= {"problems": problems}
    return {"ok": not problems, "verdict": _verdict(findings), **findings}


def _problems(findings: Mapping[str, Any]) -> Iterator[str]:
    """What doesn't work, each with what to do; the most basic first."""
    indices = {"": findings, **findings["indices"]}
    for name, one in indices.items():
        for part, text in (("index", one["index_problem"]), ("embedder", one["embedder"]["problem"])):
            if text:
                yield f"{part}{name and ' ' + name}: {text}"
    others = {part: findings[f"{part}_problem"] for part in ("service", "indexing")}
    others |= {part.replace("_", " "): findings[part]["problem"] for part in ("language_model", "conversations")}
    yield from (f"{part}: {text}" for part, text in others.items() if text)
    for assistant, names in findings["collections_without_pages"].items():
        yield f"assistant {assistant}: it answers from {', '.join(names)}, where no page is indexed"


def _verdict(findings: Mapping[str, Any]) -> str:
    if problems := findings["problems"]:
        more = f" ({len(problems)} problems in all)" if len(problems) > 1 else ""
        return f"Doesn't work: {problems[0]}{more}"
    states = [one["index"] for one in (findings, *findings["indices"].values()) if one["index"]]
    pages = sum(index["pages"] for index in states)
    model = findings["language_model"]["name"]
    answers = f"{model} writes the answers" if model else "answers quote them, because no language model is set"
    return f"Works: {pages} pages are indexed, and {answers}."


def _service_problem(settings: Settings) -> str:
    from app.api.key_file import read_keys

    try:
        settings.check_open()
        if settings.keys:
            read_keys(settings.keys, settings)
    except AssistantError as error:
        return str(error)
    return ""


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
    return {
        "generation": info.id,
        "built_at": info.built_at,
        "age_hours": None if info.age is None else round(info.age / 3600, 1),
        "pages": info.pages,
        "chunks": info.chunks,
        "pages_by_language": dict(Counter(page.language for page in pages).most_common()),
        "pages_by_collection": dict(Counter(page.collection for page in pages).most_common()),
        "embedder": info.recipe.embedder,
        "dimension": info.recipe.dimension,
        "splitter": info.recipe.splitter,
    }, embedder_mismatch(info, embedder)


def _print(findings: dict[str, Any], *, all_: bool) -> None:
    print(findings["verdict"])
    print("\nsettings" if all_ else "\nsettings that differ from the defaults (--all shows all)")
    print("\n".join(setting_lines(findings["settings"])) or "none")
    print(f"\nstore           {findings['store']}")
    for part in ("service", "indexing"):
        if text := findings[f"{part}_problem"]:
            print(f"{part:15} PROBLEM: {text}")
    _print_index(findings)
    for name, one in findings["indices"].items():
        print(f"\n[[index]] {name}")
        _print_index(one)
    if findings["indices"]:
        print()
    for assistant, names in findings["collections_without_pages"].items():
        print(f"assistant       PROBLEM: {assistant} answers from {', '.join(names)}, where no page is indexed")
    model = findings["language_model"]
    state = "PROBLEM: " + model["problem"] if model["problem"] else "answers"
    print(
        f"language model  {model['name'] + ': ' + state if model['name'] else 'none (DOCS_LLM_URL): answers are extractive'}"
    )
    print(f"conversations   {_kept(findings['conversations'])}")


def _kept(state: Mapping[str, Any]) -> str:
    if not state["days"]:
        return "not kept (DOCS_RETENTION_DAYS=0)"
    kept = f"questions, answers and feedback are kept for {state['days']} days (DOCS_RETENTION_DAYS)"
    place = f" in {state['database']}" if state["database"] else ""
    return (
        f"{kept}{place}: {'PROBLEM: ' + state['problem'] if state['problem'] else str(state['answers']) + ' answers'}"
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
