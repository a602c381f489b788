"""A zip or tar archive is a source: its pages, unpacked once, within limits, whatever else is in it."""

import gzip
import io
import os
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from ingestion.errors import ConversionError
from ingestion.sources import Source, load_sources
from plugins.vcs import archive
from plugins.vcs.archive import unpack
from plugins.vcs.kept_files import KeptFiles
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite
from tests.plugins.vcs.test_git import LONG, URL, _beside, outcomes

__all__ = ["_beside"]
BUILT = {
    "404.html": f"<html lang=en><title>Not found</title><main><h1>Not found</h1><p>{LONG}</p></main>",
    "index.html": f"<html lang=en><title>Home</title><main><h1>Home</h1><p>{LONG}</p><a href='guide/index.html'>Guide</a></main>",
    "guide/index.html": f"<html lang=en><title>Guide</title><main><h1>Guide</h1><h2 id=linux>Linux</h2><p>Unpack. {LONG}</p></main>",
    "guide/install.html": f"<html lang=en><title>Install</title><main><h1>Install</h1><p>Build. {LONG}</p></main>",
    "guide/install.md": "# Twin of the page",
}


def zipped(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, text in files.items():
            opened.writestr(name, text)
    return made.getvalue()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty place for files."""
    made = tmp_path / "tree"
    made.mkdir()
    return made


def names(tree: Path) -> list[str]:
    return sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())


async def test_a_built_site_in_a_zip_is_indexed_over_http_and_unpacked_once(
    site: LocalSite, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its HTML gives sections with anchors; 304 or the same bytes unpack nothing; a changed page is read alone."""
    body = zipped(BUILT)
    site.put("/docs.zip", body, "application/zip")
    source = Source(url=URL, archive=f"{site.url}/docs.zip")
    assert outcomes(await index.run(source)) == {"": "new", "guide/": "new", "guide/install.html": "new"}
    assert "## Linux {#linux}" in (await index.page(f"{URL}guide/")).markdown
    monkeypatch.setattr(archive, "unpack", None)
    assert set(outcomes(await index.run(source)).values()) == {"unchanged"}
    site.put("/docs.zip", body, "application/zip", etag=False)
    assert set(outcomes(await index.run(source)).values()) == {"unchanged"}
    assert site.statuses("/docs.zip") == [200, 304, 200]
    monkeypatch.undo()
    site.put("/docs.zip", zipped({**BUILT, "guide/install.html": BUILT["guide/install.html"].replace("Build", "Make")}))
    assert outcomes(await index.run(source))["guide/install.html"] == "changed"
    site.put("/docs.zip", "", status=401)
    site.page("/other", "Other", LONG)
    report = await index.run(source, site.sitemap("/other"))
    assert "answered 401: the site wants a login" in report.failed_sources[0]
    assert URL in {page.url for page in await (await index.store.live()).pages()}


async def test_a_zip_beside_the_file_of_sources_is_read_from_a_folder_in_it(tmp_path: Path, index: Index) -> None:
    """A star stands for the top folder, whose name changes with each release; Markdown is published as in a directory."""
    files = {"app-1.2/docs/index.md": f"# Home {LONG}", "app-1.2/docs/a.md": f"# A\n\n{LONG} A.", "app-1.2/x.md": "# X"}
    (tmp_path / "docs.zip").write_bytes(zipped(files))
    toml = tmp_path / "sites.toml"
    toml.write_text(f'[[source]]\nurl = "{URL}"\narchive = "docs.zip"\nfolder = "*/docs"\nending = "/"\n')
    (source,) = load_sources(toml)
    report = await index.run(source)
    assert outcomes(report) == {"": "new", "a/": "new"}
    assert report.sites == (str(tmp_path / "docs.zip"),)
    (record,) = (await index.store.live()).info.sources
    assert record.options["archive"] == str(tmp_path / "docs.zip")


async def test_pages_include_what_is_beside_them_in_the_archive(tmp_path: Path, index: Index) -> None:
    """Found by their paths; what no page may include isn't unpacked."""
    page = f"A\n=\n\n.. include:: ../parts/b.inc\n\nSee :ref:`limits`. {LONG}\n"
    files = {"docs/a/a.rst": page, "docs/parts/b.inc": "Of the part.\n", "docs/c.rst": f".. _limits:\n\nThe limits\n==========\n\n{LONG}",
             "tool/main.py": "print()", "docs/logo.png": "x"}  # fmt: skip
    (tmp_path / "docs.zip").write_bytes(zipped(files))
    source = Source(url=URL, archive=str(tmp_path / "docs.zip"), ending=".html")
    await index.run(source)
    made = (await index.page(f"{URL}docs/a/a.html")).markdown
    assert "Of the part." in made
    assert f"[The limits]({URL}docs/c.html#limits)" in made
    assert names(KeptFiles.of(source, index.settings()).tree) == ["docs/a/a.rst", "docs/c.rst", "docs/parts/b.inc"]


def test_hostile_entries_are_left_out_with_their_reason(tmp_path: Path, tree: Path) -> None:
    """Paths that leave the archive, links, encrypted and damaged entries, names that aren't UTF-8, too large ones."""
    file = tmp_path / "evil.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        for name in ("a.md", "../up.md", "/abs.md", "C:/drive.md", "b/../../up2.md", "..\\win.md", "dir\\w.md", "škola.md",
                     ".hidden.md", "_part/x.md", "x.png"):  # fmt: skip
            opened.writestr(name, f"# {name}")
        opened.writestr("big.md", "x" * 5000)
        opened.writestr("locked.md", "# Locked")
        opened.writestr("broken.md", "# Broken content")
        opened.writestr("latin.md", "# Latin")
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        opened.writestr(link, "/etc/passwd")
    body = file.read_bytes().replace(b"latin.md", b"l\xe1tin.md"[:8])
    at = body.rindex(b"locked.md") - 46 + 8  # the flags of its entry in the directory
    body = body[:at] + bytes([body[at] | 1]) + body[at + 1 :]
    with zipfile.ZipFile(io.BytesIO(body)) as opened:
        start = opened.getinfo("broken.md").header_offset + 30 + len("broken.md")
    file.write_bytes(body[:start] + b"\xff\xff\xff" + body[start + 3 :])
    skipped = unpack(file, tree, "", 4000)
    assert names(tree) == ["a.md", "dir/w.md", "škola.md"]
    assert {name: reason.partition(" (")[0] for name, reason in skipped.items()} == {
        **dict.fromkeys(
            ("../up.md", "/abs.md", "C:/drive.md", "b/../../up2.md", "..\\win.md"), "its path leaves the archive"
        ),
        "big.md": "is larger than 4,000 bytes",
        "locked.md": "is encrypted",
        "broken.md": "can't be unpacked",
        "l\ufffdtin.md": "its name isn't UTF-8",
        "link.md": "is a symbolic link",
    }


def test_tar_archives_are_read_with_the_same_care(tmp_path: Path, tree: Path) -> None:
    """Plain and packed; links and devices aren't followed."""
    for name, mode in (("docs.tar", "w:"), ("docs.tar.gz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as opened:  # type: ignore[call-overload]
            for path, kind in (("./a.md", tarfile.REGTYPE), ("l.md", tarfile.SYMTYPE), ("h.md", tarfile.LNKTYPE),
                               ("d.md", tarfile.CHRTYPE), ("../up.md", tarfile.REGTYPE), (os.fsdecode(b"\xff.md"), tarfile.REGTYPE)):  # fmt: skip
                entry = tarfile.TarInfo(path)
                entry.type, entry.linkname, entry.size = kind, "/etc/passwd", 3 if kind == tarfile.REGTYPE else 0
                opened.addfile(entry, io.BytesIO(b"# A"))
        skipped = unpack(tmp_path / name, tree, "", 4000)
        assert names(tree) == ["a.md"]
        assert set(skipped.values()) == {"is a symbolic link", "is no file of its own", "its path leaves the archive", "its name isn't UTF-8"}  # fmt: skip


def test_bombs_and_what_is_no_archive_are_errors(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many files, too many bytes in pages or in what is between them, damaged ends: the source fails as a whole."""
    bomb = tmp_path / "bomb.zip"
    bomb.write_bytes(zipped({f"{number}.md": "0" * 100_000 for number in range(20)}))
    packed = tmp_path / "bomb.tar.gz"
    with tarfile.open(packed, "w:gz") as opened:
        entry = tarfile.TarInfo("picture.png")
        entry.size = 2_000_000
        opened.addfile(entry, io.BytesIO(bytes(entry.size)))
    (tmp_path / "page.zip").write_text("<html>Please sign in</html>")
    (tmp_path / "cut.zip").write_bytes(bomb.read_bytes()[:-200])
    (tmp_path / "cut.tar.gz").write_bytes(gzip.compress(os.urandom(5000))[:-900])
    monkeypatch.setattr(archive, "MOST_UNPACKED", 1_000_000)
    for name, told in (
        ("bomb.zip", "has more than 0 MB of pages"),
        ("bomb.tar.gz", "has more than 0 MB"),
        ("page.zip", "is no zip or tar archive, or damaged"),
        ("cut.zip", "is no zip or tar archive, or damaged"),
        ("cut.tar.gz", "is no zip or tar archive, or damaged"),
    ):
        with pytest.raises(ConversionError, match=told):
            unpack(tmp_path / name, tree, "", 200_000)
    monkeypatch.setattr(archive, "MOST_FILES", 10)
    with pytest.raises(ConversionError, match="has more than 10 files"):
        unpack(bomb, tree, "", 200_000)
