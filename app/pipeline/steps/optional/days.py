"""Calculates dates: the days of a relative time, and the day some units before today."""

from __future__ import annotations

import datetime as dt

Span = tuple[dt.date, dt.date]
"""The first and the last day of a named time."""

ONE_DAY = dt.timedelta(days=1)
DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "quarter": 3, "half_year": 6, "year": 12, "year_and_a_half": 18}


def relative(name: str, today: dt.date) -> Span:
    """The days of "today", "yesterday", "day_before_yesterday", or of "this_" or "last_" and a unit of the calendar."""
    if name == "day_before_yesterday":
        return today - 2 * ONE_DAY, today - 2 * ONE_DAY
    which, _, unit = {"today": "this_day", "yesterday": "last_day"}.get(name, name).partition("_")
    this = _around(unit, today)
    return this if which == "this" else _around(unit, this[0] - ONE_DAY)


def months(year: int, month: int, count: int) -> Span:
    """The first and the last day of `count` months, from this month on."""
    after = year * 12 + month - 1 + count
    return dt.date(year, month, 1), dt.date(after // 12, after % 12 + 1, 1) - ONE_DAY


def back(today: dt.date, count: int, unit: str) -> dt.date:
    """The day `count` units before today; in a shorter month, its last day."""
    if unit in DAYS:
        return today - count * DAYS[unit] * ONE_DAY
    index = today.year * 12 + today.month - 1 - count * MONTHS[unit]
    first, last = months(index // 12, index % 12 + 1, 1)
    return min(first + (today.day - 1) * ONE_DAY, last)


def weekday_before(today: dt.date, weekday: int) -> dt.date:
    """The last day before today that is this weekday (Monday is 0)."""
    return today - ((today.weekday() - weekday - 1) % 7 + 1) * ONE_DAY


def _around(unit: str, day: dt.date) -> Span:
    """The calendar unit that the day is in."""
    if unit == "day":
        return day, day
    if unit == "week":
        monday = day - day.weekday() * ONE_DAY
        return monday, monday + 6 * ONE_DAY
    count = MONTHS[unit]
    return months(day.year, (day.month - 1) // count * count + 1, count)
