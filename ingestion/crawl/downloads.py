"""Pages that were fetched for their links, kept on disk until they are converted: no page is fetched twice."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from typing import IO

from ingestion.crawl.exchange import Fetched, PageRequest
from ingestion.errors import PageError

IN_MEMORY = 16 << 20
"""Bytes of bodies that are kept in memory; if there are more, all are in a temporary file."""


@dataclass
class Downloads:
    """Answers by address, each for one reader. Close it when done."""

    _answers: dict[str, tuple[Fetched, int, int]] = field(default_factory=dict)
    _failures: dict[str, PageError] = field(default_factory=dict)
    _bodies: IO[bytes] | None = None

    def keep(self, url: str, answer: Fetched | PageError) -> None:
        """Keep what a request for this address brought."""
        if isinstance(answer, PageError):
            self._failures[url] = answer
            return
        if self._bodies is None:
            self._bodies = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # `close` does it
        place = self._bodies.seek(0, 2)
        self._bodies.write(answer.body)
        self._answers[url] = replace(answer, body=b""), place, len(answer.body)

    def take(self, wanted: PageRequest) -> Fetched | None:
        """The kept answer to this request, if there is one; it is kept no longer. Raises the `PageError` that it was."""
        if failure := self._failures.pop(wanted.url, None):
            raise failure
        answer, place, length = self._answers.pop(wanted.url, (None, 0, 0))
        if (
            self._bodies is None
            or answer is None
            or (answer.status == 304 and not (wanted.etag or wanted.last_modified))
        ):
            return None
        self._bodies.seek(place)
        return replace(answer, body=self._bodies.read(length))

    def close(self) -> None:
        """Delete what is left."""
        if self._bodies:
            self._bodies.close()
