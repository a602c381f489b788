"""`docs-assistant check`: says whether store, index and models work, and shows the settings; `assistants`: shows their steps."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.core.errors import AssistantError, NoIndex, SettingsError
from app.core.log_message import masked
from app.core.settings import Settings
from app.core.shown_settings import setting_lines, shown_settings
from docs_assistant.cli.outline import outline
from docs_assistant.cli.shared import json_option, json_text

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant
    from app.index import Store
    from app.models import Embedder, Model
    from app.pipeline.runner import Step

KINDS = ("model", "embedder", "reranker", "postprocessor")


@click.command
@click.option("--all", "all_", is_flag=True, help="show all settings, not only those that differ from the defaults")
@click.option("--exam", is_flag=True, help="examine the language model, and keep the result, which the service heeds")
@json_option
@click.pass_context
async def check(context: click.Context, /, all_: bool, exam: bool, as_json: bool) -> int:
    """Says whether everything works. The exit code is 1 if a configured part doesn't work or nothing is indexed."""
    if exam:
        return await _examine(as_json=as_json)
    try:
        settings, origins = Settings.load_with_origins()
        findings = await _findings(settings)
    except AssistantError as error:
        if context.find_root().params["debug"] or not as_json:
            raise
        problems = [line.strip() for line in masked(str(error)).splitlines() if not line.endswith(":")]
        findings = {"ok": False, "verdict": _verdict({"problems": problems}), "problems": problems}
    else:
        findings |= {"settings": shown_settings(settings, origins, all_=all_)}
    print(json_text(findings) if as_json else _text(findings, all_=all_))
    return 0 if findings["ok"] else 1


async def _examine(*, as_json: bool) -> int:
    """Examine the configured model, and keep the result. Raises `SettingsError` without a model, and `ModelError` if it doesn't answer."""
    from app.assistants.exam import keep, take
    from app.core.prompts import load_prompts
    from app.models import open_model
    from app.text.language import LanguageDetector

    settings = Settings.load()
    if (model := open_model(settings, patient=True)) is None:
        raise SettingsError("There is no language model to examine: set DOCS_LLM_URL and DOCS_LLM_MODEL.")
    prompts = load_prompts(settings.languages, settings.prompts)
    print(f"Examining {model.name}, which takes a minute or two ...", file=sys.stderr)
    try:
        result = await take(model, settings, prompts, LanguageDetector(prompts.languages, settings.default_language))
    finally:
        await model.close()
    path = keep(result, settings)
    shown = {**asdict(result), "said": result.said}
    told = {name: value for name, value in shown.items() if name not in {"said", "answers"}}
    lines = (
        f"{model.name}: {result.said}.",
        "",
        outline(told),
        f"Kept in {path}. A running service heeds it after a restart.",
    )
    print(json_text(shown) if as_json else "\n".join(lines))
    return 0


async def _findings(settings: Settings) -> dict[str, Any]:
    from app.assistants.assembly import opened
    from app.conversations.opening import look
    from app.index import directory_of

    async with opened(settings) as assistants:
        named: dict[str, dict[str, Any]] = {}
        for name, used in assistants.used().items():
            index, problem = await _index(name, used.store, used.embedder)
            told = {"name": used.embedder.name, "problem": await _problem(used.embedder.embed_queries(["check"]))}
            named[name] = {"index": index, "index_problem": problem, "embedder": told}
        model: dict[str, Any] = {"name": None, "problem": ""}
        if asked := assistants.model:
            model = {"name": asked.name, "problem": await _problem(_ask(asked, settings)), "refused": asked.refused}
        filled = {name: state["index"]["pages_by_collection"] for name, state in named.items() if state["index"]}
        lacking = assistants.empty_collections(filled)
        unused = {"index": None, "index_problem": "", "embedder": {"name": assistants.embedder.name, "problem": ""}}
    findings = {
        "store": masked(settings.store),
        "service_problem": await _problem(_check_service(settings)),
        "indexing_problem": await _problem(_check_indexing(settings)),
        **named.pop("", unused),
        "indices": named,
        "collections_without_pages": lacking,
        "language_model": model,
        "conversations": asdict(look(settings, directory_of(settings) or Path("data"))),
    }
    problems = list(_problems(findings))
    findings |= {"problems": problems}
    return {"ok": not problems, "verdict": _verdict(findings), **findings}


async def _ask(model: Model, settings: Settings) -> None:
    """Ask as helper steps and answers do: whole and streamed, with instructions. Raises `ModelError`."""
    from app.core.turn import Message
    from app.models.protocols import CallOptions

    messages = [Message("system", "Be brief."), Message("user", "Say OK.")]
    # some models refuse a length in which they can't end their reasoning
    options = CallOptions(temperature=settings.tuning.temperature, max_tokens=256, timeout=20)
    await model.complete(messages, options)
    async for _ in model.stream(messages, options):
        pass


def _problems(findings: Mapping[str, Any]) -> Iterator[str]:
    """Yields what doesn't work, each with what to do; the most basic first."""
    indices = {"": findings, **findings["indices"]}
    for name, index in indices.items():
        for part, text in (("index", index["index_problem"]), ("embedder", index["embedder"]["problem"])):
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
    states = [state["index"] for state in (findings, *findings["indices"].values()) if state["index"]]
    pages = sum(index["pages"] for index in states)
    model = findings["language_model"]["name"]
    answers = f"{model} writes the answers" if model else "answers quote them, because no language model is set"
    return f"Works: {pages} pages are indexed, and {answers}."


async def _check_service(settings: Settings) -> None:
    from app.assistants.file import assistant_names
    from app.http.keys import read_keys

    settings.check_open()
    if settings.keys:
        read_keys(settings.keys, assistant_names(settings))


async def _check_indexing(settings: Settings) -> None:
    """Open the configured sources and the splitter; reads nothing of the sources."""
    from ingestion.sources import as_sources, configured
    from ingestion.split import open_splitter

    open_splitter(settings)
    as_sources(configured(settings))


async def _problem(call: Awaitable[object]) -> str:
    """The message of the error; empty if it works."""
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


def _text(findings: Mapping[str, Any], *, all_: bool) -> str:
    """The verdict, then the settings, then all the rest, first what doesn't work."""
    problems = {"problems": findings["problems"]}
    rest = problems | {name: part for name, part in findings.items() if name not in ("ok", "verdict", "settings")}
    settings = "\n".join(setting_lines(findings["settings"])) or "none"
    heading = "settings" if all_ else "settings that differ from the defaults (--all shows all)"
    return "\n".join([findings["verdict"], "", heading, settings, "", outline(rest)]).rstrip()


@click.command
@json_option
async def assistants(as_json: bool) -> int:
    """Shows the steps of each assistant in order, which of them run in parallel, and which models they use."""
    from app.assistants.assembly import opened

    async with opened(Settings.load()) as assembled:  # invalid settings are errors, as when the service starts
        described = [_assistant_object(assistant) for assistant in assembled.by_id.values()]
    print(json_text(described) if as_json else "\n".join(outline([one]) for one in described).rstrip())
    return 0


def _assistant_object(assistant: Assistant) -> dict[str, Any]:
    return {
        "id": assistant.id,
        "names": dict(assistant.table.names),
        "listed": assistant.table.listed,
        "persona": assistant.persona,
        "index": assistant.table.index,
        "limits": {name: list(values) for name, values in asdict(assistant.limits).items() if values},
        "steps": [[_step(step) for step in group] for group in assistant.plans.answer],
        "left_out": list(assistant.plans.left_out),
        "warning": assistant.plans.helper_call_warning,
    }


def _step(step: Step) -> dict[str, Any]:
    asked = {kind: getattr(step, kind, None) for kind in KINDS}
    settings, seconds = getattr(step, "settings", None), getattr(step, "seconds", None)
    if asked["model"] and step.optional and settings:
        seconds = settings.tuning.helper_timeout
    return {
        "step": step.name,
        **({"model": None} if hasattr(step, "model") else {}),
        **{kind: tool.name for kind, tool in asked.items() if tool is not None},
        **({} if seconds is None else {"seconds": seconds}),
        "optional": step.optional,
    }
