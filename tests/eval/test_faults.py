"""`docs-assistant eval faults`: the kept set reaches its goals, and a check that sees nothing does not."""

from importlib.resources import files

import pytest

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.models import open_embedder
from eval.measure.faults import GOALS, LITERALS, Kept, Meaning, measure

PROMPTS = load_prompts(("cs", "en"), "")
KEPT, BY_HAND, OF_OTHERS = (
    str(files("eval").joinpath("sets", f"{name}.jsonl")) for name in ("faults", "faults_by_hand", "faults_of_others")
)


async def test_the_kept_set_reaches_the_goals() -> None:
    """Of faults written by hand and planted by rule, in two languages; good answers stay unmarked."""
    outcome = await measure(Kept.load(KEPT), PROMPTS)
    assert outcome.failures == []
    assert {*GOALS, "negation"} <= set(outcome.planted)
    assert outcome.statements > 150


async def test_faults_that_are_missed_and_false_alarms_fail() -> None:
    """A good answer that is called faulty counts as missed, a faulty one that is called good as an alarm."""
    kept = Kept.load(KEPT)
    turned = [
        type(one)(one.id, one.language, one.question, one.passages, one.answer, "" if one.fault else "number")
        for one in kept.samples
    ]
    outcome = await measure(Kept(kept.passages, turned, kept.pairs), PROMPTS)
    assert [failure for failure in outcome.failures if "number" in failure]
    assert [failure for failure in outcome.failures if "marked" in failure]


async def test_a_small_set_without_pairs_gets_the_faults_that_need_none() -> None:
    """It may have one answer in another language, and no lines of code that are wrong."""
    kept = Kept.load(KEPT)
    fenced = next(one for one in kept.samples if not one.fault and "```" in one.answer)
    other = next(one for one in kept.samples if not one.fault and one.language != fenced.language)
    outcome = await measure(Kept(kept.passages, [fenced, other], {}), PROMPTS)
    assert outcome.planted["language"] == 2
    assert "code" not in outcome.planted


BY_PROCESSOR = 1
"""Statements beside the threshold: a processor with VNNI makes other vectors in 8 bits than one without."""


@pytest.mark.parametrize(("compares", "most_alarms"), [(False, 9), (True, 2)])
async def test_what_another_person_wrote_by_hand(compares: bool, most_alarms: int) -> None:
    """Sixty faults and forty good answers, written without knowing the check; with the meaning of statements fewer are false alarms."""
    kept = Kept.load(BY_HAND)
    meaning = (
        Meaning(kept, open_embedder(Settings.load(None, embedding_model="local:multilingual-e5-small")))
        if compares
        else None
    )
    if meaning:
        await meaning.read()
    outcome = await measure(kept, PROMPTS, meaning, plants=False)
    assert sum(outcome.planted.values()) == 60
    assert sum(outcome.caught[kind] for kind in LITERALS) >= 26
    assert all(outcome.caught[kind] == 3 for kind in ("language", "loop", "turn", "recital"))
    assert sum(outcome.caught.values()) >= 43 - BY_PROCESSOR
    assert len(outcome.alarms) <= most_alarms
    assert not [alarm for alarm in outcome.alarms if "refuted" in alarm]


async def test_what_somebody_wrote_about_other_products() -> None:
    """Sixty-four faults and sixty good answers about 25 products, half of which nobody looked at before the rules were done."""
    kept = Kept.load(OF_OTHERS)
    meaning = Meaning(kept, open_embedder(Settings.load(None, embedding_model="local:multilingual-e5-small")))
    await meaning.read()
    outcome = await measure(kept, PROMPTS, meaning, plants=False)
    assert sum(outcome.planted.values()) == 64
    assert sum(outcome.caught.values()) >= 38 - BY_PROCESSOR
    sure = ("language", "loop", "turn", "recital", "code")  # a recital in other words is a statement, too
    assert sum(outcome.planted[kind] - outcome.caught[kind] for kind in sure) <= BY_PROCESSOR
    assert len(outcome.alarms) <= 3
    assert not [alarm for alarm in outcome.alarms if "refuted" in alarm]
