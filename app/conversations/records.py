"""The rows of the database, as the API gets them. Times are in seconds since 1970."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import urldefrag

from app.core.turn import Source, Unsupported, Verbatim

Rating = Literal["up", "down"]
Order = Literal["asc", "desc"]
REFUSED = ("refused", "recited", "unproven")
"""Outcomes of answers that only say that the documentation has none."""
SURE, DOUBTED = ("written", "extractive"), ("marked", "perhaps")
"""Outcomes of answers that readers get without a doubt, and of those with a mark or "Perhaps"."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found:
    """Findings of the pipeline for a question, for the question log.

    `evidence` is the share of the question (0..1) that the best passage contains, None if it wasn't checked, and `needed` the
    minimum for an answer. `nearest` has `url`, `title`, `section`, `language` and `score` of the best hit, also if it was too
    weak; it is empty without any. `vector` is that of the question in 16-bit floats, made by `embedder`. `key` is the name of
    the key that asked, empty without one and of a person. `tokens` are those of all calls to language models.
    `ms` is the time from the request to the end of the answer, 0 if it isn't known.
    """

    evidence: float | None = None
    needed: float = 0.0
    nearest: Mapping[str, Any] = field(default_factory=dict)
    vector: bytes = b""
    embedder: str = ""
    key: str = ""
    tokens: int = 0
    ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedQuestion(Found):
    """A row of the question log; `text` is redacted, and empty if only digests are logged.

    `digest` is the same for the same question, whatever its case and diacritics. `used` are the addresses of the sources
    shown. `comments` are those of readers who rated the answer, the newest first; `count` and `down` are how many equal questions it
    stands for, and how many of them were rated down. The other fields are as in `KeptAnswer`.
    """

    id: str
    created: float
    text: str
    digest: str
    outcome: str
    assistant: str = ""
    language: str = ""
    used: Sequence[str] = ()
    rating: str = ""
    number: int = 0
    comments: Sequence[str] = ()
    count: int = 1
    down: int = 0


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A question and its answer. `id` is that of the response, `owner` the one whose key asked.

    `makes`: its conversation is made if there is none. `previous` is the answer that it follows outside of conversations.
    `outcome` is that of `AnswerRecord`, `unsupported` and `verbatim` those of its end, None if the last is unknown. `reader` is what DOCS_KEEP_USER keeps of the user. `number` counts up with time.
    `found` is for the question log, and isn't read again.
    """

    id: str
    owner: str
    question: str
    answer: str
    created: float
    conversation: str = ""
    makes: bool = False
    previous: str = ""
    sources: Sequence[Source] = ()
    assistant: str = ""
    language: str = ""
    outcome: str = ""
    generation: int | None = None
    reader: str = ""
    verbatim: Verbatim | None = None
    unsupported: Sequence[Unsupported] = ()
    rating: str = ""
    number: int = 0
    found: Found | None = None


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The questions of a day in UTC: all, those answered, refused, marked, and rated down, and the tokens of all.

    Marked ones are among the answered. A question that was asked back, or failed with an error, is neither answered nor refused.
    """

    day: str
    questions: int
    answered: int
    refused: int
    marked: int
    down: int
    tokens: int


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """The questions of a period: all, those refused and marked, and the times of the first and the last one in seconds since 1970.

    `median` and `p95` are milliseconds until the end of an answer; None if no time is known.
    """

    questions: int
    refused: int
    marked: int
    first: float | None
    last: float | None
    median: int | None
    p95: int | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation. `title` is its first question."""

    id: str
    owner: str
    created: float
    title: str = ""


@dataclass(frozen=True, slots=True)
class Feedback:
    """Opinion of a reader about an answer."""

    rating: str
    comment: str
    created: float
    answer: KeptAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What an editor says of an answer: the `verdict`, with the `reason` in words.

    `pages` are the addresses that answer the question, best first, empty if the editor names none; `answerable` is false if no page does.
    """

    verdict: Literal["good", "wrong"]
    reason: str = ""
    pages: Sequence[str] = ()
    answerable: bool = True
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Given):
    """A verdict with the question and what the answer was then. `id` is that of the answer, times are in seconds since 1970.

    `question`, `answer` and what was said before, `earlier` (pairs of a question and its answer), are redacted as in the question log. `used` are the addresses of its sources; of its `statements`, `unproved` had
    no proof. `digest` is the same for the same question.
    """

    id: str
    created: float
    asked: float
    digest: str
    question: str
    answer: str
    earlier: Sequence[Sequence[str]]
    language: str
    assistant: str
    outcome: str
    used: Sequence[str]
    generation: int | None
    statements: int
    unproved: int

    @property
    def right_pages(self) -> Sequence[str]:
        """The pages that answer the question: those that the editor names, else those of a good answer."""
        return _pages(self.pages or (self.used if self.verdict == "good" else ()))

    @property
    def wrong_pages(self) -> Sequence[str]:
        """The pages of a wrong answer, which must not come first."""
        return [page for page in _pages(self.used) if page not in self.right_pages] if self.verdict == "wrong" else []


def _pages(urls: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(urldefrag(url).url for url in urls))


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The figures of an evaluation of `n` questions. `created` is in seconds since 1970, `kind` is the command.

    `figures` has `rows`: by language and wording, each measure with its interval. Of commands that are compared case by case, `cases` has the id,
    the expected pages and the measures of each case.
    """

    kind: str
    created: float
    n: int
    question_set: str = ""
    assistant: str = ""
    generation: int | None = None
    model: str = ""
    figures: Mapping[str, Any] = field(default_factory=dict)
    cases: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Paging:
    """A part of a list: up to `limit` entries after the one with this id."""

    after: str = ""
    limit: int = 20
    order: Order = "desc"


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A part of a list."""

    data: Sequence[T]
    has_more: bool


def new_conversation_id() -> str:
    """An id that nobody can guess: in an open service, it is what gives access to the conversation."""
    return f"conv_{secrets.token_hex(16)}"


def conversation_id_of(owner: str, chat: str) -> str:
    """The id of the conversation that belongs to a chat of a client of this owner."""
    digest = sha256(f"{owner}\0{chat}".encode()).hexdigest()
    return f"conv_{digest[:32]}"
