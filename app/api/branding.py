"""GET /brand.css and /brand/icon: the colour and the icon of the documentation, for the page and the widget."""

import time
from base64 import b64decode
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from app.api.service import Service
from app.assistants.file import BrandTable, read_assistants
from app.core.brand import LARGEST, Brand, image_type, style
from app.core.errors import SettingsError, StoreError

FRESH = 30.0  # seconds
SHARED = {
    "cache-control": "public, max-age=300",
    "access-control-allow-origin": "*",
    "cross-origin-resource-policy": "cross-origin",
}
# an image of a site can be opened as a page, and may then run nothing
ICON = {**SHARED, "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}


class Branding:
    """What [brand] of DOCS_ASSISTANTS says of the documentation (`given`), else what its site says of itself."""

    def __init__(self, service: Service) -> None:
        self._service, self.given = service, read_assistants(service.settings).brand or BrandTable.model_validate({})
        self._icon = icon_of(self.given.icon)
        self._read, self._until = Brand(), 0.0

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        for path, handler in (("/brand.css", self.style), ("/brand/icon", self.icon)):
            app.add_api_route(path, handler, methods=["GET", "HEAD"], include_in_schema=False)

    async def brand(self) -> Brand:
        """The brand; its name is never empty."""
        if time.monotonic() >= self._until:
            self._until = time.monotonic() + FRESH
            with suppress(StoreError):  # the last one is as good
                self._read = (await self._service.assistants.store.runs()).brand
        settings, given, read = self._service.settings, self.given, self._read
        names = next((one.table.names for one in self._service.assistants.listed()), {})
        named = names.get(settings.default_language) or next(iter(names.values()), "")
        name = given.name or (settings.assistants and named) or read.name or named or "Docs Assistant"
        return replace(read, name=name, color=given.color or read.color, welcome=given.welcome)

    async def style(self, _: Request) -> Response:
        """The colour of links and buttons."""
        return Response(style((await self.brand()).color), headers=SHARED, media_type="text/css")

    async def icon(self, _: Request) -> Response:
        """The icon of [brand], else of the site, else our own."""
        image = self._icon or b64decode((await self.brand()).icon) or (files("app") / "static/icon.svg").read_bytes()
        return Response(image, headers=ICON, media_type=image_type(image))


def icon_of(file: str) -> bytes:
    """The image in the file; empty without one. Raises `SettingsError`."""
    try:
        image = Path(file).read_bytes() if file else b""
    except OSError as error:
        raise SettingsError(f"[brand] of DOCS_ASSISTANTS: icon {file} can't be read: {error.strerror}.") from error
    if image and not image_type(image):
        raise SettingsError(
            f"[brand] of DOCS_ASSISTANTS: icon {file} is no icon: use an SVG, PNG, JPEG, GIF, WebP or ICO of at most {LARGEST:,} bytes."
        )
    return image
