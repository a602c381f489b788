"""`eval refusals`: shares, the curve, the choice on halves, and what is wrong with a run."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import lxml.html
import pytest

from app.core.errors import StoreUnavailable
from app.core.turn import Turn
from app.core.types import Chunk, Hit
from eval.files import EvaluationError
from eval.measure.refusals import ANSWERABLE, CROSS, Decision, RefusalResult, decide
from eval.measure.retrieval import Plan
from eval.questions.cases import Case
from eval.reports import refusals_page


def one(i: int, kind: str, evidence: float, *, threshold: float = 0.3, always: bool = False) -> Decision:
    case = Case(f"{kind}{i}", "en" if i % 2 else "cs", f"question {i}?", f"p{i}" if kind == ANSWERABLE else "")
    return Decision(case, kind, evidence, threshold, always or evidence < threshold, always, always)


def result(most: float = 0.1) -> RefusalResult:
    """Ten unanswerable ones with evidence 0 to .45, twenty answerable ones with .2 to .96."""
    near = [one(i, "near-domain", 0.05 * i) for i in range(10)]
    answerable = [one(i, ANSWERABLE, 0.2 + 0.04 * i) for i in range(20)]
    apart = [one(i, "chit-chat", 0.0, always=True) for i in range(3)] + [one(i, "injection", 0.9) for i in range(2)]
    return RefusalResult((*near, *answerable, *apart, one(0, CROSS, 0.1)), most)


def test_shares_and_points_are_counted_by_hand():
    """Chit-chat, injections and questions across languages have shares of their own and are in no point."""
    found = {(share.kind, share.language): share for share in result().shares}
    assert found["near-domain", "all"].refused.mean == pytest.approx(0.6)
    assert found["near-domain", "cs"].n == 5
    assert found[ANSWERABLE, "all"].refused.mean == pytest.approx(3 / 20)
    assert found["chit-chat", "all"].smalltalk == 1
    assert found["injection", "all"].refused.mean == 0
    assert found[CROSS, "cs"].refused.mean == 1
    assert (CROSS, "all") not in found
    now = result().now
    assert now.threshold == 0.3
    assert (now.recall, now.over_refusal) == (pytest.approx(0.6), pytest.approx(0.15))


def test_the_curve_rises_from_nothing_to_everything():
    """No threshold refuses nothing; both shares only grow with it."""
    curve = result().curve
    assert (curve[0].recall, curve[0].over_refusal) == (0, 0)
    assert (curve[-1].recall, curve[-1].over_refusal) == (1, 1)
    assert all(a.recall <= b.recall and a.over_refusal <= b.over_refusal for a, b in itertools.pairwise(curve))


def test_a_threshold_is_chosen_on_one_half_and_reported_on_the_other():
    """The best recall within the allowed over-refusal, lowest threshold first; nothing where it is never kept."""
    even, odd = result().choices
    assert (even.chosen_on, odd.chosen_on) == ("even", "odd")
    assert all(choice.chosen.over_refusal <= 0.1 for choice in (even, odd))
    assert all(choice.chosen.threshold == choice.reported.threshold for choice in (even, odd))
    # .20 and .28 are the even half's lowest answerable ones: one of ten is allowed
    assert even.chosen.threshold == 0.22
    assert {choice.chosen_on for choice in result(most=1).choices} == {"even", "odd"}
    everything = result(most=1).choices[0]
    assert everything.chosen.recall == 1
    assert everything.chosen.threshold < 0.5
    assert RefusalResult(result().decisions[:3]).choices == ()


def test_separation_is_the_share_of_pairs_in_the_right_order():
    """1 where each answerable question has more evidence than any unanswerable one, .5 where all have the same."""
    apart = [one(i, "near", 0.1) for i in range(4)] + [one(i, ANSWERABLE, 0.5) for i in range(4)]
    same = [replace(each, evidence=0.5) for each in apart]
    assert RefusalResult(tuple(apart)).separation == 1
    assert RefusalResult(tuple(same)).separation == 0.5


def test_the_page_lists_wrong_decisions_and_asks_for_nothing():
    """Both kinds of mistakes, with their evidence."""
    tree = lxml.html.document_fromstring(refusals_page(result()))
    wrong = [element.text_content() for element in tree.find_class("line")]
    assert wrong[0] == "cs answerable, crossquestion 0?evidence 0.10"
    assert "en near-domainquestion 9?evidence 0.45" in wrong
    assert not any(name in ("src", "href") for element in tree.iter() for name in element.attrib)


class Weigher:
    """Decides by the question's first word."""

    async def assess(self, request) -> Turn:
        word = request.question.split()[0]
        if word == "broken":
            raise StoreUnavailable("The store is gone.")
        hit = (Hit(Chunk("c", "docs", "u", 0, "text", "en", "u")),)
        turn = Turn(request, evidence=None if word == "undecided" else 0.5, hits=hit)
        if word == "hello":
            return replace(turn, evidence=0.0, hits=(), smalltalk="Hello!")
        return replace(turn, evidence=0.1, hits=(), related=hit) if word == "weak" else turn


def cases(*questions: str, doc: str = "p") -> list[Case]:
    return [Case(f"{doc}{i}", "en", question, doc, "near" if not doc else "") for i, question in enumerate(questions)]


async def test_a_failed_question_is_counted_and_in_no_figure():
    """Neither as refused nor as answered."""
    decisions = await decide(Weigher(), cases("good", "weak one"), cases("weak", "broken", "hello", doc=""), Plan())
    found = RefusalResult(decisions)
    assert [each.refused for each in decisions] == [False, True, True, False, True]
    assert [each.always for each in decisions] == [False, False, False, False, True]
    assert [each.error for each in found.failed] == ["StoreUnavailable: The store is gone."]
    assert (found.now.recall, found.now.over_refusal) == (1.0, 0.5)
    json.dumps(found.summary())


async def test_an_assistant_that_never_declines_is_refused():
    """So is a set of one kind alone; errors of the first question are raised as they are."""
    with pytest.raises(EvaluationError, match="relevance"):
        await decide(Weigher(), cases("undecided"), cases("weak", doc=""), Plan())
    with pytest.raises(EvaluationError, match="both kinds"):
        await decide(Weigher(), [], cases("weak", doc=""), Plan())
    with pytest.raises(StoreUnavailable):
        await decide(Weigher(), cases("broken"), cases("weak", doc=""), Plan())
