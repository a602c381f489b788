"""Question sets from the question log: what readers asked, once each, with the page that answered it if they said so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urldefrag

from app.conversations import log_figures as figures
from app.conversations.log_figures import Asked
from app.core.settings import Settings
from app.gaps.making import WEAK, nothing_logged, opened_log
from app.gaps.period import Period

Only = Literal["all", "refused", "weak", "down"]
AT_MOST = 10_000
"""Different questions of a set, the most frequent ones."""
KIND = "from log"


def logged_rows(settings: Settings, period: Period, only: Only, assistant: str = "") -> Sequence[Mapping[str, Any]]:
    """The rows of a set, the most frequent question first. Raises `RequestError` if there is no such question.

    `doc` is the page of the first source of an answer that was rated up; the others don't have it, so that they are read as
    unanswerable questions or labelled by hand.
    """
    asked = Asked(period.since, period.until, assistant, WEAK)
    with opened_log(settings) as log:
        numbers = log.read(figures.newest_of_each, asked, only, AT_MOST)
        rows = log.read(figures.rows_of, numbers)
        if not rows:
            raise nothing_logged(settings, period, log.read(figures.count_before, asked)[2], only)
        found = [rows[number] for number in numbers if number in rows]
        liked = log.read(figures.rated_up, asked, [one.digest for one in found])
    return [_row(one.digest, one.language, one.text, liked.get(one.digest, ())) for one in found]


def _row(digest: str, language: str, text: str, used: Sequence[str]) -> Mapping[str, Any]:
    row = {"id": digest[:12], "lang": language, "question": text}
    pages = list(dict.fromkeys(urldefrag(url).url for url in used))
    if not pages:
        return row | {"kind": KIND}
    return row | {"doc": pages[0]} | ({"also": pages[1:]} if pages[1:] else {})
