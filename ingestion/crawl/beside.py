"""Files that pages of reStructuredText and AsciiDoc may include or name: they are kept with the pages, and change them."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Iterable
from pathlib import PurePosixPath

from ingestion.crawl.exchange import BUILT_TYPES

INCLUDING = (".rst", ".adoc", ".asciidoc")
"""The endings of pages that may include other files."""

LARGEST = 1_000_000
"""Bytes of a file that is read for another one."""

_KINDS = mimetypes.MimeTypes()  # without those of the system, which differ from machine to machine
_CODE = frozenset(
    {"application/json", "application/javascript", "application/x-sh", "application/x-csh", "application/xml"}
)
_TEXTS = (".ts", ".mts", ".bat", ".php", ".sql", ".toml", ".yaml", ".yml", ".tex", ".latex", ".tcl")
"""Endings of texts whose type is unknown, is that of a program, or means something else, such as a video."""
_BINARIES = frozenset(".7z .db .eot .iso .jar .otf .parquet .rar .sqlite .ttf .woff .woff2 .zst".split())  # noqa: SIM905  # a list of them would take as many lines


def may_be_beside(path: PurePosixPath) -> bool:
    """True for the name of a text that pages may include: code, tables, settings, and pages that aren't published."""
    ending = path.suffix.lower()
    if ending in BUILT_TYPES or any(part.startswith(".") or part == "node_modules" for part in path.parts):
        return False
    kind, packed = _KINDS.guess_type(path.name)
    if packed or ending in _BINARIES:
        return False
    return ending in _TEXTS or kind is None or kind.startswith("text/") or kind in _CODE


def beside(pages: Iterable[PurePosixPath], others: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Which of the other files those of the pages that include files may need: those at the top, and in their top folders.

    A readme at the top of a repository needs none of its code.
    """
    including = [page for page in pages if page.suffix.lower() in INCLUDING]
    tops = {page.parts[0] if len(page.parts) > 1 else "" for page in including if page.stem.lower() != "readme"}
    if not tops:
        return []
    near = (path for path in others if "" in tops or len(path.parts) == 1 or path.parts[0] in tops)
    return sorted(filter(may_be_beside, near))


def digest_of(files: Iterable[tuple[str, str]]) -> str:
    """One digest of these paths with the digests of their files."""
    return hashlib.sha256(
        "\n".join(f"{path} {digest}" for path, digest in sorted(files)).encode(errors="replace")
    ).hexdigest()
