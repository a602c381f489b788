"""Reads the period of time that a question is about, and ranks pages of it first."""

import datetime as dt
import json
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from app.core.errors import ModelError, PromptError
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn, WantedDates
from app.core.types import Boost, Recency
from app.models import Model
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import model_for
from app.pipeline.runner import Changes, Step
from app.text.language import without_stopwords

log = logging.getLogger("app.pipeline")

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


def _around(unit: str, day: dt.date) -> Span:
    """The calendar unit that the day is in."""
    if unit == "day":
        return day, day
    if unit == "week":
        monday = day - day.weekday() * ONE_DAY
        return monday, monday + 6 * ONE_DAY
    count = MONTHS[unit]
    return months(day.year, (day.month - 1) // count * count + 1, count)


Operator = Literal["lt", "lte", "gt", "gte", "eq"]
OPERATORS: tuple[Operator, ...] = ("lt", "lte", "gt", "gte", "eq")

ISO = {
    "day": r"(?P<year>20\d\d)-(?P<m>0?[1-9]|1[0-2])-(?P<d>0?[1-9]|[12]\d|3[01])",
    "month": r"(?P<year>20\d\d)-(?P<m>0[1-9]|1[0-2])",
}
PARTS = {
    "year": r"(?P<year>20\d\d)",
    "m": r"(?P<m>0?[1-9]|1[0-2])",
    "d": r"(?P<d>0?[1-9]|[12]\d|3[01])",
    "q": r"(?P<q>[1-4])",
}
SURE = ("day", "month", "month_of_year", "quarter", "year")
"""Kinds of written times that can be nothing else."""
KINDS = (*SURE, "bare_day", "bare_year", "bare_month", "weekday")
YEARS = ("last_year", "this_year")
BEFORE, AFTER = r"(?<![\w./-])", r"(?![\w/-]|[.,:]\d)"
A_YEAR = re.compile(rf"(?<![\w./])20\d\d{AFTER}")


@dataclass(frozen=True, slots=True)
class Period:
    """A wish about the date of pages: `operator` against `date`; for "eq" any day from `date` to `last` fits.

    Dates are ISO 8601 days. `question` is the question without the `words` that say so; these are empty if a model left them out.
    """

    operator: Operator
    date: str
    last: str
    question: str
    words: str = field(default="", compare=False)

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


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    operator: Operator
    span: Span
    kind: str
    certain: bool


class PeriodRules:
    """The rules of one language. `forms` is its `dates.toml`; raises `KeyError` or `re.error` where that is wrong."""

    def __init__(self, forms: Mapping[str, Any], stopwords: frozenset[str]) -> None:
        self._stopwords = stopwords
        self._months = [re.compile(month) for month in forms["months"]]
        self._weekdays = [re.compile(day) for day in forms["weekdays"]]
        self._units: Mapping[str, re.Pattern[str]] = {k: re.compile(v) for k, v in forms["units"].items()}
        self._numbers = {int(number): re.compile(words) for number, words in forms["numbers"].items()}
        self._named = {name: re.compile(words) for name, words in forms["named"].items()}
        self._edges = {edge: re.compile(rf"(?:{words})\s+") for edge, words in forms["edges"].items()}
        parts = PARTS | {
            "month": f"(?P<month>{'|'.join(forms['months'])})",
            "weekday": f"(?P<weekday>{'|'.join(forms['weekdays'])})",
            **{name: f"(?P<{name}>{forms['named'][name]})" for name in YEARS},
        }
        written = [*ISO.items(), *((kind, form) for kind in KINDS for form in forms["written"][kind])]
        written.sort(key=lambda one: KINDS.index(one[0]))
        self._written = [(kind, re.compile(_filled(form, parts))) for kind, form in written]
        self._patterns = list(self._compiled(forms["operators"]))
        self._last = [self._counted(form) for form in forms["operators"]["last"]]
        words = forms["words"]
        self._about = re.compile(rf"\b(?:{words['about_pages']})\b")
        self._perhaps_about = re.compile(rf"\b(?:{words['about_pages']}|{words['perhaps_about_pages']})\b")
        self._not_about = re.compile(rf"\b(?:{words['not_about_pages']})\b")
        named = {name: f"(?:{words[name]})" for name in ("about_pages", "other_things")}
        named["stopword"] = f"(?:{'|'.join(sorted(stopwords))})"
        self._other_things = re.compile(rf"\b{named['other_things']}\b")
        self._topics = re.compile("|".join(rf"\b(?:{_filled(form, named)})" for form in words["topics"]))
        hints = [_anonymous(_filled(hint, parts)) for hint in forms["hints"]]
        times = [*self._alternatives((*SURE, "bare_day")), *(named.pattern for named in self._named.values()), *hints]
        self._time = _any(times)
        self._hint = _any([*times, *(unit.pattern for unit in self._units.values())])

    def period(self, question: str, today: dt.date) -> Period | None:
        """The period that the question asks about, or None."""
        folded = _folded(question)
        period = max(self._found(folded, today), key=lambda one: one.end - one.start, default=None)
        if period is None:
            return None
        rest = f"{folded[: period.start]} | {folded[period.end :]}"
        if self._not_about.search(rest) or self._other_things.search(self._topics.sub("", rest)):
            return None
        about = self._about if period.kind == "bare_year" else self._perhaps_about
        if self._time.search(rest) or not (period.certain or about.search(rest)):
            return None
        date, last = _dated(period.operator, period.span)
        rest = _without(question, period.start, period.end)
        return Period(period.operator, date, last, rest, question[period.start : period.end].strip())

    def hinted(self, question: str, today: dt.date) -> bool:
        """True if the question names any time, of pages or of something else; ignores future years."""
        folded = A_YEAR.sub(lambda year: year[0] if int(year[0]) <= today.year else "", _folded(question))
        named = A_YEAR.search(folded) or self._hint.search(folded)
        return named is not None or any(self._found(folded, today))

    def _found(self, text: str, today: dt.date) -> Iterator[_Found]:
        for operator, bare, pattern in self._patterns:
            for match in pattern.finditer(text):
                span, kind = self._span(match["period"], today)
                if span is None or span[0] > today:
                    continue
                if kind == "bare_year" and not self._ends_there(text[match.end() :]):
                    continue
                certain = kind in SURE and not bare and operator != "eq"
                yield _Found(match.start(), match.end(), operator, span, kind, certain)
        for pattern in self._last:
            for match in pattern.finditer(text):
                since = self._back(match, today)
                yield _Found(match.start(), match.end(), "gte", (since, since), kind="", certain=False)

    def _ends_there(self, rest: str) -> bool:
        """True if a number can be a year; it isn't one before a noun, as in "after 2000 files"."""
        following = re.match(r"\s*(\w+)", rest)
        return following is None or rest[:1] not in " \t\n" or following[1] in self._stopwords

    def _span(self, named: str, today: dt.date) -> tuple[Span | None, str]:
        """The days of a named time, and its kind if it is a date."""
        for edge, words in self._edges.items():
            if match := words.match(named):
                span, kind = self._span(named[match.end() :], today)
                if span is not None:
                    day = span[0] if edge == "start" else span[1]
                    span = (day, day)
                return span, "year" if kind == "bare_year" else kind
        for kind, pattern in self._written:
            if match := pattern.fullmatch(named):
                return self._written_span(match.groupdict(), today), kind
        name = next((name for name, words in self._named.items() if words.fullmatch(named)), "")
        return (relative(name, today), "") if name else (None, "")

    def _written_span(self, parts: Mapping[str, str | None], today: dt.date) -> Span | None:
        if weekday := parts.get("weekday"):
            back_to = (today.weekday() - _index(self._weekdays, weekday) - 1) % 7 + 1  # 1 to 7 days: it isn't today
            return (today - back_to * ONE_DAY,) * 2
        month = int(parts.get("m") or 0) or _index(self._months, parts.get("month") or "") + 1
        day_of_month = int(parts.get("d") or 0)
        if parts.get("last_year") or parts.get("this_year"):
            year = today.year - (1 if parts.get("last_year") else 0)
        elif not (year := int(parts.get("year") or 0)):  # the last one that isn't in the future
            year = today.year - (1 if (month, day_of_month) > (today.month, today.day) else 0)
        if quarter := int(parts.get("q") or 0):
            return months(year, 3 * quarter - 2, 3)
        if not month:
            return months(year, 1, 12)
        first, last = months(year, month, 1)
        if day_of_month > last.day:  # the 31st of June
            return None
        return (first, last) if not day_of_month else (first.replace(day=day_of_month),) * 2

    def _back(self, match: re.Match[str], today: dt.date) -> dt.date:
        groups = match.groupdict()
        said = groups.get("n") or "1"
        count = int(said) if said.isdigit() else next(n for n, words in self._numbers.items() if words.fullmatch(said))
        return back(today, count, next(unit for unit, words in self._units.items() if words.fullmatch(groups["unit"])))

    def _alternatives(self, kinds: Iterable[str]) -> list[str]:
        return [_anonymous(pattern.pattern) for kind, pattern in self._written if kind in kinds]

    def _compiled(self, operators: Mapping[str, Sequence[str]]) -> Iterator[tuple[Operator, bool, re.Pattern[str]]]:
        """The operator, whether it is a name alone, and the pattern of every form."""
        named = [words.pattern for words in self._named.values()]
        edges = "|".join(words.pattern for words in self._edges.values())
        period = rf"(?P<period>(?:{edges})?(?:{'|'.join([*self._alternatives(KINDS), *named])}))"
        alone = {f"written_{kind}": f"(?P<period>{'|'.join(self._alternatives([kind]))})" for kind in KINDS}
        for name in OPERATORS:
            for form in operators[name]:
                yield name, False, re.compile(f"{BEFORE}{_filled(form, {'period': period} | alone)}{AFTER}")
        bare: tuple[tuple[str, Operator], ...] = (("bare_eq", "eq"), ("bare_gte", "gte"))
        for key, operator in bare:
            for name_ in operators[key]:
                pattern = re.compile(f"{BEFORE}(?P<period>{self._named[name_].pattern}){AFTER}")
                yield operator, True, pattern

    def _counted(self, form: str) -> re.Pattern[str]:
        number = rf"(?P<n>\d{{1,3}}|{'|'.join(words.pattern for words in self._numbers.values())})"
        unit = rf"(?P<unit>{'|'.join(words.pattern for words in self._units.values())})"
        return re.compile(f"{BEFORE}{_filled(form, {'n': number, 'unit': unit})}{AFTER}")


def open_rules(prompts: Prompts) -> Mapping[str, PeriodRules]:
    """The rules of all languages. Raises `PromptError` with the name of an invalid file."""
    rules = {}
    for code, language in prompts.languages.items():
        try:
            rules[code] = PeriodRules(language.dates, language.traits.stopwords)
        except (KeyError, TypeError, AttributeError, ValueError, re.error) as error:
            raise PromptError(f"prompts/{code}/dates.toml is invalid: {type(error).__name__} {error}.") from error
    return rules


def _dated(operator: Operator, span: Span) -> tuple[str, str]:
    """The dates to compare with: "after March" starts after its last day, "until March" ends on it."""
    first, last = span
    day = last if operator in ("gt", "lte") else first
    return day.isoformat(), last.isoformat()


def _index(patterns: Sequence[re.Pattern[str]], word: str) -> int:
    return next((n for n, words in enumerate(patterns) if words.fullmatch(word)), -1)


def _filled(form: str, parts: Mapping[str, str]) -> str:
    for name, pattern in parts.items():
        form = form.replace(f"{{{name}}}", pattern)
    return form


def _any(patterns: Iterable[str]) -> re.Pattern[str]:
    return re.compile(f"{BEFORE}(?:{'|'.join(patterns)}){AFTER}")


def _anonymous(pattern: str) -> str:
    return re.sub(r"\(\?P<\w+>", "(?:", pattern)


def _folded(text: str) -> str:
    """The text in lower case without diacritics, each letter at its place."""
    return "".join((unicodedata.normalize("NFD", c)[0].lower() or c)[0] for c in text)


def _without(question: str, start: int, end: int) -> str:
    rest = f"{question[:start].rstrip()} {question[end:].lstrip()}"
    return re.sub(r"(?<!\s)\s++([?.!,;:])", r"\1", rest).strip(" ,")


PERIOD_BOOST = 15.0
"""Factor for the score of pages from the time that a question names."""
RECENCY_LOSS = 0.5
"""The loss of a page's score with each year of its age if a question names no time."""
FEWEST_WORDS = 2  # that tell what is asked about: with fewer left, the time is all that the question says


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


@dataclass(frozen=True)
class AskedPeriod(Step):
    """Finds the period by rules, or asks the model if the question names a time that the rules don't understand."""

    prompts: Prompts
    settings: Settings
    rules: Mapping[str, PeriodRules]
    model: Model | None = None
    today: Callable[[], dt.date] = field(default=_today)
    boost: float = PERIOD_BOOST
    loss: float = RECENCY_LOSS
    quoted: frozenset[str] = frozenset()
    name = "period"
    reads = ("asked",)
    writes = ("dates",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The boost of pages of the period that the question names; without one, or if the model fails, the preference for newer ones."""
        today = self.today()
        newer: Changes = {"dates": WantedDates(recency=Recency(today.isoformat(), self.loss))}
        period = self.rules[turn.asked.language].period(turn.asked.text, today)
        hinted = period is None and self.rules[turn.asked.language].hinted(turn.asked.text, today)
        if hinted and (model := model_for(self, turn)):
            try:
                period = await self._asked(model, turn, today)
            except ModelError as error:
                log.warning(LogMessage("period not read, newer pages are preferred", id=turn.request.id, error=error))
        if period is None:
            return newer
        shorter = period.question != turn.asked.text and self._tells(period.question, turn)
        topic = period.question if shorter else ""
        return {"dates": WantedDates(topic, period.words if topic else "", period.boost(self.boost))}

    async def _asked(self, model: Model, turn: Turn, today: dt.date) -> Period | None:
        system = self.prompts.render(turn.asked.language, "period", today=today.isoformat())
        messages = [Message("system", system), Message("user", turn.asked.text)]
        period = parse(await ask_helper(self.name, model, messages, turn, self.settings), turn.asked.text)
        return None if period and int(period.date[:4]) > today.year else period  # the number isn't a year

    def _tells(self, question: str, turn: Turn) -> bool:
        """True if the question without its period still has enough content words."""
        telling = without_stopwords(question, self.prompts.language(turn.asked.language)).split()
        return len([word for word in telling if re.search(r"\w", word)]) >= FEWEST_WORDS


def parse(answer: str, question: str) -> Period | None:
    """The period in the JSON object of a reply; None if the reply says that there is none.

    A question in the reply that is empty or longer than the asked one is ignored. Raises `ModelError` for other replies.
    """
    match = re.search(r"\{[^{}]*\}", answer)
    unread = f"The reply has no period: {answer[:200]!r}. The question is searched unchanged."
    try:
        said = json.loads(match[0] if match else answer)
        operator = said["operator"]
        if operator in (None, "", "none", "null"):
            return None
        day = dt.date.fromisoformat(said["date"]).isoformat()
        last = dt.date.fromisoformat((operator == "eq" and said.get("last")) or day).isoformat()
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(unread) from error
    if operator not in OPERATORS or last < day:
        raise ModelError(unread)
    shorter = said.get("question")
    fits = isinstance(shorter, str) and shorter.strip() and len(shorter.strip()) <= len(question)
    return Period(operator, day, last, shorter.strip() if fits else question)
