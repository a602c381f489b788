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
from collections.abc import Callable, Iterator
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
from plugins.vcs.kept_files import Kept, KeptFiles

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


async def read_archive(source: Source, fetcher: Fetcher, kept: KeptFiles) -> Kept:
    """Bring the files of the source's archive into the tree of `kept`. Raises `SourceUnavailable`.

    An archive that was read before isn't unpacked again.
    """
    most = fetcher.settings.tuning.crawl_max_bytes
    if not is_web(source.archive):
        return kept.keep(await _read(Path(source.archive), source, kept, most))
    known = kept.known()
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
        read = await _read(Path(file.name), source, kept, most)
    return kept.keep(replace(read, etag=fetched.etag, last_modified=fetched.last_modified))


async def _read(archive: Path, source: Source, kept: KeptFiles, most: int) -> Kept:
    version = await asyncio.to_thread(_digest, archive)
    if (known := kept.known()).version == version:
        return known
    unpacked = kept.new_tree()
    try:
        async with Workers(seconds=SECONDS) as workers:
            skipped = await workers.run(unpack, archive, unpacked, source.folder, most)
    except ConversionError as error:
        raise SourceUnavailable(f"{source.archive} {error}") from error
    kept.change()
    kept.discard(kept.tree.name)
    unpacked.replace(kept.tree)
    return Kept(version, skipped=skipped)


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


def unpack(archive: Path, to: Path, folder: str, most: int) -> dict[str, str]:
    """Write the archive's pages, and what they may include, to the directory; reasons of those left out by name.

    Raises `ConversionError`.
    """
    written: set[PurePosixPath] = set()
    skipped: dict[str, str] = {}
    total = 0
    try:
        for number, member in enumerate(_members(archive)):
            name, reason = _path(member.name, folder)
            path = PurePosixPath(name)
            if number >= MOST_FILES:
                raise ConversionError(f"has more than {MOST_FILES:,} files")
            if not name or not (is_page_name(path) or may_be_beside(path)):
                continue
            reason = reason or member.reason or ("is in the archive twice" if path in written else "")
            size, reason = _unpacked(member, to / path, most_of(path, most)) if not reason else (0, reason)
            if reason:
                skipped |= {member.name: reason} if is_page_name(path) else {}
                continue
            written.add(path)
            total += size
            if total > MOST_UNPACKED:
                raise ConversionError(f"has more than {MOST_UNPACKED >> 20:,} MB of pages")
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConversionError(f"is no zip or tar archive, or damaged ({error})") from error
    pages = {path for path in written if is_page_name(path)}
    for path in written - pages - set(beside(pages, written - pages)):
        (to / path).unlink()
    return skipped


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


def _unpacked(member: _Member, file: Path, most: int) -> tuple[int, str]:
    """(bytes that were written to the file, why there is none)."""
    try:
        with member.content() as stream:
            body = stream.read(most + 1)
        if len(body) > most:
            return 0, f"is larger than {most:,} bytes"
        file.parent.mkdir(parents=True, exist_ok=True)
        return file.write_bytes(body), ""
    except _UNREADABLE as error:
        file.unlink(missing_ok=True)
        return 0, f"can't be unpacked ({type(error).__name__}: {error})"


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
    stream: IO[bytes] | gzip.GzipFile
    left: int

    def read(self, size: int) -> bytes:
        """The next bytes. Raises `ConversionError` beyond the limit."""
        body = self.stream.read(size)
        self.left -= len(body)
        if self.left < 0:
            raise ConversionError(f"has more than {MOST_UNPACKED >> 20:,} MB")
        return body
