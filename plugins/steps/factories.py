"""Makes the optional steps."""

from app.pipeline.registry import StepFactory, factory_of
from plugins.steps.choices import Clarify, Helpful, Rerank
from plugins.steps.curated import Curated
from plugins.steps.period import AskedPeriod, open_rules
from plugins.steps.searches import Analyze, Associate, FirstSearch, MultiQuery

FACTORIES = (
    StepFactory(AskedPeriod, lambda t: AskedPeriod(t.model, t.prompts, t.settings, open_rules(t.prompts)), "refine"),
    factory_of(FirstSearch, "refine"),
    factory_of(Analyze, "probe"),
    factory_of(MultiQuery, "probe"),
    factory_of(Associate, "probe"),
    factory_of(Rerank, "relevance"),
    factory_of(Helpful, "relevance"),
    factory_of(Curated, "synthesize"),
    factory_of(Clarify, "synthesize"),
)
