"""Dates as sites write them, in headers, sitemaps and pages."""

from __future__ import annotations

import datetime as dt
import re
from email.utils import parsedate_to_datetime

_LONGEST = 100


def parse_date(text: str) -> dt.datetime | None:
    """An ISO or HTTP date as a time in UTC; None when it can't be parsed."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    try:
        found = dt.datetime.fromisoformat(text)
    except ValueError:
        try:
            found = parsedate_to_datetime(text)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return None
    try:
        return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
    except (ArithmeticError, ValueError):  # year 1 or 9999 in another time zone
        return None


def retry_after(value: str) -> float | None:
    """The seconds of a Retry-After header, from its number or its date; None when it can't be read."""
    if re.fullmatch(r"\s*[0-9]{1,9}\s*", value):
        return float(value)
    until = parse_date(value)
    return None if until is None else max(0.0, (until - dt.datetime.now(dt.UTC)).total_seconds())
