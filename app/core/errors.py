"""Every error that the service raises on purpose. Its message says what failed, with what, and what to do."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

ECHOED = 100


def quoted(text: str) -> str:
    """Input as messages and log lines repeat it: in quotation marks, at most `ECHOED` characters."""
    return repr(text) if len(text) <= ECHOED else f"{text[:ECHOED]!r}…"


class AssistantError(Exception):
    """Base of every error that the service raises on purpose. `step` is the step of the pipeline that raised it."""

    step = ""


class SettingsError(AssistantError):
    """A setting is missing or wrong."""


class PromptError(AssistantError):
    """A prompt or language file is missing or has wrong placeholders."""


class RequestError(AssistantError):
    """The client's request is invalid; `param` names the field."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        self.code = code


class LimitReached(RequestError):
    """A key or an address has sent too many requests. `headers` say how many it may send."""

    def __init__(self, message: str, *, retry_after: int = 1, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, code="rate_limit_exceeded")
        self.retry_after = retry_after
        self.headers = headers or {}


class LimitsUnavailable(AssistantError):
    """The server that counts requests can't be reached."""


class ProviderError(AssistantError):
    """The OpenID Connect provider by which people sign in can't be reached, or answers otherwise than it should."""


class Overloaded(AssistantError):
    """Too many requests at the same time; a later one may succeed."""


class AnswerTimeout(AssistantError):
    """An answer took too long."""


class QuestionSetError(AssistantError):
    """A question can't be added to the question set, because the file can't be read or written."""


class StepError(AssistantError):
    """A step of a project took too long, or returned what it doesn't declare."""


class WorkersUnavailable(AssistantError):
    """No process can be started that converts pages: for want of memory, of a directory for temporary files, or such."""


class StoreError(AssistantError):
    """The store gave an unexpected response."""


class StoreUnavailable(StoreError):
    """The store can't be reached."""


class StoreBusy(StoreError):
    """Another run is writing to the index."""


class NoIndex(StoreError):
    """Nothing has been indexed yet."""


class StillReading(NoIndex):
    """Nothing has been indexed yet, and a run is reading the pages. The message is for readers, in their language."""


class IndexDamaged(StoreError):
    """The index can't be read."""


class IndexMismatch(StoreError):
    """The index was built with another embedder or dimension."""


class DatabaseError(AssistantError):
    """The database of conversations gave an unexpected response."""


class DatabaseUnavailable(DatabaseError):
    """The database of conversations can't be reached, or took too long."""


class DatabaseTooNew(DatabaseError):
    """A newer version of this program has changed the tables of the database."""


class ModelError(AssistantError):
    """A language model, embedder or reranker gave an unusable response.

    `status` is that of the response, 0 without one, `body` what it said, and `retry_after` the seconds that it asks to wait.
    `rows` are the results for the first of several texts, if a later call failed.
    """

    rows: Sequence[Any] = ()

    def __init__(self, message: str, *, status: int = 0, body: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status, self.body, self.retry_after = status, body, retry_after


class ModelUnavailable(ModelError):
    """A language model or embedder can't be reached, or responded with status 5xx."""


class ModelRateLimited(ModelError):
    """A language model or embedder responded with status 429."""


class ModelTimeout(ModelError):
    """A language model or embedder took too long."""


class CrawlError(AssistantError):
    """A site can't be read."""


class SitemapError(CrawlError):
    """A sitemap can't be read, or lists nothing."""


class ReaderError(CrawlError):
    """A LlamaIndex reader fails, or gives no document. The pages of its source stay as they are."""


class SourceUnavailable(CrawlError):
    """A git repository can't be read. The pages of its source stay as they are."""


class NotPublished(CrawlError):
    """A run was stopped before it changed the index; `report` has the outcome of each page."""

    def __init__(self, message: str, *, report: object = None) -> None:
        super().__init__(message)
        self.report = report


class RunRefused(NotPublished):
    """A run would have removed so many pages that the site is probably broken."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most similar, or an empty string if none is similar. Upper and lower case are the same."""
    spellings = {spelling.lower(): spelling for spelling in known}
    matches = get_close_matches(name.lower(), spellings, n=1)
    return spellings[matches[0]] if matches else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean X?`, to append to an error about an unknown name; empty if no known name is similar."""
    similar = nearest(name, known)
    return f" Did you mean {similar}?" if similar else ""
