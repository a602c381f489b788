"""The steps of an assistant: makes them by name or from a class of the operator, and proves their order."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from inspect import getfile, iscoroutinefunction, signature
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any

from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.retrievers import BaseRetriever

from app.core.errors import SettingsError, StepError, did_you_mean
from app.core.hooks import registered
from app.core.plugins import check_arguments, instance, load, made
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.tables import WatchedFile
from app.core.turn import Turn
from app.index.protocols import Store
from app.models import Model
from app.models.guarded import Embedder
from app.models.postprocessor import Postprocessor, Scores, objects, open_postprocessor
from app.pipeline.runner import Changes, Plan, Step
from app.pipeline.steps.cite import Cite
from app.pipeline.steps.first_search import CarryOver, FirstSearch
from app.pipeline.steps.own_retriever import OwnRetrieve
from app.pipeline.steps.postprocess import Postprocess
from app.pipeline.steps.relevance import Overview, Relevance
from app.pipeline.steps.retrieve import Detect, Keywords, Probe, Refine, Retrieve
from app.pipeline.steps.synthesize import Synthesize
from app.text.language import LanguageDetector
from app.text.synonyms import Synonyms


@dataclass(frozen=True, slots=True)
class Tools:
    """The dependencies of steps. `model` is None if no language model is configured; `store` is that of the assistant's index,
    `synonyms` are those of the directory of DOCS_PROMPTS.

    By the exam of the model, the steps `left_out` don't ask it, and it writes no answers in the languages `quoted`.
    """

    settings: Settings
    prompts: Prompts
    detector: LanguageDetector
    model: Model | None
    embedder: Embedder
    reranker: Postprocessor | None = None
    store: Store | None = None
    synonyms: WatchedFile[Synonyms] | None = None
    left_out: frozenset[str] = frozenset()
    quoted: frozenset[str] = frozenset()


class NoModel(SettingsError):
    """The step needs a language model, but none is configured."""


@dataclass(frozen=True, slots=True)
class StepFactory:
    """A known step: its class, which declares what it reads and writes, and the function that makes one. In an order in
    which all known steps can run, it comes `before` another one.
    """

    step: type[Step]
    make: Callable[[Tools], Step]
    before: str = ""

    @property
    def asks_model(self) -> bool:
        """True if the step calls a language model if there is one."""
        return "model" in signature(self.step).parameters


def tools_of(step: Any, tools: Tools) -> dict[str, Any]:
    """The tools that the parameters of a step name. A parameter whose tool isn't there keeps its default; without a default, the step needs it.

    Raises `NoModel` if there is no language model and the step can't be without: then it is left out. Raises
    `SettingsError` if there is no reranker.
    """
    found: dict[str, Any] = {}
    for name, parameter in signature(step).parameters.items():
        if name not in _TOOLS:
            continue
        if (tool := getattr(tools, name)) is not None:
            found[name] = tool
        elif parameter.default is parameter.empty:
            if name == "model":
                raise NoModel
            raise SettingsError(
                f"The step {step.name} needs a reranker: set DOCS_RERANK_URL and DOCS_RERANK_MODEL, or "
                "DOCS_RERANK_MODEL=local:NAME, or leave it out."
            )
    return found


def _needs_model(step: Any) -> bool:
    return any(name == "model" and one.default is one.empty for name, one in signature(step).parameters.items())


def factory_of(step: Any, before: str = "") -> StepFactory:
    """The factory of a step that needs nothing but tools."""
    return StepFactory(step, lambda tools: step(**tools_of(step, tools)), before)


def _cite(tools: Tools) -> Cite:
    tuning = tools.settings.tuning
    return Cite(tools.prompts, tuning.images, tuning.unproven, tools.embedder, follow_ups=tuning.follow_ups)


_FACTORIES = (
    *map(
        factory_of, (Detect, CarryOver, FirstSearch, Refine, Keywords, Probe, Retrieve, Relevance, Overview, Synthesize)
    ),
    StepFactory(Cite, _cite),
)


@cache
def steps() -> Mapping[str, StepFactory]:
    """Returns the steps of the core and of plugins by name, in an order in which they can run; last those of plugins that say
    nothing of it. Raises `SettingsError` for a class that is no step, or a name that is taken.
    """
    ordered = list(_FACTORIES)
    for item in registered("register_steps"):
        factory = (
            item if isinstance(item, StepFactory) else _factory(item, getattr(item, "name", ""), OwnStep(""), "plugin")
        )
        names = [earlier.step.name for earlier in ordered]
        if factory.step.name in names:
            raise SettingsError(f"Two plugins register the step {factory.step.name}: leave one of them out.")
        ordered.insert(names.index(factory.before) if factory.before in names else len(names), factory)
    return MappingProxyType({factory.step.name: factory for factory in ordered})


Names = Sequence[str | Sequence[str]]
"""Step names as in assistants.toml; the steps of an inner list form a group and run in parallel."""


def make_plan(
    names: Names,
    tools: Tools,
    by_step: Mapping[str, Tools] = MappingProxyType({}),
    known: Mapping[str, StepFactory] | None = None,
) -> Plan:
    """The steps in their groups, without those that need a language model if there is none. `by_step` has the tools of
    steps with a different model; if it has any, no step may lack a model. `known` are all steps by name, or else `steps()`.

    Raises `SettingsError` for an unknown name, an invalid order (even of steps that are left out), or a step without
    what it needs.
    """
    known = known or steps()
    validate_order(names, known)
    _validate_models({name: known[name] for name in flat(names)}, tools, by_step)
    groups = [
        tuple(step for name in group if (step := _make_step(known[name], by_step.get(name, tools))))
        for group in _grouped(names)
    ]
    if not any("sure" in step.uses for group in groups for step in group):
        groups = [
            tuple(replace(one, helped=False) if isinstance(one, FirstSearch) else one for one in group)
            for group in groups
        ]
    return tuple(group for group in groups if group)


def validate_order(names: Names, known: Mapping[str, StepFactory] | None = None) -> None:
    """Raises `SettingsError` for an unknown name or an invalid order; makes no steps."""
    known = known or steps()
    if unknown := next((name for name in flat(names) if name not in known), ""):
        raise SettingsError(
            f"Unknown step {unknown!r}.{did_you_mean(unknown, known)} Known are: {', '.join(known)}. A step of your own is written as module:Class."
        )
    groups: list[list[type[Step]]] = [[known[name].step for name in group] for group in _grouped(names)]
    validate(groups, {name: factory.step for name, factory in known.items()})


def flat(names: Names) -> list[str]:
    """The names of all steps, without groups."""
    return [name for group in _grouped(names) for name in group]


def _grouped(names: Names) -> list[Sequence[str]]:
    return [[item] if isinstance(item, str) else item for item in names]


def _validate_models(steps: Mapping[str, StepFactory], tools: Tools, by_step: Mapping[str, Tools]) -> None:
    for name in by_step:
        if name not in steps:
            raise SettingsError(f"A model is named for the step {name!r}, which isn't among the steps.")
        if not steps[name].asks_model:
            raise SettingsError(f"A model is named for the step {name}, which asks none.")
    without = [name for name, factory in steps.items() if name not in by_step and factory.asks_model]
    if by_step and tools.model is None and without:
        raise SettingsError(
            f"Steps {', '.join(without)} have no language model: name one for them, set `model` of the assistant, or "
            "DOCS_LLM_URL."
        )


def _make_step(factory: StepFactory, tools: Tools) -> Step | None:
    if factory.step.name in tools.left_out:
        return None
    try:
        return factory.make(tools)
    except NoModel:
        return None


def helper_call_warning(plan: Plan, most: int) -> str:
    """A warning if the steps may make more than `most` helper calls for a question; else empty."""
    asking = [step for group in plan for step in group if step.helper_calls and getattr(step, "model", None)]
    before = list(accumulate((step.helper_calls for step in asking), initial=0))
    if not (late := [step.name for step, calls in zip(asking, before, strict=False) if calls >= most]):
        return ""
    return (
        f"steps may make up to {before[-1]} helper calls a question, but DOCS_TUNING__HELPER_CALLS is {most}: if the others use "
        f"them up, {', '.join(late)} will be left out"
    )


def upto(plan: Plan, *fields: str) -> Plan:
    """The plan up to and including the last step that writes any of the fields."""
    last = max((i for i, group in enumerate(plan) for step in group if set(fields) & set(step.writes)), default=-1)
    return plan[: last + 1]


def search_of(plan: Plan) -> Plan:
    """The plan up to the hits that relevance judges: found, fused, and chosen by rerankers and steps of a project."""
    judging = {"related", "choices", "passages", "events"}
    first = next((i for i, group in enumerate(plan) for step in group if judging & set(step.writes)), len(plan))
    return plan[:first]


Groups = Sequence[Sequence[type[Step]]]
GIVEN = frozenset({"request", "generation"})
ANSWER = "events"


def validate(groups: Groups, known: Mapping[str, type[Step]]) -> None:
    """Raises `SettingsError` if a step is named twice, writes the same field as another step of its group, reads a field
    that is missing or not final, or writes only fields that no step reads, or if no step writes an answer. `known` has
    all existing steps by name.
    """
    names = [step.name for group in groups for step in group]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SettingsError(f"Step {twice} is named twice: remove one of them.")
    written = set(GIVEN)
    for index, group in enumerate(groups):
        _validate_apart(group)
        for step in group:
            _validate_inputs(step, written, known)
            _validate_final(step, [other for after in groups[index:] for other in after if other is not step])
        written |= {field for step in group for field in step.writes}
    if ANSWER not in written:
        raise SettingsError("These steps write no answer: synthesize is missing.")
    for index, group in enumerate(groups):
        for step in group:
            _validate_read(step, groups[index + 1 :])


def _validate_apart(group: Sequence[type[Step]]) -> None:
    fields = [field for step in group for field in step.writes]
    if twice := {field for field in fields if fields.count(field) > 1}:
        both = ", ".join(step.name for step in group if twice & set(step.writes))
        raise SettingsError(
            f"Steps {both} write {', '.join(sorted(twice))} at the same time: put one after the other, or remove one."
        )


def _validate_inputs(step: type[Step], written: set[str], known: Mapping[str, type[Step]]) -> None:
    if lacking := [field for field in step.reads if field not in written]:
        writer = next((other.name for other in known.values() if lacking[0] in _made(other)), "a step that does")
        raise SettingsError(
            f"Step {step.name} needs {', '.join(lacking)}, which no earlier step writes: put {writer} before it."
        )


def _validate_final(step: type[Step], later: Sequence[type[Step]]) -> None:
    """`later` includes the other steps of its group."""
    for name in (*step.reads, *step.uses):
        changing = (_made(other) if name in step.writes else other.writes for other in later)
        if after := next((other for other, fields in zip(later, changing, strict=True) if name in fields), None):
            raise SettingsError(f"Step {step.name} uses {name}, so it must come after {after.name}.")


def _validate_read(step: type[Step], later: Groups) -> None:
    if not any(field == ANSWER or _is_read(field, later) for field in step.writes):
        anew = next((other.name for group in later for other in group if set(step.writes) & set(other.writes)), "")
        before = f" before {anew} overwrites it" if anew else ""
        raise SettingsError(
            f"Step {step.name} has no effect: no step reads its {', '.join(step.writes)}{before}. Remove it."
        )


def _is_read(field: str, later: Groups) -> bool:
    """True if a later step reads the field before another overwrites it."""
    for group in later:
        if any(field in (*step.reads, *step.uses) for step in group):
            return True
        if any(field in step.writes for step in group):
            return False
    return False


def _made(step: type[Step]) -> frozenset[str]:
    return frozenset(step.writes).difference(step.reads, step.uses)


DECLARED: Mapping[str, type] = {"reads": tuple, "uses": tuple, "writes": tuple, "optional": bool, "helper_calls": int}
_TOOLS = frozenset(field.name for field in fields(Tools))
_FIELDS = frozenset(field.name for field in fields(Turn))


@dataclass(frozen=True, slots=True)
class OwnStep:
    """A `[[step]]` of assistants.toml. `timeout` in seconds, 0 means DOCS_TUNING__HELPER_TIMEOUT; `scores` is for postprocessors.

    `path` names the class, or a shipped step; an empty one is the step that the table is named after.
    """

    path: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 0.0
    scores: Scores | None = None


def known_steps(tables: Mapping[str, OwnStep], names: Iterable[str] = ()) -> Mapping[str, StepFactory]:
    """`steps()`, those of the tables, and those of `names` that are written as `module:Class`.

    Raises `SettingsError` for a class that is no step, or for wrong arguments.
    """
    if taken := next((name for name, table in tables.items() if name in steps() and (table.path or name) != name), ""):
        raise SettingsError(f"step {taken!r}: a shipped step has this name. Write another id.")
    own = {
        name: _loaded(name, table, f"step {name!r}: class") if ":" in table.path else _with_settings(name, table)
        for name, table in tables.items()
    }
    classes = dict.fromkeys(name for name in names if ":" in name and name not in own)
    return {**steps(), **own, **{name: _loaded(name, OwnStep(name), "steps") for name in classes}}


def _with_settings(name: str, table: OwnStep) -> StepFactory:
    """A shipped step with the settings of the table, under the table's name. Its settings are its fields with a number."""
    path = table.path or name
    if path not in steps():
        raise SettingsError(
            f"step {name!r}: class={path}: write it as module:Class. It is no shipped step, either.{did_you_mean(path, steps())}"
        )
    if table.timeout or table.scores:
        raise SettingsError(f"step {name!r}: `timeout` and `scores` are for steps of your own, not for {path}.")
    factory, known = steps()[path], _settings_of(steps()[path].step)
    for key, value in table.arguments.items():
        if key not in known:
            has = f"It has: {', '.join(known)}." if known else f"{path} has none."
            raise SettingsError(f"step {name!r}: unknown setting {key}.{did_you_mean(key, known)} {has}")
        whole = isinstance(known[key], int)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value < 0:
            kind = "a whole number" if whole else "a number"
            raise SettingsError(f"step {name!r}: {key} = {value!r} must be {kind} of at least 0, as {known[key]}.")
    named: Any = type(factory.step.__name__, (factory.step,), {"name": name, "__module__": factory.step.__module__})

    def make(tools: Tools) -> Step:
        made: Any = factory.make(tools)
        given = {one.name: getattr(made, one.name) for one in fields(made) if one.init}
        step: Step = named(**{**given, **table.arguments})
        return step

    return StepFactory(named, make, factory.before)


def _settings_of(step: Any) -> dict[str, float]:
    """The fields of a step that a number is the default of."""
    return {one.name: one.default for one in fields(step) if isinstance(one.default, int | float)}


def own_prompts(steps: Iterable[StepFactory]) -> frozenset[str]:
    """The names of the prompts beside these steps, in any language."""
    folders = {_prompts_beside(factory.step) for factory in steps}
    return frozenset(path.stem for folder in folders for path in folder.glob("*/*.md"))


def _prompts_beside(step: Any) -> Path:
    return Path(getfile(step)).parent / "prompts"


def _loaded(name: str, table: OwnStep, what: str) -> StepFactory:
    loaded = load(table.path, object, what)
    if issubclass(loaded, BaseNodePostprocessor):
        return _postprocess(name, table, what)
    if issubclass(loaded, BaseRetriever):
        return _retrieve(name, table, what)
    return _factory(loaded, name, table, f"{what}={table.path}")


def _factory(found: Any, name: str, table: OwnStep, what: str) -> StepFactory:
    if table.scores:
        raise SettingsError(f"{what}: `scores` is for postprocessors of LlamaIndex, and this is none.")
    _check_declaration(found, what)
    named = {name: None for name in signature(found).parameters if name in _TOOLS}
    if both := ", ".join(named.keys() & table.arguments.keys()):
        raise SettingsError(f"{what}: {both} comes from the settings, so leave it out of `args`.")
    check_arguments(found, {**named, **table.arguments}, what)

    def make(given: Tools) -> Any:
        given = replace(given, prompts=given.prompts.with_own(_prompts_beside(found), given.settings.prompts))
        quoted = given.quoted if _needs_model(found) else frozenset[str]()
        guarded = _guarded(found, name, table.timeout or given.settings.tuning.helper_timeout, quoted)
        return instance(guarded, {**tools_of(guarded, given), **table.arguments}, what)

    return StepFactory(_guarded(found, name), make)


def _postprocess(name: str, table: OwnStep, what: str) -> StepFactory:
    processor, scores = open_postprocessor(name, table.path, table.arguments, what), table.scores or "relative"
    named: Any = type(Postprocess.__name__, (Postprocess,), {"name": name})

    def make(tools: Tools) -> Any:
        return named(processor, tools.settings, scores, table.timeout or tools.settings.tuning.helper_timeout)

    return StepFactory(named, make)


def _retrieve(name: str, table: OwnStep, what: str) -> StepFactory:
    retriever = made(table.path, BaseRetriever, objects(table.arguments, f"{what}={table.path}"), what)
    named: Any = type(OwnRetrieve.__name__, (OwnRetrieve,), {"name": name})

    def make(tools: Tools) -> Any:
        seconds = table.timeout or tools.settings.tuning.helper_timeout
        return named(tools.embedder, tools.prompts, tools.settings, retriever, seconds)

    return StepFactory(named, make)


def _check_declaration(found: type, what: str) -> None:
    """Raises `SettingsError` if the class doesn't declare what a step declares, or no turn has the fields."""
    lacking = [name for name in DECLARED if not hasattr(found, name)]
    lacking += [] if iscoroutinefunction(found.__call__) else ["async def __call__(self, turn)"]
    if lacking:
        raise SettingsError(
            f"{what} is neither a step nor a postprocessor or retriever of LlamaIndex: it lacks {', '.join(lacking)}."
        )
    if named := [name for name in ("name", *DECLARED) if name in signature(found).parameters]:
        raise SettingsError(f"{what}: write {', '.join(named)} without a type, else it is an argument.")
    for name, kind in DECLARED.items():
        if not isinstance(value := getattr(found, name), kind):
            example = ', as ("hits",)' if kind is tuple else ""
            raise SettingsError(f"{what}: {name} must be a {kind.__name__}{example}, not {value!r}.")
    used = (*found.reads, *found.uses, *found.writes)  # type: ignore[attr-defined]  # checked above
    if unknown := [name for name in used if name.partition(".")[0] not in _FIELDS]:
        raise SettingsError(f"{what}: a turn has no {', '.join(unknown)}. It has: {', '.join(sorted(_FIELDS))}.")


def _guarded(found: Any, name: str, seconds: float = 0.0, quoted: frozenset[str] = frozenset()) -> Any:
    """The class under the name that the assistant gives it; its changes are checked. Optional steps have a time limit. In the languages
    `quoted`, it isn't run.
    """

    async def call(self: Any, turn: Turn) -> Changes:
        limit = asyncio.timeout(seconds if found.optional else None)
        try:
            async with limit:
                return _declared(await found.__call__(self, turn), found, name)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StepError(f"The step {name} took over {seconds:g} s.") from error

    own = {"name": name, "applies": lambda _, turn: turn.asked.language not in quoted}
    return type(found.__name__, (found,), {**own, "__call__": call, "__module__": found.__module__})


def _declared(changes: Any, found: Any, name: str) -> Changes:
    if not isinstance(changes, Mapping):
        raise StepError(f"The step {name} returned {type(changes).__name__} instead of a dict of changed fields.")
    if undeclared := [key for key in changes if key not in found.writes]:
        raise StepError(f"The step {name} changes {', '.join(undeclared)}, which it doesn't declare in `writes`.")
    return changes
