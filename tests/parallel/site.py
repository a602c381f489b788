"""The site over HTTP on loopback, its languages arranged as a `Variant` says, and the truth about its translations."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlsplit

import httpx
from markdown_it import MarkdownIt

from tests.ingestion.local_site import LocalSite, local_site
from tests.parallel.content import LANGUAGES, OLD, PHRASES, UNRELATED, Question, markdown, noisy, slug, topics

HOST = "lumora.localhost"
_NAMESPACES = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" xmlns:xhtml="http://www.w3.org/1999/xhtml"'


@dataclass(frozen=True, slots=True)
class Variant:
    """How the site arranges its languages.

    `pattern` is what tells them in addresses: a folder, a folder except for English, the ending .cs.md, the host, or
    ?lang=. `hreflang` says which pages belong together in each page's head, or in the sitemap. `slugs` are the same in
    each language, made of translated titles, or `shuffled`: the same names mean other pages. `versions`: below /v2/, and a
    third of the pages below /v1/ too. `noise`: with what generators of sites leave in their Markdown.
    """

    pattern: Literal["folder", "root", "suffix", "host", "query"] = "folder"
    hreflang: Literal["", "head", "sitemap"] = ""
    slugs: Literal["same", "translated", "shuffled"] = "same"
    versions: bool = False
    noise: bool = False

    @property
    def name(self) -> str:
        """Its short name in tables."""
        hreflang = f"hreflang in {self.hreflang}" if self.hreflang else ""
        slugs = f"{self.slugs} slugs" if self.slugs != "same" else ""
        return ", ".join(part for part in (self.pattern, hreflang, slugs, "versions" * self.versions) if part)


VARIANTS = (
    *(Variant(pattern) for pattern in ("folder", "root", "suffix", "host", "query")),
    Variant(hreflang="head"),
    Variant(hreflang="sitemap"),
    Variant(slugs="translated"),
    Variant(slugs="shuffled"),
    Variant("host", slugs="translated"),
    Variant(versions=True),
)


@dataclass(frozen=True, slots=True)
class _Page:
    """One address; pages of the same `document` are translations of each other."""

    document: tuple[str, str]  # version, topic
    language: str
    url: str
    markdown: str
    ending: str = ""

    @property
    def listed(self) -> str:
        """Its address in the sitemap."""
        return self.url + self.ending


class ParallelSite:
    """The pages of a variant. Fetch them with `transport`: their hosts don't resolve."""

    def __init__(self, variant: Variant) -> None:
        self.variant = variant
        versions = ("v2", OLD) if variant.versions else ("",)
        ending = ".md" if variant.pattern == "suffix" else ""
        self._pages = [replace(page, ending=ending) for version in versions for page in self._of(version)]

    def _of(self, version: str) -> Iterator[_Page]:
        for language in LANGUAGES:
            names, contents = self._names(language), list[str]()
            for topic in topics():
                if language in topic.languages and (version != OLD or topic.number % 3 == 0):
                    text = markdown(topic, language, old=version == OLD)
                    text = noisy(text) if self.variant.noise else text
                    yield _Page((version, topic.id), language, self._url(version, language, names[topic.id]), text)
                    contents.append(f"- {topic.texts[language].title}")
            phrases = PHRASES[language]
            home = "\n\n".join(["# Lumora", f"## {phrases.contents}", "\n".join(contents)])
            yield _Page((version, "index"), language, self._url(version, language, ""), home)
            if version != OLD:
                for name in UNRELATED:
                    text = getattr(phrases, name)
                    yield _Page((language, name), language, self._url(version, language, name), text)

    def _names(self, language: str) -> dict[str, str]:
        """The last part of each topic's address."""
        numbers = list(range(1, len(topics()) + 1))
        random.Random(language).shuffle(numbers)
        made = {
            "same": lambda topic: topic.id,
            "translated": lambda topic: slug(topic.texts[language].title),
            "shuffled": lambda topic: f"page-{numbers[topic.number]:02}",
        }[self.variant.slugs]
        return {topic.id: made(topic) for topic in topics()}

    def _url(self, version: str, language: str, name: str) -> str:
        base = f"http://{HOST}/" + (f"{version}/" if version else "")
        match self.variant.pattern:
            case "suffix":
                return f"{base}{name or 'index'}.{language}"  # as readers open it; listed with .md
            case "host":
                return base.replace(HOST, f"{language}.{HOST}") + name
            case "query":
                return f"{base}{name}?lang={language}"
            case "root" if language == "en":
                return base + name
        return f"{base}{language}/{name}"

    @property
    def listed(self) -> tuple[str, ...]:
        """The addresses in the sitemaps."""
        return tuple(page.listed for page in self._pages)

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses of all pages."""
        return tuple(page.url for page in self._pages)

    @property
    def truth(self) -> set[frozenset[str]]:
        """The groups of addresses that are translations of each other."""
        groups: dict[tuple[str, str], set[str]] = {}
        for page in self._pages:
            groups.setdefault(page.document, set()).add(page.url)
        return {frozenset(group) for group in groups.values() if len(group) > 1}

    def answer(self, question: Question) -> dict[str, str]:
        """The addresses of the page that answers the question, by language; of the newest version."""
        document = ("v2" if self.variant.versions else "", question.topic)
        return {page.language: page.url for page in self._pages if page.document == document}

    @contextmanager
    def served(self) -> Iterator[tuple[list[str], httpx.AsyncBaseTransport]]:
        """The addresses of its sitemaps, and the transport that leads to it, while it runs."""
        with ExitStack() as stack:
            hosts: dict[str, LocalSite] = {}
            for page in self._pages:
                parts = urlsplit(page.listed)
                if parts.netloc not in hosts:
                    hosts[parts.netloc] = stack.enter_context(local_site())
                path = parts.path + (f"?{parts.query}" if parts.query else "")
                media_type = f"text/{'markdown' if page.ending else 'html'}; charset=utf-8"
                hosts[parts.netloc].put(path, page.markdown if page.ending else self._html(page), media_type)
            for host, site in hosts.items():
                site.put("/sitemap.xml", self._sitemap(host), "application/xml")
            yield [f"http://{host}/sitemap.xml" for host in hosts], _ToLoopback(hosts)

    def _links(self, page: _Page, tag: str) -> str:
        group = [other for other in self._pages if other.document == page.document]
        return "".join(f'<{tag} rel="alternate" hreflang="{one.language}" href="{one.url}"/>' for one in group)

    def _html(self, page: _Page) -> str:
        links = self._links(page, "link") if self.variant.hreflang == "head" else ""
        title = page.markdown.partition("\n")[0].removeprefix("# ")
        body = MarkdownIt().enable("table").render(page.markdown)
        return (
            f'<!doctype html><html lang="{page.language}"><head><title>{title} | Lumora</title>{links}</head>'
            f"<body><nav>Lumora</nav><main>{body}</main></body></html>"
        )

    def _sitemap(self, host: str) -> str:
        own = [page for page in self._pages if urlsplit(page.url).netloc == host]
        in_sitemap = self.variant.hreflang == "sitemap"
        entries = (
            f"<url><loc>{page.listed}</loc>{self._links(page, 'xhtml:link') if in_sitemap else ''}</url>"
            for page in own
        )
        return f"<urlset {_NAMESPACES}>{''.join(entries)}</urlset>"


class _ToLoopback(httpx.AsyncHTTPTransport):
    """Sends requests for the site's hosts to the ports that they are served at."""

    def __init__(self, hosts: dict[str, LocalSite]) -> None:
        super().__init__()
        self._hosts = hosts

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer of the host's own server."""
        port = urlsplit(self._hosts[request.url.host].url).port
        request.url = request.url.copy_with(host="127.0.0.1", port=port)
        return await super().handle_async_request(request)
