"""PDF and DOCX files of real programs (`tests/ingestion/files/make.py`) become Markdown; hostile ones are refused."""

import io
import re
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ingestion.convert import ConversionError, Document, SourceText, convert
from ingestion.formats import file_types
from ingestion.workers import Workers
from plugins.formats import DOCX, PDF, docx
from plugins.formats import pdf as pdf_room

FILES = Path(__file__).parents[2] / "ingestion/files"
URL = "https://docs.example.org/files/a"


def read(name: str) -> Document:
    """What a file of the directory becomes."""
    return converted((FILES / name).read_bytes(), file_types()[Path(name).suffix])


def converted(body: bytes, media_type: str) -> Document:
    """What the bytes become."""
    return convert(SourceText(URL, "", media_type, body=body))


def archive(**parts: bytes) -> bytes:
    """A ZIP archive of these parts; `__` in a name is a slash."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, body in parts.items():
            file.writestr(f"{name.replace('__', '/')}.xml", body)
    return made.getvalue()


def pdf(content: bytes, pages: int = 1) -> bytes:
    """A PDF file whose pages have this content, packed."""
    packed = zlib.compress(content)
    kids = b" ".join(b"3 0 R" for _ in range(pages))
    parts = (
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, pages),
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(packed), packed),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    objects = b"".join(b"%d 0 obj%s endobj\n" % (number, part) for number, part in enumerate(parts, 1))
    return b"%PDF-1.4\n" + objects + b"trailer<</Root 1 0 R>>\n%%EOF"


def test_a_printed_manual_becomes_sections_with_their_pages_and_keeps_code_tables_and_lists() -> None:
    """The whole Markdown: words broken by hyphens are whole, running heads and page numbers are gone."""
    made = read("manual.pdf")
    assert made.markdown == (FILES / "expected-manual.md").read_text("utf-8")
    assert (made.title, made.languages) == ("Příručka správce serveru", {"html lang": "cs"})
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", made.modified)


def test_two_columns_are_read_one_after_the_other_and_headings_are_found_by_their_fonts() -> None:
    made = read("columns.pdf").markdown
    assert re.findall(r"(?m)^#.*", made) == [
        "# A Scheduler in Two Columns {#page=1}",
        "## Reading the configuration {#page=1}",
        "## Running jobs at night {#page=1}",
        "## What to do when a job fails {#page=2}",
    ]
    pairs = re.findall(r"Paragraph (\d+)\..*paragraph number (\d+)\.", made)
    numbers = [int(number) for pair in pairs for number in pair]
    assert numbers == [number for number in range(1, 16) for _ in range(2)]


def test_a_file_without_headings_has_a_section_for_each_page() -> None:
    body = pdf(b"BT /F 12 Tf 50 700 Td (All of the words on this page.) Tj ET", pages=3)
    titles = re.findall(r"(?m)^## .*", converted(body, PDF).markdown)
    assert titles == [f"## {number} / 3 {{#page={number}}}" for number in (1, 2, 3)]


@pytest.mark.parametrize("name", ["pandoc.docx", "writer.docx"])
def test_files_of_word_processors_keep_headings_lists_tables_code_links_and_notes(name: str) -> None:
    """As pandoc and LibreOffice write them. LibreOffice gives bullets within a list numbers."""
    made = read(name)
    expected = (FILES / "expected.md").read_text("utf-8")
    shown = expected.replace("   - ", "   1. ") if name == "writer.docx" else expected
    assert made.markdown == shown.replace("1. druhá", "2. druhá")
    assert (made.title, made.languages) == ("Příručka správce", {"html lang": "cs"})


CASES: tuple[tuple[str, str, Callable[[], bytes]], ...] = (
    (PDF, "holds no text: it is scanned pictures", (FILES / "scanned.pdf").read_bytes),
    (PDF, "is encrypted: it opens only with a password", (FILES / "encrypted.pdf").read_bytes),
    (PDF, "holds no text: it is empty", lambda: pdf(b"")),
    (PDF, "isn't a PDF file that can be read", lambda: b"<html>Sign in</html>"),
    (PDF, "isn't a PDF file that can be read", lambda: b""),
    (PDF, "has 3,001 pages: more than 3,000", lambda: pdf(b"", pages=3_001)),
    (DOCX, "is encrypted, or in the format of Word before 2007", lambda: b"\xd0\xcf\x11\xe0" + b"\0" * 600),
    (DOCX, "isn't a file of a word processor", lambda: b"PK\x03\x04 and no more"),
    (DOCX, "isn't a file of a word processor|can't be converted", lambda: archive(a=b"<a/>")),
    (DOCX, "is damaged: docProps/core.xml can't be read", lambda: archive(docProps__core=b"<a>")),
    (DOCX, "more than 40,000,000 bytes of XML", lambda: archive(word__document=b"<a>" + b" " * 41_000_000)),
    (DOCX, "declares XML entities", lambda: archive(word__document=b'<!DOCTYPE a [<!ENTITY b "bb">]><a>&b;</a>')),
    (DOCX, "declares XML entities", lambda: archive(word__document='<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'.encode("utf-16"))),
)  # fmt: skip


def test_a_file_that_cant_be_read_is_refused_with_the_reason() -> None:
    """Scanned, encrypted, damaged, too large, and bombs of ZIP and XML."""
    for media_type, reason, body in CASES:
        with pytest.raises(ConversionError, match=reason):
            converted(body(), media_type)


async def test_a_hostile_pdf_costs_only_the_time_of_its_own_worker() -> None:
    """A few kilobytes that unpack to hours of work are ended by the limit of CPU time; the next file is read."""
    bomb = pdf(b"BT /F 1 Tf " + b"1 0 0 1 0 0 Tm (aaaaaaaaaaaaaaaa) Tj " * 20_000 + b"ET", pages=2_000)
    good = (FILES / "columns.pdf").read_bytes()
    assert len(bomb) < 200_000
    async with Workers(seconds=0.4) as workers:
        with pytest.raises(ConversionError, match=r"takes longer than"):
            await workers.run(converted, bomb, PDF)
        assert (await workers.run(converted, good, PDF)).title == "A Scheduler in Two Columns"


@pytest.mark.parametrize(("library", "name"), [("pypdfium2", "manual.pdf"), ("mammoth", "writer.docx")])
def test_without_its_library_a_file_is_skipped_with_what_to_install(
    library: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConversionError, match=rf"{library}.*pip install '.\[files\]'"):
        read(name)


def test_limits_of_files_are_those_that_the_documentation_names() -> None:
    assert (pdf_room.MOST_PAGES, docx.MOST_UNPACKED, docx.MOST_XML) == (3_000, 200_000_000, 40_000_000)
