"""One polite client for pages and sitemaps: robots.txt, pace, retries, conditional requests, limits."""

import asyncio
import re
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from types import TracebackType
from typing import Self
from urllib.parse import unquote, urljoin, urlsplit

import aiohttp
from protego import Protego
from yarl import URL

from app.core.errors import SettingsError
from app.core.retries import OF_RUN, retry_after, tried
from app.core.settings import Settings
from ingestion.crawl.certificates import authorities
from ingestion.crawl.exchange import (
    ADVICE,
    FILE_FACTOR,
    REFUSED,
    Downloads,
    Fetched,
    PageRequest,
    answered,
    given_type,
    header,
    hint_of_closed,
    leads_to_login,
    most_bytes,
    names_login,
    refuses_ai_input,
    tls_problem,
    type_of,
)
from ingestion.crawl.guard import AddressRefused, Guard, Routes, guarded
from ingestion.errors import PageError, PageGone, PageSkipped
from ingestion.formats import binary_types
from ingestion.urls import host, origin


class Pace:
    """The turns of one host; `delay` in seconds may be raised while running."""

    def __init__(self, parallel: int, delay: float) -> None:
        self.delay = delay
        self._slots = asyncio.Semaphore(parallel)
        self._gate = asyncio.Lock()
        self._next = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Waits for a free slot and for the host's delay to pass."""
        async with self._slots:
            if self.delay > 0:
                async with self._gate:
                    clock = asyncio.get_running_loop()
                    await asyncio.sleep(max(0.0, self._next - clock.time()))
                    self._next = clock.time() + self.delay
            yield


ACCEPT_ENCODING = "gzip, deflate"
_PIECE = 1 << 16


async def read_body(response: aiohttp.ClientResponse, most: int, advice: str = "") -> bytes:
    """The whole body. Raises `PageSkipped` when it has more than `most` bytes, `PageError` when it can't be decompressed."""
    packed = header(response, "content-encoding").strip().lower()
    if packed not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise PageError(f"can't be fetched (it is packed as {packed[:40]}, which wasn't asked for)")
    body = bytearray()
    async for part in response.content.iter_chunked(_PIECE):
        body += part
        if len(body) > most:
            raise PageSkipped(f"is larger than {most:,} bytes{advice}")
    return bytes(body)


LONGEST_DELAY = 30.0
MAX_BYTES = 512_000
_SIGNAL = re.compile(r"(?im)^[ \t]*content-signal[ \t]*:[ \t]*([^\n#]+)")


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one host for one crawler. `refusal` is set when the host's rules can't be known: ask for nothing.

    `signal` is what its Content-Signal lines say.
    """

    rules: Protego | None = None
    agent: str = "*"
    refusal: str = ""
    signal: str = ""

    def allows(self, url: str) -> bool:
        """True when the crawler may ask for the address."""
        return self.rules is None or bool(self.rules.can_fetch(url, self.agent))

    @property
    def delay(self) -> float:
        """The host's Crawl-delay in seconds, limited to `LONGEST_DELAY`; 0 without one."""
        delay = self.rules.crawl_delay(self.agent) if self.rules is not None else None
        return min(max(0.0, float(delay or 0.0)), LONGEST_DELAY)  # in this order, NaN becomes 0

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """Addresses of its Sitemap lines, as written."""
        return tuple(self.rules.sitemaps) if self.rules is not None else ()


def read_robots(status: int, body: bytes, user_agent: str) -> Robots:
    """The rules that an answer to /robots.txt means: 4xx allows everything, 5xx and 429 nothing."""
    if status == 200:
        text = body[:MAX_BYTES].decode("utf-8-sig", "replace")  # a BOM would hide the first group
        agent = next(iter(user_agent.partition("/")[0].split()), "*")
        try:
            rules = Protego.parse(text)
        except Exception as error:  # noqa: BLE001  # whatever a file has that the parser didn't foresee
            return Robots(refusal=f"robots.txt can't be read ({type(error).__name__}: {error})")
        return Robots(rules, agent, signal=", ".join(_SIGNAL.findall(text)))
    if status >= 500 or status == 429:
        return Robots(refusal=f"robots.txt answered {status}, so nothing may be asked of the host")
    return Robots()


FORBIDDEN = "robots.txt forbids it"
RETRIED = frozenset({429, 502, 503, 504})
MOVED = frozenset({301, 302, 303, 307, 308})
MAX_REDIRECTS = 10
_NO_CONNECTION = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, aiohttp.ClientResponseError, ssl.SSLError)
"""Errors that another try may not meet; the last but one is an answer that isn't HTTP."""
_HTTP_ERRORS = (aiohttp.ClientError, ValueError)
_LONGEST_LINE = 1 << 16
"""Bytes of a header: policies of content security are longer than the 8 KB of most clients."""
_PLAIN = re.compile(r"[!#-;=?-\[\]_a-z~]++")
"""An address that needs no encoding, and is requested as it is."""
SILENT_PAGES = 5


class _TryAgainError(Exception):
    def __init__(self, reason: str, status: int = 0, wait: float | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.retry_after = wait


@dataclass
class Fetcher:
    """Fetches from allowed hosts only; use it as `async with`. `retry_wait` is the first wait between tries, in seconds.

    `refusing` has the sites that don't want their pages as input of AI answers, `downloads` what was fetched before its turn.
    """

    settings: Settings
    retry_wait: float = 0.5
    guard: Guard | None = None
    connect: Callable[[Guard], aiohttp.BaseConnector] = guarded
    refusing: Counter[str] = field(default_factory=Counter)
    downloads: Downloads = field(default_factory=Downloads)
    _hosts: set[str] = field(default_factory=set)
    _patterns: set[str] = field(default_factory=set)
    _robots: dict[str, Robots] = field(default_factory=dict)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    _paces: dict[str, Pace] = field(default_factory=dict)
    _logins: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _headers: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _tls: dict[str, ssl.SSLContext] = field(default_factory=dict)
    _silent: Counter[str] = field(default_factory=Counter)
    _client: aiohttp.ClientSession | None = None

    def __post_init__(self) -> None:
        self.guard = self.guard or Guard(self.settings.crawl_allow)
        self._routes = Routes(self.guard)
        self._patterns.update(self.guard.hosts)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        self.downloads.close()
        if self._client is not None:
            await self._client.close()

    def allow(self, urls: Iterable[str], patterns: Iterable[str] = (), *, trusted: bool = True) -> None:
        """Allow the hosts of these addresses, and public hosts like `*.example.org`. Those that the operator named are
        `trusted`: they may be in an internal network.

        Redirects to any other are not followed.
        """
        assert self.guard is not None
        for url in urls:
            parts = urlsplit(url)
            self._hosts.add(host(url))
            if trusted:
                self.guard.trust(parts.hostname or "", parts.port or {"https": 443}.get(parts.scheme, 80))
        self._patterns.update(pattern.lower() for pattern in patterns)

    def sign_in(self, url: str, headers: Mapping[str, str], tls: ssl.SSLContext | None = None) -> None:
        """Send the name and password of this address, where it has them, and these headers to its host, and to no other.

        `tls` has its certificates. Raises `SettingsError` when another source has others, or sends other headers there.
        """
        parts = urlsplit(url)
        site = origin(parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl())
        if parts.username is not None:
            login = aiohttp.encode_basic_auth(unquote(parts.username), unquote(parts.password or ""), "utf-8")
            self._logins[site] = {"authorization": login}
        if headers and self._headers.setdefault(site, headers) != headers:
            raise SettingsError(f"Two sources have different `headers` for {site}: index them in separate runs.")
        if tls is not None and self._tls.setdefault(site, tls) is not tls:
            raise SettingsError(f"Two sources have different certificates for {site}: index them in separate runs.")

    def login(self, url: str) -> Mapping[str, str]:
        """The headers that `sign_in` has for the address's host, for a program that sends its own requests."""
        site = origin(url)
        own = {name.lower(): value for name, value in self._headers.get(site, {}).items()}
        return own | dict(self._logins.get(site, {}))

    def allows(self, url: str) -> bool:
        """True for a web address on an allowed host."""
        try:
            name = host(url)
            allowed = name in self._hosts or any(fnmatchcase(name, pattern) for pattern in self._patterns)
            return urlsplit(url).scheme in ("http", "https") and allowed
        except ValueError:  # no address at all
            return False

    def set_pace(self, url: str, parallel: int | None, delay: float | None) -> None:
        """Set the limits of requests for the address's host; None is the number of the settings and no delay."""
        if origin(url) not in self._paces:
            parallel = self.settings.tuning.crawl_parallel if parallel is None else parallel
            self._paces[origin(url)] = Pace(parallel, delay or 0.0)

    async def robots(self, url: str) -> Robots:
        """The rules of the address's host, fetched once."""
        key = origin(url)
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._robots:
                self._robots[key] = await self._read_robots(key)
        return self._robots[key]

    async def get(self, wanted: PageRequest) -> Fetched:
        """The answer, after redirects and retries. Raises `PageGone`, `PageSkipped`, or `PageError` for all else."""
        at, passed = wanted.url, list[str]()
        while True:
            await self._check(at, wanted)
            answer = await self._with_retries(at, wanted)
            if isinstance(answer, Fetched):
                if passed and names_login(at) and not names_login(wanted.url) and answer.login_form:
                    raise self._asks_for_login(wanted.url, at)
                return replace(answer, redirects=tuple(passed))
            passed.append(at)
            at = answer
            if leads_to_login(wanted.url, at):
                raise self._asks_for_login(wanted.url, at)
            if len(passed) > MAX_REDIRECTS or at in passed:
                raise PageError(f"redirected in a circle, or more than {MAX_REDIRECTS} times, last to {at}")

    async def subresource(self, url: str, accept: str) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of any response to a browser's request while it renders a page. Raises `PageError`."""
        for _ in range(MAX_REDIRECTS):
            if not self.allows(url):
                raise PageSkipped(f"{url} is on a host that isn't one of the given sites")
            stream = self._stream(url, {"Accept": accept})
            try:
                async with asyncio.timeout(self.settings.tuning.crawl_timeout), stream as response:
                    if response.status not in MOVED:
                        headers = {name.lower(): header(response, name) for name in response.headers}
                        body = await read_body(response, self.settings.tuning.crawl_max_bytes)
                        return response.status, headers, body
                    url = urljoin(url, header(response, "location"))
            except (AddressRefused, TimeoutError, ssl.SSLError, *_HTTP_ERRORS) as error:
                raise PageError(f"{url} can't be fetched ({type(error).__name__}: {error})") from error
        raise PageError(f"redirected more than {MAX_REDIRECTS} times, last to {url}")

    async def _check(self, url: str, wanted: PageRequest) -> None:
        if not self.allows(url):
            raise PageSkipped(f"{url} is on a host that isn't one of the given sites")
        if self._silent[origin(url)] >= SILENT_PAGES:
            raise PageError(f"not asked for: {origin(url)} left {SILENT_PAGES} pages in a row without an answer")
        if not wanted.robots:
            return
        rules = await self.robots(url)
        if rules.refusal:
            raise PageError(rules.refusal)
        if not rules.allows(url):
            raise PageSkipped(FORBIDDEN)

    async def _with_retries(self, url: str, wanted: PageRequest) -> Fetched | str:
        patience = replace(OF_RUN, first=self.retry_wait)
        try:
            answer = await tried(
                partial(self._once, url, wanted), patience, lambda error: isinstance(error, _TryAgainError), url
            )
        except _TryAgainError as error:
            self._silent[origin(url)] += error.status == 0
            raise PageError(f"{error}, {patience.attempts} times", error.status) from error
        self._silent.pop(origin(url), None)
        return answer

    async def _once(self, url: str, wanted: PageRequest) -> Fetched | str:
        limit = self.settings.tuning.crawl_timeout
        try:
            async with (
                self._pace(url).turn(),
                asyncio.timeout(limit) as deadline,
                self._stream(url, wanted.headers) as response,
            ):
                if type_of(given_type(response), url) in binary_types():
                    deadline.reschedule(asyncio.get_running_loop().time() + FILE_FACTOR * limit)
                return await self._read(response, url, wanted)
        except AddressRefused as error:
            raise PageSkipped(str(error)) from error
        except TimeoutError as error:
            raise _TryAgainError(f"no whole answer within {limit:g} s") from error
        except _NO_CONNECTION as error:
            if problem := tls_problem(error):
                raise PageError(problem) from error
            named = " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")
            raise _TryAgainError(f"no connection ({named}){hint_of_closed(url, error)}") from error
        except _HTTP_ERRORS as error:
            raise PageError(f"can't be fetched ({type(error).__name__}: {error})") from error

    @asynccontextmanager
    async def _stream(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[aiohttp.ClientResponse]:
        target = URL(url, encoded=_PLAIN.fullmatch(url) is not None)
        tls = (self._tls.get(origin(url)) or authorities()) if target.scheme == "https" else True
        async with self._session().get(
            target,
            headers={**headers, **self.login(url)},
            proxy=self._routes.proxy(target),
            ssl=tls,
            allow_redirects=False,
        ) as response:
            yield response

    def _session(self) -> aiohttp.ClientSession:
        if self._client is None:
            assert self.guard is not None
            self._client = aiohttp.ClientSession(
                connector=self.connect(self.guard),
                headers={"User-Agent": self.settings.user_agent, "Accept-Encoding": ACCEPT_ENCODING},
                timeout=aiohttp.ClientTimeout(),  # each request has its own
                max_line_size=_LONGEST_LINE,
                max_field_size=_LONGEST_LINE,
            )
        return self._client

    def _asks_for_login(self, url: str, target: str) -> PageError:
        place = urlsplit(target)._replace(query="", fragment="").geturl()
        return PageError(f"redirected to {place}{self.advice(url, 401)}", 401)

    def advice(self, url: str, status: int) -> str:
        """Returns advice on this status of a site, which depends on whether a login was sent; may be empty."""
        signed_in = origin(url) in self._logins or origin(url) in self._headers
        return REFUSED if signed_in and status in ADVICE else ADVICE.get(status, "")

    async def _read(self, response: aiohttp.ClientResponse, url: str, wanted: PageRequest) -> Fetched | str:
        status = response.status
        if status in MOVED and (place := header(response, "location")):
            return urljoin(url, place).partition("#")[0]
        if status == 304:
            return Fetched(url, 304, etag=header(response, "etag"), last_modified=header(response, "last-modified"))
        if status in (404, 410):
            raise PageGone(f"answered {status}", status)
        if status in RETRIED:
            raise _TryAgainError(f"answered {status}", status, retry_after(header(response, "retry-after")))
        if status != 200:
            raise PageError(f"answered {status}{self.advice(url, status)}", status)
        media_type = type_of(given_type(response), url)
        if wanted.types is not None and media_type not in wanted.types:
            raise PageSkipped(f"is {media_type}, not {'text' if 'text/html' in wanted.types else 'JSON or YAML'}")
        if refuses_ai_input(header(response, "content-signal")):
            self.refusing[origin(url)] += 1
        most, advice = most_bytes(media_type, wanted.max_bytes or self.settings.tuning.crawl_max_bytes)
        body = await read_body(response, most, advice)
        return answered(url, body, media_type, response)

    async def _read_robots(self, site: str) -> Robots:
        wanted = PageRequest(f"{site}/robots.txt", types=None, robots=False)
        try:
            answer = await self.get(wanted)
        except PageSkipped:  # too large, or on another host: the site has no rules of its own
            return Robots()
        except PageError as error:
            return read_robots(error.status, b"", "") if error.status else Robots(refusal=f"robots.txt: {error}")
        rules = read_robots(200, answer.body, self.settings.user_agent)
        if refuses_ai_input(rules.signal):
            self.refusing[site] += 1
        pace = self._pace(site)
        pace.delay = max(pace.delay, rules.delay)
        return rules

    def _pace(self, url: str) -> Pace:
        self.set_pace(url, None, None)
        return self._paces[origin(url)]
