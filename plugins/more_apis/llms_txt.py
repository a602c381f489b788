"""GET /llms.txt and /llms/page.md: the indexed pages for other assistants, as https://llmstxt.org proposes it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from app.citing.links import markdown_link
from app.core.errors import RequestError, quoted
from app.core.generation import GenerationInfo
from app.core.types import Filters, Page
from app.routes.html_pages import root_url
from app.routes.interface import Branding
from app.routes.routers import unlisted_router
from app.routes.service import Service

HEADERS = {"cache-control": "no-cache", "x-robots-tag": "noindex"}


def router(service: Service, branding: Branding) -> APIRouter:
    """The routes; none if `llms_txt` of [brand] says no."""
    if not branding.given.llms_txt:
        return APIRouter()
    published = PublishedPages(service, branding)
    return unlisted_router({"/llms.txt": published.listed, "/llms/page.md": published.page})


@dataclass
class PublishedPages:
    """The handlers of the routes. They give what the first assistant that the sender may ask could answer from."""

    service: Service
    branding: Branding
    _kept: Mapping[Filters, tuple[GenerationInfo, Mapping[str, Sequence[Page]]]] = field(default_factory=dict)

    async def listed(self, request: Request) -> Response:
        """The name of the documentation, and its pages by collection and language, each with a link to its Markdown."""
        brand = await self.branding.brand()
        parts = [f"# {brand.name}", *([f"> {brand.welcome}"] if brand.welcome else [])]
        page_md = f"{root_url(request)}/llms/page.md?url="
        for name, pages in (await self._pages(request)).items():
            parts.append(f"## {name}\n\n" + "\n".join(_line(page, page_md) for page in pages))
        return Response("\n\n".join(parts) + "\n", headers=HEADERS, media_type="text/plain; charset=utf-8")

    async def page(self, request: Request) -> Response:
        """The page at the address `url` as Markdown. Raises `RequestError` if it isn't indexed."""
        url = request.query_params.get("url", "").partition("#")[0]
        page = await self.service.assistant(self.service.access(request), "").page(url)
        if page is None:
            raise RequestError(f"url: {quoted(url)} isn't an indexed page.", param="url", code="page_not_found")
        link = {"link": f'<{quote(page.url, safe=":/?#[]@!$&()*+,;=%~")}>; rel="canonical"'}
        return Response(page.markdown, headers=HEADERS | link, media_type="text/markdown; charset=utf-8")

    async def _pages(self, request: Request) -> Mapping[str, Sequence[Page]]:
        """The pages with a text of their own by what they have in common; kept for a generation, as reading them takes long."""
        assistant = self.service.assistant(self.service.access(request), "")
        live = await assistant.store.live()
        info, by_name = self._kept.get(assistant.limits, (None, {}))
        if info != live.info:
            found = defaultdict[str, list[Page]](list)
            for page in await live.pages():
                admitted = assistant.limits.admits(page.url, page.collection, {page.language}, page.versions)
                if admitted and not page.derived.same_as:
                    found[f"{page.collection} ({page.language})"].append(page)
            by_name = dict(found)
            self._kept = {**self._kept, assistant.limits: (live.info, by_name)}
        return by_name


def _line(page: Page, page_md: str) -> str:
    said = " ".join(page.derived.summary.split())
    return f"- {markdown_link(page.title or page.url, page_md + quote(page.url, safe=''))}{f': {said}' if said else ''}"
