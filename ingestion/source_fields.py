"""The types of a source's keys: each says what its value may be, and names what is wrong."""

from __future__ import annotations

import json
import re
from typing import Annotated
from urllib.parse import urlsplit

from cssselect import SelectorError
from lxml.cssselect import CSSSelector
from pydantic import AfterValidator, BeforeValidator

from ingestion.headers import pem_place

RENDERERS = ("swagger", "redoc", "scalar")
"""Programs that show OpenAPI documents."""

NO_TRANSLATIONS = "none"


def _selector(text: str) -> str:
    if text:
        try:
            CSSSelector(text)
        except SelectorError as error:
            raise ValueError(f"isn't a CSS selector ({error})") from error
    return text


def _host(text: str) -> str:
    if not re.fullmatch(r"[\w*.:\[\]-]+", text):
        raise ValueError("isn't a host: write docs.example.org or *.example.org, without scheme and path")
    return text.lower()


def _markdown(text: str) -> str:
    if text not in ("auto", "off", "accept") and not re.fullmatch(r"suffix:\.\w+", text):
        raise ValueError("is not one of auto, off, accept, suffix:.md, suffix:.mdx")
    return text


def _anchors(text: str) -> str:
    if text not in ("auto", "github", "mkdocs", "none", *RENDERERS) and not re.search(r"\{(?:operation|path)\}", text):
        raise ValueError(
            "is not one of auto, github, mkdocs, none; or for an OpenAPI document swagger, redoc, scalar, or a pattern "
            "with {operation} or {path}"
        )
    return text


def _language(text: str) -> str:
    if text and not re.fullmatch(r"[a-z]{2,3}", text):
        raise ValueError("isn't a language code such as en or cs")
    return text


def _translations(text: str) -> str:
    if text not in ("auto", NO_TRANSLATIONS, "/{lang}/", ".{lang}", "{lang}.") and not re.fullmatch(
        r"\?[\w.-]+=\{lang\}", text
    ):
        raise ValueError(
            "is not one of auto, none, /{lang}/ (a folder), .{lang} (an ending), {lang}. (a part of the host), "
            "?name={lang} (a parameter)"
        )
    return text


def _one_or_more(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _arguments(value: object) -> str:
    """Arguments as JSON, so that sources stay comparable; dates of TOML become texts."""
    if isinstance(value, str):
        value = json.loads(value) if value.startswith("{") else value  # pydantic names what is no JSON
    if not isinstance(value, dict):
        raise ValueError("isn't a table of arguments: write them as { name = value }")  # noqa: TRY004  # for pydantic
    return json.dumps(value, default=str, sort_keys=True)


def is_web_address(text: str) -> bool:
    """True for an address of a host at http or https."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _link(text: str) -> str:
    written = re.sub(r"\{[^{}]+\}", "", text)
    if text and (written == text or not re.match(r"https?://[^/{}]+/[^{}]*+$", written)):
        raise ValueError("isn't a web address with a name of the metadata, as https://docs.example.org/{file_name}")
    return text


Words = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
Selector = Annotated[str, AfterValidator(_selector)]
Selectors = Annotated[tuple[Selector, ...], BeforeValidator(_one_or_more)]
Hosts = Annotated[tuple[Annotated[str, AfterValidator(_host)], ...], BeforeValidator(_one_or_more)]
MarkdownForm = Annotated[str, AfterValidator(_markdown)]
AnchorForm = Annotated[str, AfterValidator(_anchors)]
LanguageCode = Annotated[str, AfterValidator(_language)]
LanguageCodes = Annotated[tuple[LanguageCode, ...], BeforeValidator(_one_or_more)]
TranslationForm = Annotated[str, AfterValidator(_translations)]
Link = Annotated[str, AfterValidator(_link)]
Pem = Annotated[str, AfterValidator(pem_place)]
Arguments = Annotated[str, BeforeValidator(_arguments)]
