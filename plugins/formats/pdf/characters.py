"""The text of a PDF file as PDFium sees it: pages of lines, lines of cells, cells of runs in one font."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from statistics import median
from typing import Any, NamedTuple

from ingestion.convert.files import Facts, is_bold, is_monospace
from ingestion.errors import ConversionError

INSTALL = "needs pypdfium2, which isn't installed: pip install '.[files]' in a checkout"
FIXED_PITCH, FORCE_BOLD = 1, 1 << 18
NARROW, WIDE = "ijlt.,:;", "mwGMWno"
SAME_WIDTH = 0.02
MOST_OUTLINED = 5_000
MOST_SPACES = 100
MOST_PATHS = 5_000
MOST_DOTS = 200
THICKEST, THINNEST_DOT, WIDEST_DOT = 2.5, 1.5, 7.0
CELL_GAP, SURE_GAP = 1.6, 4.0
"""Between two cells of a line, in sizes of its font: if it is larger than between other words, and in any case."""

SOFT_HYPHEN = "\xad"
"""Stands for the hyphen at the end of a line, which may be part of the word or not."""

HYPHEN = "\u2010"
_LETTERS = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}
_LETTERS |= {0x02: SOFT_HYPHEN, 0xFFFE: SOFT_HYPHEN, 0xA0: " "}
_ENDS = ("\r", "\n")
_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?")


@dataclass(slots=True)
class Run:
    """Characters of one font, one after the other on a line."""

    text: str
    x0: float
    x1: float
    mono: bool
    bold: bool


@dataclass(slots=True)
class Line:
    """A line of a page; `y` is the place of its baseline from the bottom, in points."""

    page: int
    x0: float
    x1: float
    y: float
    size: float
    cells: list[list[Run]]
    row: tuple[int, int] | None = None
    """Number and row of the ruled table that it is in."""

    dotted: bool = False
    """True if a dot is drawn before it, as browsers draw those of lists."""

    @property
    def text(self) -> str:
        """The words of the line."""
        return " ".join("".join(run.text for run in cell).strip() for cell in self.cells)

    @property
    def is_code(self) -> bool:
        """True when all of it is in a font of letters with the same width."""
        return all(run.mono for cell in self.cells for run in cell if run.text.strip())

    @property
    def is_bold(self) -> bool:
        """True when all of it is bold."""
        return all(run.bold for cell in self.cells for run in cell if run.text.strip())


class Rule(NamedTuple):
    """A horizontal line that is drawn: how far up on the page it is, and from where to where."""

    y: float
    x0: float
    x1: float


@dataclass(slots=True)
class PageLines:
    """A page from 1: its lines in the order in which they are read, its horizontal rules, and whether it has pictures."""

    number: int
    height: float
    lines: list[Line]
    rules: list[Rule]
    pictured: bool = False


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of the outline: its `level` from 0, its page, and how far up on it, in points."""

    level: int
    title: str
    page: int
    y: float


def open_pdf(body: bytes, url: str) -> Pdf:
    """The file, to be closed by the caller. Raises `ConversionError` for one that can't be read."""
    try:
        import pypdfium2
    except ImportError as error:
        raise ConversionError(f"{url} is a PDF file: it {INSTALL}") from error
    try:
        return Pdf(pypdfium2.PdfDocument(body), pypdfium2)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower() or "security" in str(error).lower():
            raise ConversionError(f"{url} is encrypted: it opens only with a password") from error
        raise ConversionError(f"{url} isn't a PDF file that can be read: {error}") from error


@dataclass
class Pdf:
    """An open file."""

    document: Any
    pdfium: Any
    _fonts: dict[int, tuple[bool, bool]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.document)

    def close(self) -> None:
        """Free its memory."""
        self.document.close()

    def facts(self) -> Facts:
        """Returns the metadata of the document."""
        metadata = self.document.get_metadata_dict()
        raw = self.pdfium.raw
        buffer = (ctypes.c_ushort * 64)()
        length = raw.FPDFCatalog_GetLanguage(self.document, buffer, ctypes.sizeof(buffer))
        language = (
            "" if length > ctypes.sizeof(buffer) else bytes(buffer)[: max(0, length - 2)].decode("utf-16-le", "replace")
        )
        return Facts(
            " ".join(metadata["Title"].split()), _date(metadata["CreationDate"]), _date(metadata["ModDate"]), language
        )

    def outline(self) -> list[Bookmark]:
        """Returns the bookmarks in their order, without those that lead nowhere."""
        bookmarks: list[Bookmark] = []
        for at, mark in enumerate(self.document.get_toc(max_depth=6)):
            if at >= MOST_OUTLINED:
                break
            title, target = " ".join(mark.get_title().replace("\0", "").split()), mark.get_dest()
            index = target.get_index() if target else None
            if title and index is not None and 0 <= index < len(self):
                bookmarks.append(Bookmark(mark.level, title, index + 1, _top(target)))
        return bookmarks

    def pages(self) -> Iterator[PageLines]:
        """Yields the pages in order. Raises `ConversionError` for one that can't be read."""
        for number in range(1, len(self) + 1):
            try:
                page = self.document[number - 1]
            except self.pdfium.PdfiumError:  # the others may be whole
                continue
            text = page.get_textpage()
            lines = list(_lines(self._runs(text, text.count_chars()), number))
            pictured = not lines and any(True for _ in page.get_objects(filter=[self.pdfium.raw.FPDF_PAGEOBJ_IMAGE]))
            rules = self._drawn(page, lines)
            yield PageLines(number, page.get_height(), lines, rules, pictured)
            text.close()
            page.close()

    def _drawn(self, page: Any, lines: Sequence[Line]) -> list[Rule]:
        """The horizontal rules of the page; dots before lines are noted on these."""
        rules: list[Rule] = []
        dots: list[tuple[float, float]] = []
        for path in islice(page.get_objects(filter=[self.pdfium.raw.FPDF_PAGEOBJ_PATH], max_depth=2), MOST_PATHS):
            x0, y0, x1, y1 = path.get_bounds()
            if y1 - y0 <= THICKEST < x1 - x0:
                rules.append(Rule((y0 + y1) / 2, x0, x1))
            elif THINNEST_DOT < y1 - y0 < WIDEST_DOT and abs((x1 - x0) - (y1 - y0)) < 1:
                dots.append((x1, (y0 + y1) / 2))
        for line in lines if len(dots) <= MOST_DOTS else ():
            line.dotted = any(0 < line.x0 - x < 2 * line.size and 0 < y - line.y < line.size for x, y in dots)
        return rules

    def _runs(self, text: Any, count: int) -> Iterator[tuple[Run, float, float] | None]:
        """(run, baseline, size) of the page in its order; None ends a line."""
        letters: list[str] = []
        first = owner = 0
        for at in range(count):
            letter = self._letter(text, at)
            held, owner = owner, self._owner(text, at, owner)
            if letters and (letter in _ENDS or owner != held):
                yield self._run(text, first, at, letters)
                letters = []
            first = first if letters else at
            if letter not in _ENDS:
                letters.append(letter)
            if letter == SOFT_HYPHEN:  # PDFium leaves the end of its line out
                yield self._run(text, first, at + 1, letters)
                letters = []
            if letter in (SOFT_HYPHEN, "\n"):
                yield None
        if letters:
            yield self._run(text, first, count, letters)

    def _letter(self, text: Any, at: int) -> str:
        raw = self.pdfium.raw
        code: int = raw.FPDFText_GetUnicode(text, at)
        if code < ord(" "):
            ends = code in (10, 13) and raw.FPDFText_IsGenerated(text, at)
            return chr(code) if ends else _LETTERS.get(code, " ")
        return _LETTERS.get(code) or chr(code)

    def _owner(self, text: Any, at: int, held: int) -> int:
        """The object on the page that a letter is of; PDFium's own spaces are of the one before."""
        owner = self.pdfium.raw.FPDFText_GetTextObject(text, at)
        return ctypes.addressof(owner.contents) if owner else held

    def _run(self, text: Any, first: int, end: int, letters: list[str]) -> tuple[Run, float, float]:
        raw = self.pdfium.raw
        x, y = ctypes.c_double(), ctypes.c_double()
        raw.FPDFText_GetCharOrigin(text, first, x, y)
        box = raw.FS_RECTF()
        mono, bold = self._font(text, first)
        blank = letters[-1] == " " and len(letters) > 1
        raw.FPDFText_GetLooseCharBox(text, end - 1 - blank, box)
        written = "".join(letters)
        if mono and written.strip():
            written, x.value = self._spaced(text, first, letters)
        size = raw.FPDFText_GetFontSize(text, first)
        matrix = raw.FS_MATRIX()
        if raw.FPDFText_GetMatrix(text, first, matrix):
            size *= abs(matrix.d) or abs(matrix.c) or 1.0
        return Run(written, x.value, max(box.right, x.value), mono, bold), y.value, round(size, 1)

    def _spaced(self, text: Any, first: int, letters: Sequence[str]) -> tuple[str, float]:
        """Code with all of its spaces, of which PDFium leaves one of several, and where its first letter is."""
        x, y = ctypes.c_double(), ctypes.c_double()
        places = []
        for at, letter in enumerate(letters, first):
            if letter != " ":
                self.pdfium.raw.FPDFText_GetCharOrigin(text, at, x, y)
                places.append((x.value, at, letter))
        steps = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(places)]
        width = median([step for step, apart in steps if apart == 1 and step > 0] or [0.0])
        written = places[0][2]
        for (step, apart), (_, _, letter) in zip(steps, places[1:], strict=True):
            spaces = int(step / width - 0.7) if width and apart > 1 else 0  # some programs set words a bit apart
            written += " " * (min(max(spaces, 1), MOST_SPACES) if apart > 1 else 0) + letter
        return written + " " * (letters[-1] == " "), places[0][0]

    def _font(self, text: Any, at: int) -> tuple[bool, bool]:
        raw = self.pdfium.raw
        font = raw.FPDFTextObj_GetFont(raw.FPDFText_GetTextObject(text, at))
        key = ctypes.addressof(font.contents) if font else 0
        if key not in self._fonts:
            buffer, flags = ctypes.create_string_buffer(200), ctypes.c_int()
            raw.FPDFText_GetFontInfo(text, at, buffer, 200, flags)
            name = buffer.value.decode("utf-8", "replace")
            fixed = self._is_fixed(font)
            if fixed is None:
                fixed = bool(flags.value & FIXED_PITCH) or is_monospace(name)
            self._fonts[key] = fixed, is_bold(name) or bool(flags.value & FORCE_BOLD)
        return self._fonts[key]

    def _is_fixed(self, font: Any) -> bool | None:
        """True if narrow and wide letters of a font have the same width; None if it hasn't both."""
        raw, width = self.pdfium.raw, ctypes.c_float()
        widths = []
        for letters in (NARROW, WIDE):
            known = [raw.FPDFFont_GetGlyphWidth(font, ord(letter), 100.0, width) and width.value for letter in letters]
            if not any(known):
                return None
            widths += [known_width for known_width in known if known_width]
        return max(widths) - min(widths) < SAME_WIDTH * max(widths)


def _lines(runs: Iterator[tuple[Run, float, float] | None], page: int) -> Iterator[Line]:
    gathered: list[tuple[Run, float, float]] = []
    for run in runs:
        if run is None:
            if line := _line(gathered, page):
                yield line
            gathered = []
        else:
            gathered.append(run)
    if line := _line(gathered, page):
        yield line


def _line(gathered: list[tuple[Run, float, float]], page: int) -> Line | None:
    runs = [run for run, _, _ in gathered]
    while runs and not runs[0].text.strip():
        runs.pop(0)
    if not "".join(run.text for run in runs).strip():
        return None
    if runs[-1].text.rstrip().endswith(HYPHEN):
        runs[-1].text = runs[-1].text.rstrip()[:-1] + SOFT_HYPHEN
    weights: Counter[tuple[float, float]] = Counter()
    prose = [item for item in gathered if not item[0].mono and item[0].text.strip()]
    for run, y, size in prose or gathered:  # code within prose is often smaller
        weights[size, y] += len(run.text.strip())
    size, y = weights.most_common(1)[0][0]
    cells = [[runs[0]]]
    usual = _usual_gap(runs, size)
    for before, run in pairwise(runs):
        gap = (run.x0 - before.x1) / size
        if (gap > SURE_GAP or (gap > CELL_GAP and gap > 1.5 * usual)) and not (before.mono and run.mono):
            cells.append([])
        cells[-1].append(run)
    return Line(page, runs[0].x0, max(run.x1 for run in runs), y, size, [cell for cell in cells if cell])


def _usual_gap(runs: Sequence[Run], size: float) -> float:
    """The smallest space between words, in sizes of the font; all are large on a justified line of few words."""
    if any(" " in run.text.strip() for run in runs):
        return 0.0
    gaps = [(run.x0 - before.x1) / size for before, run in pairwise(runs) if before.text.endswith(" ")]
    return min(gaps) if len(gaps) > 1 else 0.0


def _top(target: Any) -> float:
    """Returns the height of a bookmark's target on its page; far above all when it leads to the page as a whole."""
    kind, numbers = target.get_view()
    place = {1: 1, 3: 0}.get(kind)
    return numbers[place] if place is not None and len(numbers) > place and numbers[place] else float("inf")


def _date(written: str) -> str:
    match = _DATE.match(written)
    return "-".join(part for part in match.groups() if part) if match else ""
