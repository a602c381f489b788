"""Files of a git repository, kept between runs under the data directory."""

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

from app.core.errors import SourceUnavailable
from app.core.settings import Settings
from app.index import directory_of
from ingestion.crawl.exchange import BUILT_TYPES
from ingestion.formats import file_types
from ingestion.sources import Source

_FORMAT = 4
_TRIES, _INTERVAL = 9000, 0.2


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a repository: its `version`, and reasons of the files that are left out.

    `how` is what decides which files are taken.
    """

    version: str = ""
    how: str = ""
    skipped: Mapping[str, str] = field(default_factory=dict)


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
            self.tree.mkdir(parents=True, exist_ok=True)
            with (self.directory / "lock").open("w") as lock:  # closing it releases the lock
                for _ in range(_TRIES):
                    if _taken(lock.fileno()):
                        break
                    await asyncio.sleep(_INTERVAL)
                else:
                    raise SourceUnavailable(f"another run is still reading it after {_TRIES * _INTERVAL:.0f} s")
                yield
        except OSError as error:
            raise SourceUnavailable(f"{self.directory} can't be used to keep its files: {error.strerror}") from error

    @property
    def tree(self) -> Path:
        """The directory of the files, at their paths."""
        return self.directory / "tree"

    @property
    def _record(self) -> Path:
        return self.directory / "kept.json"

    def known(self) -> Kept:
        """What was kept last; empty if there is nothing, or its files were being changed."""
        try:
            kept = Kept(**json.loads(self._record.read_bytes()))
        except (OSError, ValueError, TypeError):
            return Kept()
        return kept if kept.how == self.how else Kept()

    def change(self) -> None:
        """Say that the files are changed from now on, until `keep` says what they are."""
        self._record.unlink(missing_ok=True)

    def keep(self, kept: Kept) -> Kept:
        """Returns what is kept from now on."""
        self._record.write_text(json.dumps({**asdict(kept), "how": self.how}), "utf-8")
        return kept

    def discard(self, name: str) -> None:
        """Delete a file or a directory of this source, if it is there."""
        path = self.directory / name
        if path.is_dir():
            rmtree(path)
        else:
            path.unlink(missing_ok=True)

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
