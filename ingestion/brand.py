"""Whose site it is, as its home page says: name, icon and colour."""

import logging
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from urllib.parse import urljoin, urlsplit

import lxml.html
from lxml.etree import LxmlError

from app.core.brand import COLOR, LARGEST, Brand, image_type, is_grey
from app.core.log_message import LogMessage
from app.core.settings import Settings
from app.index.protocols import Store
from app.index.run_history import readable_runs_of, write_runs
from ingestion.crawl.certificates import tls_of
from ingestion.crawl.exchange import PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.errors import PageError
from ingestion.sources import Source, read_headers

log = logging.getLogger("ingestion")

HEAD = 200_000  # bytes of a page; what is sought is at its beginning
LONGEST = 60  # characters of a name
TRIED = 4  # icons
BEST_SIZE = 180  # pixels
NAMES = ("og:site_name", "apple-mobile-web-app-title", "application-name")
COLORS = ("theme-color", "msapplication-TileColor")
_BETWEEN = re.compile(r" [|·•–—-] |::")
_GENERIC = re.compile(
    r"(?:home(?:page)?|welcome|index|docs|documentation|overview|introduction|úvod|dokumentace|start)", re.IGNORECASE
)
_GREETING = re.compile(r"^welcome to (?:the )?", re.IGNORECASE)


async def keep_brand(store: Store, settings: Settings, sources: Sequence[Source]) -> None:
    """Keeps with the index what the first of the sources that is a site says of itself; what was known stays if it can't be read."""
    site = next((one for one in sources if one.requested and not (one.git or one.reader)), None)
    if site is None or urlsplit(site.requested).scheme not in {"http", "https"}:
        return
    try:
        async with Fetcher(settings) as client:
            client.allow([site.requested], site.hosts)
            client.sign_in(site.requested, read_headers(site.headers, site.place), tls_of([site])[0])
            brand = await read_brand(client, urljoin(site.requested, "."))
    except PageError as error:
        log.debug(LogMessage("home page not read for its name and icon", url=site.url, error=str(error)))
        return
    runs = await readable_runs_of(store)
    if brand != runs.brand:
        await write_runs(store, replace(runs, brand=brand))


async def read_brand(client: Fetcher, home: str) -> Brand:
    """The brand of the site with this home page. Raises `PageError`."""
    page = await client.get(PageRequest(home))
    try:
        document = lxml.html.document_fromstring(page.body[:HEAD] or b"<html/>")
    except LxmlError as error:
        raise PageError(f"can't be read as HTML ({error})") from error
    metas = {
        str(one.get("name") or one.get("property")): one.get("content", "")
        for one in reversed(list(document.iter("meta")))
    }
    titles = [metas.get(name, "") for name in NAMES] + [_of_title(document.findtext(".//title") or "")]
    name = next((" ".join(title.split())[:LONGEST] for title in titles if title.strip()), "")
    colors = [metas.get(name, "").strip() for name in COLORS]
    color = next((one for one in colors if COLOR.fullmatch(one) and not is_grey(one)), "")
    return Brand(name, color, await _icon(client, [*_icons(document, page.url)][:TRIED]))


def _of_title(title: str) -> str:
    """The name of the site in the title of its home page: the shortest part that says something."""
    parts = [_GREETING.sub("", part.strip()) for part in _BETWEEN.split(" ".join(title.split()))]
    return min((part for part in parts if part and not _GENERIC.fullmatch(part)), key=len, default="")


def _icons(document: lxml.html.HtmlElement, base: str) -> Iterator[str]:
    """The addresses of the icons, those first that are sharp at any size or nearest to the best size."""
    links = [
        one
        for one in document.iter("link")
        if "icon" in re.split(r"[\s-]", one.get("rel", "").lower()) and one.get("href")
    ]

    def order(link: lxml.html.HtmlElement) -> tuple[bool, float]:
        sizes = [int(size) for size in re.findall(r"\d{1,4}(?=x)", link.get("sizes", "") or "")]
        size = max(sizes, default=BEST_SIZE if "apple" in link.get("rel", "").lower() else 16)
        vector = link.get("type") == "image/svg+xml" or urlsplit(link.get("href")).path.endswith(".svg")
        return not vector or "mask-icon" in link.get("rel", "").lower(), abs(BEST_SIZE - size)

    for link in sorted(links, key=order):
        yield urljoin(base, link.get("href"))
    yield urljoin(base, "/favicon.ico")


async def _icon(client: Fetcher, addresses: Sequence[str]) -> str:
    for address in addresses:
        try:
            image = await client.get(PageRequest(address, types=None, max_bytes=LARGEST, accept="image/*"))
        except PageError:
            continue
        if image_type(image.body):
            return b64encode(image.body).decode()
    return ""
