"""The report as one HTML page, to be sent to the people who write the documentation."""

from __future__ import annotations

from app.core.masking import masked
from app.gaps.records import GapReport
from app.gaps.text import TO_DO, share, trend
from app.report import render


def as_html(report: GapReport) -> str:
    """The page; it loads nothing."""
    outcomes = [(row.outcome, row.language, row.count, row.failed) for row in report.totals.outcomes]
    lead = f"{report.since[:10]} to {report.until[:10]}{f', {report.assistant}' if report.assistant else ''}"
    return render(
        __package__ or "app.gaps",
        "gaps.html",
        masked=masked,
        heading="What the documentation lacks",
        lead=lead,
        report=report,
        outcomes=outcomes,
        share=share,
        trend=trend,
        to_do=TO_DO,
        link=_link,
    )


def _link(url: str) -> str:
    """The address, if it is one of the web: addresses come from sitemaps."""
    return url if url.startswith(("https://", "http://")) else "#"
