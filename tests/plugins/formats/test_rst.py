"""reStructuredText with the directives and roles of Sphinx; `rst/ids.json` are the ids of the pages that Sphinx builds of it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.types import Page
from ingestion.convert import ConversionError, SourceText, convert
from ingestion.sources import Source
from ingestion.split import Splitter
from ingestion.workers import Workers
from tests.ingestion.index import Index, outcomes

RST = Path(__file__).parents[2] / "ingestion/rst"
URL = "https://docs.example.org/"


def markdown(text: str, root: Path | None = None, file: str = "page.rst") -> str:
    return convert(SourceText(URL + file, text, "text/x-rst", file=file, root=str(root or ""))).markdown


def page(name: str) -> str:
    return markdown((RST / "docs" / name).read_text("utf-8"), RST / "docs", name)


@pytest.mark.parametrize("name", ["index.rst", "guide/install.rst", "api.rst"])
def test_a_project_of_sphinx_is_the_markdown_beside_it(name: str) -> None:
    """No text is lost and no markup left; links, titles, code, tables, notes and symbols have their usual forms."""
    assert page(name) == (RST / Path(name).with_suffix(".md").name).read_text("utf-8")


def test_every_anchor_is_in_the_page_that_sphinx_builds() -> None:
    """Labels, symbols, options and titles, also a title that comes twice."""
    for name, ids in json.loads((RST / "ids.json").read_text("utf-8")).items():
        anchors = re.findall(r"(?m)^#+ .*\{#(\S+)\}$", page(f"{name}.rst"))
        assert anchors, name
        assert set(anchors) <= set(ids), name


def test_without_its_directory_a_page_keeps_its_words() -> None:
    """Links to pages that aren't there become their text."""
    made = markdown("T\n=\n\nSee :ref:`limits`, :doc:`the guide <guide/install>` and :doc:`api`. It has |version|.\n")
    assert made == "# T {#t}\n\nSee limits, the guide and api. It has .\n"


def test_nothing_outside_the_directory_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a path, nor a link, nor an option, nor a configuration; nothing is fetched, run or imported."""
    root = tmp_path / "docs"
    root.mkdir()
    (tmp_path / "secret.inc").write_text("SECRET = 1\n\n.. _secret:\n\nSECRET\n======\n", "utf-8")
    (root / "link.inc").symlink_to(tmp_path / "secret.inc")
    (root / "link.rst").symlink_to(tmp_path / "secret.inc")
    (root / "here.inc").write_text(".. include:: ../secret.inc\n\nHere.\n", "utf-8")
    (root / "conf.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w').close()\nversion = open('/etc/passwd').read()\n", "utf-8"
    )
    (tmp_path / "docutils.conf").write_text("[general]\nfile_insertion_enabled: yes\nraw_enabled: yes\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    text, whole = "Title\n=====\n\n", str(tmp_path / "secret.inc")
    for path in ("../secret.inc", whole, "link.inc", "/../secret.inc", "<secret.inc>", "file:///etc/passwd"):
        text += f".. include:: {path}\n\n.. literalinclude:: {path}\n\n.. csv-table::\n   :file: {path}\n\n"
        text += f".. raw:: html\n   :file: {path}\n\n.. include:: {path}\n   :literal:\n\n"
    text += ".. csv-table::\n   :url: http://127.0.0.1:9/x\n\n.. include:: here.inc\n   :parser: markdown\n\n"
    text += ".. include:: here.inc\n\n:ref:`secret`\n\n.. image:: /etc/passwd\n   :loading: embed\n   :scale: 5\n\n"
    text += ".. role:: web(raw)\n   :format: html\n\n:web:`<b>SECRET</b>` :raw-html:`no` |version|\n"
    made = markdown(text, root)
    assert "SECRET" not in made
    assert "root:" not in made
    assert "Here." in made
    assert not (tmp_path / "ran").exists()


def test_includes_are_bounded(tmp_path: Path) -> None:
    """A file that includes itself, and files that double."""
    (tmp_path / "a.inc").write_text("Again.\n\n.. include:: a.inc\n", "utf-8")
    for n in range(12):
        (tmp_path / f"{n}.inc").write_text(f"Level {n}.\n\n" + f".. include:: {n + 1}.inc\n\n" * 2, "utf-8")
    made = markdown("T\n=\n\nText.\n\n.. include:: a.inc\n\n.. include:: 0.inc\n", tmp_path)
    assert "Level 11." in made
    assert made.count("Level") <= 100


def test_a_page_does_not_change_how_the_next_one_is_read() -> None:
    """Roles and substitutions end with their page; odd pages are errors of their own."""
    markdown(".. role:: shout(strong)\n\n.. default-role:: shout\n\n:shout:`a` `b`\n")
    assert "**" not in markdown(":shout:`a` `b`\n")
    with pytest.raises(ConversionError, match="empty"):
        markdown(".. only a comment\n")


def test_no_chunk_loses_its_symbol() -> None:
    """Parameters of a function are in a chunk whose heading path ends with it."""
    made = page("api.rst")
    chunks = Splitter(size=200).split(Page(URL, "docs", "Reference", "en", made, ""))
    found = [one for one in chunks if "Where the box is" in one.text]
    section = [one for one in found[0].sections if one.offset <= found[0].text.index("Where the box is")][-1]
    assert (section.path[-1], section.anchor) == ("lumora.open()", "lumora.open")


async def test_a_directory_is_published_as_its_source_says(index: Index) -> None:
    """Addresses and links between the files have the source's ending; an index is its folder; conf.py is no page."""
    report = await index.run(Source(url=f"{URL}en/", directory=str(RST / "docs"), ending=".html"))
    assert {path.removeprefix(URL) for path in outcomes(report)} == {"en/", "en/api.html", "en/guide/install.html", "en/guide/hidden.html"}  # fmt: skip
    home, install = [(await index.page(f"{URL}en/{path}")).markdown for path in ("", "guide/install.html")]
    assert f"[the limits]({URL}en/guide/install.html#limits)" in home
    assert f"[Lumora]({URL}en/)" in install
    assert ".rst" not in home + install


async def test_a_page_that_would_take_docutils_too_long_is_left_out_alone() -> None:
    """By its CPU time."""
    slow = SourceText(f"{URL}a.rst", "*.a " * 20_000, "text/x-rst", file="a.rst")
    async with Workers(seconds=0.5) as workers:
        with pytest.raises(ConversionError, match="takes longer than"):
            await workers.run(convert, slow)
        assert await workers.run(convert, replace(slow, text="T\n=\n\nText.\n"))
