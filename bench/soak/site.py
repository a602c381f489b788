"""A documentation site that changes: this repository's documentation as HTML, served on loopback.

Each version comes from the one before by a seeded random generator: sentences are added, sections renamed and removed,
pages removed and added. A link to what a version doesn't have is plain text in it, as strict site generators demand.
"""

import hashlib
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from aiohttp import web
from markdown_it import MarkdownIt
from markdown_it.token import Token

HOST = "127.0.0.2"  # an address of loopback that isn't a usual placeholder in documentation, so invented links to it are removed
EDITED, RENAMED, SHORTENED, REMOVED, ADDED = 6, 4, 2, 2, 2
_HEADING = re.compile(r"(.*?)\s*\{#([\w-]+)\}\s*")
_DOCUMENT = re.compile(r"([\w-]+)\.md(?:#([\w-]+))?|#([\w-]+)")
_ID = re.compile(r'<h\d id="([^"]+)"')
_REVISION = re.compile(r"-r\d+$")
_MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
SENTENCES = {
    "en": "Since revision {n}, the limit of this part is {m} requests per hour.",
    "cs": "Od revize {n} je limit této části {m} požadavků za hodinu.",
}


@dataclass(frozen=True)
class Section:
    """A heading and what is below it, as Markdown."""

    level: int
    title: str
    anchor: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page in one language; `name` is its place on the site."""

    language: str
    name: str
    sections: tuple[Section, ...]

    @property
    def path(self) -> str:
        """The path of its address."""
        return f"/{self.language}/{self.name}/"

    @property
    def anchors(self) -> frozenset[str]:
        """The ids of its headings."""
        return frozenset(section.anchor for section in self.sections)


Version = Mapping[str, Page]
"""The pages of one moment by their paths."""


def read(folder: Path) -> Version:
    """The first version: every page of `docs/en` and `docs/cs`."""
    files = (file for language in SENTENCES for file in sorted((folder / language).glob("*.md")))
    pages = (_page(file) for file in files)
    return {page.path: page for page in pages}


def _page(file: Path) -> Page:
    text = file.read_text("utf-8").split("---\n", 2)[2].strip()
    lines, tokens = text.splitlines(), _MARKDOWN.parse(text)
    starts = [(t.map[0], int(t.tag[1]), i) for i, t in enumerate(tokens) if t.type == "heading_open" and t.map]
    ends = [start for start, _, _ in starts[1:]] + [len(lines)]
    sections = []
    for number, ((start, level, at), end) in enumerate(zip(starts, ends, strict=True)):
        found = _HEADING.fullmatch(tokens[at + 1].content)
        title, anchor = found.groups() if found else (tokens[at + 1].content, f"part-{number}")
        sections.append(Section(level, title, anchor, "\n".join(lines[start + 1 : end])))
    return Page(file.parent.name, file.stem, tuple(sections))


def evolve(version: Version, number: int, random_: random.Random) -> Version:
    """The next version, whose number this is."""
    pages = dict(version)
    for path in random_.sample(sorted(pages), EDITED):
        sentence = SENTENCES[pages[path].language].format(n=number, m=random_.randint(10, 990))
        pages[path] = _changed(pages[path], random_, lambda s, text=sentence: replace(s, text=f"{text}\n\n{s.text}"))
    for path in random_.sample(sorted(pages), RENAMED):
        pages[path] = _changed(pages[path], random_, lambda s: _renamed(s, number))
    for path in random_.sample(sorted(pages), SHORTENED):
        kept = pages[path].sections
        if len(kept) > 2:
            dropped = random_.choice(kept[1:])
            pages[path] = replace(pages[path], sections=tuple(s for s in kept if s is not dropped))
    gone = [pages.pop(path) for path in random_.sample(sorted(p for p in pages if "/index/" not in p), REMOVED)]
    for page in random_.sample([*gone, *pages.values()], ADDED):
        new = replace(page, name=f"{_REVISION.sub('', page.name)}-r{number}")
        pages[new.path] = _changed(new, random_, lambda s: _renamed(s, number))
    return pages


def _changed(page: Page, random_: random.Random, change: object) -> Page:
    at = random_.randrange(len(page.sections))
    sections = [change(s) if i == at else s for i, s in enumerate(page.sections)]  # type: ignore[operator]
    return replace(page, sections=tuple(sections))


def _renamed(section: Section, number: int) -> Section:
    title = re.sub(r" \(r\d+\)$", "", section.title)
    return replace(section, title=f"{title} (r{number})", anchor=f"{_REVISION.sub('', section.anchor)}-r{number}")


def html(page: Page, version: Version) -> str:
    """The page as the site serves it in this version."""
    body = "\n".join(
        f'<h{s.level} id="{s.anchor}">{_MARKDOWN.renderInline(s.title)}</h{s.level}>\n{_rendered(s.text, page, version)}'
        for s in page.sections
    )
    title = escape(page.sections[0].title)
    return (
        f'<!doctype html><html lang="{page.language}"><head><meta charset="utf-8"><title>{title}</title></head>'
        f"<body><main>{body}</main></body></html>"
    )


def anchors_in(text: str) -> frozenset[str]:
    """The ids of headings in served HTML."""
    return frozenset(_ID.findall(text))


def _rendered(text: str, page: Page, version: Version) -> str:
    tokens = _MARKDOWN.parse(text)
    for token in tokens:
        if token.children:
            token.children = list(_linked(token.children, page, version))
    return str(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}))


def _linked(tokens: Sequence[Token], page: Page, version: Version) -> Iterator[Token]:
    dropped = False
    for token in tokens:
        if token.type == "link_open":
            address = _address(str(token.attrs["href"]), page, version)
            dropped = not address
            token.attrs["href"] = address
        if not (dropped and token.type in {"link_open", "link_close"}):
            yield token


def _address(href: str, page: Page, version: Version) -> str:
    if href.startswith(("http://", "https://")):
        return href
    if not (found := _DOCUMENT.fullmatch(href)):
        return ""
    name, anchor = found[1] or page.name, found[2] or found[3] or ""
    target = version.get(f"/{page.language}/{name}/")
    if target is None or (anchor and anchor not in target.anchors):
        return ""
    return target.path + (f"#{anchor}" if anchor else "")


class Site:
    """The server. `broken` of its pages, a share, answer 500. `served` has what was last sent of each
    page: the number of the version and the anchors, None for 404; `listed` what the sitemap last had.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self.versions: list[Version] = [read(folder)]
        self.broken = 0.0
        self.listed: frozenset[str] | None = None
        self.served: dict[str, tuple[int, frozenset[str]] | None] = {}
        self.url = ""
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def now(self) -> Version:
        """The latest version."""
        return self.versions[-1]

    def change(self) -> None:
        """Serve the next version."""
        self.versions.append(evolve(self.now, len(self.versions), self._random))

    async def start(self) -> None:
        """Listen, again at the same address after a stop."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, HOST, self._port, reuse_address=True).start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://{HOST}:{self._port}"

    async def stop(self) -> None:
        """Refuse connections."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, request: web.Request) -> web.Response:
        path = request.path
        if path == "/sitemap.xml":
            self.listed = frozenset(self.now)
            urls = "".join(f"<url><loc>{self.url}{page}</loc></url>" for page in self.now)
            return web.Response(text=f"<urlset>{urls}</urlset>", content_type="application/xml")
        if path not in self.now:
            self.served[path] = None
            return web.Response(status=404, text="There is no such page.")
        if hashlib.sha256(path.encode()).digest()[0] < 256 * self.broken:
            return web.Response(status=500, text="The site is broken.")
        text = html(self.now[path], self.now)
        self.served[path] = (len(self.versions) - 1, anchors_in(text))
        etag = f'"{hashlib.sha256(text.encode()).hexdigest()[:16]}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        return web.Response(text=text, content_type="text/html", headers={"ETag": etag})
