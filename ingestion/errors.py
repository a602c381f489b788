"""Errors of one page, none of which ends a run."""

from app.core.errors import AssistantError, CrawlError

NOINDEX = "asks not to be indexed (noindex)"
"""The reason for leaving out a page that says so."""


class PageError(CrawlError):
    """A page can't be fetched, so its indexed state stays. `status` is the HTTP status, or 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class PageSkipped(PageError):
    """Rules or limits forbid fetching the page."""


class PageGone(PageError):
    """The site says that the page no longer exists (404, 410)."""


class ConversionError(CrawlError):
    """A downloaded page contains nothing that can be indexed."""


class NeedsJavaScript(ConversionError):
    """The page has no text before its JavaScript runs."""


class PageLeftOut(ConversionError):
    """A page isn't for the index: it says so itself, sends readers on, or only searches or lists other pages."""


def is_of_page(error: Exception) -> bool:
    """False for an error of the store, of a model or of the settings, which would fail every other page too."""
    return isinstance(error, CrawlError) or not isinstance(error, AssistantError)
