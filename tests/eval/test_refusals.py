"""`eval refusals`: shares, the curve, and what is wrong with a run."""

import itertools
from dataclasses import replace
from types import SimpleNamespace

import lxml.html
import pytest

from app.core.errors import StoreUnavailable
from app.core.turn import Evidence, OwnReply, Turn
from app.core.types import Chunk, Hit
from eval.files import EvaluationError
from eval.measure.refusals import ANSWERABLE, CROSS, Refusals, decide
from eval.measure.result import REFUSALS, Outcome, Result
from eval.measure.retrieval import Plan
from eval.questions.cases import Case
from eval.reports.pages import refusals_page


def one(i: int, kind: str, evidence: float, *, threshold: float = 0.3, always: bool = False) -> Outcome:
    case = Case(f"{kind}{i}", "en" if i % 2 else "cs", f"question {i}?", f"p{i}" if kind in {ANSWERABLE, CROSS} else "")
    refused = always or evidence < threshold
    details = {"kind": kind, "evidence": evidence, "threshold": threshold}
    details |= {"refused": refused, "always": always, "smalltalk": always, "right": evidence > 0.45}
    return Outcome(case, "", {"refusal": float(refused != bool(case.doc))}, details=details)


def figures(*outcomes: Outcome) -> Refusals:
    return Refusals(Result(REFUSALS, outcomes))


def result() -> Refusals:
    """Ten unanswerable ones with evidence 0 to .45, twenty answerable ones with .2 to .96."""
    near = [one(i, "near-domain", 0.05 * i) for i in range(10)]
    answerable = [one(i, ANSWERABLE, 0.2 + 0.04 * i) for i in range(20)]
    apart = [one(i, "chit-chat", 0.0, always=True) for i in range(3)] + [one(i, "injection", 0.9) for i in range(2)]
    return figures(*near, *answerable, *apart, one(0, CROSS, 0.1))


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


def test_more_evidence_has_the_right_page_more_often():
    """By the evidence of answered questions, as times the needed one."""
    groups = result().groups
    assert [group.times for group in groups] == [0, 1.25, 1.5, 2, 2.5]
    assert sum(group.n for group in groups) == 4 + 17 + 2
    assert [group.right for group in groups] == [0, 0, 0.75, 1, 1]


def test_the_page_lists_wrong_decisions_and_asks_for_nothing():
    """Both kinds of mistakes, with their evidence."""
    tree = lxml.html.document_fromstring(refusals_page(result().result))
    wrong = [element.text_content() for element in tree.find_class("line")]
    assert wrong[0] == "cs answerable, crossquestion 0?evidence 0.10"
    assert "en near-domainquestion 9?evidence 0.45" in wrong
    assert not any(name in ("src", "href") for element in tree.iter() for name in element.attrib)


async def no_pages() -> tuple:
    return ()


INDEX = SimpleNamespace(pages=no_pages)


class Weigher:
    """Decides by the question's first word."""

    async def assess(self, request) -> Turn:
        word = request.question.split()[0]
        if word == "broken":
            raise StoreUnavailable("The store is gone.")
        hit = (Hit(Chunk("c", "docs", "u", 0, "text", "en", "u")),)
        turn = Turn(request, INDEX, evidence=None if word == "undecided" else Evidence(0.5, 0.0), hits=hit)
        if word == "hello":
            return replace(turn, evidence=Evidence(0.0, 0.0), hits=(), reply=OwnReply("smalltalk", ()))
        return replace(turn, evidence=Evidence(0.1, 0.0), hits=(), related=hit) if word == "weak" else turn


def cases(*questions: str, doc: str = "p") -> list[Case]:
    return [Case(f"{doc}{i}", "en", question, doc, "near" if not doc else "") for i, question in enumerate(questions)]


async def test_a_failed_question_is_counted_and_in_no_figure():
    """Neither as refused nor as answered."""
    decisions = await decide(Weigher(), cases("good", "weak one"), cases("weak", "broken", "hello", doc=""), Plan())
    found = figures(*decisions)
    known = [each.details for each in decisions if not each.error]
    assert [each["refused"] for each in known] == [False, True, True, True]
    assert [each["always"] for each in known] == [False, False, False, True]
    assert [each.error for each in found.result.failed] == ["StoreUnavailable: The store is gone."]
    assert (found.now.recall, found.now.over_refusal) == (1.0, 0.5)


async def test_an_assistant_that_never_declines_is_refused():
    """So is a set of one kind alone; errors of the first question are raised as they are."""
    with pytest.raises(EvaluationError, match="relevance"):
        await decide(Weigher(), cases("undecided"), cases("weak", doc=""), Plan())
    with pytest.raises(EvaluationError, match="both kinds"):
        await decide(Weigher(), [], cases("weak", doc=""), Plan())
    with pytest.raises(StoreUnavailable):
        await decide(Weigher(), cases("broken"), cases("weak", doc=""), Plan())
