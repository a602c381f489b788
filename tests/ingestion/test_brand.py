"""Whose site it is: what its home page says, what is kept of it, and what isn't."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path

import pytest

from app.core.brand import LARGEST, Brand, image_type, is_grey, style
from app.core.settings import Settings
from app.index import open_store
from app.index.run_history import runs_of
from ingestion.brand import keep_brand
from ingestion.sources import as_sources
from tests.ingestion.local_site import LocalSite

SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><circle r="9"/></svg>'
PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 90


async def brand_of(site: LocalSite, folder: Path, head: str, **images: bytes) -> Brand:
    """What is kept of a site whose home page has this head, and these images below /."""
    settings = Settings.load(None, store=str(folder))
    site.put("/", f"<!doctype html><html><head>{head}</head><body>Home</body></html>".encode(), "text/html")
    for name, image in images.items():
        site.put(f"/{name}", image, "image/any")
    store = open_store(settings)
    try:
        await keep_brand(store, settings, as_sources([f"{site.url}/sitemap.xml"]))
        return (await runs_of(store)).brand
    finally:
        await store.close()


async def test_name_icon_and_colour_are_those_of_the_home_page(site: LocalSite, tmp_path: Path) -> None:
    """What the site says of itself goes before the title; an icon that scales before others; grey is no colour."""
    icons = '<link rel="shortcut icon" href="small"><link rel="icon" sizes="any" type="image/svg+xml" href="/drawn">'
    meta = '<meta property="og:site_name" content=" Acme\n <b> "><meta name="theme-color" content="#7A2EA0">'
    brand = await brand_of(site, tmp_path, f"<title>Home | Rockets</title>{meta}{icons}", small=PNG, drawn=SVG)
    assert (brand.name, brand.color, b64decode(brand.icon)) == ("Acme <b>", "#7A2EA0", SVG)
    # the second run finds no drawing, and a picture that is none
    grey = '<meta name="theme-color" content="#fafafa"><link rel="icon" href="/page"><link rel="apple-touch-icon" href="/small">'
    brand = await brand_of(
        site, tmp_path, f"<title>Welcome to the Rockets - Docs</title>{grey}", page=b"<html>", small=PNG
    )
    assert (brand.name, brand.color, b64decode(brand.icon)) == ("Rockets", "", PNG)


async def test_a_home_page_that_fails_changes_nothing(site: LocalSite, tmp_path: Path) -> None:
    """Nor an icon on another host, or one that is too large."""
    brand = await brand_of(
        site, tmp_path, "<title>A</title><link rel=icon href=http://elsewhere.invalid/a><link rel=icon href=big>",
        big=PNG + b"0" * LARGEST,
    )  # fmt: skip
    assert brand == Brand("A")
    site.put("/", b"", "text/html", status=500)
    settings = Settings.load(None, store=str(tmp_path))
    store = open_store(settings)
    await keep_brand(store, settings, as_sources([f"{site.url}/sitemap.xml"]))
    assert (await runs_of(store)).brand == brand
    await store.close()


def test_only_images_that_browsers_show_are_icons() -> None:
    """A page that says it is one isn't."""
    assert [image_type(image) for image in (SVG, PNG, b"\xff\xd8\xff", b"RIFF....WEBP", b"\0\0\1\0")] == [
        "image/svg+xml", "image/png", "image/jpeg", "image/webp", "image/x-icon",
    ]  # fmt: skip
    assert {image_type(image) for image in (b"<html><svg>", b"", b"text", SVG + b" " * LARGEST)} == {""}


@pytest.mark.parametrize("color", ["#ff0", "#ffd000", "#2558c5", "#000", "#ffffff", "#00bcd4", "#ff5252"])
def test_every_colour_can_be_read(color: str) -> None:
    """WCAG's 4.5 : 1, by its formula: white on the light one, on white; the dark one on the darkest raised surface."""
    light, dark = re.findall(r"#\w{6}", style(color))
    assert _contrast(light, "#ffffff") >= 4.5
    assert min(_contrast(dark, "#20252e"), _contrast(dark, "#10131a")) >= 4.5
    assert is_grey(color) == (color in {"#000", "#ffffff"})
    assert style("red;}") == ""


def _contrast(one: str, other: str) -> float:
    def luminance(color: str) -> float:
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(part * share for part, share in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)
