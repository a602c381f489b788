"""The files beside a page of a directory, repository or archive, which it may include or name: none outside its source."""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ingestion.crawl.beside import LARGEST

_LISTING = "listing.json"


@dataclass(frozen=True, slots=True)
class Tree:
    """`root` is the source's directory; of files that are kept by their digests, the listing with their paths; or empty."""

    root: str

    def place(self, path: str) -> Path | None:
        """Where the file is on this machine; None if it isn't there, or not below the root."""
        path = posixpath.normpath(path)
        if not self.root or path.startswith(("../", "/")) or "\0" in path:
            return None
        if self._kept:
            digest = _listing(self.root).get(path, "")
            return Path(self.root).parent / "files" / digest if digest else None
        try:
            found = (Path(self.root) / path).resolve()
            return found if found.is_relative_to(Path(self.root).resolve()) and found.is_file() else None
        except (OSError, RuntimeError, ValueError):
            return None

    def text(self, path: str) -> str:
        """The text of the file; empty if it isn't there, or is larger than `LARGEST` bytes."""
        found = self.place(path) if path else None
        try:
            if found is None or found.stat().st_size > LARGEST:
                return ""
            return found.read_text("utf-8-sig", "replace")
        except OSError:
            return ""

    def paths(self, endings: tuple[str, ...], most: int) -> list[str]:
        """The paths of files with these endings, at most so many, in order."""
        return sorted(path for path, _ in zip(self._all(endings), range(most), strict=False))

    @property
    def _kept(self) -> bool:
        return self.root.endswith(f"/{_LISTING}")

    def _all(self, endings: tuple[str, ...]) -> Iterator[str]:
        if not self.root:
            return
        if self._kept:
            yield from (path for path in _listing(self.root) if path.endswith(endings))
            return
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if not name.startswith((".", "_")) and name != "node_modules"]
            within = Path(folder).relative_to(self.root)
            yield from ((within / name).as_posix() for name in sorted(names) if name.endswith(endings))


@lru_cache(maxsize=4)
def _listing(file: str) -> Mapping[str, str]:
    try:
        kept = json.loads(Path(file).read_bytes()).get("files")
    except (OSError, ValueError, AttributeError):
        return {}
    return kept if isinstance(kept, dict) else {}


def tree_of(directory: str, file: str) -> str:
    """The `root` of the tree of a page: its source's directory, or the listing beside the kept `file`."""
    listing = Path(file).parent.parent / _LISTING
    return directory or (str(listing) if file and listing.is_file() else "")
