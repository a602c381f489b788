"""Factors on the fused score of a hit, by the date, the address and the collection of its page."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from statistics import median
from urllib.parse import urlsplit

from app.core.types import Boost, Candidate, Query, Recency

DAYS_A_YEAR = 365.25
NEAR_THE_READER = 1.1
"""Factor for pages in the section of the site where the reader is; the page itself has it twice."""


def near_page(page: str) -> tuple[Boost, ...]:
    """Boosts for the page at this address and for the pages beside and below it; none for a page at the top of its site."""
    address = urlsplit(page)
    site, path = f"{address.scheme}://{address.netloc}", address.path.removesuffix("/index.html").rstrip("/")
    beside = path.rpartition("/")[0]
    if not path:
        return ()
    own = Boost(NEAR_THE_READER, urls=(f"{site}{path}",), url_prefixes=(f"{site}{path}/",))
    return (own, Boost(NEAR_THE_READER, url_prefixes=(f"{site}{beside}/",)) if beside else own)


def factors(candidates: Mapping[str, Candidate], query: Query) -> Mapping[str, float]:
    """The factors for the fused scores, by id; a missing id means 1."""
    if not query.boosts and query.recency is None:
        return {}
    found = dict.fromkeys(candidates, 1.0)
    for boost in query.boosts:
        for id_, candidate in candidates.items():
            found[id_] *= boost.factor if _fits(boost, candidate) else 1.0
    if query.recency is not None:
        for id_, factor in _recent(candidates, query.recency).items():
            found[id_] *= factor
    return found


def _fits(boost: Boost, candidate: Candidate) -> bool:
    day = candidate.dated[:10]
    if (boost.first or boost.last) and not day:
        return False
    late, early = bool(boost.first) and day < boost.first, bool(boost.last) and day > boost.last
    if late or early:
        return False
    anywhere = not (boost.urls or boost.url_prefixes or boost.collections)
    near = candidate.url in boost.urls or candidate.url.startswith(boost.url_prefixes)
    return anywhere or near or candidate.collection in boost.collections


def _recent(candidates: Mapping[str, Candidate], recency: Recency) -> Mapping[str, float]:
    """Factors by age. A page without a date gets the median of the pages with a date."""
    today = dt.date.fromisoformat(recency.today)
    days = {id_: candidate.dated[:10] for id_, candidate in candidates.items() if candidate.dated}
    if len(set(days.values())) < 2:  # a single day is probably the day of a build, which means nothing
        return {}
    aged = {id_: _aged(today, day, recency) for id_, day in days.items()}
    middle = median(aged.values())
    return {id_: aged.get(id_, middle) for id_ in candidates}


def _aged(today: dt.date, day: str, recency: Recency) -> float:
    years = max(0.0, (today - dt.date.fromisoformat(day)).days / DAYS_A_YEAR)
    return 1 / (1 + recency.loss * min(years, recency.years))
