"""A LlamaIndex reader is a source: its documents are pages, and what fails in it fails alone."""

import json
import re
import sys
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from app.core.errors import NotPublished, ReaderError, RunRefused, SettingsError
from ingestion.crawl import documents
from ingestion.crawl.documents import list_documents
from ingestion.entry import Listing
from ingestion.report import EXIT_OK, EXIT_WITH_FAILURES
from ingestion.sources import Source, load_sources
from tests.ingestion.index import LONG, Index, outcomes
from tests.ingestion.local_site import LocalSite

WIKI = "https://wiki.example.org/"
HERE = "tests.ingestion.test_readers"


class Dump(BaseReader):
    """Reads a list of documents from a JSON file, each with a new random id, as many readers do."""

    def __init__(self, api_token: str = "") -> None:
        self.api_token = api_token

    def load_data(self, file: str, limit: int = 1000) -> list[Document]:
        rows = json.loads(Path(file).read_text("utf-8"))
        return [Document(text=row.pop("text"), metadata=row) for row in rows[:limit]]


class Broken(BaseReader):
    """Does what the test says instead of reading."""

    acts: Callable[[], Any]

    def __init__(self, api_token: str = "") -> None:
        self.api_token = api_token

    def load_data(self) -> Any:
        return Broken.acts()


def readers(language: str) -> str:
    """The section about readers of the documentation."""
    text = (Path(__file__).parents[2] / f"docs/{language}/sources.md").read_text("utf-8")
    return text.partition("{#readers}")[2]


def dumped(file: Path, rows: list[dict[str, Any]]) -> Source:
    file.write_text(json.dumps(rows), "utf-8")
    return Source(url=WIKI, reader=f"{HERE}:Dump", load_args={"file": str(file)})


def row(name: str, **metadata: Any) -> dict[str, Any]:
    text = f"About {name}. {LONG.replace('storage', name)}"
    return {"text": text, "url": f"{WIKI}{name}", "title": f"Page {name}", **metadata}


async def listed(*given: Document, **keys: Any) -> Listing:
    Broken.acts = staticmethod(lambda: list(given))  # type: ignore[assignment]
    return await list_documents(Source(url=WIKI, reader=f"{HERE}:Broken", **keys))


async def test_documents_become_pages_and_only_changed_texts_are_embedded(tmp_path: Path, index: Index) -> None:
    """Title, address, dates, language and version come from the metadata, and ids don't matter. What the reader no
    longer gives is removed, but not most of it.
    """
    rows = [
        row("a", last_modified="2024-05-06", date="2023-01-02", language="cs", version="1.2"),
        row("b"),
        *(row(f"c{n}") for n in range(4)),
    ]
    source = dumped(tmp_path / "dump.json", rows)
    first = await index.run(source)
    assert (set(outcomes(first).values()), first.exit_code) == ({"new"}, EXIT_OK)
    page = await index.page(f"{WIKI}a")
    assert (page.title, page.versions, page.fetch.source) == ("Page a", ("1.2",), WIKI)
    assert (page.modified, page.published, page.language) == ("2024-05-06", "2023-01-02", "en")  # the text is clear
    assert page.markdown.startswith("# Page a\n\nAbout a.")
    assert "the text is en, metadata says cs" in next(one.note for one in first.pages if one.url == page.url)

    again = await index.run(source)
    assert (set(outcomes(again).values()), again.embedding_calls, again.changed) == ({"unchanged"}, 0, False)

    rows[1]["text"] += " And one more sentence."
    changed = await index.run(dumped(tmp_path / "dump.json", rows[:5]))
    found = {url[-2:]: outcome for url, outcome in outcomes(changed).items() if outcome != "unchanged"}
    assert found == {"/b": "changed", "c3": "removed"}
    assert 0 < changed.embedded_texts <= len((await index.page(f"{WIKI}b")).derived.chunk_ids)
    with pytest.raises(RunRefused, match=f"4 of 5 pages of {WIKI} would be lost"):
        await index.run(dumped(tmp_path / "dump.json", rows[:1]))


async def test_a_reader_that_fails_is_named_and_the_night_goes_on(
    site: LocalSite, tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it does: the other sources are published, its own pages stay, and no message shows its token."""
    site.page("/a", "Page a", LONG)
    sitemap = site.sitemap("/a")
    good = dumped(tmp_path / "dump.json", [row("w1"), row("w2")])
    await index.run(sitemap, good)
    bad = Source(url=WIKI, reader=f"{HERE}:Broken", reader_args={"api_token": "s3cret"})

    def fails() -> None:
        raise ConnectionError("401\nfor token s3cret at https://me:s3cret@wiki.example.org")

    Broken.acts = staticmethod(fails)  # type: ignore[assignment]
    site.page("/a", "Page a", LONG, "A new paragraph.")
    report = await index.run(sitemap, bad, only=True, splitter="page")  # also where all is built anew
    assert report.failed_sources == [
        f"{WIKI}: {HERE}:Broken failed (ConnectionError: 401 for token … at https://me:…@wiki.example.org)"
    ]
    assert report.failed_sources[0] in report.text
    assert (outcomes(report), report.exit_code) == ({"/a": "changed"}, EXIT_WITH_FAILURES)
    assert {url[-2:] for url in await index.pages()} == {"/a", "w1", "w2"}
    with pytest.raises(NotPublished, match=r"No page could be read: .*ConnectionError"):
        await index.run(bad)

    monkeypatch.setattr(documents, "LONGEST", 0.05)
    waits = threading.Event()
    for acts, says in [
        (lambda: sys.exit(3), "SystemExit: 3"),
        (lambda: None, "TypeError: 'NoneType' object is not iterable"),
        (lambda: [{"text": "a"}], "it gives a dict instead of a Document"),
        (list, "gives no document that can be read"),
        (waits.wait, "did not end within 0 s"),
    ]:
        Broken.acts = staticmethod(acts)  # type: ignore[assignment]
        with pytest.raises(ReaderError, match=says):
            await list_documents(bad)
    waits.set()


async def test_addresses_come_from_the_metadata_or_from_the_template() -> None:
    """Each document has the address that readers can open, the same in each run; parts of one page are one page."""
    text = "Some text."
    found = await listed(
        Document(text=text, metadata={"source": "https://user:pw@a.example.org/x/README.md", "url": "/relative"}),
        Document(text=text, id_="https://b.example.org/by-id"),
        Document(text=text, metadata={"file_name": "c d/š.md"}),
        Document(text="Part 1.", metadata={"url": "https://d.example.org/p?q=1#one", "updated": "2024-01-01"}),
        Document(text="Part 2.", metadata={"url": "https://d.example.org/p?q=1#two", "updated": "2024-03-01"}),
        Document(text=text, metadata={"file_name": "private/x.md"}),
        Document(text=text, metadata={"name": "none"}),
        Document(text=" \n", metadata={"file_name": "empty"}),
        link="https://docs.example.org/{file_name}",
        exclude="/private/*",
    )
    assert [entry.address for entry in found.entries] == [
        "https://a.example.org/x/README.md",
        "https://b.example.org/by-id",
        "https://docs.example.org/c%20d/%C5%A1.md",
        "https://d.example.org/p?q=1",
    ]
    assert (found.entries[3].lastmod, found.entries[3].given.text) == ("2024-03-01", "Part 1.\n\nPart 2.")  # type: ignore[union-attr]
    assert [skipped.reason for skipped in found.skipped] == [
        "excluded by /private/*",
        "has no file_name, which link names; its metadata has: name",
        "has no text",
    ]
    by_id = await listed(Document(text=text, id_="42"), link="https://docs.example.org/{id}")
    assert [entry.address for entry in by_id.entries] == ["https://docs.example.org/42"]
    with pytest.raises(
        ReaderError, match=r"random id, so \{id\} in link would be new in each run; its metadata has: k"
    ):
        await listed(Document(text=text, metadata={"k": str(uuid.uuid4())}), link="https://docs.example.org/{id}")
    with pytest.raises(ReaderError, match=r"has no web address in its metadata \(file_path\): set link"):
        await listed(Document(text=text, metadata={"file_path": "/tmp/a"}))


async def test_html_and_addresses_with_endings_survive_a_run(index: Index) -> None:
    """A document may be HTML, and its address is kept as it is: others than a site's, .md may be what readers open."""
    given = [
        Document(text=f"<html lang=en><body><nav>Menu</nav><h1>Hi</h1><p>{LONG}", metadata={"url": f"{WIKI}h.html"}),
        Document(text=f"Plain text. {LONG}", metadata={"url": f"{WIKI}README.md"}),
    ]
    Broken.acts = staticmethod(lambda: given)  # type: ignore[assignment]
    for expected in ("new", "unchanged"):
        report = await index.run(Source(url=WIKI, reader=f"{HERE}:Broken"))
        assert set(outcomes(report).values()) == {expected}
    pages = await index.pages()
    assert {url: page.title for url, page in pages.items()} == {f"{WIKI}h.html": "Hi", f"{WIKI}README.md": "README.md"}
    assert "Menu" not in await index.text(f"{WIKI}h.html")


async def test_the_documented_examples_run(tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a directory with what they read; each language shows the same."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    files, own = (example.strip() for example in re.findall(r"```toml\n(.*?)```", readers("en"), re.DOTALL))
    (python,) = re.findall(r"```python\n(.*?)```", readers("en"), re.DOTALL)
    assert all(example in readers("cs") for example in (files, own, python))
    (tmp_path / "handbook").mkdir()
    (tmp_path / "handbook/holidays.txt").write_text(f"Holidays. {LONG}", "utf-8")
    (tmp_path / "my_readers.py").write_text(python, "utf-8")
    rows = [{"body": LONG, "url": f"{WIKI}own", "title": "Own"}]
    (tmp_path / "dump.json").write_text(json.dumps(rows), "utf-8")
    (tmp_path / "sites.toml").write_text(f"{files}\n{own}\n", "utf-8")
    report = await index.run("sites.toml")
    assert (report.exit_code, report.failed_sources) == (EXIT_OK, [])
    pages = await index.pages()
    assert {url: page.title for url, page in pages.items()} == {
        "https://handbook.example.org/holidays.txt": "holidays.txt",
        f"{WIKI}own": "Own",
    }


def test_mistakes_in_a_reader_are_named_with_file_and_source(tmp_path: Path) -> None:
    """Before anything is read, and without making the reader, which may connect to something."""
    file = tmp_path / "sites.toml"
    core = "llama_index.core"
    for lines, says in [
        ('reader = "no_such_package:X"', "reader=no_such_package:X: there is no module no_such_package. Install"),
        (f'reader = "{core}:SimpleDirectory"', "has no class SimpleDirectory.*SimpleDirectoryReader"),
        (f'reader = "{core}:Document"', "Document is no BaseReader"),
        (f'reader = "{core}:SimpleDirectoryReader"\nreader_args = {{ dir = "x" }}', "has no argument dir. .*input_dir"),
        (f'reader = "{HERE}:Dump"', "Dump: load_data needs the argument file. Its arguments: file, limit"),
        (
            f'reader = "{HERE}:Dump"\nload_args = {{ path = "x" }}',
            "load_data has no argument path. Its arguments: file",
        ),
        ('link = "https://docs.example.org/{id}"', "reader_args, load_args and link are for a reader only"),
        (f'reader = "{HERE}:Dump"\nlink = "docs/{{id}}"', "link: .*isn't a web address with a name of the metadata"),
        (f'reader = "{HERE}:Dump"\nload_args = "dump.json"', "load_args: 'dump.json': isn't a table of arguments"),
        (f'reader = "{HERE}:Dump"\nload_args = "{{bad"', "load_args: '{bad': Expecting property name"),
        (f'reader = "{HERE}:Dump"\ndirectory = "."', "both directory and reader"),
    ]:
        file.write_text(f'[[source]]\nurl = "{WIKI}"\n{lines}\n', "utf-8")
        with pytest.raises(SettingsError, match=rf"sites.toml, source 1 \({WIKI}\): .*{says}"):
            load_sources(file)
    file.write_text(f'[[source]]\nurl = "{WIKI}"\nreader = "{HERE}:Dump"\nload_args = {{ file = "x" }}\n', "utf-8")
    assert load_sources(file)[0].arguments[1] == {"file": "x"}
