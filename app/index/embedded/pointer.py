"""The pointer of the embedded store: a small file that lists the tables and versions of each generation.

It is replaced atomically, so files that a killed run left behind have no effect.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from io import BufferedWriter
from pathlib import Path
from typing import Any

import orjson

from app.core.errors import IndexDamaged, NoIndex, StoreBusy, StoreError, StoreUnavailable
from app.core.generation import GenerationInfo, kept_after, stored_entry
from app.index.run_history import unreadable

FILE = "index.json"
LOCK = "write.lock"
FORMAT = 1
ALWAYS = ("chunks", "texts", "pages", "words")
KINDS = (*ALWAYS, "summaries")


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table at one version."""

    name: str
    version: int


@dataclass(frozen=True, slots=True)
class Published:
    """A generation and its tables by kind, which must be kept while it may be read.

    There are no `summaries` if its recipe has none.
    """

    info: GenerationInfo
    tables: dict[str, TableVersion]


@dataclass(frozen=True, slots=True)
class Retired:
    """Tables of a dropped generation, which requests in progress may still read."""

    tables: tuple[TableVersion, ...]
    since: float


@dataclass(frozen=True, slots=True)
class Pointer:
    """All generations, newest first; the first is live. `last_id` includes generations that were rolled back."""

    last_id: int = 0
    generations: tuple[Published, ...] = ()
    retired: tuple[Retired, ...] = ()

    @property
    def live(self) -> Published:
        """The live generation. Raises `NoIndex` if there is none."""
        if not self.generations:
            raise NoIndex("Nothing has been indexed yet: run `docs-assistant ingest` first.")
        return self.generations[0]

    @property
    def tables(self) -> frozenset[TableVersion]:
        """All tables that a reader may use."""
        used = [table for entry in self.generations for table in entry.tables.values()]
        return frozenset([*used, *(table for retired in self.retired for table in retired.tables)])

    def with_generation(self, entry: Published, keep: int, now: float) -> Pointer:
        """A copy with a new live generation, and at most `keep` generations (see `kept_after`)."""
        if self.generations:
            keep = kept_after(self.live.info.recipe, entry.info.recipe, keep)
        generations = (entry, *self.generations)
        copy = replace(self, last_id=entry.info.id, generations=generations[:keep])
        return copy.with_retired(generations[keep:], now)

    def with_live(self, entry: Published, now: float) -> Pointer:
        """A copy with different tables for the live generation."""
        return replace(self, generations=(entry, *self.generations[1:])).with_retired((self.live,), now)

    def without_live(self, now: float) -> Pointer:
        """A copy in which the previous generation is live. Raises `NoIndex` if none is kept."""
        live, *earlier = (self.live, *self.generations[1:])
        if not earlier:
            raise NoIndex(
                "There is no earlier generation to go back to: only the live one is kept. Index the sites again "
                "instead. DOCS_GENERATIONS sets how many generations are kept."
            )
        return replace(self, generations=tuple(earlier)).with_retired((live,), now)

    def without_generations(self, now: float) -> Pointer:
        """A copy without generations; their tables stay readable for the grace period."""
        return replace(self, generations=()).with_retired(self.generations, now)

    def with_retired(self, entries: Iterable[Published], now: float) -> Pointer:
        """A copy that keeps the tables of these generations readable for the grace period."""
        return replace(
            self, retired=(*self.retired, *(Retired(tuple(entry.tables.values()), now) for entry in entries))
        )

    def without_retired(self, before: float) -> Pointer:
        """A copy without the tables that were retired before this time."""
        return replace(self, retired=tuple(r for r in self.retired if r.since >= before))


def read(directory: Path) -> Pointer:
    """The current pointer; empty before the first publish."""
    file = directory / FILE
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return Pointer()
    except OSError as error:
        raise unreachable(directory, error) from error
    try:
        values = orjson.loads(content)
        if values["format"] != FORMAT:
            raise StoreError(
                f"{file} has format {values['format']}, this version reads {FORMAT}: "
                "use the version that wrote it, or another directory."
            )
        return _pointer(values)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(str(file), error) from error


def unreachable(directory: Path, error: OSError) -> StoreUnavailable:
    """The error for a directory that can't be read, with what to do."""
    if isinstance(error, NotADirectoryError):
        return StoreUnavailable(
            f"{directory} is a file, not a directory: name another place for the index (DOCS_STORE)."
        )
    return StoreUnavailable(f"The index in {directory} can't be read: {error.strerror or error}.")


def write(directory: Path, pointer: Pointer) -> None:
    """Replace the pointer atomically, even in a crash."""
    values = asdict(pointer)
    entries = [stored_entry({"info": entry["info"], **entry["tables"]}) for entry in values["generations"]]
    _replace(directory / FILE, {"format": FORMAT, **values, "generations": entries})


def read_kept(file: Path) -> Mapping[str, Any]:
    """The values of a file beside the index; none before the first ones. Raises `StoreUnavailable` or `IndexDamaged`."""
    try:
        values: Mapping[str, Any] = orjson.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except NotADirectoryError as error:
        raise unreachable(file.parent, error) from error
    except OSError as error:
        raise StoreUnavailable(f"{file} can't be read: {error}.") from error
    except orjson.JSONDecodeError as error:
        raise IndexDamaged(f"{file} isn't valid JSON. Delete it: what was kept in it is lost.") from error
    return values


def write_kept(file: Path, values: Mapping[str, Any]) -> None:
    """Replace the values atomically; makes the directory for the first ones."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"The index in {file.parent} can't be written: {error}.") from error
    _replace(file, values)


def _replace(file: Path, values: Mapping[str, Any]) -> None:
    directory, draft = file.parent, file.with_name(f"{file.name}.new")
    content = orjson.dumps(values, option=orjson.OPT_INDENT_2)
    try:
        with draft.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(file)
        sync(directory)
    except OSError as error:
        raise StoreError(f"{file} can't be written: {error}. The index is as it was before.") from error


def lock(directory: Path) -> BufferedWriter:
    """The write lock, held until the file is closed or the process ends. Raises `StoreBusy` if another writer has it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        stream = (directory / LOCK).open("ab")  # append mode keeps the file's time if the run changes nothing
    except OSError as error:
        raise StoreUnavailable(
            f"The index in {directory} can't be written: {error.strerror or error}. Give this user the right to write there, "
            "or name another directory (DOCS_STORE)."
        ) from error
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        stream.close()
        raise StoreBusy(f"Another run is writing to the index in {directory}: try again when it is done.") from error
    except OSError as error:
        stream.close()
        raise StoreUnavailable(f"The index in {directory} can't be locked: {error}.") from error
    return stream


def confirm(directory: Path, held: BufferedWriter) -> None:
    """Check that the directory is still the locked one. Raises `StoreUnavailable` if it was moved or deleted."""
    try:
        there, ours = (directory / LOCK).stat(), os.fstat(held.fileno())
        same = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
    except FileNotFoundError:
        same = False
    except OSError as error:
        raise StoreUnavailable(f"The index in {directory} can't be reached: {error}. Nothing was published.") from error
    if not same:
        raise StoreUnavailable(
            f"{directory} was moved, deleted or unmounted while it was written to, so nothing was published: "
            "bring it back and start the run again."
        )


def sync(path: Path) -> None:
    """Flush a file or directory to disk, if the file system supports it."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _pointer(values: dict[str, Any]) -> Pointer:
    return Pointer(
        last_id=int(values["last_id"]),
        generations=tuple(
            Published(
                GenerationInfo.stored(entry),
                {kind: TableVersion(**entry[kind]) for kind in KINDS if entry.get(kind) or kind in ALWAYS},
            )
            for entry in values["generations"]
        ),
        retired=tuple(
            Retired(tuple(TableVersion(**table) for table in retired["tables"]), float(retired["since"]))
            for retired in values["retired"]
        ),
    )
