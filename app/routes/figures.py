"""GET /figures and /figures.json: for everybody, how much of the site is searched, how answers end, how long they take, and how good they are.

Figures of many questions, without a text of any; only with DOCS_TUNING__FIGURES.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.conversations.question_log import Asked, iso
from app.conversations.records import Evaluation
from app.core.language import has_file, read_toml
from app.core.shares import Share, share
from app.http.bodies import JsonResponse, preferred_language, prefers
from app.index.run_history import runs_of
from app.routes.admin.index import state_of
from app.routes.admin.quality import Measured
from app.routes.description import ERRORS, Responses, json_of
from app.routes.interface import SHARED, Branding
from app.routes.routers import Row, router_of
from app.routes.service import Service

PERIOD, TEXTS = "30d", "figures.toml"
QUALITY: Mapping[str, Sequence[str]] = {
    "eval retrieval": ("hit_1", "hit"),
    "eval verdicts": ("page", "refusal"),
    "eval run": ("refusal", "faithful", "correctness"),
}
"""What is shown of the last evaluation of each kind."""
SECURITY = "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self'; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 650; font-size: 1.15rem; padding: 1.5rem 0 .3rem; }
th, td { padding: .4rem 0; text-align: left; vertical-align: top; font-weight: 400; border-bottom: 1px solid #8886; }
td { text-align: right; padding-left: 1rem; }
small { display: block; opacity: .8; }
"""


class SiteFigures(TypedDict):
    """The pages that are searched."""

    pages: int
    read: Annotated[Share, Field(description="Of the pages that the site lists, those that were read and have text.")]
    unreadable_sites: int
    built_at: str
    age_seconds: int | None
    last_run_at: str


class AnswerFigures(TypedDict):
    """How the answers of the period ended."""

    questions: int
    first_at: str
    last_at: str
    refused: Annotated[Share, Field(description="Answers that say that the documentation has none.")]
    marked: Annotated[Share, Field(description="Answers a part of which no passage proves.")]
    median_ms: Annotated[int | None, Field(description="Milliseconds until the end of an answer.")]
    p95_ms: int | None


class QualityFigures(TypedDict):
    """The last evaluation of a kind."""

    kind: str
    measured_at: str
    questions: int
    measures: Mapping[str, Measured]


class FiguresBody(TypedDict):
    """Figures of the service for everybody. Null where nothing is known."""

    object: Literal["figures"]
    made_at: str
    since: str
    site: SiteFigures | None
    answers: AnswerFigures | None
    quality: list[QualityFigures]


@dataclass
class Figures:
    """The handlers of both addresses. Figures are made anew after `fresh` seconds, so that nobody sees a single question come."""

    service: Service
    branding: Branding
    fresh: float = 300.0
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _last: tuple[float, FiguresBody] | None = None

    async def json(self, _: Request) -> Response:
        """The figures as JSON."""
        return JsonResponse(await self._figures(), headers=SHARED)

    async def page(self, request: Request) -> Response:
        """The figures as a page in the language of the reader, or as JSON if that is accepted rather."""
        headers = {"vary": "Accept, Accept-Language"}
        if prefers("application/json", request.headers.get("accept", "")):
            return JsonResponse(await self._figures(), headers=SHARED | headers)
        settings = self.service.settings
        known = [code for code in settings.languages if has_file(f"{code}/{TEXTS}", settings.prompts)] or ["en"]
        default = settings.default_language if settings.default_language in known else known[0]
        language = preferred_language(request.headers.get("accept-language", ""), known) or default
        texts, name = read_toml(f"{language}/{TEXTS}", settings.prompts), (await self.branding.brand()).name
        root = request.scope.get("root_path", "").rstrip("/")
        html = page_of(await self._figures(), texts, language, name, f"{root}/")
        return Response(html, headers=headers | {"content-security-policy": SECURITY}, media_type="text/html")

    async def _figures(self) -> FiguresBody:
        async with self._making:
            if self._last is None or time.monotonic() - self._last[0] > self.fresh:
                self._last = time.monotonic(), await self._made()
            return self._last[1]

    async def _made(self) -> FiguresBody:
        store = self.service.conversations
        asked = Asked.read(PERIOD, "", store.clock() if store else time.time())
        evaluations = await store.evaluations() if store else ()
        logs = store is not None and self.service.settings.question_log != "off"
        return {
            "object": "figures",
            "made_at": iso(asked.until),
            "since": iso(asked.since),
            "site": await self._site(),
            "answers": await self._answers(asked) if logs else None,
            "quality": [one for kind in QUALITY if (one := _quality(kind, evaluations))],
        }

    async def _site(self) -> SiteFigures | None:
        index = self.service.assistants.store
        info = (await self.service.assistants.ready()).info
        if info is None:
            return None
        states = [state_of(page) for page in await (await index.live()).pages()]
        runs = await runs_of(index)
        last = next((run for run in runs.last if run.counts), None)
        # pages that were never read aren't in the index, and those that were once are in both
        unread = max(states.count("failing"), last.counts.get("failed", 0) if last else 0)
        good = states.count("ok") + states.count("duplicate")
        return {
            "pages": info.pages,
            "read": share(good, good + states.count("empty") + unread),
            "unreadable_sites": len(runs.failed_sources),
            "built_at": info.built_at,
            "age_seconds": None if info.age is None else int(info.age),
            "last_run_at": iso(max(runs.ended.values(), default=0.0)),
        }

    async def _answers(self, asked: Asked) -> AnswerFigures | None:
        store = self.service.conversations
        found = await store.of_period(asked) if store else None
        if found is None or not found.questions:
            return None
        return {
            "questions": found.questions,
            "first_at": iso(found.first or 0),
            "last_at": iso(found.last or 0),
            "refused": share(found.refused, found.questions),
            "marked": share(found.marked, found.questions),
            "median_ms": found.median,
            "p95_ms": found.p95,
        }


def _quality(kind: str, evaluations: Sequence[Evaluation]) -> QualityFigures | None:
    """What is shown of the last evaluation of this kind: the means of its languages."""
    one = next((one for one in evaluations if one.kind == kind), None)
    rows = one.figures["rows"] if one else ()
    whole = next((row for row in rows if row["language"] == "mean"), None)
    if one is None or whole is None:
        return None
    measures = {name: whole["measures"][name] for name in QUALITY[kind] if name in whole["measures"]}
    return {"kind": kind, "measured_at": iso(one.created), "questions": one.n, "measures": measures}


def page_of(figures: FiguresBody, texts: Mapping[str, str], language: str, name: str, root: str) -> str:
    """The page in these `texts`; `root` is the address of the service."""
    parts = [_table(caption, rows) for caption, rows in _rows(figures, texts) if rows]
    lead = texts["lead"].format(since=figures["since"][:10], until=figures["made_at"][:10])
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(texts['title'])} · {escape(name)}</title><style>{STYLE}</style></head><body><main>"
        f"<h1>{escape(name)}: {escape(texts['title'])}</h1><p>{escape(texts['machine'])} {escape(lead)}</p>{''.join(parts)}"
        f'<p><small>{escape(texts["interval"])}</small></p><p><a href="{escape(root)}">{escape(texts["ask"])}</a> · '
        f'<a href="{escape(root)}figures.json">JSON</a></p></main></body></html>'
    )


Rows = list[tuple[str, str, str]]
"""What it is, its figure, and its date or interval."""


def _rows(figures: FiguresBody, texts: Mapping[str, str]) -> Iterator[tuple[str, Rows]]:
    site, answers = figures["site"], figures["answers"]
    if site:
        built = texts["date"].format(date=site["built_at"][:10])
        read = texts["date"].format(date=site["last_run_at"][:10]) if site["last_run_at"] else ""
        yield (
            texts["site"],
            [
                (texts["pages"], str(site["pages"]), built),
                (texts["read"], *_shown(site["read"], read, texts)),
                *([(texts["unreadable"], str(site["unreadable_sites"]), read)] if site["unreadable_sites"] else []),
            ],
        )
    if answers:
        dates = texts["dates"].format(first=answers["first_at"][:10], last=answers["last_at"][:10])
        times = [(texts[name], answers[f"{name}_ms"]) for name in ("median", "p95")]  # type: ignore[literal-required]
        yield (
            texts["answers"],
            [
                (texts["questions"], str(answers["questions"]), dates),
                (texts["refused"], *_shown(answers["refused"], dates, texts)),
                (texts["marked"], *_shown(answers["marked"], dates, texts)),
                *((title, f"{_number(ms / 1000, texts)} s", dates) for title, ms in times if ms is not None),
            ],
        )
    for one in figures["quality"]:
        said = texts["measured"].format(n=one["questions"], date=one["measured_at"][:10])
        yield (
            texts[one["kind"].replace(" ", "_")],
            [
                (
                    texts.get(name, name),
                    _percent(mean["mean"], texts),
                    f"{_percent(mean['low'], texts)}–{_percent(mean['high'], texts)}, {said}",
                )
                for name, mean in one["measures"].items()
            ],
        )


def _shown(one: Share, dates: str, texts: Mapping[str, str]) -> tuple[str, str]:
    if one.share is None or one.low is None or one.high is None:
        return "–", dates
    interval = f"{_percent(one.low, texts)}–{_percent(one.high, texts)} ({one.count}/{one.of})"
    return _percent(one.share, texts), ", ".join(filter(None, (interval, dates)))


def _percent(part: float, texts: Mapping[str, str]) -> str:
    return texts["percent"].format(n=_number(100 * part, texts))


def _number(value: float, texts: Mapping[str, str]) -> str:
    return f"{value:.1f}".replace(".", texts["decimal"])


def _table(caption: str, rows: Rows) -> str:
    cells = (
        f'<tr><th scope="row">{escape(a)}</th><td>{escape(b)}<small>{escape(c)}</small></td></tr>' for a, b, c in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tbody>{''.join(cells)}</tbody></table>"


def router(service: Service, branding: Branding) -> APIRouter:
    """The routes; without DOCS_TUNING__FIGURES none."""
    figures = Figures(service, branding)
    both: Responses = {200: {"content": json_of(FiguresBody) | {"text/html": {}}}}
    rows: Sequence[Row] = (
        ("figures", "GET", "/figures", figures.page, "Read figures of the service, as a page or as JSON", None, ERRORS | both, {"access": {}}),
        ("figures_json", "GET", "/figures.json", figures.json, "Read figures of the service", FiguresBody, ERRORS, {"access": {}}),
    )  # fmt: skip
    return router_of("Interface", rows if service.settings.tuning.figures else ())
