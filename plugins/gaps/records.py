"""The report, ready for JSON, and the period that it is about. Times are ISO 8601 in UTC."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Example:
    """A question as it was logged, and how often it was asked."""

    text: str
    language: str
    count: int


@dataclass(frozen=True, slots=True)
class Nearest:
    """The section that most of the questions were nearest to, and the share of them (0..1).

    Only if it is `clear`, the section is probably about the subject.
    """

    url: str
    title: str
    section: str
    language: str
    share: float
    clear: bool


@dataclass(frozen=True, slots=True)
class Cluster:
    """Questions about one subject that weren't answered well.

    `failed` is how often the answer was refused, not supported by its passages, weak or rated down, and `failed_before` the same for
    the time before, None if the log doesn't reach back that far. `to_do` is what would help: to write about the subject, to extend the nearest section, or to
    correct what readers rated down. `name` is the statement that is missing, in words of the questions; it is empty if nothing is
    known of them. `count` is how often these `different` questions were asked. `comments` are those of readers on their answers.
    """

    name: str
    to_do: Literal["write", "extend", "correct"]
    failed: int
    failed_before: int | None
    count: int
    different: int
    refused: int
    unsupported: int
    weak: int
    down: int
    languages: Mapping[str, int]
    nearest: Nearest | None
    examples: Sequence[Example]
    first: str
    last: str
    comments: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Untranslated:
    """A page that answers questions in a `language` that it isn't written in, and that has no translation into it."""

    language: str
    url: str
    title: str
    page_language: str
    count: int


@dataclass(frozen=True, slots=True)
class UnusedPage:
    """A page that no answer has used."""

    url: str
    title: str
    language: str


@dataclass(frozen=True, slots=True)
class Reworded:
    """A question that was refused or rated down, and the next one of its conversation, which was answered; with their ids in the log."""

    before: str
    after: str
    before_id: str
    after_id: str


@dataclass(frozen=True, slots=True)
class SynonymProposal:
    """Readers asked with `other` after they had asked with `phrase` in vain, so many times, as in these `examples`."""

    phrase: str
    other: str
    count: int
    examples: Sequence[Reworded]


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """The questions with this outcome in this language."""

    outcome: str
    language: str
    count: int
    failed: int


@dataclass(frozen=True, slots=True)
class Totals:
    """All questions of the period. Those before are None if the log doesn't reach back that far."""

    questions: int
    different: int
    failed: int
    refused: int
    unsupported: int
    weak: int
    down: int
    questions_before: int | None
    failed_before: int | None
    outcomes: Sequence[OutcomeRow]


@dataclass(frozen=True, slots=True)
class GapReport:
    """Report of what the documentation lacks.

    `log_from` is when the first question was asked that is still kept. `clustered` of `failed_different` questions are in clusters:
    the most frequent ones, but for `chit_chat`, which is how many failures only greet, thank or say nothing. `clusters` are the largest, by failures; `smaller` says how many others there are. `synonyms` are words that readers replaced by others.
    `unused` are the
    first of `unused_count` pages, None if there are too few `answers` to say. `index_problem` says why nothing is
    known of the pages; else it is empty.
    """

    since: str
    until: str
    assistant: str
    retention_days: int
    log: str
    log_from: str
    weak_times: float
    totals: Totals
    clusters: Sequence[Cluster]
    synonyms: Sequence[SynonymProposal]
    smaller: int
    clustered: int
    failed_different: int
    chit_chat: int = 0
    untranslated: Sequence[Untranslated] = ()
    unused: Sequence[UnusedPage] = ()
    unused_count: int | None = 0
    answers: int = 0
    pages: int = 0
    index_problem: str = ""
    object: str = field(default="gap_report")
