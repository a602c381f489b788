"""The sites and directories to index, each with its own settings, from addresses or a TOML file; secrets of their headers stay outside it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from app.core.errors import SettingsError, did_you_mean
from app.core.hooks import registered_by_name
from app.core.log_message import masked, names_token
from app.core.plugins import check_arguments, load
from app.core.settings import Settings
from app.core.settings_sources import wanted
from app.core.settings_types import form
from app.index.kept_sites import KeptSites

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_REFERENCE = re.compile(r"(?P<before>(?:[A-Za-z]+ |[\w.-]+=)?)(?P<kind>env|file):(?P<place>\S(?:.*\S)?)")
_OURS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "host", "if-modified-since", "if-none-match", "te"}
    | {"transfer-encoding", "upgrade"}
)
"""Headers that make a request work."""


def headers_as_json(value: object) -> str:
    """The headers of a source as JSON, so that sources stay comparable. Raises ValueError, which never shows a value."""
    if isinstance(value, str):
        value = json.loads(value) if value.startswith("{") else value
    if not isinstance(value, dict):
        raise ValueError('isn\'t a table of headers: write { Authorization = "Bearer env:NAME" }')  # noqa: TRY004  # for pydantic
    for name, written in value.items():
        if not _NAME.fullmatch(name) or name.lower() in _OURS:
            raise ValueError(f"{name[:100]!r} is no header that can be set")
        if not isinstance(written, str) or not _REFERENCE.fullmatch(written):
            raise ValueError(
                f"{name} must name where its value is: env:NAME or file:PATH, also as Bearer env:NAME or session=env:NAME"
            )
    return json.dumps(value, sort_keys=True)


def _absolute(reference: str, directory: Path) -> str:
    """The same reference; the relative path of a file starts from this directory."""
    match = _REFERENCE.fullmatch(reference)
    if not match or match["kind"] == "env":
        return reference
    return f"{match['before']}file:{directory.resolve() / match['place']}"


def pem_place(text: str) -> str:
    """Returns the place of a certificate or key as file:PATH or env:NAME. Raises ValueError, which never shows a value."""
    if "-----" in text or "\n" in text:
        raise ValueError("must name where it is: a file, or env:NAME")
    return text if not text or text.startswith(("env:", "file:")) else f"file:{text}"


def read_headers(headers: str, url: str) -> Mapping[str, str]:
    """The headers to send to the source at `url`. Raises `SettingsError` for a variable or file that isn't there."""
    return {name: _value(text, f"{url}: headers: {name}") for name, text in json.loads(headers).items()}


def _value(text: str, what: str) -> str:
    match = _REFERENCE.fullmatch(text)
    assert match is not None
    value = read_secret(f"{match['kind']}:{match['place']}", what).strip()
    if not value.isascii() or not value.isprintable():
        raise SettingsError(f"{what}: {match['place']} has characters that no header can have, such as a line break.")
    return match["before"] + value


def read_secret(reference: str, what: str) -> str:
    """The content of env:NAME or file:PATH. Raises `SettingsError` that says `what` it is for where nothing is there."""
    kind, _, place = reference.partition(":")
    if kind == "env":
        value, where = os.environ.get(place, ""), f"the environment variable {place}"
    else:
        where = f"the file {place}"
        try:
            value = Path(place).read_text("utf-8-sig")
        except OSError as error:
            raise SettingsError(f"{what}: {where} can't be read: {error.strerror}.") from error
        except UnicodeDecodeError:
            raise SettingsError(f"{what}: {where} isn't text.") from None
    if not value.strip():
        raise SettingsError(f"{what}: {where} is not set or empty.")
    return value


RENDERERS = ("swagger", "redoc", "scalar")
"""Programs that show OpenAPI documents."""

NO_TRANSLATIONS = "none"


def _selector(text: str) -> str:
    if text:
        from cssselect import SelectorError
        from lxml.cssselect import CSSSelector

        try:
            CSSSelector(text)
        except SelectorError as error:
            raise ValueError(f"isn't a CSS selector ({error})") from error
    return text


def _form(accepts: Callable[[str], object], otherwise: str) -> AfterValidator:
    """Allows an empty text, too."""
    return form(lambda text: not text or accepts(text), otherwise)


def _is_anchors(text: str) -> object:
    return text in ("auto", "github", "mkdocs", "none", *RENDERERS) or re.search(r"\{(?:operation|path)\}", text)


def _is_branch(text: str) -> object:
    return _REF.fullmatch(text) and not (".." in text or "//" in text or text.endswith(("/", ".", ".lock")))


_REF = re.compile(r"[\w][\w./+-]*")
_HOST_FORM = _form(
    re.compile(r"[\w*.:\[\]-]+").fullmatch,
    "isn't a host: write docs.example.org or *.example.org, without scheme and path",
)
_ANCHORS = _form(
    _is_anchors,
    "is not one of auto, github, mkdocs, none; or for an OpenAPI document swagger, redoc, scalar, or a pattern "
    "with {operation} or {path}",
)
_TRANSLATION_FORM = _form(
    re.compile(r"auto|none|//?\{lang\}/|\.\{lang\}|\{lang\}\.|\?[\w.-]+=\{lang\}").fullmatch,
    "is not one of auto, none, /{lang}/ (a folder), .{lang} (an ending), {lang}. (a part of the host), "
    "//{lang}/ (a host for each language), ?name={lang} (a parameter)",
)
_LANGUAGE = _form(re.compile(r"[a-z]{2,3}").fullmatch, "isn't a language code such as en or cs")
_BRANCH = _form(_is_branch, "isn't the name of a branch or a tag")


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


Words = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]
Selector = Annotated[str, AfterValidator(_selector)]
Selectors = Annotated[tuple[Selector, ...], BeforeValidator(_one_or_more)]
Hosts = Annotated[tuple[Annotated[str, _HOST_FORM, AfterValidator(str.lower)], ...], BeforeValidator(_one_or_more)]
LanguageCode = Annotated[str, _LANGUAGE]
LanguageCodes = Annotated[tuple[LanguageCode, ...], BeforeValidator(_one_or_more)]
Link = Annotated[str, AfterValidator(_link)]
Pem = Annotated[str, AfterValidator(pem_place)]
Arguments = Annotated[str, BeforeValidator(_arguments)]


_HOST = r"(?:[A-Za-z0-9][A-Za-z0-9._-]*+(?<![._-])|\[[0-9A-Fa-f:.]+\])"
_USER = r"(?<![\w.-])[A-Za-z0-9_][A-Za-z0-9_.-]*+"
_PATH = r"/[^\s?#\\\x00-\x1f\x7f]+"
_WEB = rf"https?://(?:[^\s/?#@\\]+@)?{_HOST}(?::\d{{1,5}})?{_PATH}"
_SSH = rf"ssh://(?:{_USER}@)?{_HOST}(?::\d{{1,5}})?{_PATH}|{_USER}@{_HOST}:(?!-)[^\s?#\\\x00-\x1f\x7f]+"
_REPOSITORY = _form(  # nothing that git could take for an option or another transport
    re.compile(rf"{_WEB}|{_SSH}|file://{_PATH}").fullmatch,
    "isn't the address of a repository: write https://host/repo.git, ssh://git@host/repo.git, git@host:repo.git "
    "or file:///path",
)


def inner_folder(text: str) -> str:
    """The folder without slashes at its ends. Raises ValueError for one that leaves what it is in."""
    parts = text.strip("/").split("/")
    if text and (not text.isprintable() or "\\" in text or text.startswith("/") or {"", ".", ".."} & set(parts)):
        raise ValueError("isn't a folder: write it as docs or docs/en")
    return text.strip("/")


def is_web(address: str) -> bool:
    """True for the address of a host that is read over HTTP."""
    parts = urlsplit(address)
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def without_login(address: str) -> str:
    """The web address without user and password; the user of an ssh address is no secret."""
    parts = urlsplit(address)
    if not is_web(address) or "@" not in parts.netloc:
        return address
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def has_token(address: str) -> bool:
    """True when a parameter of the web address is a token, a password or a signature by its name."""
    return is_web(address) and any(names_token(name) for name, _ in parse_qsl(urlsplit(address).query))


_EXAMPLE = "https://docs.example.org/sitemap.xml"
NO_HEADERS = "{}"
MAX_DEPTH = 10
MAX_PAGES = 5_000
"""Limits of following links: depth and number of addresses."""

LOGIN = ("headers", "certificate", "certificate_key", "certificate_password", "ca")
"""Keys that say how to sign in: they name secrets of a machine, so no index has them, and no value is shown."""

FOR_ALL = ("collection", "language", "languages")
"""Keys that a file may set once for all of its sources."""


class Source(BaseModel):
    """A site, a directory, a git repository or a LlamaIndex reader, and how to read it. Empty fields take
    their value from the settings.

    `url` is the address of a sitemap or of a site. With `openapi`, the address of an OpenAPI document, it is the page that
    shows the document. With `directory` or `git` it is the address at which the files are published, those of Markdown with `ending` after their names. With `reader` (`module:Class`, made with `reader_args` and asked
    with `load_args`, both JSON) it names the source; `link` makes the addresses of documents without one.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: str
    directory: str = ""
    openapi: str = ""
    git: Annotated[str, _REPOSITORY] = ""
    branch: Annotated[str, _BRANCH] = ""
    folder: Annotated[str, AfterValidator(inner_folder)] = ""
    ending: Literal["", "/", ".html"] = ""
    reader: str = ""
    reader_args: Arguments = "{}"
    load_args: Arguments = "{}"
    link: Link = ""
    collection: str = ""
    include: Words = ()
    exclude: Words = ()
    hosts: Hosts = ()
    content_selector: Selector = ""
    drop_selectors: Selectors = ()
    keep_selectors: Selectors = ()
    language: LanguageCode = ""
    languages: LanguageCodes = ()
    anchors: Annotated[str, _ANCHORS] = "auto"
    translations: Annotated[str, _TRANSLATION_FORM] = "auto"
    parallel: Annotated[int, Field(ge=1, le=64)] | None = None
    delay: Annotated[float, Field(ge=0)] | None = None
    noindex: Literal["respect", "ignore"] = "respect"
    follow: bool = False
    max_depth: Annotated[int, Field(ge=0)] = MAX_DEPTH
    max_pages: Annotated[int, Field(ge=1, le=100_000)] = MAX_PAGES
    headers: Annotated[str, BeforeValidator(headers_as_json)] = NO_HEADERS
    certificate: Pem = ""
    certificate_key: Pem = ""
    certificate_password: Pem = ""
    ca: Pem = ""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not is_web(self.url):
            raise ValueError(f"url {self.url!r} isn't a web address: give one like {_EXAMPLE}")
        if self.openapi and not is_web(self.openapi):
            raise ValueError(f"openapi {self.openapi!r} must be the web address of a document")
        if self.languages and self.language and self.language not in self.languages:
            raise ValueError(f"language {self.language!r} is not one of languages ({', '.join(self.languages)})")
        self._check_kind()
        if not self.reader and (self.link or {self.reader_args, self.load_args} != {"{}"}):
            raise ValueError("reader_args, load_args and link are for a reader only")
        return self

    @model_validator(mode="after")
    def _connected(self) -> Self:
        if not (self.certificate or self.certificate_key or self.certificate_password or self.ca):
            return self
        if self.git or urlsplit(self.requested).scheme != "https":
            raise ValueError("certificate and ca are for a site at https:// only")
        if not self.certificate and (self.certificate_key or self.certificate_password):
            raise ValueError("certificate_key and certificate_password need a certificate")
        return self

    def _check_kind(self) -> None:
        kinds = [kind for kind in ("directory", "git", "reader", "openapi") if getattr(self, kind)]
        if len(kinds) > 1:
            raise ValueError(f"it has both {kinds[0]} and {kinds[1]}: make two sources of it")
        for wrong, told in (
            (
                self.ending and (self.is_site or self.reader or self.openapi),
                "ending is for a directory or git only",
            ),
            (self.branch and not self.git, "branch is for git only"),
            (self.folder and not self.git, "folder is for git only"),
            (self.follow and not self.is_site, "follow is for a site only"),
            (
                has_token(self.openapi),
                "its address has a token, which reports and the index would show: give it as a header (`headers`)",
            ),
            (self.headers != NO_HEADERS and not is_web(self.requested), "headers are for what is read over HTTP only"),
        ):
            if wrong:
                raise ValueError(told)

    @property
    def is_site(self) -> bool:
        """True when its pages are read from the web."""
        return not (self.directory or self.git or self.reader or self.openapi)

    @property
    def place(self) -> str:
        """The place that its pages are read from, for messages."""
        return self.directory or self.git or self.openapi or self.url

    @property
    def requested(self) -> str:
        """The address that requests go to, with the headers; empty without any."""
        return "" if self.directory or self.reader else self.place

    @property
    def arguments(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The arguments of the reader's class, and those of its `load_data`."""
        return json.loads(self.reader_args), json.loads(self.load_args)

    @property
    def reading(self) -> str:
        """The settings that a page's text depends on; when they change, the page is read again."""
        parts = (self.content_selector, *self.drop_selectors, self.anchors, self.language, self.ending)
        parts += (" ".join(self.languages),) if self.languages else ()
        limits = self.max_depth, self.max_pages  # pages are read again to find what was beyond the limit
        parts += tuple(f"keep {selector}" for selector in self.keep_selectors)
        parts += ("with noindex",) if self.noindex == "ignore" else ()
        parts += (f"limits {limits}",) if limits != (MAX_DEPTH, MAX_PAGES) else ()
        parts += (_TRANSLATIONS + self.translations,) if self.translations != "auto" else ()
        return "" if parts == _DEFAULTS else "\n".join(parts)

    def within(self, settings: Settings) -> Settings:
        """The settings, overridden by those of the source."""
        default = self.language
        if self.languages and not default and settings.default_language not in self.languages:
            default = self.languages[0]
        own = {"collection": self.collection, "default_language": default, "languages": self.languages}
        return settings.model_copy(update={key: value for key, value in own.items() if value})

    def without_login(self) -> Source:
        """The same source without the passwords in its addresses, headers and certificates."""
        clean = {name: without_login(getattr(self, name)) for name in ("url", "git", "openapi")}
        none = {key: NO_HEADERS if key == "headers" else "" for key in LOGIN}
        return self.model_copy(update={**clean, **none})

    def left_out(self, url: str) -> str:
        """The reason why the source's patterns exclude the address; empty when they don't."""
        path = unquote(urlsplit(url).path) or "/"
        for pattern in self.exclude:
            if fnmatchcase(url if "://" in pattern else path, pattern):
                return f"excluded by {pattern}"
        if self.include and not any(fnmatchcase(url if "://" in p else path, p) for p in self.include):
            return f"matches no include pattern ({', '.join(self.include)})"
        return ""


class OwnDocumentation(Source):
    """The product's own documentation, indexed for a first try. Its pages leave the index when other sources are indexed."""


class AddedSite(Source):
    """A site that an admin added in the browser. It must be public, or in DOCS_CRAWL_ALLOW: only who writes the settings
    of this machine may lead the crawler into its networks.
    """


def added_sites(kept: KeptSites) -> tuple[Source, ...]:
    """The added sites of the list that aren't paused. Raises `SettingsError` for one that is no source of this release."""
    return tuple(added_site(one.options) for url, one in kept.added.items() if url not in kept.paused)


def added_site(options: Mapping[str, Any]) -> AddedSite:
    """The site with these fields. Raises `SettingsError` that names the mistake."""
    try:
        return AddedSite(**options)
    except (ValidationError, TypeError) as error:
        told = [_described(one) for one in error.errors()] if isinstance(error, ValidationError) else [str(error)]
        raise SettingsError(f"The site {masked(str(options.get('url')))}: {'; '.join(told)}.") from error


def translations_of(reading: str) -> str:
    """Returns the rule for translations of a source with these settings; empty without one."""
    last = reading.rpartition("\n")[2]
    return last.removeprefix(_TRANSLATIONS) if last.startswith(_TRANSLATIONS) else ""


def settings_of(reading: str) -> str:
    """The settings of a source among what a page's text depends on, which may begin with the blocks that were left out."""
    return reading.partition("\n")[2] if reading.startswith(LEFT_OUT) else reading


LEFT_OUT = "without blocks "
_TRANSLATIONS = "translations "
_DEFAULTS = ("", "auto", "", "")


def as_sources(given: Iterable[str | Source]) -> tuple[Source, ...]:
    """The sources of these addresses and TOML files. Raises `SettingsError` that names the mistake."""
    sources: list[Source] = []
    for item in given:
        if isinstance(item, Source):
            sources.append(item)
        elif item.endswith(".toml") and "://" not in item:
            sources += load_sources(Path(item))
        else:
            sources.append(_plain(item))
    return tuple(dict.fromkeys(sources))


def configured(settings: Settings) -> Sequence[str]:
    """Returns the configured sources for `as_sources`: DOCS_SITES and the file of DOCS_SOURCES."""
    return (*settings.sites, *((settings.sources,) if settings.sources else ()))


def of_collections(sources: Iterable[Source], wanted: Sequence[str], settings: Settings) -> tuple[Source, ...]:
    """The sources of these collections. Raises `SettingsError` for an unknown collection."""
    by_name: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        by_name[source.collection or settings.tuning.collection].append(source)
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
    if reader_of(source) is None and source.reader:
        check_reader(source, f"{file}, source {number} ({shown}): reader")
    secrets = {key: _absolute(getattr(source, key), file.parent) for key in LOGIN if key != "headers"}
    headers = {name: _absolute(value, file.parent) for name, value in json.loads(source.headers).items()}
    directory = str((file.parent / source.directory).resolve()) if source.directory else ""
    if directory and not Path(directory).is_dir():
        raise SettingsError(f"{file}, source {number} ({source.url}): directory: {directory} is no directory.")
    return source.model_copy(update={"headers": json.dumps(headers), **secrets, "directory": directory})


SourceReader = Callable[["Source", Any], Awaitable[Any]]
"""Lists the pages of a source: gets it with the `ingestion.crawl.fetch.Fetcher` of the run, returns an
`ingestion.entry.Listing`. Raises `SourceUnavailable`; then the pages of the source stay as they are.
"""


@cache
def _readers() -> Mapping[str, SourceReader]:
    return registered_by_name("register_sources")


def reader_of(source: Source) -> SourceReader | None:
    """The function of a plugin that lists the source's pages; None for a site, a directory and a class of LlamaIndex.

    Raises `SettingsError` where no loaded plugin has it.
    """
    name = "git" if source.git else source.reader
    if not name or ":" in name:
        return None
    if name not in _readers():
        raise SettingsError(
            f"{masked(source.url)}: no loaded plugin reads {name!r}.{did_you_mean(name, _readers())} There are: "
            f"{', '.join(_readers()) or 'none'}. A reader of LlamaIndex is written as module:Class."
        )
    return _readers()[name]


def check_reader(source: Source, what: str) -> None:
    """Raises `SettingsError` when the reader isn't there, is none of LlamaIndex's, or has no such arguments.

    It isn't made yet, because that may take a connection.
    """
    from llama_index.core.readers.base import BaseReader

    reader = load(source.reader, BaseReader, what)
    making, loading = source.arguments
    check_arguments(reader, making, f"{what}={source.reader}")
    lazy = reader.load_data is BaseReader.load_data  # it passes its arguments on
    method = reader.lazy_load_data if lazy else reader.load_data
    check_arguments(partial(method, None), loading, f"{what}={source.reader}: load_data")


def _described(problem: Any) -> str:
    """One validation error: the key, its value, and what is wrong."""
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        return f"unknown key {key}.{did_you_mean(key, Source.model_fields)} Known are {', '.join(Source.model_fields)}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    if key in LOGIN:  # a value that is written here by mistake is a secret
        return f"{key}: {problem['ctx']['error'] if 'ctx' in problem else problem['msg']}"
    told = wanted(problem, Source.model_fields, "a text or a list of texts").rstrip(".")
    return masked(f"{key}: {problem['input']!r}: {told}" if key else told)


def _plain(address: str) -> Source:
    try:
        return Source(url=address)
    except ValidationError as error:
        raise SettingsError(
            f"{masked(address)!r} isn't a web address: give one like {_EXAMPLE}, or the name of a .toml file"
        ) from error
