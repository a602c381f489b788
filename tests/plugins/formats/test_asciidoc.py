"""AsciiDoc files of an Antora component, read with Asciidoctor where it is installed (Ruby's, or `asciidoctor` of npm)."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from ingestion.convert import ConversionError, SourceText, convert
from ingestion.convert.files import Tree
from ingestion.sources import Source
from plugins.formats.asciidoc import program
from plugins.formats.asciidoc.includes import Place, with_includes
from tests.ingestion.index import Index, outcomes

ROOT = Path(__file__).parents[2] / "ingestion/asciidoc" / "docs"
HOME = "modules/ROOT/pages/index.adoc"
URL = "https://docs.example.org/"
installed = pytest.mark.skipif(not any(map(shutil.which, ("asciidoctor", "asciidoctorjs"))), reason="no Asciidoctor")


def markdown(text: str, file: str = "page.adoc", root: str = "") -> str:
    return convert(SourceText(URL + file, text, "text/asciidoc", file=file, root=root)).markdown


def test_includes_are_files_of_the_source_only() -> None:
    """By Antora's names, lines, tags and levels; nothing outside, and no file in itself."""
    place = Place(HOME, Tree(str(ROOT)))
    made = with_includes((ROOT / HOME).read_text("utf-8"), place, place.attributes)
    assert "include::" not in made
    assert made.count("Restart {product}.") == 1
    assert '----\nbox = lumora.open("a.box")  # <1>\n----' in made
    assert ":leveloffset: +1\n\n= The guide" in made
    assert "import asyncio" not in made
    assert "root:" not in made
    assert place.path("api:box.adoc", "page") == place.path("lumora:api:box.adoc") == "modules/api/pages/box.adoc"
    assert place.path("2.4@lumora:api:page$box.adoc") == "modules/api/pages/box.adoc"
    up = "../../../../../test_run.py"
    for name in ("elsewhere:api:box.adoc", up, f"partial$../{up}", "/etc/passwd"):
        assert place.path(name) == "", name


def test_links_lead_to_files_and_bear_their_titles() -> None:
    """A link to what isn't there keeps its text."""
    place = Place(HOME, Tree(str(ROOT)))
    made = place.linked('<a href="api:box.adoc#open">api:box</a>')
    assert made == '<div><a href="../../api/pages/box.adoc#open">The box</a></div>'
    assert place.linked('<p><a href="x:y.adoc"><b>Y</b></a></p>') == "<div><p><b>Y</b></p></div>"


def test_without_asciidoctor_the_page_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that can't be converted is skipped; the others of its directory are indexed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(program, "_running", None)
    with pytest.raises(ConversionError, match="npm install -g asciidoctor"):
        markdown("= A\n\nText.\n")


@installed
async def test_a_component_of_antora_is_published_as_antora_does(index: Index) -> None:
    """The Markdown is the one beside it; partials and examples are no pages; modules are folders."""
    report = await index.run(Source(url=f"{URL}lumora/", directory=str(ROOT), ending=".html"))
    assert {path.removeprefix(f"{URL}lumora/") for path in outcomes(report)} == {"", "guide.html", "api/box.html"}
    assert (await index.page(f"{URL}lumora/")).markdown == (ROOT.parent / "index.md").read_text("utf-8")


@installed
def test_asciidoctor_reads_no_files_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mode is `secure`; one process converts all pages; after one that takes too long comes a new one."""
    reading = "Text {docdir}.\n\nimage::/etc/passwd[opts=inline]\n\n\\include::/etc/passwd[]\n"
    assert "root:" not in markdown(f":docinfo: shared\n\n= T\n\n{reading}")
    assert program._running is not None
    first = program._running.process.pid
    markdown("= T\n\nText.\n")
    assert program._running.process.pid == first
    monkeypatch.setattr(program, "SECONDS", 0.1)
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(ConversionError, match="longer than"):
        markdown("= T\n\nText.\n")
    monkeypatch.undo()
    assert markdown("= T\n\nText.\n") == "# T\n\nText.\n"
