"""Makes the optional steps."""

from __future__ import annotations

from app.models.rerank import Reranker
from app.pipeline.registry import NoReranker, StepFactory, Tools, model_of
from app.pipeline.runner import Step
from app.pipeline.steps.relevance import Relevance
from app.pipeline.steps.retrieve import Probe, Retrieve
from plugins.steps.choices import Condense, Helpful, Rerank
from plugins.steps.period import AskedPeriod, open_rules
from plugins.steps.questions import Analyze, Clarify
from plugins.steps.searches import Associate, FirstSearch, HypotheticalAnswer, MultiQuery, SecondSearch


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
    return SecondSearch(model_of(tools), retrieve, relevance, tools.prompts, tools.settings)


FACTORIES = (
    StepFactory(AskedPeriod, lambda t: AskedPeriod(t.model, t.prompts, t.settings, open_rules(t.prompts)), "refine"),
    StepFactory(FirstSearch, _first_search, "refine"),
    StepFactory(Analyze, lambda t: Analyze(model_of(t), t.prompts, t.settings, t.detector), "probe"),
    StepFactory(MultiQuery, lambda t: MultiQuery(model_of(t), t.embedder, t.prompts, t.settings), "probe"),
    StepFactory(
        HypotheticalAnswer, lambda t: HypotheticalAnswer(model_of(t), t.embedder, t.prompts, t.settings), "probe"
    ),
    StepFactory(Associate, lambda t: Associate(model_of(t), t.prompts, t.settings), "probe"),
    StepFactory(Rerank, lambda t: Rerank(_reranker(t), t.settings), "relevance"),
    StepFactory(Helpful, lambda t: Helpful(t.model, t.prompts, t.settings), "relevance"),
    StepFactory(SecondSearch, _second_search, "overview"),
    StepFactory(Clarify, lambda t: Clarify(t.prompts, t.settings), "synthesize"),
    StepFactory(Condense, lambda t: Condense(model_of(t), t.prompts, t.settings), "synthesize"),
)
