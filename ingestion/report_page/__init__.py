"""The report of a run as one page for the browser, that needs no network and no other file."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from app.core.errors import SettingsError
from app.core.masking import masked
from ingestion.report import OUTCOMES, PageReport, Report

LONGEST = 50
TOP = 15
SLOW = 1.0
"""Seconds from which on a page is slow."""


def write_page(report: Report, file: Path) -> None:
    """Write the page. Raises `SettingsError` where the file can't be written."""
    try:
        file.write_text(html(report), encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"The report can't be written to {file}: {error.strerror}. Name another file.") from error


def html(report: Report) -> str:
    """The whole document. Everything that a site said is escaped, and no script of its runs."""
    here = files("ingestion.report_page")
    style, script = ((here / name).read_text("utf-8") for name in ("style.css", "script.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
        f'<meta name="color-scheme" content="light dark"><title>Indexing report {now}</title><style>{style}</style></head>'
        f"<body><header><h1>Indexing report</h1><p>{now}, {report.seconds:.1f} s</p>{_sites(report)}</header><main>"
        + "\n".join([_state(report), _tiles(report), *_sections(report), _all(report.pages)])
        + f"</main><script>{script}</script></body></html>\n"
    )


def _told(text: object) -> str:
    return escape(masked(str(text)))


def _link(url: str) -> str:
    shown = _told(url)
    return f'<a href="{shown}" rel="noreferrer">{shown}</a>' if url.startswith(("http://", "https://")) else shown


def _sites(report: Report) -> str:
    return f'<p class="sites">{" · ".join(map(_told, report.sites))}</p>'


def _state(report: Report) -> str:
    kind = ("good", "bad", "odd", "bad")[report.exit_code]
    return f'<p class="state {kind}">{_told(report.state)} <span>exit code {report.exit_code}</span></p>'


def _tiles(report: Report) -> str:
    figures: list[tuple[str, str]] = [(str(count), name) for name, count in report.counts.items()]
    figures.append((str(sum(1 for page in report.pages if page.kept)), "stale"))
    figures.append((str(report.embedded_texts), "texts to embed" if report.dry_run else "texts embedded"))
    cells = "".join(
        f'<div class="tile {name if int(value) else "none"}"><b>{value}</b>{name}</div>' for value, name in figures
    )
    return f'<div class="tiles">{cells}</div>'


def _sections(report: Report) -> Iterable[str]:
    pages = report.pages
    yield _section("To know", [[_told(warning)] for warning in report.warnings], [""])
    for outcome in ("failed", "removed", "changed", "new", "skipped"):
        found = [page for page in pages if page.outcome == outcome]
        title = outcome.capitalize()
        yield _reasons(f"Why {outcome}", found)
        rows = [[_link(page.url), _told(_why(page))] for page in found]
        yield _section(title, rows, ["page", "why" if outcome in ("failed", "removed", "skipped") else "note"])
    yield _section(
        "Stale: older state kept",
        [[_link(p.url), _told(p.stale_since[:10]), _told(p.reason)] for p in pages if p.kept],
        ["page", "unread since", "why"],
    )
    yield _section(
        "Language to check",
        [[_link(page.url), _told(page.language), _told(page.note)] for page in report.flagged],
        ["page", "language", "note"],
    )
    yield _section(
        "Redirects",
        [[" → ".join(map(_link, page.redirects)), _link(page.url)] for page in pages if page.redirects],
        ["from", "to"],
    )
    slow = sorted((page for page in pages if page.seconds >= SLOW), key=lambda page: -page.seconds)[:TOP]
    yield _section("Slowest pages", [[_link(page.url), f"{page.seconds:.1f} s"] for page in slow], ["page", "time"])
    big = sorted((page for page in pages if page.chunks > 1), key=lambda page: -page.chunks)[:TOP]
    yield _section("Biggest pages", [[_link(page.url), str(page.chunks)] for page in big], ["page", "chunks"])


def _why(page: PageReport) -> str:
    translated = f"translated into {', '.join(page.translated)}" if page.translated else ""
    return "; ".join(part for part in (page.reason, page.note, translated) if part)


def _reasons(title: str, pages: Sequence[PageReport]) -> str:
    """The reasons with their numbers, where there are many pages and fewer reasons."""
    counted = Counter(page.reason for page in pages if page.reason)
    if len(pages) <= LONGEST or len(counted) > LONGEST:
        return ""
    return _section(
        title, [[_told(reason), str(count)] for reason, count in counted.most_common()], ["reason", "pages"]
    )


def _section(title: str, rows: Sequence[Sequence[str]], header: Sequence[str]) -> str:
    """A part that can be opened, with cells of HTML; empty without rows."""
    if not rows:
        return ""
    more = f'<p class="more">and {len(rows) - LONGEST} more, in the table below</p>' if len(rows) > LONGEST else ""
    return (
        f"<details{' open' if len(rows) <= TOP else ''}><summary>{escape(title)} <span>{len(rows)}</span></summary>"
        f"{_table(rows[:LONGEST], header)}{more}</details>"
    )


def _table(rows: Iterable[Sequence[str]], header: Sequence[str], kind: str = "") -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header) if any(header) else ""
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _all(pages: Sequence[PageReport]) -> str:
    rows = [
        [
            f'<span class="mark {page.outcome}">{page.outcome}</span>',
            _link(page.url),
            _told(page.language),
            str(page.chunks or ""),
            f"{page.seconds:.2f}",
            _told(_why(page)),
        ]
        for page in pages
    ]
    options = "".join(f"<option>{outcome}</option>" for outcome in OUTCOMES)
    return (
        '<section><h2>All pages</h2><p class="find"><input id="find" type="search" placeholder="Search in addresses and '
        f'reasons" aria-label="Search"> <select id="outcome" aria-label="Outcome"><option value="">all</option>{options}'
        f'</select> <output id="shown">{len(pages)} pages</output></p>'
        + _table(rows, ["", "page", "language", "chunks", "seconds", "why"], ' id="all"')
        + "</section>"
    )
