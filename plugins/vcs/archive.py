"""A zip or tar archive as a source: its pages, unpacked within limits."""

import asyncio
import gzip
import hashlib
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_ISLNK, S_ISREG
from typing import IO, cast

from app.core.errors import SourceUnavailable
from ingestion.crawl.directory import beside, is_page_name, may_be_beside, most_of
from ingestion.crawl.exchange import PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.errors import ConversionError, PageError
from ingestion.sources import Source, is_web
from ingestion.workers import Workers
from plugins.vcs.kept_files import KeptFiles, KeptListing

MOST_PACKED, MOST_UNPACKED, MOST_FILES = 256 << 20, 2 << 30, 200_000
"""Limits of an archive: bytes as it is, bytes in it, and files in it."""
SECONDS = 300.0
"""The limits of a download, and of the CPU time for unpacking."""

_UTF8_FLAG, _ENCRYPTED_FLAG = 0x800, 0x1
_GZIP = b"\x1f\x8b"
_UNREADABLE = (
    zipfile.BadZipFile,
    tarfile.ReadError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
    EOFError,
    OSError,
    lzma.LZMAError,
)


async def read_archive(source: Source, fetcher: Fetcher, kept: KeptFiles) -> KeptListing:
    """The files of the source's archive, which are then in `kept`. Raises `SourceUnavailable`.

    An archive that was read before isn't unpacked again.
    """
    most = fetcher.settings.tuning.crawl_max_bytes
    if not is_web(source.archive):
        return await _read(Path(source.archive), source, kept, most)
    known = kept.listing()
    wanted = PageRequest(source.archive, known.etag, known.last_modified)
    wanted = replace(wanted, types=None, max_bytes=MOST_PACKED, seconds=SECONDS, robots=False, accept="*/*")
    try:
        fetched = await fetcher.get(wanted)
    except PageError as error:
        raise SourceUnavailable(f"{source.archive} {error}") from error
    if fetched.status == 304:
        return known
    with kept.temporary("archive") as file:
        file.write(fetched.body)
        file.flush()
        listing = await _read(Path(file.name), source, kept, most)
    listing = replace(listing, etag=fetched.etag, last_modified=fetched.last_modified)
    kept.keep(listing)
    return listing


async def _read(archive: Path, source: Source, kept: KeptFiles, most: int) -> KeptListing:
    version = await asyncio.to_thread(_digest, archive)
    known = kept.listing()
    if known.version == version:
        return known
    try:
        async with Workers(seconds=SECONDS) as workers:
            files, skipped = await workers.run(unpack, archive, kept, source.folder, most)
    except ConversionError as error:
        raise SourceUnavailable(f"{source.archive} {error}") from error
    listing = KeptListing(version, files=files, skipped=skipped)
    kept.keep(listing)
    return listing


def _digest(archive: Path) -> str:
    try:
        with archive.open("rb") as file:
            stat = os.fstat(file.fileno())
            if not S_ISREG(stat.st_mode):
                raise SourceUnavailable(f"{archive} is no file")
            if stat.st_size > MOST_PACKED:
                raise SourceUnavailable(f"{archive} is larger than {MOST_PACKED:,} bytes")
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceUnavailable(f"{archive} can't be read: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _Member:
    """A file in an archive. `reason` says why it isn't read."""

    name: str
    content: Callable[[], IO[bytes]]
    reason: str = ""


def unpack(archive: Path, kept: KeptFiles, folder: str, most: int) -> tuple[dict[str, str], dict[str, str]]:
    """Keep the pages of the archive; (digests by path, reasons of those left out by name). Raises `ConversionError`."""
    files: dict[str, str] = {}
    skipped: dict[str, str] = {}
    total = 0
    try:
        for number, member in enumerate(_members(archive)):
            path, reason = _path(member.name, folder)
            if number >= MOST_FILES:
                raise ConversionError(f"has more than {MOST_FILES:,} files")
            if not path or not (is_page_name(PurePosixPath(path)) or may_be_beside(PurePosixPath(path))):
                continue
            limit = most_of(PurePosixPath(path), most)
            body, reason = _content(member, limit) if not (reason or member.reason) else (b"", reason or member.reason)
            if reason or path in files:
                if is_page_name(PurePosixPath(path)):
                    skipped[member.name] = reason or "is in the archive twice"
                continue
            total += len(body)
            if total > MOST_UNPACKED:
                raise ConversionError(f"has more than {MOST_UNPACKED >> 20:,} MB of pages")
            files[path] = hashlib.sha256(body).hexdigest()
            kept.write(files[path], body)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConversionError(f"is no zip or tar archive, or damaged ({error})") from error
    return _needed(files), skipped


def _needed(files: Mapping[str, str]) -> dict[str, str]:
    """Returns the files that are pages, or that pages may include."""
    pages = [path for path in map(PurePosixPath, files) if is_page_name(path)]
    needed = {*pages, *beside(pages, set(map(PurePosixPath, files)) - set(pages))}
    return {path: digest for path, digest in files.items() if PurePosixPath(path) in needed}


def _members(archive: Path) -> Iterator[_Member]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for info in opened.infolist():
                if not info.is_dir():
                    yield _of_zip(opened, info)
        return
    with archive.open("rb") as file:
        packed = file.read(2) == _GZIP
        file.seek(0)
        stream = _Limited(gzip.GzipFile(fileobj=file) if packed else file, MOST_UNPACKED)
        with tarfile.open(mode="r|", fileobj=cast("IO[bytes]", stream)) as opened_tar:
            for entry in opened_tar:
                if not entry.isdir():
                    yield _of_tar(opened_tar, entry)


def _of_zip(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    name, reason = info.filename, ""
    if not info.flag_bits & _UTF8_FLAG:  # most programs write UTF-8 without saying so
        raw = name.encode("cp437", errors="replace")
        name = raw.decode(errors="replace")
        reason = "" if name.encode() == raw else "its name isn't UTF-8"
    if info.flag_bits & _ENCRYPTED_FLAG:
        reason = "is encrypted"
    if S_ISLNK(info.external_attr >> 16):
        reason = "is a symbolic link"
    return _Member(name, partial(opened.open, info), reason)


def _of_tar(opened: tarfile.TarFile, entry: tarfile.TarInfo) -> _Member:
    reason = "" if entry.isreg() else "is a symbolic link" if entry.issym() else "is no file of its own"
    name = entry.name.encode(errors="surrogateescape").decode(errors="replace")
    reason = reason or ("" if name == entry.name else "its name isn't UTF-8")
    return _Member(name, lambda: opened.extractfile(entry) or io.BytesIO(), reason)


def _content(member: _Member, most: int) -> tuple[bytes, str]:
    """(bytes, why there are none)."""
    try:
        with member.content() as stream:
            body = stream.read(most + 1)
    except _UNREADABLE as error:
        return b"", f"can't be unpacked ({type(error).__name__}: {error})"
    return (body, "") if len(body) <= most else (b"", f"is larger than {most:,} bytes")


def _path(name: str, folder: str) -> tuple[str, str]:
    """(the path in the folder, why it is none); empty for what is in another folder."""
    parts = name.replace("\\", "/").split("/")
    wanted = folder.split("/") if folder else []
    if not parts[0] or ".." in parts or ":" in parts[0] or not name.isprintable():
        return parts[-1], "its path leaves the archive"
    parts = [part for part in parts if part not in ("", ".")]
    inside = len(parts) > len(wanted) and all(map(fnmatchcase, parts, wanted))
    return ("/".join(parts[len(wanted) :]) if inside else ""), ""


@dataclass
class _Limited:
    """Packed stream, up to the limit of all archives."""

    stream: IO[bytes] | gzip.GzipFile
    left: int

    def read(self, size: int) -> bytes:
        """The next bytes. Raises `ConversionError` beyond the limit."""
        body = self.stream.read(size)
        self.left -= len(body)
        if self.left < 0:
            raise ConversionError(f"has more than {MOST_UNPACKED >> 20:,} MB")
        return body
