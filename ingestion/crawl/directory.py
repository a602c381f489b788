"""Files as a source, of a directory or a git repository: their public addresses and counterparts in other languages."""

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
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
from ingestion.formats import binary_types, file_types
from ingestion.sources import Source

LARGEST_SNIFFED = 50_000_000
"""Bytes of a JSON or YAML file that is looked at; a larger one holds data."""

_LFS = b"version https://git-lfs.github.com/spec/"
_INDEX = ("index", "readme")
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
    paths = [path for path in files_below(root) if is_page_name(path) or (not kept and _is_openapi(root, path))]
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
    entries: list[Entry] = []
    for path, address in addresses.items():
        if reason := source.left_out(address):
            left_out.append(Skipped(address, reason))
            continue
        entry = Entry(_file_url(source, path), source.url, source, alternates=counterparts[path], public=address)
        entries.append(replace(entry, file=path.as_posix(), root=str(root)))
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
    shown = [path for path in sorted(paths) if path.suffix.lower() in types]
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


def read_file(entry: Entry, etag: str, most: int) -> Fetched:
    """The file of a page as if it had been downloaded: 304 when its content is that of `etag`. Raises `PageError`."""
    body = _body(entry, most)
    if body.startswith(_LFS):
        raise PageSkipped("is a pointer of Git LFS, whose content isn't here")
    version = hashlib.sha256(body).hexdigest()
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
        name = PurePosixPath(match[2]).name
        if match[2].endswith("/") and not source.ending:
            return match[0].rstrip("/")
        if "." in name or match[2].endswith("/") or not name:
            return match[0]
        return f"{match[1]}{_base(source)}{_published(match[2], source.ending)}"

    return re.sub(rf"(\]\(<?){base}([^\s()#?<>]*)", link, markdown)


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
    kind = "directory" if source.directory else "git repository"
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
    return _base(source) + _published(quote(str(path.with_suffix(""))), source.ending)


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
