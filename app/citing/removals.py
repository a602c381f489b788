"""Records for the trace what was removed from a model's text, and why."""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.citing.citations import Citations
from app.citing.links import Addresses
from app.citing.markdown import Reading
from app.citing.parser import Span
from app.core.turn import Removal, RemovalKind

UNKNOWN = "no passage has this address"
_NO_LINK = "clients could read this link in different ways"
_OWN_LINK = "the citation in front of it gets our link"
_PICTURE = "pictures are shown from the documentation's own hosts alone"
_AS_TEXT = "shown as text: only plain tags within a line, such as <br>, may stay"
_ENTITY = "shown as text: it could be a part of an address"
_CELL = "the table has no column for it"
_NEUTRAL = "shown with all its signs: clients could read its Markdown in different ways"
_SOURCES = "the list of sources is made from the citations"
_TAG = re.compile(r"<[^<>\s]*")
_AROUND = " \t\n()<>\"'="


class Removals:
    """Appends removals to `removed`, which the turn shares."""

    def __init__(self, removed: list[Removal], addresses: Addresses, citations: Citations) -> None:
        self._removed, self._addresses, self._citations = removed, addresses, citations

    @property
    def count(self) -> int:
        """The number of removals so far."""
        return len(self._removed)

    def edits(self, text: str, edits: Iterable[tuple[int, int, str]], reading: Reading | None = None) -> None:
        """Records what sorted edits remove from the text. Escaped signs aren't removals."""
        spans = reading.spans if reading else ()
        begun = {span.start: span for span in spans if span.kind not in {"backticks", "escape"}}
        ends = {span.inner[1]: span for span in spans if span.kind in {"link", "image"}}
        done = 0
        for start, end, written in edits:
            if start < done or start in ends:
                continue  # within another removal, or the second half of a link's
            done = end
            if span := begun.get(start):
                self._span(text, span)
            elif span := ends.get(start - 1):
                self._add("address", span.target, _OWN_LINK)
            elif reading and (start, end) in reading.surplus:
                self._add("table cell", text[start:end].strip(), _CELL)
            elif address := text[start:end].strip(_AROUND) if end - start > len(written) else "":
                self._add("address", address, UNKNOWN)
            elif start == end and (found := _TAG.match(text, start)):
                self._add("html", found[0], _AS_TEXT)

    def _span(self, text: str, span: Span) -> None:
        written, led = text[span.start : span.end], f"{span.target} {span.title}".strip()
        if span.kind == "image":
            known = span.target in self._addresses
            shown = self._addresses.shows(span.target)
            self._add("image", led, _NO_LINK if shown else _PICTURE if known else UNKNOWN)
        elif span.kind == "link":
            self._add("address", led, _NO_LINK if span.target in self._addresses else UNKNOWN)
        elif span.kind == "autolink":
            self._add("address", written.strip("<>"), UNKNOWN)
        else:
            self._add("html", written, _ENTITY if span.kind == "entity" else _AS_TEXT)

    def citations(self, brackets: Iterable[str]) -> None:
        """Records the citations that have a number without a passage."""
        for bracket in brackets:
            if invented := self._citations.invented(bracket.strip("[]【】")):
                numbers = ", ".join(map(str, invented))
                self._add("citation", bracket, f"there is no passage {numbers} among {len(self._citations.pages)}")

    def tag(self, tag: str) -> None:
        """Records a tag that is shown as text."""
        self._add("html", tag, _AS_TEXT)

    def source_list(self, text: str) -> None:
        """Records the model's own list of sources."""
        self._add("source list", text.strip(), _SOURCES)

    def neutral(self, text: str, so_far: int) -> None:
        """Records text whose signs are all escaped. Deletes its removals, after the first `so_far`, since they aren't made."""
        del self._removed[so_far:]
        self._add("markup", text.strip(), _NEUTRAL)

    def _add(self, kind: RemovalKind, text: str, reason: str) -> None:
        self._removed.append(Removal(kind, text, reason))
