"""Who answers: our assistants in each configuration, and chat APIs elsewhere."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from app.assistants.assembly import opened
from app.core.settings import Settings
from app.core.types import GenerationInfo
from app.models.openai import Endpoint
from app.models.protocols import Model
from eval.answers.collect import collect
from eval.answers.contestants import Own, Remote
from eval.answers.types import Answer
from eval.cache import Cache, fingerprint
from eval.commands.progress import progress_bar, quiet_pipeline, report_reindexing
from eval.commands.provenance import fingerprint_of_code
from eval.errors import EvaluationError
from eval.grid.configurations import Configuration, indexed
from eval.questions.cases import Case

CONTESTANT_KEY = "EVAL_CONTESTANT_KEY"


def add_url_option(parser: argparse.ArgumentParser) -> None:
    """Contestants elsewhere."""
    parser.add_argument(
        "--url",
        action="append",
        default=[],
        metavar="NAME=URL,MODEL",
        help=f"anything behind the OpenAI chat API, its key in {CONTESTANT_KEY}; may be repeated",
    )


async def all_answers(
    options: argparse.Namespace,
    settings: Settings,
    configurations: Sequence[Configuration],
    cases: Sequence[Case],
    model: Model | None = None,
) -> tuple[Answer, ...]:
    """The answers of the configurations, then of every --url; what was kept in the directory isn't asked again.

    `model` answers where one is given instead of the configured one.
    """
    remotes = _remotes(options, settings)
    names = [*(one.name for one in configurations), *(one.name for one in remotes)]
    if len(set(names)) != len(names):
        raise EvaluationError("Two contestants have the same name.")
    found = list[Answer]()
    try:
        with quiet_pipeline(), Cache(Path(options.out) / "answers.jsonl") as cache:
            async with indexed(settings, configurations, report_reindexing) as all_of:
                for one, overrides in all_of:
                    own = Settings.load(**overrides) if overrides else settings
                    async with opened(own, model=model) as assistants:
                        index = (await assistants.store.live()).info
                        contestant = Own(assistants.get(one.assistant), one.name, _made_of(own, one, index, model))
                        with progress_bar(one.name) as bar:
                            found += await collect([contestant], cases, cache, parallel=options.parallel, progress=bar)
            if remotes:
                with progress_bar("Answering") as bar:
                    found += await collect(remotes, cases, cache, parallel=options.parallel, progress=bar)
    finally:
        for remote in remotes:
            await remote.endpoint.close()
    return tuple(found)


def _made_of(settings: Settings, one: Configuration, index: GenerationInfo, model: Model | None) -> str:
    """Settings, steps, program and index; of an index made for one run only the recipe, because it is made anew."""
    steps = Path(settings.assistants).read_text(encoding="utf-8") if settings.assistants else ""
    described = settings.model_dump_json(exclude={"store", "assistants"}) + (model.name if model else "") + steps
    state = "" if one.index else f"{index.id} {index.built_at}"
    return fingerprint(described, str(index.recipe), f"{index.pages} {index.chunks}", state, fingerprint_of_code())


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
