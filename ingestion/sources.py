"""The sites and directories to index, each with its own settings, from addresses or a TOML file."""

from __future__ import annotations

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import unquote, urlsplit

from cssselect import SelectorError
from lxml.cssselect import CSSSelector
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from app.core.errors import SettingsError
from app.core.masking import masked
from app.core.nearest import did_you_mean
from app.core.plugins import check_arguments, load
from app.core.settings import Settings
from app.core.settings_errors import wanted


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


def _link(text: str) -> str:
    written = re.sub(r"\{[^{}]+\}", "", text)
    if text and (written == text or not re.match(r"https?://[^/{}]+/[^{}]*+$", written)):
        raise ValueError("isn't a web address with a name of the metadata, as https://docs.example.org/{file_name}")
    return text


NO_TRANSLATIONS = "none"

FOR_ALL = ("collection", "language", "languages")
"""Keys that a file may set once for all of its sources."""

Words = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
Selector = Annotated[str, AfterValidator(_selector)]
Arguments = Annotated[str, BeforeValidator(_arguments)]


class Source(BaseModel):
    """A site, a directory of Markdown or a LlamaIndex reader, and how to read it. Empty fields take their value from the
    settings.

    `url` is the address of a sitemap or of a site. With `directory` it is the address at which the directory's files
    are published, each with `ending` after its name. With `reader` (`module:Class`, made with `reader_args` and asked
    with `load_args`, both JSON) it names the source; `link` makes the addresses of documents without one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    directory: str = ""
    ending: Literal["", "/", ".html"] = ""
    reader: str = ""
    reader_args: Arguments = "{}"
    load_args: Arguments = "{}"
    link: Annotated[str, AfterValidator(_link)] = ""
    collection: str = ""
    include: Words = ()
    exclude: Words = ()
    hosts: Annotated[tuple[Annotated[str, AfterValidator(_host)], ...], BeforeValidator(_one_or_more)] = ()
    markdown: Annotated[str, AfterValidator(_markdown)] = "auto"
    content_selector: Selector = ""
    drop_selectors: Annotated[tuple[Selector, ...], BeforeValidator(_one_or_more)] = ()
    language: Annotated[str, AfterValidator(_language)] = ""
    languages: Annotated[tuple[Annotated[str, AfterValidator(_language)], ...], BeforeValidator(_one_or_more)] = ()
    anchors: Literal["auto", "github", "mkdocs", "none"] = "auto"
    translations: Annotated[str, AfterValidator(_translations)] = "auto"
    parallel: Annotated[int, Field(ge=1, le=64)] | None = None
    delay: Annotated[float, Field(ge=0)] | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise ValueError(
                f"url {self.url!r} isn't a web address: give one like https://docs.example.org/sitemap.xml"
            )
        if self.languages and self.language and self.language not in self.languages:
            raise ValueError(f"language {self.language!r} is not one of languages ({', '.join(self.languages)})")
        if self.ending and not self.directory:
            raise ValueError("ending is for a directory only")
        if self.directory and self.reader:
            raise ValueError("it has both a directory and a reader: make two sources of it")
        if not self.reader and (self.link or {self.reader_args, self.load_args} != {"{}"}):
            raise ValueError("reader_args, load_args and link are for a reader only")
        return self

    @property
    def reader_arguments(self) -> dict[str, Any]:
        """The arguments of the reader's class."""
        return dict(json.loads(self.reader_args))

    @property
    def load_arguments(self) -> dict[str, Any]:
        """The arguments of the reader's `load_data`."""
        return dict(json.loads(self.load_args))

    @property
    def reading(self) -> str:
        """The settings that a page's text depends on; when they change, the page is read again."""
        parts = (self.markdown, self.content_selector, *self.drop_selectors, self.anchors, self.language, self.ending)
        parts += (" ".join(self.languages),) if self.languages else ()
        parts += (_TRANSLATIONS + self.translations,) if self.translations != "auto" else ()
        return "" if parts == _DEFAULTS else "\n".join(parts)

    @property
    def suffix(self) -> str:
        """The suffix that turns a page's address into that of its Markdown, if configured."""
        return self.markdown.partition(":")[2]

    def within(self, settings: Settings) -> Settings:
        """The settings, overridden by those of the source."""
        default = self.language
        if self.languages and not default and settings.default_language not in self.languages:
            default = self.languages[0]
        own = {"collection": self.collection, "default_language": default, "languages": self.languages}
        return settings.model_copy(update={key: value for key, value in own.items() if value})

    def without_password(self) -> Source:
        """The same source without the password in its address."""
        parts = urlsplit(self.url)
        clean = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl() if "@" in parts.netloc else self.url
        return self.model_copy(update={"url": clean})

    def left_out(self, url: str) -> str:
        """Why the source's patterns exclude the address; empty when they don't."""
        path = unquote(urlsplit(url).path) or "/"
        for pattern in self.exclude:
            if fnmatchcase(url if "://" in pattern else path, pattern):
                return f"excluded by {pattern}"
        if self.include and not any(fnmatchcase(url if "://" in p else path, p) for p in self.include):
            return f"matches no include pattern ({', '.join(self.include)})"
        return ""


class OwnDocumentation(Source):
    """This product's own documentation, indexed for a first try. Its pages leave the index when other sources are indexed."""


def translations_of(reading: str) -> str:
    """What a source with these settings says of its translations; empty if it says nothing."""
    last = reading.rpartition("\n")[2]
    return last.removeprefix(_TRANSLATIONS) if last.startswith(_TRANSLATIONS) else ""


_TRANSLATIONS = "translations "
_DEFAULTS = ("auto", "", "auto", "", "")


def as_sources(given: Iterable[str | Source]) -> tuple[Source, ...]:
    """The sources of these addresses and TOML files. Raises `SettingsError` that names the mistake."""
    found: list[Source] = []
    for item in given:
        if isinstance(item, Source):
            found.append(item)
        elif item.endswith(".toml") and "://" not in item:
            found += load_sources(Path(item))
        else:
            found.append(_plain(item))
    return tuple(dict.fromkeys(found))


def configured(settings: Settings) -> Sequence[str]:
    """What `as_sources` makes the configured sources of: DOCS_SITES and the file of DOCS_SOURCES."""
    return (*settings.sites, *((settings.sources,) if settings.sources else ()))


def of_collections(sources: Iterable[Source], wanted: Sequence[str], settings: Settings) -> tuple[Source, ...]:
    """The sources of these collections. Raises `SettingsError` for an unknown collection."""
    by_name: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        by_name[source.within(settings).collection].append(source)
    if unknown := [name for name in wanted if name not in by_name]:
        raise SettingsError(
            f"No source is of the collection {', '.join(unknown)}. There are: {', '.join(sorted(by_name))}. "
            "Set `collection` in the file of sources."
        )
    return tuple(source for name in dict.fromkeys(wanted) for source in by_name[name])


def load_sources(file: Path) -> tuple[Source, ...]:
    """The sources of a TOML file. Raises `SettingsError` naming the file, the source and the key."""
    try:
        content = tomllib.loads(file.read_text("utf-8-sig"))
    except OSError as error:
        raise SettingsError(f"The sources file {file} can't be read: {error.strerror}. Check its name.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"The sources file {file} isn't valid TOML: {error}.") from error
    tables = content.pop("source", None)
    if unknown := next((key for key in content if key not in FOR_ALL), ""):
        near = did_you_mean(unknown, (*FOR_ALL, "[[source]]"))
        raise SettingsError(
            f"{file}: unknown key {unknown!r}.{near} Each source is a [[source]] table; before them may stand, for all of "
            f"them, {', '.join(FOR_ALL)}."
        )
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise SettingsError(f"{file}: it names no source. Add a [[source]] table with a url.")
    return tuple(_of_table(file, number, {**content, **table}) for number, table in enumerate(tables, 1))


def _of_table(file: Path, number: int, table: dict[str, Any]) -> Source:
    shown = masked(str(table.get("url", "no url")))
    try:
        source = Source(**table)
    except ValidationError as error:
        problems = "; ".join(_described(problem) for problem in error.errors())
        raise SettingsError(f"{file}, source {number} ({shown}): {problems}.") from error
    if source.reader:
        check_reader(source, f"{file}, source {number} ({shown}): reader")
    if not source.directory:
        return source
    directory = (file.parent / source.directory).resolve()
    if not directory.is_dir():
        raise SettingsError(f"{file}, source {number} ({source.url}): directory: {directory} is no directory.")
    return source.model_copy(update={"directory": str(directory)})


def check_reader(source: Source, what: str) -> None:
    """Raises `SettingsError` when the reader isn't there, is none of LlamaIndex's, or has no such arguments.

    It isn't made yet, because that may take a connection.
    """
    from llama_index.core.readers.base import BaseReader

    reader = load(source.reader, BaseReader, what)
    check_arguments(reader, source.reader_arguments, f"{what}={source.reader}")
    lazy = reader.load_data is BaseReader.load_data  # it passes its arguments on
    method = reader.lazy_load_data if lazy else reader.load_data
    check_arguments(partial(method, None), source.load_arguments, f"{what}={source.reader}: load_data")


def _described(problem: Any) -> str:
    """One validation error: the key, its value, and what is wrong."""
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key}.{did_you_mean(key, Source.model_fields)} Known are {', '.join(Source.model_fields)}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    told = wanted(problem, Source.model_fields, "a text or a list of texts").rstrip(".")
    return masked(f"{key}: {problem['input']!r}: {told}" if key else told)


def _plain(address: str) -> Source:
    try:
        return Source(url=address)
    except ValidationError as error:
        raise SettingsError(
            f"{masked(address)!r} isn't a web address: give one like https://docs.example.org/sitemap.xml, or the name of a .toml file"
        ) from error
