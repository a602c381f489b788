"""A directory or checkout of Markdown as a source: its files, their public addresses and counterparts in other languages."""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path, PurePosixPath
from stat import S_ISREG
from urllib.parse import quote, urljoin

from app.core.errors import SitemapError
from app.core.language import vocabulary
from ingestion.crawl.exchange import FILE_TYPES, Fetched
from ingestion.entry import Entry, Listing, Skipped
from ingestion.errors import PageError, PageGone, PageSkipped
from ingestion.language_tags import primary_language
from ingestion.sources import Source

_INDEX = ("index", "readme")
_CODE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z]{2})?")


def list_files(source: Source, languages: Iterable[str]) -> Listing:
    """The Markdown files below the source's directory as pages, in order of their paths. Raises `SitemapError`.

    Names that begin with a dot or an underscore and node_modules aren't looked at. README.md is the page of its
    directory where there is no index.md beside it.
    """
    root = Path(source.directory)
    found = sorted(_walk(root))
    files = [path for path in found if _is_utf8(path)]
    if not files:
        raise SitemapError(
            f"The directory {root} holds no Markdown file ({', '.join(FILE_TYPES)}). Nothing was changed."
        )
    indexed = {path.parent for path in files if path.stem.lower() == "index"}
    addresses = {p: _address(source, p) for p in files if not (p.stem.lower() == "readme" and p.parent in indexed)}
    counterparts = _counterparts(addresses, {*languages, *vocabulary().codes})
    entries: list[Entry] = []
    skipped = [Skipped(_file_url(source, p), "its directory has an index too") for p in files if p not in addresses]
    skipped += [
        Skipped(os.fsencode(path).decode(errors="replace"), "its name isn't UTF-8")
        for path in found
        if not _is_utf8(path)
    ]
    for path, address in addresses.items():
        if reason := source.left_out(address):
            skipped.append(Skipped(address, reason))
            continue
        file = str(root / path)
        entries.append(
            Entry(_file_url(source, path), source.url, source, alternates=counterparts[path], file=file, public=address)
        )
    if not entries:
        raise SitemapError(f"None of the files in {root} can be indexed: {skipped[0].url}: {skipped[0].reason}")
    return Listing(tuple(entries), tuple(skipped), frozenset({source.url}), frozenset({source.url}))


def read_file(entry: Entry, etag: str, most: int) -> Fetched:
    """The file of a page as if it had been downloaded: 304 when its content is that of `etag`. Raises `PageError`."""
    path = Path(entry.file)
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode):
            raise PageSkipped("is a pipe or a device, not a file")
        if found.st_size > most:
            raise PageSkipped(f"is larger than {most:,} bytes")
        body = path.read_bytes()
    except FileNotFoundError as error:
        raise PageGone("its file is gone") from error
    except OSError as error:
        raise PageError(f"{path} can't be read: {error.strerror}") from error
    digest = hashlib.sha256(body).hexdigest()
    if digest == etag:
        return Fetched(entry.url, 304, etag=digest)
    return Fetched(entry.url, 200, body, FILE_TYPES[path.suffix.lower()], etag=digest)


def published_links(markdown: str, source: Source) -> str:
    """The Markdown with links between the directory's files as they are published."""
    if not source.ending and "index" not in markdown.lower() and "readme" not in markdown.lower():
        return markdown
    base = re.escape(_base(source))

    def link(match: re.Match[str]) -> str:
        name = PurePosixPath(match[2]).name
        if "." in name or match[2].endswith("/") or not name:
            return match[0]
        return f"{match[1]}{_base(source)}{_published(match[2], source.ending)}"

    return re.sub(rf"(\]\(<?){base}([^\s()#?<>]*)", link, markdown)


def _walk(root: Path) -> Iterator[PurePosixPath]:
    """Paths below the root. Symbolic links that leave it are ignored."""
    real = root.resolve()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "_")) and name != "node_modules"]
        for name in names:
            path = Path(folder) / name
            if name.startswith((".", "_")) or path.suffix.lower() not in FILE_TYPES:
                continue
            with suppress(RuntimeError):  # a link in a circle
                if path.resolve().is_relative_to(real):
                    yield PurePosixPath(path.relative_to(root).as_posix())


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
