"""The time that a question asks about, found by rules: an operator, a date, and the question without them.

Words and forms are data, `prompts/<language>/dates.toml`. The rules rather miss a time than invent one: "backups
older than 30 days" is about backups, not about pages.
"""

from __future__ import annotations

import datetime as dt
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from app.core.errors import PromptError
from app.core.prompts import Prompts
from app.core.types import Boost

Operator = Literal["lt", "lte", "gt", "gte", "eq"]
OPERATORS: tuple[Operator, ...] = ("lt", "lte", "gt", "gte", "eq")

ISO_DAY = r"(?P<year>20\d\d)-(?P<m>0?[1-9]|1[0-2])-(?P<d>0?[1-9]|[12]\d|3[01])"
PARTS = {
    "year": r"(?P<year>20\d\d)",
    "m": r"(?P<m>0?[1-9]|1[0-2])",
    "d": r"(?P<d>0?[1-9]|[12]\d|3[01])",
    "q": r"(?P<q>[1-4])",
}
KINDS = ("day", "month", "quarter", "year", "bare_month")
MONTHS = {"month": 1, "quarter": 3, "year": 12}
ONE_DAY = dt.timedelta(days=1)
BEFORE, AFTER = r"(?<![\w./-])", r"(?![\w/-]|[.,:]\d)"


@dataclass(frozen=True, slots=True)
class Period:
    """A wish about the date of pages: `operator` against `date`; for "eq" any day from `date` to `last` fits.

    Dates are ISO 8601 days. `question` is the question without the words that say so.
    """

    operator: Operator
    date: str
    last: str
    question: str

    def boost(self, factor: float) -> Boost:
        """Lifts the pages that are wished for."""
        day = dt.date.fromisoformat(self.date)
        match self.operator:
            case "lt":
                return Boost(factor, last=(day - ONE_DAY).isoformat())
            case "lte":
                return Boost(factor, last=self.date)
            case "gt":
                return Boost(factor, first=(day + ONE_DAY).isoformat())
            case "gte":
                return Boost(factor, first=self.date)
            case "eq":
                return Boost(factor, first=self.date, last=self.last)


Span = tuple[dt.date, dt.date]
"""The first and the last day of a named time."""


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    operator: Operator
    span: Span
    certain: bool


class PeriodRules:
    """The rules of one language. `forms` is its `dates.toml`; raises `KeyError` or `re.error` where that is wrong."""

    def __init__(self, forms: Mapping[str, Any], stopwords: frozenset[str]) -> None:
        self._stopwords = stopwords
        self._months = [re.compile(month) for month in forms["months"]]
        self._units: Mapping[str, re.Pattern[str]] = {k: re.compile(v) for k, v in forms["units"].items()}
        self._numbers = {int(number): re.compile(words) for number, words in forms["numbers"].items()}
        self._named = {name: re.compile(words) for name, words in forms["named"].items()}
        self._edges = {edge: re.compile(rf"(?:{words})\s+") for edge, words in forms["edges"].items()}
        parts = PARTS | {"month": f"(?P<month>{'|'.join(forms['months'])})"}
        written = [("day", ISO_DAY)] + [(kind, form) for kind in KINDS for form in forms["written"][kind]]
        self._written = [(kind, re.compile(_filled(form, parts))) for kind, form in written]
        self._about = re.compile(rf"\b(?:{forms['words']['about_pages']})\b")
        self._not_about = re.compile(rf"\b(?:{forms['words']['not_about_pages']})\b")
        hints = [*self._units.values(), *self._named.values(), *(pattern for _, pattern in self._written)]
        self._hint = re.compile(f"{BEFORE}(?:{'|'.join(_anonymous(hint.pattern) for hint in hints)}){AFTER}")
        self._patterns = list(self._compiled(forms["operators"]))
        self._last = [self._counted(form) for form in forms["operators"]["last"]]

    def period(self, question: str, today: dt.date) -> Period | None:
        """What the question wishes of the pages' dates, or None."""
        folded = _folded(question)
        found = max(self._found(folded, today), key=lambda one: one.end - one.start, default=None)
        if found is None or self._not_about.search(folded):
            return None
        if not found.certain and not self._about.search(folded[: found.start] + " " + folded[found.end :]):
            return None
        date, last = _dated(found.operator, found.span)
        return Period(found.operator, date, last, _without(question, found.start, found.end))

    def hinted(self, question: str) -> bool:
        """Whether anything in the question names a time, be it about pages or not."""
        return self._hint.search(_folded(question)) is not None

    def _found(self, text: str, today: dt.date) -> Iterator[_Found]:
        for operator, bare, pattern in self._patterns:
            for match in pattern.finditer(text):
                named = match["period"]
                span, with_year = self._span(named, today)
                if span is None or (re.fullmatch(r"20\d\d", named) and not self._ends_there(text[match.end() :])):
                    continue
                certain = with_year and not bare and operator != "eq"
                yield _Found(match.start(), match.end(), operator, span, certain)
        for pattern in self._last:
            for match in pattern.finditer(text):
                since = self._back(match, today)
                yield _Found(match.start(), match.end(), "gte", (since, since), certain=False)

    def _ends_there(self, rest: str) -> bool:
        """Whether a number like a year is one: not when a noun follows, as in "after 2000 files"."""
        following = re.match(r"\s*(\w+)", rest)
        return following is None or rest[:1] not in " \t\n" or following[1] in self._stopwords

    def _span(self, named: str, today: dt.date) -> tuple[Span | None, bool]:
        """The days of a named time, and whether its year was said."""
        for edge, words in self._edges.items():
            if match := words.match(named):
                span, with_year = self._span(named[match.end() :], today)
                if span is not None:
                    day = span[0] if edge == "start" else span[1]
                    span = (day, day)
                return span, with_year
        for name, words in self._named.items():
            if words.fullmatch(named):
                return _relative(name, today), False
        for kind, pattern in self._written:
            if match := pattern.fullmatch(named):
                return self._written_span(kind, match.groupdict(), today), kind != "bare_month"
        return None, False

    def _written_span(self, kind: str, parts: Mapping[str, str | None], today: dt.date) -> Span | None:
        month = int(parts.get("m") or 0) or self._month(parts.get("month") or "")
        if kind == "bare_month":
            year = today.year if month <= today.month else today.year - 1
        else:
            year = int(parts["year"] or 0)
        try:
            if kind == "day":
                day = dt.date(year, month, int(parts["d"] or 0))
                return day, day
        except ValueError:  # the 31st of June
            return None
        if kind == "year":
            return dt.date(year, 1, 1), dt.date(year, 12, 31)
        if kind == "quarter":
            return _months(year, 3 * int(parts["q"] or 0) - 2, 3)
        return _months(year, month, 1)

    def _month(self, word: str) -> int:
        return next((n for n, words in enumerate(self._months, 1) if words.fullmatch(word)), 0)

    def _back(self, match: re.Match[str], today: dt.date) -> dt.date:
        groups = match.groupdict()
        said = groups.get("n") or "1"
        count = int(said) if said.isdigit() else next(n for n, words in self._numbers.items() if words.fullmatch(said))
        unit = next(unit for unit, words in self._units.items() if words.fullmatch(groups["unit"]))
        if unit in ("day", "week"):
            return today - dt.timedelta(days=count * (7 if unit == "week" else 1))
        return _months_back(today, count * MONTHS[unit])

    def _compiled(self, operators: Mapping[str, Sequence[str]]) -> Iterator[tuple[Operator, bool, re.Pattern[str]]]:
        """(operator, whether it is a name alone, pattern) of every form."""
        written = [_anonymous(pattern.pattern) for _, pattern in self._written]
        named = [words.pattern for words in self._named.values()]
        edges = "|".join(words.pattern for words in self._edges.values())
        period = rf"(?P<period>(?:{edges})?(?:{'|'.join([*written, *named])}))"
        day = rf"(?P<period>{'|'.join(_anonymous(p.pattern) for kind, p in self._written if kind == 'day')})"
        for name in OPERATORS:
            for form in operators[name]:
                filled = form.replace("{period}", period).replace("{written_day}", day)
                yield name, False, re.compile(f"{BEFORE}{filled}{AFTER}")
        for key, operator in (("bare_eq", "eq"), ("bare_gte", "gte")):
            for name_ in operators[key]:
                pattern = re.compile(f"{BEFORE}(?P<period>{self._named[name_].pattern}){AFTER}")
                yield "eq" if operator == "eq" else "gte", True, pattern

    def _counted(self, form: str) -> re.Pattern[str]:
        number = rf"(?P<n>\d{{1,3}}|{'|'.join(words.pattern for words in self._numbers.values())})"
        unit = rf"(?P<unit>{'|'.join(words.pattern for words in self._units.values())})"
        return re.compile(f"{BEFORE}{form.replace('{n}', number).replace('{unit}', unit)}{AFTER}")


def open_rules(prompts: Prompts) -> Mapping[str, PeriodRules]:
    """The rules of all languages; `PromptError` names the file of one that can't work."""
    found = {}
    for code, language in prompts.languages.items():
        try:
            found[code] = PeriodRules(language.dates, language.stopwords)
        except (KeyError, TypeError, AttributeError, ValueError, re.error) as error:
            raise PromptError(f"prompts/{code}/dates.toml can't be used: {type(error).__name__} {error}.") from error
    return found


def _dated(operator: Operator, span: Span) -> tuple[str, str]:
    """What to compare with: "after March" begins when March is over, "until March" ends with it."""
    first, last = span
    day = last if operator in ("gt", "lte") else first
    return day.isoformat(), last.isoformat()


def _relative(name: str, today: dt.date) -> Span:
    which, _, unit = {"today": "this_day", "yesterday": "last_day"}.get(name, name).partition("_")
    this = _around(unit, today)
    return this if which == "this" else _around(unit, this[0] - ONE_DAY)


def _around(unit: str, day: dt.date) -> Span:
    """The whole unit of the calendar that the day lies in."""
    if unit == "day":
        return day, day
    if unit == "week":
        monday = day - day.weekday() * ONE_DAY
        return monday, monday + 6 * ONE_DAY
    count = MONTHS[unit]
    return _months(day.year, (day.month - 1) // count * count + 1, count)


def _months(year: int, month: int, count: int) -> Span:
    """From the first day of a month to the last one of `count` months."""
    after = year * 12 + month - 1 + count
    return dt.date(year, month, 1), dt.date(after // 12, after % 12 + 1, 1) - dt.timedelta(days=1)


def _months_back(day: dt.date, count: int) -> dt.date:
    """The same day so many months before, or the month's last where it is shorter."""
    index = day.year * 12 + day.month - 1 - count
    return min(
        dt.date(index // 12, index % 12 + 1, 1) + dt.timedelta(days=day.day - 1),
        _months(index // 12, index % 12 + 1, 1)[1],
    )


def _filled(form: str, parts: Mapping[str, str]) -> str:
    for name, pattern in parts.items():
        form = form.replace(f"{{{name}}}", pattern)
    return form


def _anonymous(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def _folded(text: str) -> str:
    """Small letters without diacritics, each where it was."""
    return "".join((unicodedata.normalize("NFD", c)[0].lower() or c)[0] for c in text)


def _without(question: str, start: int, end: int) -> str:
    rest = f"{question[:start].rstrip()} {question[end:].lstrip()}"
    return re.sub(r"\s+([?.!,;:])", r"\1", rest).strip(" ,")
