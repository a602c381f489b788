"""Files as a source, of a directory, a git repository or an archive: their public addresses and counterparts in other languages."""

import hashlib
import mimetypes
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from urllib.parse import quote, urljoin

from app.core.errors import SitemapError
from app.core.language import vocabulary
from ingestion.crawl import openapi
from ingestion.crawl.exchange import BUILT_TYPES, Fetched, most_bytes
from ingestion.crawl.language_tags import primary_language
from ingestion.entry import Entry, Listing, Skipped
from ingestion.errors import PageError, PageGone, PageSkipped
from ingestion.formats import binary_types, file_types, including
from ingestion.sources import Source

LARGEST_SNIFFED = 50_000_000
"""Bytes of a JSON or YAML file that is looked at; a larger one holds data."""

LARGEST = 1_000_000
"""Bytes of a file that is read for another one."""

_KINDS = mimetypes.MimeTypes()  # without those of the system, which differ from machine to machine
_CODE_TYPES = frozenset(
    {"application/json", "application/javascript", "application/x-sh", "application/x-csh", "application/xml"}
)
_TEXTS = (".ts", ".mts", ".bat", ".php", ".sql", ".toml", ".yaml", ".yml", ".tex", ".latex", ".tcl")
"""Endings of texts whose type is unknown, is that of a program, or means something else, such as a video."""
_BINARIES = frozenset(".7z .db .eot .iso .jar .otf .parquet .rar .sqlite .ttf .woff .woff2 .zst".split())  # noqa: SIM905  # a list of them would take as many lines
_ANTORA_PART = re.compile(r"(?:^|/)modules/[^/]+/(?!pages/)[^/]+(?:/|$)")
_ANTORA_PAGES = re.compile(r"(^|/)modules/(?:ROOT|([^/]+))/pages/")
_LFS = b"version https://git-lfs.github.com/spec/"
_INDEX = ("index", "readme")
_SOURCE = re.compile(r"\.(?:rst|adoc|asciidoc)$")
_ASCIIDOC = (".adoc", ".asciidoc")
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z]{2})?")


def list_files(
    source: Source, languages: Iterable[str], kept: Path | None = None, skipped: Iterable[Skipped] = ()
) -> Listing:
    """The files below the source's directory, or of what is `kept` of it here, as pages at the addresses at which the
    source publishes them, in order of their paths. Raises `SitemapError`.

    Names that begin with a dot or an underscore and node_modules aren't looked at. README.md is the page of its
    directory where there is no index.md beside it.
    """
    root = kept or Path(source.directory)
    everything = list(files_below(root))
    paths = [path for path in everything if is_page_name(path) or (not kept and _is_openapi(root, path))]
    paths = [path for path in paths if _is_within(root, path)]
    unreadable = [path for path in paths if not _is_utf8(path)]
    files = pages_among([path for path in paths if path not in unreadable])
    left_out = [
        *skipped,
        *(Skipped(os.fsencode(path).decode(errors="replace"), "its name isn't UTF-8") for path in unreadable),
    ]
    if not files:
        why = f": {left_out[0].url}: {left_out[0].reason}" if left_out else f" ({', '.join(file_types())})"
        raise SitemapError(f"{_named(source)} holds no file that can be read{why}.")
    indexed = {path.parent for path in files if path.stem.lower() == "index" and not _is_binary(path)}
    addresses = {
        p: _address(source, p)
        for p in files
        if _is_binary(p) or not (p.stem.lower() == "readme" and p.parent in indexed)
    }
    counterparts = _counterparts(addresses, {*languages, *vocabulary().codes})
    left_out += [Skipped(_file_url(source, p), "its directory has an index too") for p in files if p not in addresses]
    included = _included(root, files, everything)
    entries: list[Entry] = []
    for path, address in addresses.items():
        if reason := source.left_out(address):
            left_out.append(Skipped(address, reason))
            continue
        entry = Entry(_file_url(source, path), source.url, source, alternates=counterparts[path], public=address)
        with_others = included if path.suffix.lower() in including() else ""
        entries.append(replace(entry, file=path.as_posix(), root=str(root), included=with_others))
    if not entries:
        raise SitemapError(
            f"None of the files in {_named(source)} can be indexed: {left_out[0].url}: {left_out[0].reason}"
        )
    return Listing.of(source, entries, left_out)


def _types() -> Mapping[str, str]:
    return {**file_types(), **BUILT_TYPES, **openapi.FILE_TYPES}


def pages_among(paths: Collection[PurePosixPath]) -> list[PurePosixPath]:
    """Returns those of the files that may be pages which are pages, in order.

    Where an index.html is at the top and most texts are HTML, they are a built site: its other texts are what it was
    built from, or copies of its pages. The page that it shows for missing addresses isn't one.
    """
    types = _types()
    # a file of a module of Antora that is no page, such as one that pages include, or the navigation
    parts = {path for path in paths if path.suffix in _ASCIIDOC and _ANTORA_PART.search(str(path))}
    shown = [path for path in sorted(paths) if path.suffix.lower() in types and path not in parts]
    built = [path for path in shown if path.suffix.lower() in BUILT_TYPES]
    files = [path for path in shown if path.suffix.lower() not in BUILT_TYPES]
    others = [path for path in files if not types[path.suffix.lower()].startswith("text/")]
    if PurePosixPath("index.html") in built and len(built) > len(files) - len(others):
        return sorted({*built, *others} - {PurePosixPath("404.html")})
    return files


def is_page_name(path: PurePosixPath) -> bool:
    """True when a file of this name may be a page. JSON and YAML hold anything, so their names must say what they are."""
    ending, name = path.suffix.lower(), path.name.lower()
    if ending in openapi.FILE_TYPES and not ("openapi" in name or "swagger" in name):
        return False
    return ending in _types() and not any(map(_is_hidden, path.parts))


def most_of(path: PurePosixPath, most: int) -> int:
    """The largest size of a file of this name, in bytes, where a page may have `most`."""
    return most_bytes(_types().get(path.suffix.lower(), ""), most)[0] if is_page_name(path) else LARGEST


def read_file(entry: Entry, etag: str, most: int) -> Fetched:
    """The file of a page as if it had been downloaded: 304 when its content is that of `etag`. Raises `PageError`."""
    body = _body(entry, most)
    if body.startswith(_LFS):
        raise PageSkipped("is a pointer of Git LFS, whose content isn't here")
    version = hashlib.sha256(body).hexdigest()
    if entry.included:
        version = hashlib.sha256(f"{version}\n{entry.included}".encode()).hexdigest()
    if version == etag:
        return Fetched(entry.url, 304, etag=version)
    return Fetched(entry.url, 200, body, _type(entry), etag=version)


def _type(entry: Entry) -> str:
    return _types()[PurePosixPath(entry.url).suffix.lower()]


def _body(entry: Entry, most: int) -> bytes:
    path = Path(entry.root, entry.file)
    try:
        stat = path.stat()
        if not S_ISREG(stat.st_mode):
            raise PageSkipped("is a pipe or a device, not a file")
        most, advice = most_bytes(_type(entry), most)
        if stat.st_size > most:
            raise PageSkipped(f"is larger than {most:,} bytes{advice}")
        return path.read_bytes()
    except FileNotFoundError as error:
        if not entry.site.directory:
            raise PageError("its kept file was replaced by another run") from error
        raise PageGone("its file is gone") from error
    except OSError as error:
        raise PageError(f"{path} can't be read: {error.strerror}") from error


def published_links(markdown: str, source: Source) -> str:
    """The Markdown with links between the directory's files as they are published."""
    base = re.escape(_base(source))

    def link(match: re.Match[str]) -> str:
        path = _SOURCE.sub("", match[2])
        name = PurePosixPath(path).name
        if path != match[2]:
            path = path if match[2].endswith(".rst") else _as_antora(path)
            return f"{match[1]}{_base(source)}{_published(path, source.ending)}"
        if match[2].endswith("/") and not source.ending:
            return match[0].rstrip("/")
        if "." in name or match[2].endswith("/") or not name:
            return match[0]
        return f"{match[1]}{_base(source)}{_published(match[2], source.ending)}"

    return re.sub(rf"(\]\(<?){base}([^\s()#?<>]*)", link, markdown)


def _as_antora(path: str) -> str:
    """The path of a page as Antora publishes the files of a component: `modules/NAME/pages/x.adoc` as `NAME/x`, and the ROOT module's as `x`."""
    return _ANTORA_PAGES.sub(lambda found: found[1] + (f"{found[2]}/" if found[2] else ""), path, count=1)


def files_below(root: Path) -> Iterator[PurePosixPath]:
    """The paths of all files, except in folders whose names begin with a dot and in node_modules."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        within = PurePosixPath(Path(folder).relative_to(root).as_posix())
        yield from (within / name for name in names)


def _is_within(root: Path, path: PurePosixPath) -> bool:
    """False for a symbolic link that leaves the root, or leads to itself."""
    with suppress(RuntimeError):
        return (root / path).resolve().is_relative_to(root.resolve())
    return False


def _included(root: Path, pages: Sequence[PurePosixPath], everything: Iterable[PurePosixPath]) -> str:
    """The digest of all that the pages may include; empty if they include nothing."""
    if not any(page.suffix.lower() in including() for page in pages):
        return ""
    near = beside(pages, set(everything) - set(pages))
    listed = "\n".join(f"{path} {_digest(root / path)}" for path in near)
    return hashlib.sha256(listed.encode(errors="replace")).hexdigest()


def may_be_beside(path: PurePosixPath) -> bool:
    """True for the name of a text that pages may include: code, tables, settings, and pages that aren't published."""
    ending = path.suffix.lower()
    if ending in BUILT_TYPES or any(part.startswith(".") or part == "node_modules" for part in path.parts):
        return False
    kind, packed = _KINDS.guess_type(path.name)
    if packed or ending in _BINARIES:
        return False
    return ending in _TEXTS or kind is None or kind.startswith("text/") or kind in _CODE_TYPES


def beside(pages: Iterable[PurePosixPath], others: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Returns the other files that pages with includes may need: those at the top, and in the pages' top folders.

    A readme at the top of a repository needs none of its code.
    """
    readers = [page for page in pages if page.suffix.lower() in including()]
    tops = {page.parts[0] if len(page.parts) > 1 else "" for page in readers if page.stem.lower() != "readme"}
    if not tops:
        return []
    near = (path for path in others if "" in tops or len(path.parts) == 1 or path.parts[0] in tops)
    return sorted(filter(may_be_beside, near))


def _digest(path: Path) -> str:
    try:
        stat = path.stat()
        if not S_ISREG(stat.st_mode) or stat.st_size > LARGEST:
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:  # what can't be read isn't included either
        return ""


def _is_openapi(root: Path, named: PurePosixPath) -> bool:
    path = root / named
    if path.suffix.lower() not in openapi.FILE_TYPES or any(map(_is_hidden, named.parts)) or not path.is_file():
        return False
    with suppress(OSError):  # read_file tells of it
        return path.stat().st_size <= LARGEST_SNIFFED and openapi.is_openapi(path.read_text("utf-8", "replace"))
    return False


def _is_binary(path: PurePosixPath) -> bool:
    return file_types().get(path.suffix.lower()) in binary_types()


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_")) or name == "node_modules"


def _named(source: Source) -> str:
    kind = "directory" if source.directory else "git repository" if source.git else "archive"
    folder = f", folder {source.folder}," if source.folder else ""
    return f"The {kind} {source.place}{folder}"


def _is_utf8(path: PurePosixPath) -> bool:
    try:
        return bool(str(path).encode())
    except UnicodeEncodeError:
        return False


def _base(source: Source) -> str:
    return source.url if source.url.endswith("/") else f"{source.url}/"


def _file_url(source: Source, path: PurePosixPath) -> str:
    return urljoin(_base(source), quote(str(path)))


def _address(source: Source, path: PurePosixPath) -> str:
    if path.suffix.lower() in BUILT_TYPES:  # a built site has its addresses already
        return _base(source) + quote(str(path)).removesuffix("index.html" if path.name == "index.html" else "")
    if _is_binary(path):
        return _file_url(source, path)
    published = quote(str(path.with_suffix("")))
    if path.suffix in _ASCIIDOC:
        published = _as_antora(published)
    return _base(source) + _published(published, source.ending)


def _published(path: str, ending: str) -> str:
    """The published path of a file without its suffix: an index stands for its folder."""
    folder, _, name = path.rpartition("/")
    if name.lower() not in _INDEX:
        return path + ending
    if not folder:
        return ""
    return f"{folder}/" if ending else folder


def _counterparts(
    addresses: Mapping[PurePosixPath, str], languages: AbstractSet[str]
) -> Mapping[PurePosixPath, dict[str, str]]:
    """Of each file, the addresses of those that differ in nothing but the language: en/a.md and cs/a.md, a.en.md and a.cs.md."""
    groups: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    keys = {path: _key(path, languages) for path in addresses}
    for path, (language, key) in keys.items():
        if language:
            groups[key].setdefault(language, addresses[path])
    return {p: dict(groups[key]) if len(groups[key]) > 1 and lang else {} for p, (lang, key) in keys.items()}


def _key(path: PurePosixPath, languages: AbstractSet[str]) -> tuple[str, tuple[str, ...]]:
    """(language, path without it); the language is empty when the path has none."""
    stem, _, suffix = path.stem.rpartition(".")
    if stem and primary_language(suffix) in languages:
        return primary_language(suffix), (*path.parts[:-1], "", stem)
    for at, part in enumerate(path.parts[:-1]):
        if _CODE.fullmatch(part) and primary_language(part) in languages:
            return primary_language(part), (*path.parts[:at], "", *path.parts[at + 1 : -1], path.stem)
    return "", path.parts
