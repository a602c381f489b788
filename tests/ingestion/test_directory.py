"""A directory of Markdown is a source: its files are pages under the address at which they are published."""

import subprocess
from pathlib import Path

import pytest

from app.core.errors import SitemapError
from ingestion.convert import SourceText, convert
from ingestion.crawl.directory import list_files, read_file
from ingestion.crawl.exchange import page_types
from ingestion.entry import Listing
from ingestion.formats import binary_types, file_types
from ingestion.sources import Source
from tests.ingestion.index import Index, outcomes, reasons

URL = "https://docs.example.org/"
LONG = " ".join(f"Sentence number {n} says something about storage." for n in range(8))


def put(root: Path, **files: str) -> None:
    for name, text in files.items():
        file = root / name.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


def listed(root: Path, **more: str | tuple[str, ...]) -> Listing:
    return list_files(Source(url=URL, directory=str(root), **more), ("cs", "en"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder for the files."""
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs"


@pytest.mark.parametrize(
    ("ending", "expected"),
    [
        ("", ["", "guide", "guide/install", "c%20d/%C5%A1kola"]),
        ("/", ["", "guide/", "guide/install/", "c%20d/%C5%A1kola/"]),
        (".html", ["", "guide/", "guide/install.html", "c%20d/%C5%A1kola.html"]),
    ],
)
def test_addresses_are_those_at_which_files_are_published(root: Path, ending: str, expected: list[str]) -> None:
    """An index or README stands for its folder; each way of publishing has its ending."""
    for name in ("index.md", "guide/README.md", "guide/install.mdx", "c d/škola.markdown"):
        put(root, **{name: "# T"})
    assert {entry.public for entry in listed(root, ending=ending).entries} == {URL + path for path in expected}


@pytest.mark.parametrize("ending", [ending for ending, kind in file_types().items() if kind not in binary_types()])
def test_every_type_of_file_is_listed_and_converted(root: Path, ending: str) -> None:
    """A file has the media type of its ending, in small letters or capitals, and a converter reads it."""
    text = "# T\n\nText."
    put(root, **{f"a{ending}": text, f"b{ending.upper()}": text})
    for entry in listed(root).entries:
        fetched = read_file(entry, "", 1000)
        assert fetched.media_type == file_types()[ending]
        assert fetched.media_type in page_types()
        assert convert(SourceText(entry.url, fetched.body.decode(), fetched.media_type)).title == "T"
    assert len(listed(root).entries) == 2


def test_what_is_no_page_is_not_read(root: Path) -> None:
    """Hidden folders, partials, packages, other types and links to the outside; a README beside an index is told."""
    (root.parent / "secret.md").write_text("secret")
    for name in (".git/x.md", ".hidden.md", "_partials/y.md", "_z.md", "node_modules/p/README.md", "a.txt", "a.md",
                 "b/index.md", "b/README.md"):  # fmt: skip
        put(root, **{name: "# T"})
    (root / "outside.md").symlink_to(root.parent / "secret.md")
    (root / "inside.md").symlink_to(root / "a.md")
    read = listed(root, exclude=("/inside",))
    assert [entry.url for entry in read.entries] == [f"{URL}a.md", f"{URL}b/index.md"]
    assert {(s.url, s.reason) for s in read.skipped} == {
        (f"{URL}b/README.md", "its directory has an index too"),
        (f"{URL}inside", "excluded by /inside"),
    }


def test_counterparts_are_found_by_folder_and_by_suffix(root: Path) -> None:
    """en/a.md and cs/a.md, b.en.md and b.cz.md belong together; express.js.md is in no language."""
    for name in ("en/a.md", "cs/a.md", "en/only.md", "b.en.md", "b.cz.md", "express.js.md", "express.go.md"):
        put(root, **{name: "# T"})
    found = {entry.url.removeprefix(URL): dict(entry.alternates) for entry in listed(root).entries}
    assert found["en/a.md"] == found["cs/a.md"] == {"en": f"{URL}en/a", "cs": f"{URL}cs/a"}
    assert found["b.en.md"] == found["b.cz.md"] == {"en": f"{URL}b.en", "cs": f"{URL}b.cz"}
    assert found["en/only.md"] == found["express.js.md"] == found["express.go.md"] == {}


def test_a_directory_without_pages_is_an_error(root: Path) -> None:
    """It is never taken for a site of which everything is gone."""
    with pytest.raises(SitemapError, match="holds no file that can be read"):
        listed(root)
    put(root, **{"a.md": "# T"})
    with pytest.raises(SitemapError, match="excluded by"):
        listed(root, exclude=("*",))


async def test_a_directory_is_indexed_and_kept_up_to_date(root: Path, index: Index) -> None:
    """Only changed files are read again; deleted ones leave; links lead to published pages; no request is made."""
    put(
        root,
        **{
            "index.md": f"# Home\n\nSee [install](guide/install.md#linux) and [guide](guide/README.md). {LONG}",
            "guide/README.md": f"# Guide\n\n{LONG} Guide.",
            "guide/install.md": f"---\ntitle: Install\nlang: cs\n---\n\n{LONG[:60]}",
        },
    )
    source = Source(url=URL, directory=str(root), ending="/")
    report = await index.run(source)
    home, install = await index.page(URL), await index.page(f"{URL}guide/install/")
    assert f"[install]({URL}guide/install/#linux) and [guide]({URL}guide/)" in home.markdown
    assert (install.title, install.language, install.fetch.fetched_url) == ("Install", "cs", f"{URL}guide/install.md")
    assert report.sites == (str(root),)
    (root / "guide/install.md").unlink()
    (root / "guide/README.md").write_text(f"# Guide\n\n{LONG} Other words.")
    (root / "index.md").touch()
    embedded = len(index.embedder.texts)
    report = await index.run(source)
    assert outcomes(report) == {URL: "unchanged", f"{URL}guide/": "changed", f"{URL}guide/install/": "removed"}
    new = index.embedder.texts[embedded:]
    assert report.embedded_texts == len(new) > 0
    assert all(text.startswith("Guide") for text in new), new


async def test_a_git_checkout_is_a_directory(root: Path, index: Index) -> None:
    """What git keeps for itself is no page; a file that can't be read is told, and one over the limit of downloaded pages."""
    put(root, **{"a.md": f"# A\n\n{LONG}", "empty.md": "", "big.md": "x" * 5000})
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    put(root, **{".git/description.md": "# hidden"})
    report = await index.run(Source(url=URL, directory=str(root)), crawl_max_bytes=2000)
    assert outcomes(report) == {f"{URL}a": "new", f"{URL}empty.md": "skipped", f"{URL}big.md": "skipped"}
    assert reasons(report)[f"{URL}big.md"] == "is larger than 2,000 bytes"


async def test_links_to_an_index_lead_to_its_published_folder(root: Path, index: Index) -> None:
    """Where pages have no ending, the folder has no slash."""
    put(root, **{"a.md": f"# A\n\n[one](one/index.md) [two](two/README.md#x) {LONG}", "one/index.md": f"# O {LONG}"})
    await index.run(Source(url=URL, directory=str(root)))
    assert f"[one]({URL}one) [two]({URL}two#x)" in (await index.page(f"{URL}a")).markdown
