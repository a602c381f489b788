"""Bytes that a site or a client sends packed with gzip -> the bytes themselves, within a limit."""

from __future__ import annotations

import gzip
import zlib
from io import BytesIO

GZIP = b"\x1f\x8b"
"""How packed bytes begin (RFC 1952)."""


class UnreadableGzip(ValueError):
    """The bytes aren't gzip; the message says why."""


def unpacked(body: bytes, most: int) -> tuple[bytes, bool]:
    """The bytes of all members, and True if their end is there. Bytes beyond `most` stay packed, so more than `most` are too many.

    Raises `UnreadableGzip` where nothing can be read.
    """
    pieces, size = list[bytes](), 0
    try:
        with gzip.GzipFile(fileobj=BytesIO(body)) as packed:
            while size <= most and (piece := packed.read1(most + 1 - size)):
                pieces.append(piece)
                size += len(piece)
    except (EOFError, OSError, zlib.error) as error:
        if not pieces:
            raise UnreadableGzip(str(error)) from error
        return b"".join(pieces), False
    return b"".join(pieces), True
