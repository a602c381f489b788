"""The registry of steps; makes plans from the step names in assistants.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from itertools import accumulate
from types import MappingProxyType

from app.core.errors import SettingsError
from app.core.nearest import did_you_mean
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.models.protocols import Embedder, Model
from app.models.rerank import Reranker
from app.pipeline.order import validate
from app.pipeline.runner import Plan, Step, StepDeclaration
from app.pipeline.steps.cite import Cite
from app.pipeline.steps.detect import Detect
from app.pipeline.steps.keywords import Keywords
from app.pipeline.steps.optional.analyze import Analyze
from app.pipeline.steps.optional.associate import Associate
from app.pipeline.steps.optional.clarify import Clarify
from app.pipeline.steps.optional.condense import Condense
from app.pipeline.steps.optional.first_search import FirstSearch
from app.pipeline.steps.optional.helpful import Helpful
from app.pipeline.steps.optional.hyde import HypotheticalAnswer
from app.pipeline.steps.optional.multi_query import MultiQuery
from app.pipeline.steps.optional.period import AskedPeriod
from app.pipeline.steps.optional.period_rules import open_rules
from app.pipeline.steps.optional.rerank import Rerank
from app.pipeline.steps.optional.second_search import SecondSearch
from app.pipeline.steps.overview import Overview
from app.pipeline.steps.refine import Refine
from app.pipeline.steps.relevance import Relevance
from app.pipeline.steps.retrieve import Probe, Retrieve
from app.pipeline.steps.synthesize import Synthesize
from app.text.language import LanguageDetector


@dataclass(frozen=True, slots=True)
class Tools:
    """The dependencies of steps. `model` is None if no language model is configured."""

    settings: Settings
    prompts: Prompts
    detector: LanguageDetector
    model: Model | None
    embedder: Embedder
    reranker: Reranker | None = None


class NoModel(SettingsError):
    """The step needs a language model, but none is configured."""


class NoReranker(SettingsError):
    """The step needs a reranker, but none is configured."""


@dataclass(frozen=True, slots=True)
class StepFactory:
    """A known step: its class, which declares what it reads and writes, and the function that makes one."""

    step: StepDeclaration
    make: Callable[[Tools], Step]

    @property
    def asks_model(self) -> bool:
        """Whether the step calls a language model if there is one."""
        return "model" in signature(self.step).parameters  # type: ignore[arg-type]  # steps are classes


def _model(tools: Tools) -> Model:
    if tools.model is None:
        raise NoModel
    return tools.model


def _reranker(tools: Tools) -> Reranker:
    if tools.reranker is None:
        raise NoReranker(
            "The step rerank needs a reranker: set DOCS_RERANK_URL and DOCS_RERANK_MODEL, or DOCS_RERANK_MODEL=local:NAME, or leave it out."
        )
    return tools.reranker


def _first_search(tools: Tools) -> Step:
    probe = Probe(tools.embedder, tools.prompts, tools.settings)
    retrieve = Retrieve(tools.embedder, tools.prompts, tools.settings)
    return FirstSearch(probe, retrieve, Relevance(tools.prompts, tools.settings))


def _second_search(tools: Tools) -> Step:
    retrieve = Retrieve(tools.embedder, tools.prompts, tools.settings)
    relevance = Relevance(tools.prompts, tools.settings)
    return SecondSearch(_model(tools), retrieve, relevance, tools.prompts, tools.settings)


_FACTORIES = (
    StepFactory(Detect, lambda t: Detect(t.detector, t.prompts)),
    StepFactory(AskedPeriod, lambda t: AskedPeriod(t.model, t.prompts, t.settings, open_rules(t.prompts))),
    StepFactory(FirstSearch, _first_search),
    StepFactory(Refine, lambda t: Refine(_model(t), t.prompts, t.settings, t.detector)),
    StepFactory(Keywords, lambda t: Keywords(_model(t), t.prompts, t.settings)),
    StepFactory(Analyze, lambda t: Analyze(_model(t), t.prompts, t.settings, t.detector)),
    StepFactory(MultiQuery, lambda t: MultiQuery(_model(t), t.embedder, t.prompts, t.settings)),
    StepFactory(HypotheticalAnswer, lambda t: HypotheticalAnswer(_model(t), t.embedder, t.prompts, t.settings)),
    StepFactory(Associate, lambda t: Associate(_model(t), t.prompts, t.settings)),
    StepFactory(Probe, lambda t: Probe(t.embedder, t.prompts, t.settings)),
    StepFactory(Retrieve, lambda t: Retrieve(t.embedder, t.prompts, t.settings)),
    StepFactory(Rerank, lambda t: Rerank(_reranker(t), t.settings)),
    StepFactory(Helpful, lambda t: Helpful(t.model, t.prompts, t.settings)),
    StepFactory(Relevance, lambda t: Relevance(t.prompts, t.settings)),
    StepFactory(SecondSearch, _second_search),
    StepFactory(Overview, lambda t: Overview(t.prompts)),
    StepFactory(Clarify, lambda t: Clarify(t.prompts, t.settings)),
    StepFactory(Condense, lambda t: Condense(_model(t), t.prompts, t.settings)),
    StepFactory(Synthesize, lambda t: Synthesize(t.model, t.prompts, t.settings)),
    StepFactory(Cite, lambda t: Cite(t.prompts, t.settings.images)),
)
STEPS: Mapping[str, StepFactory] = MappingProxyType({factory.step.name: factory for factory in _FACTORIES})
"""By name, in an order in which they can run: `eval grid --steps` adds each at its place."""

Names = Sequence[str | Sequence[str]]
"""Step names as in assistants.toml; the steps of an inner list form a group and run in parallel."""


def make_plan(
    names: Names,
    tools: Tools,
    by_step: Mapping[str, Tools] = MappingProxyType({}),
    known: Mapping[str, StepFactory] = STEPS,
) -> Plan:
    """The steps in their groups, without those that need a language model if there is none. `by_step` has the tools of
    steps with a different model; if it has any, no step may lack a model. `known` are all steps by name.

    Raises `SettingsError` for an unknown name, an invalid order (even of steps that are left out), or a step without
    what it needs.
    """
    validate_order(names, known)
    _validate_models({name: known[name] for name in flat(names)}, tools, by_step)
    groups = (
        tuple(step for name in group if (step := _make_step(known[name], by_step.get(name, tools))))
        for group in _grouped(names)
    )
    return tuple(group for group in groups if group)


def validate_order(names: Names, known: Mapping[str, StepFactory] = STEPS) -> None:
    """Raises `SettingsError` for an unknown name or an invalid order; makes no steps."""
    if unknown := next((name for name in flat(names) if name not in known), ""):
        raise SettingsError(
            f"Unknown step {unknown!r}.{did_you_mean(unknown, known)} Known are: {', '.join(known)}. A step of your own is written as module:Class."
        )
    groups: list[list[StepDeclaration]] = [[known[name].step for name in group] for group in _grouped(names)]
    validate(groups, {name: factory.step for name, factory in known.items()})


def flat(names: Names) -> list[str]:
    """The names of all steps, without groups."""
    return [name for group in _grouped(names) for name in group]


def missing_tool(factory: StepFactory, tools: Tools) -> str:
    """What the step lacks: "a language model", "a reranker", or an empty string."""
    try:
        factory.make(tools)
    except NoModel:
        return "a language model"
    except NoReranker:
        return "a reranker"
    return ""


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
        f"steps may make up to {before[-1]} helper calls a question, but DOCS_HELPER_CALLS is {most}: if the others use "
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
