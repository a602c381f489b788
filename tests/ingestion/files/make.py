"""Makes the files of this directory anew: `python tests/ingestion/files/make.py`.

It needs Chromium, LibreOffice, pandoc, and `pip install fpdf2 pypdf`. The tests read what it saved.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from fpdf import FPDF
from pypdf import PdfReader, PdfWriter

HERE = Path(__file__).parent
PRINTED = HERE / "manual.html"
COLUMNS = HERE / "columns.html"


def main() -> None:
    """Write all files."""
    printed(PRINTED, "manual.pdf", "--generate-pdf-document-outline")
    printed(COLUMNS, "columns.pdf", "--no-pdf-header-footer")
    subprocess.run(["pandoc", str(HERE / "handbook.md"), "-o", str(HERE / "pandoc.docx")], check=True)
    office("pandoc.docx", "docx", "writer.docx")
    office("pandoc.docx", "pdf", "writer.pdf")
    scanned()
    encrypted()


def printed(page: Path, name: str, *options: str) -> None:
    """Have Chromium print a page."""
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--print-to-pdf={HERE / name}", *options]
    subprocess.run([*command, page.as_uri()], check=True, capture_output=True)


def office(source: str, ending: str, name: str) -> None:
    """Have LibreOffice write a file in another format."""
    out = HERE / "made"
    subprocess.run(
        ["soffice", "--headless", "--convert-to", ending, "--outdir", str(out), str(HERE / source)],
        check=True,
        capture_output=True,
    )
    shutil.move(out / f"{Path(source).stem}.{ending}", HERE / name)
    out.rmdir()


def scanned() -> None:
    """Two pages with a picture each, and no text."""
    from PIL import Image

    made = FPDF()
    for shade in (80, 160):
        made.add_page()
        made.image(Image.new("L", (60, 80), shade), x=20, y=20, w=100)
    made.output(str(HERE / "scanned.pdf"))


def encrypted() -> None:
    """The columns with a password."""
    writer = PdfWriter(clone_from=PdfReader(HERE / "columns.pdf"))
    writer.encrypt("secret", algorithm="AES-256")
    writer.write(HERE / "encrypted.pdf")


if __name__ == "__main__":
    main()
