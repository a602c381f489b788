"""Files of a git repository or an archive, kept between runs under the data directory by what is in them."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import NamedTemporaryFile
from typing import IO, cast

from app.core.errors import SourceUnavailable
from app.core.settings import Settings
from app.index import directory_of
from ingestion.crawl.exchange import BUILT_TYPES
from ingestion.formats import file_types
from ingestion.sources import Source

_FORMAT = 2
_TEMPORARY = "unfinished-"
_TRIES, _INTERVAL = 9000, 0.2


@dataclass(frozen=True, slots=True)
class KeptListing:
    """Contents of a repository or an archive: digests of its files by path, and reasons of those left out.

    `version` tells what was read, `how` what decides which files are taken. The validators are those of a download.
    """

    version: str = ""
    how: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """A directory of our own for one source. What was kept otherwise than `how` says is read again."""

    directory: Path
    how: str

    @classmethod
    def of(cls, source: Source, settings: Settings) -> KeptFiles:
        """Returns the files of the source, beside the index, or below `data` if that is on a server."""
        place = f"{source.place}\n{source.branch}\n{source.folder}"
        name = hashlib.sha256(place.encode()).hexdigest()[:24]
        how = " ".join((str(_FORMAT), str(settings.tuning.crawl_max_bytes), *sorted({**file_types(), **BUILT_TYPES})))
        return cls((directory_of(settings) or Path("data")) / "sources" / name, how)

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        """Keeps other runs out meanwhile. Raises `SourceUnavailable` if the directory can't be written to."""
        try:
            self.texts.mkdir(parents=True, exist_ok=True)
            with (self.directory / "lock").open("w") as lock:  # closing it releases the lock
                for _ in range(_TRIES):
                    if _taken(lock.fileno()):
                        break
                    await asyncio.sleep(_INTERVAL)
                else:
                    raise SourceUnavailable(f"another run is still reading it after {_TRIES * _INTERVAL:.0f} s")
                self._clean()
                yield
        except OSError as error:
            raise SourceUnavailable(f"{self.directory} can't be used to keep its files: {error.strerror}") from error

    def temporary(self, what: str) -> IO[bytes]:
        """A file that is deleted when it is closed, or else by the next run."""
        return cast("IO[bytes]", NamedTemporaryFile(dir=self.directory, prefix=f"{_TEMPORARY}{what}-"))

    def _clean(self) -> None:
        """Delete what a run left that was killed; it would count as a part of the source."""
        for leftover in (*self.directory.glob(f"{_TEMPORARY}*"), *self.texts.glob("*.part")):
            leftover.unlink()

    @property
    def texts(self) -> Path:
        """The directory of the files, each named by its digest."""
        return self.directory / "files"

    def listing(self) -> KeptListing:
        """The listing that was kept last; an empty one if there is none, or a file of it is missing."""
        try:
            kept_listing = KeptListing(**json.loads((self.directory / "listing.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return KeptListing()
        complete = kept_listing.how == self.how and self.digests() >= set(kept_listing.files.values())
        return kept_listing if complete else KeptListing()

    def digests(self) -> set[str]:
        """Returns the digests of all files that are there."""
        return {entry.name for entry in os.scandir(self.texts)}

    def keep(self, listing: KeptListing) -> None:
        """Replace the listing, and delete files that it doesn't name."""
        unfinished = self.directory / "listing.part"
        unfinished.write_text(json.dumps({**asdict(listing), "how": self.how}), "utf-8")
        unfinished.replace(self.directory / "listing.json")
        for digest in self.digests() - set(listing.files.values()):
            (self.texts / digest).unlink()

    def write(self, digest: str, body: bytes) -> None:
        """Keep a file, whole or not at all."""
        unfinished = self.texts / f"{digest}.part"
        unfinished.write_bytes(body)
        unfinished.replace(self.texts / digest)

    def discard(self, name: str) -> None:
        """Delete a directory of this source, if it is there."""
        if (self.directory / name).exists():
            rmtree(self.directory / name)

    def size(self) -> int:
        """Bytes of all files; those that are deleted meanwhile don't count."""
        total = 0
        for folder, _, names in os.walk(self.directory):
            for name in names:
                try:
                    total += (Path(folder) / name).lstat().st_size
                except FileNotFoundError:
                    continue
        return total


def _taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
