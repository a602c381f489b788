"""`eval faults`: the kept set reaches its goals, and a check that sees nothing does not."""

from importlib.resources import files

from app.core.prompts import load_prompts
from eval.measure.faults import GOALS, Kept, measure

PROMPTS = load_prompts(("cs", "en"), "")
KEPT = str(files("eval").joinpath("sets", "faults.jsonl"))


def test_the_kept_set_reaches_the_goals() -> None:
    """Of faults written by hand and planted by rule, in two languages; good answers stay unmarked."""
    outcome = measure(Kept.load(KEPT), PROMPTS)
    assert outcome.failures == []
    assert set(GOALS) <= set(outcome.planted)
    assert outcome.statements > 150


def test_faults_that_are_missed_and_false_alarms_fail() -> None:
    """A good answer that is called faulty counts as missed, a faulty one that is called good as an alarm."""
    kept = Kept.load(KEPT)
    turned = [
        type(one)(one.id, one.language, one.question, one.passages, one.answer, "" if one.fault else "number")
        for one in kept.samples
    ]
    outcome = measure(Kept(kept.passages, turned, kept.pairs), PROMPTS)
    assert [failure for failure in outcome.failures if "number" in failure]
    assert [failure for failure in outcome.failures if "marked" in failure]
