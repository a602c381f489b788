"""Step names of assistants.toml -> steps, and the proof that their order can work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from app.core.errors import SettingsError
from app.core.language import LanguageDetector
from app.core.models.base import Embedder, Model
from app.core.models.rerank import Reranker
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.pipeline.analyze import Analyze
from app.pipeline.associate import Associate
from app.pipeline.cite import Cite
from app.pipeline.clarify import Clarify
from app.pipeline.condense import Condense
from app.pipeline.detect import Detect
from app.pipeline.helpful import Helpful
from app.pipeline.hyde import HypotheticalAnswer
from app.pipeline.keywords import Keywords
from app.pipeline.multi_query import MultiQuery
from app.pipeline.period import AskedPeriod
from app.pipeline.periods import open_rules
from app.pipeline.refine import Refine
from app.pipeline.relevance import Relevance
from app.pipeline.rerank import Rerank
from app.pipeline.retrieve import Probe, Retrieve
from app.pipeline.second_search import SecondSearch
from app.pipeline.step import Group, Plan, Step
from app.pipeline.synthesize import Synthesize

_ANY: Any = object()  # stands for a model where only its presence matters
GIVEN = frozenset({"request", "generation"})


@dataclass(frozen=True, slots=True)
class Tools:
    """What steps are built from. `model` is None where no language model is configured."""

    settings: Settings
    prompts: Prompts
    detector: LanguageDetector
    model: Model | None
    embedder: Embedder
    reranker: Reranker | None = None


def _detect(tools: Tools) -> Step:
    return Detect(tools.detector, tools.prompts)


def _period(tools: Tools) -> Step:
    return AskedPeriod(tools.model, tools.prompts, tools.settings, open_rules(tools.prompts))


def _refine(tools: Tools) -> Step | None:
    return Refine(tools.model, tools.prompts, tools.settings) if tools.model else None


def _keywords(tools: Tools) -> Step | None:
    return Keywords(tools.model, tools.prompts, tools.settings) if tools.model else None


def _analyze(tools: Tools) -> Step | None:
    return Analyze(tools.model, tools.prompts, tools.settings) if tools.model else None


def _multi_query(tools: Tools) -> Step | None:
    return MultiQuery(tools.model, tools.embedder, tools.prompts, tools.settings) if tools.model else None


def _hyde(tools: Tools) -> Step | None:
    return HypotheticalAnswer(tools.model, tools.embedder, tools.prompts, tools.settings) if tools.model else None


def _associate(tools: Tools) -> Step | None:
    return Associate(tools.model, tools.prompts, tools.settings) if tools.model else None


def _rerank(tools: Tools) -> Step:
    if tools.reranker is None:
        raise SettingsError(
            "The step rerank needs a reranker: set DOCS_RERANK_URL and DOCS_RERANK_MODEL, or leave it out."
        )
    return Rerank(tools.reranker, tools.settings)


def _helpful(tools: Tools) -> Step:
    return Helpful(tools.model, tools.prompts, tools.settings)


def _condense(tools: Tools) -> Step | None:
    return Condense(tools.model, tools.prompts, tools.settings) if tools.model else None


def _clarify(tools: Tools) -> Step:
    return Clarify(tools.prompts, tools.settings)


def _probe(tools: Tools) -> Step:
    return Probe(tools.embedder, tools.prompts, tools.settings)


def _retrieve(tools: Tools) -> Step:
    return Retrieve(tools.embedder, tools.prompts, tools.settings)


def _relevance(tools: Tools) -> Step:
    return Relevance(tools.prompts, tools.settings)


def _second_search(tools: Tools) -> Step | None:
    if tools.model is None:
        return None
    retrieve = Retrieve(tools.embedder, tools.prompts, tools.settings)
    relevance = Relevance(tools.prompts, tools.settings)
    return SecondSearch(tools.model, retrieve, relevance, tools.prompts, tools.settings)


def _synthesize(tools: Tools) -> Step:
    return Synthesize(tools.model, tools.prompts, tools.settings)


def _cite(tools: Tools) -> Step:
    return Cite(tools.prompts)


STEPS: Mapping[str, Callable[[Tools], Step | None]] = MappingProxyType(
    {
        "detect": _detect,
        "period": _period,
        "refine": _refine,
        "keywords": _keywords,
        "analyze": _analyze,
        "multi_query": _multi_query,
        "hyde": _hyde,
        "associate": _associate,
        "probe": _probe,
        "retrieve": _retrieve,
        "rerank": _rerank,
        "helpful": _helpful,
        "relevance": _relevance,
        "second_search": _second_search,
        "clarify": _clarify,
        "condense": _condense,
        "synthesize": _synthesize,
        "cite": _cite,
    }
)


def make_plan(
    names: Sequence[str | Sequence[str]], tools: Tools, by_step: Mapping[str, Tools] = MappingProxyType({})
) -> Plan:
    """The steps in their groups; those that need a language model are left out where there is none. `by_step` are the
    tools of steps that ask a model of their own: where there are such, no step may lack one.

    Raises `SettingsError` for an unknown name, a step whose input nobody wrote before, two writers of
    one field in a group, or a plan that ends without an answer.
    """
    plan = []
    _prove_models(flat(names), tools, by_step)
    for item in names:
        group = [
            step
            for name in ([item] if isinstance(item, str) else item)
            if (step := _make(name, by_step.get(name, tools)))
        ]
        if group:
            plan.append(tuple(group))
    _prove(plan)
    return tuple(plan)


def flat(names: Sequence[str | Sequence[str]]) -> list[str]:
    """The names of all steps, without their groups."""
    return [name for item in names for name in ([item] if isinstance(item, str) else item)]


def _prove_models(names: Sequence[str], tools: Tools, by_step: Mapping[str, Tools]) -> None:
    for name, own in by_step.items():
        if name not in names:
            raise SettingsError(f"A model is named for the step {name!r}, which isn't among the steps.")
        if getattr(_make(name, own), "model", None) is None:
            raise SettingsError(f"A model is named for the step {name}, which asks none.")
    if by_step and tools.model is None and (lacking := [n for n in names if n not in by_step and asks_model(n, tools)]):
        raise SettingsError(
            f"Steps {', '.join(lacking)} have no language model: name one for them, set `model` of the assistant, or "
            "DOCS_LLM_URL."
        )


def asks_model(name: str, tools: Tools) -> bool:
    """Whether the step would ask a language model if there were one."""
    step = _make(name, replace(tools, model=tools.model or _ANY))
    return getattr(step, "model", None) is not None


def _make(name: str, tools: Tools) -> Step | None:
    if name not in STEPS:
        raise SettingsError(f"Unknown step {name!r} in assistants.toml. Known are: {', '.join(STEPS)}.")
    return STEPS[name](tools)


def _prove(plan: Sequence[Group]) -> None:
    written = set(GIVEN)
    for index, group in enumerate(plan):
        fields = [field for step in group for field in step.writes]
        if twice := {field for field in fields if fields.count(field) > 1}:
            both = ", ".join(step.name for step in group if twice & set(step.writes))
            raise SettingsError(
                f"Steps {both} write {', '.join(sorted(twice))} at the same time: put one after the other."
            )
        for step in group:
            others = [other for after in plan[index:] for other in after if other is not step]
            _prove_inputs(step, written, {field: other.name for other in others for field in other.writes})
        written |= set(fields)
    if "events" not in written:
        raise SettingsError("These steps give no answer: synthesize is missing.")


def _prove_inputs(step: Step, written: set[str], later: Mapping[str, str]) -> None:
    if lacking := [field for field in step.reads if field not in written]:
        hint = f": put {later[lacking[0]]} before it" if lacking[0] in later else ""
        raise SettingsError(f"Step {step.name} needs {', '.join(lacking)}, which no step before it gives{hint}.")
    if late := [field for field in step.uses if field in later and field not in written]:
        raise SettingsError(f"Step {step.name} uses {late[0]}, so it must come after {later[late[0]]}.")


def upto(plan: Plan, field: str) -> Plan:
    """The part of the plan that ends with the last writer of the field."""
    last = max((i for i, group in enumerate(plan) for step in group if field in step.writes), default=-1)
    return plan[: last + 1]
