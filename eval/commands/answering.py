"""Who answers in `eval run`: our assistants, each configuration of a grid, and chat APIs elsewhere."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from app.assembly import opened
from app.assistant import Assistants
from app.core.models.base import Model
from app.core.models.openai import Endpoint
from app.core.settings import Settings
from app.core.types import GenerationInfo
from eval.answers.collect import collect
from eval.answers.contestants import Own, Remote
from eval.answers.types import Answer, Contestant
from eval.commands.asking import progress_bar, quiet_pipeline, tell_reindexing
from eval.commands.measured import fingerprint_of_code
from eval.errors import EvaluationError
from eval.judge.cache import Cache, fingerprint
from eval.measure.grid import Configuration, indexed, load_grid
from eval.questions.cases import Case

CONTESTANT_KEY = "EVAL_CONTESTANT_KEY"


async def all_answers(
    options: argparse.Namespace, settings: Settings, assistants: Assistants, cases: Sequence[Case]
) -> tuple[Answer, ...]:
    """The answers of every contestant, the first one's first; what was kept in the directory isn't asked again."""
    configurations = _configurations(options, assistants)
    remotes = _remotes(options, settings)
    names = [*(one.name for one in configurations), *(one.name for one in remotes)]
    if len(set(names)) != len(names):
        raise EvaluationError("Two contestants have the same name.")
    found = list[Answer]()
    try:
        with quiet_pipeline(), Cache(Path(options.out) / "answers.jsonl") as cache:
            if configurations:
                found += await _own_answers(options, (settings, None), configurations, cases, cache)
            if remotes:
                found += await _collected(options, remotes, cases, cache, "Answering")
    finally:
        for remote in remotes:
            await remote.endpoint.close()
    return tuple(found)


async def answers_of(
    options: argparse.Namespace,
    settings: Settings,
    configurations: Sequence[Configuration],
    cases: Sequence[Case],
    model: Model | None,
) -> list[Answer]:
    """The answers of these configurations, by this language model where one is given instead of the configured one."""
    with quiet_pipeline(), Cache(Path(options.out) / "answers.jsonl") as cache:
        return await _own_answers(options, (settings, model), configurations, cases, cache)


async def _own_answers(
    options: argparse.Namespace,
    made_with: tuple[Settings, Model | None],
    configurations: Sequence[Configuration],
    cases: Sequence[Case],
    cache: Cache,
) -> list[Answer]:
    found = list[Answer]()
    settings, model = made_with
    async with indexed(settings, configurations, tell_reindexing) as all_of:
        for one, overrides in all_of:
            own = Settings.load(**overrides) if overrides else settings
            async with opened(own, model=model) as assistants:
                source = (await assistants.store.live()).info
                contestant = Own(assistants.get(one.assistant), one.name, _made_of(own, one, source, model))
                found += await _collected(options, [contestant], cases, cache, one.name)
    return found


async def _collected(
    options: argparse.Namespace, contestants: Sequence[Contestant], cases: Sequence[Case], cache: Cache, what: str
) -> tuple[Answer, ...]:
    with progress_bar(what) as progress:
        return await collect(contestants, cases, cache, parallel=options.parallel, progress=progress)


def _made_of(settings: Settings, one: Configuration, index: GenerationInfo, model: Model | None) -> str:
    """Settings, program and index; an index made for one run is told by its recipe alone, because it is made anew."""
    told = settings.model_dump_json(exclude={"store"}) + (model.name if model else "") + _steps(settings)
    state = "" if one.index else f"{index.id} {index.built_at}"
    return fingerprint(told, str(index.recipe), f"{index.pages} {index.chunks}", state, fingerprint_of_code())


def _steps(settings: Settings) -> str:
    """The text of one's own file of assistants: its name says nothing of what is in it."""
    return Path(settings.assistants).read_text(encoding="utf-8") if settings.assistants else ""


def _configurations(options: argparse.Namespace, assistants: Assistants) -> list[Configuration]:
    """The assistants that were named, in each configuration of the grid where there is one."""
    if not options.grid:
        named = options.assistant or ([] if options.url else [""])
        return [Configuration(assistants.get(name).id, {}, name) for name in named]
    grid = load_grid(options.grid)
    for one in grid:
        if options.judge_model and options.judge_model == Settings.load(**one.settings).llm_model:
            raise EvaluationError(f"{options.judge_model} answers in {one.name!r}, so it can't judge.")
    if not options.assistant:
        return list(grid)
    several = len(options.assistant) > 1
    return [
        replace(one, name=f"{name} {one.name}" if several else one.name, assistant=one.assistant or name)
        for name, one in product(options.assistant, grid)
    ]


def _remotes(options: argparse.Namespace, settings: Settings) -> list[Remote]:
    found = []
    for text in options.url:
        name, equals, rest = text.partition("=")
        url, comma, model = rest.rpartition(",")
        if not (equals and comma and name and url and model):
            raise EvaluationError(f"--url {text}: it must be NAME=URL,MODEL, as old=http://host/v1,old-bot.")
        key = os.environ.get(CONTESTANT_KEY, "")
        found.append(Remote(name, Endpoint(url, key, timeout=settings.llm_timeout), model))
    return found
