"""The configurations of a grid: combinations of settings, steps, prompts and models, and the indexes they need."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from app.assistants.file import AssistantsFile, AssistantTable
from app.core.errors import AssistantError, SettingsError
from app.core.generation import GenerationInfo
from app.core.settings import FIELDS, Settings
from app.index import open_store
from app.index.protocols import Generation
from app.models import open_embedder
from app.models.protocols import for_index
from app.pipeline.registry import StepFactory, Tools, flat, missing_tool, steps, validate_order
from eval.files import EvaluationError, read_text
from ingestion.convert.prepare import Prepared
from ingestion.publish.draft import texts_of
from ingestion.publish.recipe import recipe_for
from ingestion.split import open_splitter
from ingestion.split.chunker import Chunker
from ingestion.split.embedding import BatchEmbedder
from ingestion.workers import Workers

MOST = 200
ASSISTANT, STEPS_AXIS = "assistant", "steps"  # the two axes that aren't settings
BESIDE_STEPS: Mapping[str, Mapping[str, Any]] = {
    "fusion by ranks (rrf)": {"fusion": "rrf"},
    "0.6 vectors, 0.4 words": {"fusion": "weighted", "vector_weight": {"*": 0.6}},
    "exact nearest neighbours": {"exact": True},
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """One combination: its name in tables, its settings, and the id of the assistant (empty: the first).

    `steps` is the name of a variant of the assistant's steps, `changed` the steps that differ in it; `needs` names what
    this machine lacks to measure it.
    """

    name: str
    settings: Mapping[str, Any]
    assistant: str = ""
    steps: str = ""
    changed: tuple[str, ...] = ()
    needs: str = ""

    @property
    def index(self) -> Mapping[str, Any]:
        """The settings that need a separate index."""
        return {name: value for name, value in self.settings.items() if name in INDEX_SETTINGS}


def load_grid(path: str | Path) -> tuple[Configuration, ...]:
    """Every combination of `[axes]`, with `[settings]` in all of them. The first values make the combination that
    others are compared with.

    Raises `EvaluationError` for a wrong file or an unknown setting, `SettingsError` for a wrong value.
    """
    try:
        document = tomllib.loads(read_text(Path(path)))
    except tomllib.TOMLDecodeError as error:
        raise EvaluationError(f"{path} isn't valid TOML: {error}") from error
    common, axes = document.pop("settings", {}), document.pop("axes", {})
    tables = isinstance(common, dict) and isinstance(axes, dict)
    if document or not axes or not tables or not all(isinstance(values, list) and values for values in axes.values()):
        raise EvaluationError(
            f"{path}: [axes] with a list of values for each setting is needed; [settings] is optional."
        )
    unknown = [name for name in (*common, *axes) if name not in FIELDS and name not in {ASSISTANT, STEPS_AXIS}]
    if unknown:
        raise EvaluationError(
            f"{path}: {', '.join(sorted(unknown))}: there is no such setting. Write DOCS_TOP_K as top_k."
        )
    combinations = list(product(*axes.values()))
    if len(combinations) > MOST:
        raise EvaluationError(f"{path}: {len(combinations)} combinations are more than {MOST}: leave some values out.")
    configurations = []
    for values in combinations:
        chosen = dict(zip(axes, values, strict=True))
        name = " ".join(f"{axis}={_short(value)}" for axis, value in chosen.items() if len(axes[axis]) > 1)
        own = {**common, **chosen}
        assistant, steps = (str(own.pop(axis, "")) for axis in (ASSISTANT, STEPS_AXIS))
        configurations.append(Configuration(name or "as set", own, assistant, steps))
    for configuration in configurations:
        Settings.load(**configuration.settings)  # a wrong value is an error before the first question
    return tuple(configurations)


def step_configurations(found: Sequence[Variant]) -> tuple[Configuration, ...]:
    """Every variant of the steps, and the settings that are measured with them."""
    steps = [Configuration(variant.name, {}, steps=variant.name) for variant in found]
    return (*steps, *(Configuration(name, own, steps=UNCHANGED) for name, own in BESIDE_STEPS.items()))


def with_steps(
    configurations: Sequence[Configuration], found: Sequence[Variant], assistants: Path
) -> tuple[Configuration, ...]:
    """The configurations with their variants of steps, which are assistants in the file `assistants`.

    Raises `EvaluationError` for an unknown variant.
    """
    by_name = {variant.name: variant for variant in found}
    for configuration in configurations:
        if configuration.assistant or configuration.steps not in by_name:
            raise EvaluationError(
                f"{configuration.name}: the axis `steps` takes {', '.join(by_name)}; choose the assistant with --assistant."
            )
    if by_name[configurations[0].steps].needs:
        needed = by_name[configurations[0].steps].needs
        raise EvaluationError(
            f"The others are compared with the first configuration, but {configurations[0].steps!r} needs {needed}."
        )
    return tuple(
        replace(
            configuration,
            settings={"assistants": str(assistants), **configuration.settings},
            assistant=configuration.steps,
            changed=by_name[configuration.steps].changed,
            needs=by_name[configuration.steps].needs,
        )
        for configuration in configurations
    )


@asynccontextmanager
async def indexed(
    settings: Settings, configurations: Sequence[Configuration], report: Callable[[str], object]
) -> AsyncIterator[list[tuple[Configuration, Mapping[str, Any]]]]:
    """Each configuration with all settings it needs, including its store; calls `report` with the name of a
    configuration before its pages are indexed.

    Configurations with equal settings share a temporary index; those that change nothing in the index use the live one.
    """
    with tempfile.TemporaryDirectory(prefix="docs-assistant-eval-") as folder:
        stores = dict[str, str]()
        live = open_store(settings)
        try:
            for configuration in configurations:
                key = json.dumps(configuration.index, sort_keys=True)
                if configuration.index and key not in stores:
                    stores[key] = str(Path(folder) / str(len(stores)))
                    report(configuration.name)
                    await rebuild(await live.live(), Settings.load(**{**configuration.settings, "store": stores[key]}))
        finally:
            await live.close()
        keys = [json.dumps(configuration.index, sort_keys=True) for configuration in configurations]
        yield [
            (
                configuration,
                {**configuration.settings, "store": stores[key]} if configuration.index else configuration.settings,
            )
            for configuration, key in zip(configurations, keys, strict=True)
        ]


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{item}" for name, item in value.items())
    return str(value)


INDEX_SETTINGS = frozenset(
    {
        "chunk_size", "splitter", "splitter_args", "embedding_url", "embedding_model", "embedding_class", "embedding_args",
        "embedding_max_chars", "embedding_passage_prefix", "embedding_extra_body",
    }
)  # fmt: skip
"""Settings that need an index of their own."""


async def rebuild(source: Generation, settings: Settings) -> GenerationInfo:
    """Write the source's pages into the store of these settings, split and embedded as they say."""
    # without summaries, questions and translations: texts by another model would blur the effect of the settings
    settings = settings.model_copy(update={"summaries": False, "questions": False})
    store, embedder = open_store(settings), open_embedder(settings)
    embedder = for_index(embedder, source.info.recipe.embedder)
    embedding = BatchEmbedder(embedder, settings.tuning.embedding_batch, settings.tuning.embedding_parallel)
    workers = Workers()
    chunker = Chunker(open_splitter(settings), embedding, workers)
    try:
        async with workers, await store.draft(await recipe_for(embedder, settings)) as draft:
            for listed in await source.pages():
                page = await source.page(listed.url)
                if page is None:
                    continue
                prepared = Prepared(page) if page.same_as else await chunker.finished(Prepared(page))
                missing = await draft.missing(prepared.chunks)
                await draft.put(prepared.page, prepared.chunks, await embedding.embed(texts_of(prepared, missing)))
            return await draft.publish()
    except AssistantError as error:
        raise EvaluationError(f"The pages can't be indexed with these settings: {error}") from error
    finally:
        await store.close()
        await embedder.close()


Steps = tuple[tuple[str, ...], ...]
UNCHANGED = "as it is"
BESIDE_PROBE = ("period", "multi_query", "hyde", "associate")  # they run while the question is embedded
TOGETHER = (("rerank", "helpful"),)  # the second needs the first


@dataclass(frozen=True, slots=True)
class Variant:
    """One order of steps. `changed` are the added or removed steps; `needs` names what this machine lacks for it."""

    name: str
    steps: Steps
    changed: tuple[str, ...] = ()
    needs: str = ""


def variants(
    written: Sequence[str | Sequence[str]], tools: Tools, known: Mapping[str, StepFactory] | None = None
) -> tuple[Variant, ...]:
    """The unchanged steps, then without each optional one, then with each that isn't among them. `known` are all steps."""
    known = known or steps()
    base: Steps = tuple((item,) if isinstance(item, str) else tuple(item) for item in written)
    orders = [(UNCHANGED, base, ()), *_without(base), *_with(base, known)]
    if {"refine", "keywords"} <= set(flat(base)):
        replaced = tuple(("analyze", *group) if "refine" in group else group for group in base)
        orders.append(("analyze for refine and keywords", _drop(replaced, "refine", "keywords"), ("analyze",)))
    if "probe" in flat(base):
        searched = tuple(part for group in base for part in _search_first(group))
        orders.append(("first_search for probe", searched, ("first_search",)))
    return tuple(
        Variant(
            name, groups, changed, next((what for step in changed if (what := missing_tool(known[step], tools))), "")
        )
        for name, groups, changed in orders
        if _possible(groups, known)
    )


def _search_first(group: tuple[str, ...]) -> Steps:
    others = tuple(step for step in group if step != "probe")
    return tuple(filter(None, (("first_search",), others))) if "probe" in group else (group,)


def _without(base: Steps) -> Iterator[tuple[str, Steps, tuple[str, ...]]]:
    for step in flat(base):
        yield f"without {step}", _drop(base, step), (step,)


def _with(base: Steps, known: Mapping[str, StepFactory]) -> Iterator[tuple[str, Steps, tuple[str, ...]]]:
    present = set(flat(base))
    for step in BESIDE_PROBE:
        if step not in present:
            yield f"with {step}", tuple((*group, step) if "probe" in group else group for group in base), (step,)
    order = [name for name, factory in known.items() if factory.has_place]
    for added in (*((name,) for name in order if name not in BESIDE_PROBE), *TOGETHER):
        if not present.intersection(added) and known.keys() >= set(added):
            at = _place(base, added[0], order)
            yield f"with {' + '.join(added)}", (*base[:at], *((step,) for step in added), *base[at:]), added
    for step in [
        name for name in known if name not in present and name not in order
    ]:  # from outside: nobody has said where they belong
        places = ((*base[:at], (step,), *base[at:]) for at in range(len(base) + 1))
        if first := next((groups for groups in places if _possible(groups, known)), None):
            yield f"with {step}", first, (step,)


def _place(base: Steps, step: str, order: Sequence[str]) -> int:
    """Behind all groups with steps that stand before it in the registry."""
    earlier = set(order[: order.index(step)])
    return max((at for at, group in enumerate(base, 1) if earlier.intersection(group)), default=0)


def _drop(base: Steps, *steps: str) -> Steps:
    return tuple(rest for group in base if (rest := tuple(step for step in group if step not in steps)))


def _possible(steps: Steps, known: Mapping[str, StepFactory]) -> bool:
    try:
        validate_order(steps, known)
    except SettingsError:
        return False
    return True


def chosen_assistant(file: AssistantsFile, id_: str) -> AssistantTable:
    """The assistant with this id, the first one for an empty id. Raises `EvaluationError` for an unknown id."""
    entry = next((table for table in file.assistants if not id_ or table.id == id_), None)
    if entry is None:
        raise EvaluationError(
            f"There is no assistant {id_!r}. Available: {', '.join(table.id for table in file.assistants)}."
        )
    return entry


def write_assistants(file: AssistantsFile, entry: AssistantTable, found: Sequence[Variant], path: Path) -> None:
    """Write an assistants.toml with one assistant for each variant, under the variant's name."""
    shared = {key: value for key, value in entry.written().items() if key not in {"id", "steps", "persona", "models"}}
    lines = [line for table in file.models for line in _table("model", table.written())]
    lines += [line for table in file.indices for line in _table("index", table.written())]
    lines += [line for table in file.steps for line in _table("step", table.written())]
    for variant in found:
        named = {step: name for step, name in entry.models.items() if step in flat(variant.steps)}
        models = {"models": named} if named else {}
        lines += _table("assistant", {"id": variant.name, **shared, **models, "steps": variant.steps})
    try:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise EvaluationError(f"{path} can't be written: {error}") from error


def _table(kind: str, table: Mapping[str, Any]) -> list[str]:
    return [f"[[{kind}]]", *(f"{key} = {_value(value)}" for key, value in table.items()), ""]


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
