"""The body of a response, decompressed within a limit: httpx has none, and a few kilobytes can unpack to gigabytes."""

from __future__ import annotations

import zlib

import httpx

from ingestion.errors import PageError, PageSkipped

ACCEPT_ENCODING = "gzip, deflate"
_PIECE = 1 << 16


async def read_body(response: httpx.Response, most: int, advice: str = "") -> bytes:
    """The whole body. Raises `PageSkipped` when it has more than `most` bytes, `PageError` when it can't be decompressed."""
    packed = response.headers.get("content-encoding", "").strip().lower()
    if packed not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise PageError(f"can't be fetched (it is packed as {packed[:40]}, which wasn't asked for)")
    unpacked = _Unpacked() if packed not in ("", "identity") else None
    body = bytearray()
    async for part in response.aiter_raw(_PIECE):
        body += part if unpacked is None else unpacked.more(part, most + 1 - len(body))
        if len(body) > most:
            raise PageSkipped(f"is larger than {most:,} bytes{advice}")
    return bytes(body)


class _Unpacked:
    """A packed body, part by part."""

    def __init__(self) -> None:
        self._unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as its head says
        self._began = False

    def more(self, part: bytes, most: int) -> bytes:
        """At most `most` bytes of the decompressed part; bytes beyond them are lost."""
        try:
            made = self._unpack.decompress(part, most)
        except zlib.error as error:
            if self._began:
                raise PageError(f"can't be fetched (it can't be unpacked: {error})") from error
            self._began, self._unpack = True, zlib.decompressobj(-zlib.MAX_WBITS)  # some servers leave the head out
            return self.more(part, most)
        self._began = True
        return made
