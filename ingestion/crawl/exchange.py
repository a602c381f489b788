"""Requests and answers of a crawl: media types, logins, what to do about a status, and bodies that are kept until they are converted."""

from __future__ import annotations

import datetime as dt
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from ingestion.errors import PageError
from ingestion.formats import binary_types, file_types
from ingestion.urls import host

if TYPE_CHECKING:
    import aiohttp

_LONGEST = 100


def parse_date(text: str) -> dt.datetime | None:
    """An ISO or HTTP date as a time in UTC; None when it can't be parsed."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    try:
        date = dt.datetime.fromisoformat(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except (ArithmeticError, LookupError, TypeError, ValueError):
            return None
    try:
        return (date if date.tzinfo else date.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
    except (ArithmeticError, ValueError):  # year 1 or 9999 in another time zone
        return None


_WORD = re.compile(
    r"(?:^|[/._-])(?:log[-_]?in|log[-_]?on|sign[-_]?in|sso|oauth2?|oidc|openid|saml2?|auth|authorize|authenticate|idp|cas)(?:$|[/._-])",
    re.IGNORECASE,
)
_FORM = re.compile(rb"<input\b[^<>]*\btype\s*=\s*[\"']?password\b", re.IGNORECASE)


def has_login_form(body: bytes) -> bool:
    """True if the page has a field for a password."""
    return _FORM.search(body) is not None


def names_login(url: str) -> bool:
    """True if a word of the address's host or path is about signing in."""
    parts = urlsplit(url)
    return _WORD.search(f"{parts.hostname or ''}{parts.path}") is not None


def leads_to_login(url: str, target: str) -> bool:
    """True if a redirect from the first address leads to a login: on another host, or with a way back in its query."""
    return names_login(target) and not names_login(url) and (host(target) != host(url) or bool(urlsplit(target).query))


ACCEPT_HTML = "text/html, application/xhtml+xml;q=0.9, text/plain;q=0.5, */*;q=0.1"
BUILT_TYPES: Mapping[str, str] = MappingProxyType({".html": "text/html", ".htm": "text/html"})
"""File types of a built site, pages where they outnumber the texts that a site is built from."""
FILE_FACTOR = 5
"""The factor by which a file may be larger than a page: most of a PDF file is fonts and pictures."""

_ANY_FILE = frozenset({"application/octet-stream", "binary/octet-stream", "application/x-pdf", "application/zip"})
HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})


def page_types() -> frozenset[str]:
    """The media types of downloads that may be pages."""
    return HTML_TYPES | {"text/x-markdown", "text/plain", "", *file_types().values()}


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer of 200 or 304. `url` is where it came from after `redirects`, each of them an address that moved.

    `signal` is the Content-Signal header, `robots` the X-Robots-Tag header. `login_form` is True for HTML with a field for a
    password.
    """

    url: str
    status: int
    body: bytes = b""
    media_type: str = ""
    charset: str = ""
    etag: str = ""
    last_modified: str = ""
    language: str = ""
    redirects: tuple[str, ...] = ()
    signal: str = ""
    robots: str = ""
    login_form: bool = False


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page. Validators of the known copy make it conditional; types None takes any.

    `max_bytes` is the limit of the answer; 0 stands for that of the settings.
    """

    url: str
    etag: str = ""
    last_modified: str = ""
    types: frozenset[str] | None = field(default_factory=page_types)
    max_bytes: int = 0
    robots: bool = True
    accept: str = ACCEPT_HTML

    @property
    def headers(self) -> dict[str, str]:
        """Request headers."""
        headers = {"Accept": self.accept, "If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        # a site may give a validator that no header can carry
        return {name: value for name, value in headers.items() if value and value.isascii()}


def type_of(given: str, url: str) -> str:
    """The media type of a download. Some servers call every file a stream of bytes: then its ending tells."""
    if given not in _ANY_FILE:
        return given
    ending = PurePosixPath(urlsplit(url).path).suffix.lower()
    return file_types().get(ending, given)


def most_bytes(media_type: str, most: int) -> tuple[int, str]:
    """The largest size of a download, in bytes, where a page may have `most`, and what to do beyond it."""
    if media_type not in binary_types():
        return most, ""
    return FILE_FACTOR * most, f": a file may be {FILE_FACTOR} times as large as DOCS_TUNING__CRAWL_MAX_BYTES"


def refuses_ai_input(signal: str) -> bool:
    """True when a Content-Signal forbids using the content as input of AI answers."""
    return re.search(r"(?:^|[,\s])ai-input\s*=\s*no\b", signal.lower()) is not None


def header(response: aiohttp.ClientResponse, name: str) -> str:
    """The value of a header, empty if there is none; bytes that aren't UTF-8 are Latin-1."""
    value = response.headers.get(name, "")
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogateescape").decode("latin-1")
    return value


def given_type(response: aiohttp.ClientResponse) -> str:
    """The media type that the server gives, without parameters, in lower case."""
    return header(response, "content-type").partition(";")[0].strip().lower()


def answered(url: str, body: bytes, media_type: str, response: aiohttp.ClientResponse) -> Fetched:
    """The download that an answer of 200 is."""
    return Fetched(
        url,
        200,
        body,
        media_type,
        response.charset or "",
        etag=header(response, "etag"),
        last_modified=header(response, "last-modified"),
        language=header(response, "content-language"),
        signal=header(response, "content-signal"),
        robots=header(response, "x-robots-tag"),
        login_form=media_type in HTML_TYPES and has_login_form(body),
    )


LOGIN = "set `headers` of its source, or give user and password in its address"
FORM = f"it is a page with a login form, so {LOGIN}"
CERTIFICATE = "set or check `certificate` and `certificate_key` of its source"
ADVICE = {401: f": the site wants a login, so {LOGIN}", 403: f": the site refuses it; if it wants a login, {LOGIN}"}
IGNORE = 'set noindex = "ignore" of its source, in a file of sources, to index them all the same'
REFUSED = (
    ", although the login of its source was sent: check that its user, password or `headers` are right and still valid"
)
NO_CERTIFICATE = re.compile(
    r"ALERT_(?:(?:[A-Z]{1,20}_){0,3}CERTIFICATE(?:_[A-Z]{1,20}){0,3}|HANDSHAKE_FAILURE|UNKNOWN_CA|DECRYPT_ERROR|ACCESS_DENIED)"
)
NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""OpenSSL's names for an answer in plain HTTP, before and since version 3.2."""


def cannot_be_read(what: str, error: PageError) -> str:
    """Says that a source can't be read because of this error of its address."""
    # a site that wants a login has a right address
    advice = "" if error.status in ADVICE else "; check its address"
    return f"{what} can't be read: {error}{advice}."


def hint_of_closed(url: str, error: Exception) -> str:
    """Returns a likely reason for a connection that the server closed without an answer; empty for other errors."""
    import aiohttp

    # a server that wants a certificate may close the connection before its reason arrives
    is_closed = url.startswith("https:") and not isinstance(error, aiohttp.ClientConnectorError)
    return f": if the server wants a client certificate, {CERTIFICATE}" if is_closed else ""


def tls_problem(error: BaseException | None) -> str:
    """Describes the problem of a TLS connection; empty for errors that another try may solve."""
    sign = ""
    while error is not None:
        sign += f" {error}"
        error = error.__cause__ or error.__context__
    if any(reason in sign for reason in NO_TLS):
        return "the server doesn't speak TLS on this port: write http:// instead of https://"
    if "CERTIFICATE_VERIFY_FAILED" in sign:
        return "the server's certificate is of no known authority, or not valid for it: `ca` of its source names an authority of your own"
    if alert := NO_CERTIFICATE.search(sign):
        return f"the server wants a client certificate, or another one ({alert[0].lower().replace('_', ' ')}), so {CERTIFICATE}"
    return ""


IN_MEMORY = 16 << 20
"""Bytes of bodies that are kept in memory; if there are more, all are in a temporary file."""


@dataclass
class Downloads:
    """Answers by address, each for one reader. Close it when done."""

    _answers: dict[str, tuple[Fetched, int, int]] = field(default_factory=dict)
    _failures: dict[str, PageError] = field(default_factory=dict)
    _bodies: IO[bytes] | None = None

    def keep(self, url: str, answer: Fetched | PageError) -> None:
        """Keep what a request for this address brought."""
        if isinstance(answer, PageError):
            self._failures[url] = answer
            return
        if self._bodies is None:
            self._bodies = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # `close` does it
        place = self._bodies.seek(0, 2)
        self._bodies.write(answer.body)
        self._answers[url] = replace(answer, body=b""), place, len(answer.body)

    def take(self, wanted: PageRequest) -> Fetched | None:
        """The kept answer to this request, if there is one; it is kept no longer. Raises the `PageError` that it was."""
        if failure := self._failures.pop(wanted.url, None):
            raise failure
        answer, place, length = self._answers.pop(wanted.url, (None, 0, 0))
        if (
            self._bodies is None
            or answer is None
            or (answer.status == 304 and not (wanted.etag or wanted.last_modified))
        ):
            return None
        self._bodies.seek(place)
        return replace(answer, body=self._bodies.read(length))

    def close(self) -> None:
        """Delete what is left."""
        if self._bodies:
            self._bodies.close()
