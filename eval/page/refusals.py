"""The page of refusals: shares by kind, the curve over thresholds, the choice on halves, wrong decisions."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from eval.measure.metrics import Estimate
from eval.measure.refusals import ANSWERABLE, CROSS, RefusalResult, Share, Weighed
from eval.page.frame import page, section, table, tiles
from eval.page.retrieval import configuration
from eval.page.svg import Bar, Line, bars, legend, lines

SHOWN = 20


def refusals_page(result: RefusalResult) -> str:
    """The whole page."""
    lead = f"{len(result.weighed)} questions, measured {result.config.get('date', '')}"
    curves = [
        Line("answerable, refused", [(p.threshold, p.over_refusal) for p in result.curve]),
        Line("unanswerable, refused", [(p.threshold, p.recall) for p in result.curve]),
    ]
    return page(
        f"Refusals: {result.config.get('set', 'a question set')}",
        lead,
        [
            _tiles(result),
            section(
                "Share refused, by kind of question",
                bars(_bars(result.shares)),
                "High is right for unanswerable questions, low for answerable ones. Whiskers: 95 % interval. Last"
                " column: questions.",
            ),
            section(
                "Share refused at other thresholds",
                legend([one.name for one in curves]) + lines(curves, mark=result.threshold),
                "A question is refused where the best passage has a smaller share of it than the threshold. The upright"
                " line is the threshold in force. Chit-chat, injections and questions across languages aren't counted"
                " here.",
            ),
            section("A threshold chosen on one half of the questions, reported on the other", _choices(result)),
            section("Refused, though the pages answer it", _wrong(result, answerable=True), "Least evidence first."),
            section("Not refused, though no page answers it", _wrong(result, answerable=False), "Most evidence first."),
            section("Configuration", configuration(result.config)),
        ],
    )


def _tiles(result: RefusalResult) -> str:
    now = result.now
    return tiles(
        [
            ("recall", f"{100 * now.recall:.0f} %", "of the unanswerable are refused"),
            ("over-refusal", f"{100 * now.over_refusal:.0f} %", "of the answerable are refused"),
            ("threshold", f"{now.threshold:g}", "in force"),
            ("separation", f"{result.separation:.3f}", "1 is perfect, 0.5 is chance"),
            ("failed", str(len(result.failed)), "questions, in no figure"),
        ]
    )


def _bars(shares: Sequence[Share]) -> list[list[Bar]]:
    groups: dict[str, list[Bar]] = {}
    for share in shares:
        colour = 0 if share.kind in {ANSWERABLE, CROSS} else 1
        groups.setdefault(share.kind, []).append(Bar(f"{share.kind}, {share.language}", share.n, share.refused, colour))
    return list(groups.values())


def _choices(result: RefusalResult) -> str:
    if not result.choices:
        return ""
    header = ["chosen on", "threshold", "recall there", "over-refusal there", "recall on the others", "over-refusal"]
    rows = [
        [
            f"{one.chosen_on} questions",
            f"{one.chosen.threshold:g}",
            *(f"{100 * share:.0f} %" for share in (one.chosen.recall, one.chosen.over_refusal)),
            *(f"{100 * share:.0f} %" for share in (one.reported.recall, one.reported.over_refusal)),
        ]
        for one in result.choices
    ]
    return table(header, rows)


def _wrong(result: RefusalResult, *, answerable: bool) -> str:
    wrong = [
        one
        for one in result.weighed
        if not one.error and (one.kind in {ANSWERABLE, CROSS}) == answerable == one.refused
    ]
    wrong.sort(key=lambda one: one.evidence, reverse=not answerable)
    return "".join(_question(one) for one in wrong[:SHOWN])


def _question(one: Weighed) -> str:
    told = "small talk" if one.smalltalk else f"evidence {one.evidence:.2f}"
    return (
        f'<div class="line"><span class="tag">{escape(f"{one.case.language} {one.kind}")}</span>'
        f'{escape(one.case.question)}<span class="rank">{told}</span></div>'
    )


def percent(one: Estimate) -> str:
    """A share with its interval."""
    return f"{100 * one.mean:.0f} % ({100 * one.low:.0f}–{100 * one.high:.0f})"
