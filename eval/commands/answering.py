"""Collects answers: from our assistants in each configuration and from other services."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.assistants.assembly import opened
from app.core.generation import GenerationInfo
from app.core.settings import Settings
from app.models.openai import Endpoint
from app.models.protocols import Model
from eval.answers.collect import collect
from eval.answers.contestants import OwnAssistant, RemoteService
from eval.answers.types import Answer
from eval.cache import Cache, fingerprint
from eval.commands.options import CONTESTANT_KEY
from eval.commands.progress import progress_bar, quiet_pipeline, report_reindexing
from eval.commands.provenance import fingerprint_of_code, fingerprint_of_prompts
from eval.errors import EvaluationError
from eval.grid.configurations import Configuration, indexed
from eval.questions.cases import Case


async def all_answers(
    options: argparse.Namespace,
    settings: Settings,
    configurations: Sequence[Configuration],
    cases: Sequence[Case],
    model: Model | None = None,
) -> tuple[Answer, ...]:
    """The answers of the configurations, then of every --url; saved answers in the directory of --out aren't asked
    again.

    `model` replaces the configured language model.
    """
    remotes = _remotes(options, settings)
    names = [*(one.name for one in configurations), *(one.name for one in remotes)]
    if len(set(names)) != len(names):
        raise EvaluationError("Two contestants have the same name.")
    found = list[Answer]()
    try:
        with quiet_pipeline(), saved_rows(options, "answers.jsonl") as cache:
            async with indexed(settings, configurations, report_reindexing) as all_of:
                for one, overrides in all_of:
                    own = _with(settings, overrides)
                    async with opened(own, model=model) as assistants:
                        index = (await assistants.store.live()).info
                        contestant = OwnAssistant(
                            assistants.get(one.assistant), one.name, _fingerprint(own, one, index, model)
                        )
                        with progress_bar(one.name) as bar:
                            found += await collect([contestant], cases, cache, parallel=options.parallel, progress=bar)
            if remotes:
                with progress_bar("Answering") as bar:
                    found += await collect(remotes, cases, cache, parallel=options.parallel, progress=bar)
    finally:
        for remote in remotes:
            await remote.endpoint.close()
    return tuple(found)


def saved_rows(options: argparse.Namespace, name: str) -> Cache:
    """The rows of this file in the directory of --out, and those of the run that --against names."""
    before = getattr(options, "against", "")
    return Cache(Path(options.out) / name, Path(before, name) if before and Path(before).is_dir() else None)


def _with(settings: Settings, overrides: Mapping[str, Any]) -> Settings:
    """These settings with some replaced. Raises `SettingsError` for a wrong value."""
    checked = Settings.load(**overrides) if overrides else settings
    return settings.model_copy(update={name: getattr(checked, name) for name in overrides})


def _fingerprint(settings: Settings, one: Configuration, index: GenerationInfo, model: Model | None) -> str:
    """Settings, steps, texts of the prompts, program and index. For a temporary index only its recipe, because it is made
    again in each run.
    """
    steps = Path(settings.assistants).read_text(encoding="utf-8") if settings.assistants else ""
    described = (
        settings.model_dump_json(exclude={"store", "assistants", "prompts"}) + (model.name if model else "") + steps
    )
    state = "" if one.index else f"{index.id} {index.built_at}"
    return fingerprint(
        one.assistant, described, str(index.recipe), f"{index.pages} {index.chunks}", state, fingerprint_of_code(),
        fingerprint_of_prompts(settings.prompts),
    )  # fmt: skip


def _remotes(options: argparse.Namespace, settings: Settings) -> list[RemoteService]:
    found = []
    for text in options.url:
        name, equals, rest = text.partition("=")
        url, comma, model = rest.rpartition(",")
        if not (equals and comma and name and url and model):
            raise EvaluationError(f"--url {text}: it must be NAME=URL,MODEL, for example old=http://host/v1,old-bot.")
        key = os.environ.get(CONTESTANT_KEY, "")
        found.append(RemoteService(name, Endpoint(url, key, timeout=settings.llm_timeout), model))
    return found
