"""A git repository is a source: the files of one folder of a branch, read again by commit, without running anything of it."""

import logging
import os
from pathlib import Path

import pytest

from app.core.errors import NotPublished, SettingsError
from app.core.generation import SourceRecord
from app.core.settings import Settings
from ingestion.publish.recorded import sources_of, uses_this_machine
from ingestion.sources import Source, headers_as_json, load_sources
from plugins.vcs import git as git_source
from plugins.vcs.git import Git, read_repository
from plugins.vcs.kept_files import KeptFiles
from tests.ingestion.git_server import GitServer, Repository, basic, git_server, repository
from tests.ingestion.index import Index

URL = "https://docs.example.org/"
LONG = " ".join(f"Sentence number {n} says something about storage." for n in range(8))


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Two pages in a folder, and what isn't one."""
    made = repository(tmp_path / "served" / "docs.git")
    made.commit(
        **{
            "README.md": "# Source\n\nNo page.",
            "docs/index.md": f"# Home\n\nSee [install](guide/install.md). {LONG}",
            "docs/guide/install.md": f"# Install\n\nUnpack it. {LONG}",
            "docs/picture.png": os.urandom(300_000),
        }
    )
    return made


@pytest.fixture(autouse=True)
def _beside(index: Index, tmp_path: Path) -> None:
    """Kept files belong to the directory of the index."""
    index.values["store"] = str(tmp_path / "data")


def outcomes(report: object) -> dict[str, str]:
    return {page.url.removeprefix(URL): page.outcome for page in report.pages}  # type: ignore[attr-defined]


async def test_a_folder_is_indexed_over_http_and_read_again_by_commit(
    repo: Repository, served: GitServer, index: Index, tmp_path: Path
) -> None:
    """Pictures aren't fetched; the same commit costs one `ls-remote`; a change costs its files only."""
    source = Source(url=URL, git=f"{served.url}/docs.git", branch="main", folder="docs", ending="/")
    assert outcomes(await index.run(source)) == {"": "new", "guide/install/": "new"}
    assert f"[install]({URL}guide/install/)" in (await index.page(URL)).markdown
    kept = KeptFiles.of(source, index.settings())
    assert kept.size() < 100_000, "the picture of 300,000 bytes stays where it is"

    served.log.clear()
    assert outcomes(await index.run(source)) == {"": "unchanged", "guide/install/": "unchanged"}
    asked = ["/docs.git/info/refs?service=git-upload-pack", "/docs.git/git-upload-pack"]
    assert [path for path, _ in served.log] == asked

    repo.commit(**{"docs/guide/install.md": f"# Install\n\nBuild it. {LONG}", "docs/new.md": f"# New\n\n{LONG} New."})
    (repo.root / "docs/index.md").unlink()
    repo.commit()
    report = await index.run(source, force=True)
    assert outcomes(report) == {"": "removed", "guide/install/": "changed", "new/": "new"}
    assert {path.relative_to(kept.tree).as_posix() for path in kept.tree.rglob("*.md")} == {
        "guide/install.md",
        "new.md",
    }
    assert report.sites == (source.git,)


async def test_all_new_files_come_with_one_request(repo: Repository, served: GitServer, index: Index) -> None:
    """A thousand files don't cost a thousand requests, neither the first time nor with a new commit."""
    source = Source(url=URL, git=f"{served.url}/docs.git", folder="docs")
    kept = KeptFiles.of(source, index.settings())
    for number in (1, 2):
        repo.commit(**{f"docs/{number}-{page}.md": f"# Page {number} {page}" for page in range(20)})
        served.log.clear()
        async with kept.locked():
            await read_repository(source, {}, kept)
        assert len(list(kept.tree.rglob("*.md"))) == 2 + number * 20
        assert len(served.log) <= 8, [path for path, _ in served.log]


async def test_branches_tags_and_files_are_read_and_what_is_damaged_is_fetched_anew(
    repo: Repository, index: Index, tmp_path: Path
) -> None:
    """A tag is a branch that stays; a server that leaves nothing out sends all; a broken copy is replaced."""
    repo.git("config", "uploadpack.allowFilter", "false")
    repo.git("tag", "--annotate", "v1", "--message", "one")
    repo.commit(**{"docs/later.md": f"# Later\n\n{LONG} Later."})
    address = f"file://{repo.root}"
    tagged = Source(url=f"{URL}v1/", git=address, branch="v1", folder="docs")
    assert len((await index.run(tagged)).pages) == 2
    newest = Source(url=f"{URL}main/", git=address, folder="docs")
    assert len((await index.run(newest)).pages) == 3
    kept = KeptFiles.of(newest, index.settings())
    for pack in kept.directory.glob("git/objects/*/*"):
        pack.chmod(0o600)
        pack.write_bytes(b"broken")
    repo.commit(**{"docs/last.md": f"# Last\n\n{LONG} Last."})
    assert len((await index.run(newest)).pages) == 4
    assert {path.name for path in kept.directory.iterdir()} == {"git", "kept.json", "lock", "tree"}


async def test_what_a_repository_brings_runs_nothing_and_leads_nowhere(
    repo: Repository, index: Index, tmp_path: Path
) -> None:
    """Links, submodules, hooks, filters and pointers of LFS: told or left alone; a damaged name is told."""
    marker = tmp_path / "ran"
    (repo.root / "docs/secret.md").symlink_to("/etc/passwd")
    repo.commit(
        **{
            ".gitattributes": "* filter=evil\n",
            ".gitmodules": f'[submodule "x"]\npath = docs/x\nurl = ext::sh -c "touch {marker}"\n',
            "docs/big.md": "x" * 9000,
            "docs/large.md": "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
            os.fsdecode(b"docs/\xff.md"): "# No name",
        }
    )
    commit = repo.git("rev-parse", "HEAD")
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{commit},docs/x")
    repo.git("commit", "--quiet", "--message", "a submodule")
    report = await index.run(Source(url=URL, git=f"file://{repo.root}", folder="docs"), crawl_max_bytes=8000)
    place = f"file://{repo.root}: "
    assert {page.url.removeprefix(place).removeprefix(URL): page.reason for page in report.pages if page.reason} == {
        "secret.md": "is a symbolic link",
        "big.md": "is larger than 8,000 bytes",
        "large.md": "is a pointer of Git LFS, whose content isn't here",
        "\ufffd.md": "its name isn't UTF-8",
    }
    assert not marker.exists()


def test_an_address_can_run_no_command_and_option(tmp_path: Path, repo: Repository) -> None:
    """Other transports, options in the place of hosts, users, paths, branches and folders are refused at once."""
    for address in (
        "ext::sh -c 'touch /tmp/x'", "ext://x/y", "fd::17", "git://host/x", "-u./evil", "--upload-pack=touch x",
        "ssh://-oProxyCommand=touch/x", "ssh://-oA@host/x", "-oA@host:x", "git@host:-oA", "ssh://user:pw@host/x",
        "http://host", "https://host/x y", "https://host/x\n", "file:relative", "/etc", "https://-host/x",
        "file://host\n/x", "ssh://host/x\u0000", "HTTPS::x", "transport::https://host/x",
    ):  # fmt: skip
        with pytest.raises(ValueError, match="isn't the address of a repository"):
            Source(url=URL, git=address)
    for branch in ("-x", "--upload-pack=x", "a..b", "a b", "a:b", "+x", "x.lock", "^x", "a\n"):
        with pytest.raises(ValueError, match="isn't the name of a branch"):
            Source(url=URL, git="https://host/x", branch=branch)
    for folder in ("../x", "a/../b", "/etc", "a\nb", "a//b", "."):
        with pytest.raises(ValueError, match="isn't a folder"):
            Source(url=URL, git="https://host/x", folder=folder)
    others = ("git@host:org/x.git", "file:///srv/x", "http://[::1]/x")
    for address in ("https://host/x.git", "ssh://git@host:22/x", *others):
        assert Source(url=URL, git=address, branch="v1.2/next", folder="docs/en").git == address


async def test_git_itself_refuses_other_transports_and_settings_of_users(
    repo: Repository, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if an address got past the check: the second lock. A setting of the user that rewrites addresses is not read."""
    marker = tmp_path / "ran"
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f'[url "ext::touch {marker} #"]\ninsteadOf = file://\n[protocol "ext"]\nallow = always\n'
    )
    monkeypatch.setenv("HOME", str(home))
    good = Source(url=URL, git=f"file://{repo.root}", folder="docs")
    assert len((await index.run(good)).pages) == 2
    evil = good.model_copy(update={"git": f"ext::touch {marker}"})
    with pytest.raises(NotPublished, match="transport 'ext' not allowed"):
        await index.run(evil)
    assert not marker.exists()


def test_an_index_on_a_server_chooses_no_keys_and_files_of_this_machine() -> None:
    """What is read over HTTP is read again; a record with another transport is no source of this release."""
    for more, local in (
        ({"git": "https://host/x"}, False),
        ({"git": "file:///x"}, True),
        ({"git": "ssh://git@host/x"}, True),
        ({"git": "git@host:x"}, True),
        ({"directory": "/etc"}, True),
        ({}, False),
    ):
        assert uses_this_machine(SourceRecord({"url": URL, "collection": "", **more}, ())) is local, more
    for git in ("ext::sh -c x", "--upload-pack=x", "ssh://-oProxyCommand=x/y"):
        with pytest.raises(SettingsError, match="settings that this release doesn't know"):
            sources_of([SourceRecord({"url": URL, "collection": "", "git": git}, ())])


async def test_a_login_opens_the_repository_and_is_kept_nowhere(
    repo: Repository,
    served: GitServer,
    index: Index,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By `headers`, or name and password in the address, never from the user's .netrc; never to another host."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login x password t0ken-0123456789\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    # without the variable, libcurl would read the .netrc in the home directory of passwd
    assert not Path(Git(tmp_path, {}, int)._environment()["HOME"]).is_dir()
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("REPO_LOGIN", basic("x", "t0ken-0123456789").removeprefix("Basic "))
    served.token = basic("x", "t0ken-0123456789")
    headers = headers_as_json({"Authorization": "Basic env:REPO_LOGIN"})
    plain = Source(url=URL, git=f"{served.url}/docs.git", folder="docs")
    with pytest.raises(NotPublished, match="wants a login, or doesn't exist; if it isn't public, set `headers`"):
        await index.run(plain)
    named = plain.model_copy(update={"git": served.url.replace("//", "//x:t0ken-0123456789@") + "/docs.git"})
    for source in (plain.model_copy(update={"headers": headers}), named):
        report = await index.run(source)
        assert not report.failed_sources
        (record,) = (await index.store.live()).info.sources
        assert record.options["git"] == plain.git
        assert "aren't kept in the index" in record.unreadable
        told = [report.text, report.to_json(), caplog.text, repr(report)]
        told += [file.read_bytes().decode("latin-1") for file in (tmp_path / "data").rglob("*") if file.is_file()]
        for secret in ("t0ken-0123456789", served.token.removeprefix("Basic ")):
            assert not [text for text in told if secret in text]
    with git_server(tmp_path / "served") as other:
        served.redirect = other.url
        report = await index.run(plain.model_copy(update={"headers": headers}), Source(url=f"{URL}b/", directory=str(tmp_path / "served/docs.git/docs")))  # fmt: skip
        assert "it redirects; give the address that it redirects to" in report.failed_sources[0]
        assert not other.log


async def test_a_repository_that_fails_leaves_its_pages_as_they_are(
    repo: Repository, served: GitServer, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gone, without the branch, without a page, too large, too slow, or without git: told, and the others go on."""
    source = Source(url=URL, git=f"{served.url}/docs.git", folder="docs")
    await index.run(source)
    beside = Source(url=f"{URL}b/", directory=str(repo.root / "docs"))
    slow = tmp_path / "bin"
    slow.mkdir()
    (slow / "git").write_text("#!/bin/sh\nsleep 60 & sleep 60\n")
    (slow / "git").chmod(0o755)

    async def failure(given: Source) -> str:
        report = await index.run(given, beside)
        assert URL in {page.url for page in await (await index.store.live()).pages()}
        (told,) = report.failed_sources
        return told

    assert "git ls-remote failed (fatal: " in await failure(source.model_copy(update={"git": f"{served.url}/gone.git"}))
    assert "has no branch or tag gone" in await failure(source.model_copy(update={"branch": "gone"}))
    assert "folder gone, holds no file that can be read" in await failure(source.model_copy(update={"folder": "gone"}))
    monkeypatch.setattr(git_source, "_INTERVAL", 0.02)
    with monkeypatch.context() as less:
        less.setattr(git_source, "MOST_BYTES", 1000)
        less.setenv("PATH", f"{slow}:{os.environ['PATH']}")
        assert "has more than 0 MB" in await failure(source)
    with monkeypatch.context() as short:
        short.setattr(git_source, "SECONDS", 0.05)
        short.setenv("PATH", f"{slow}:{os.environ['PATH']}")
        assert "git ls-remote did not end within" in await failure(source)
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path))
        assert "the program git isn't installed: install it, or index the site" in await failure(source)


def test_mistakes_of_a_source_are_told(tmp_path: Path) -> None:
    """One kind of source each; keys belong to theirs."""
    file = tmp_path / "sites.toml"
    for written, told in (
        ('git = "https://h/x"\nopenapi = "https://h/x.json"', "it has both git and openapi"),
        ('branch = "x"', "branch is for git only"),
        ('folder = "x"', "folder is for git only"),
        ('git = "git@h:x"\nheaders = { A = "env:X" }', "headers are for what is read over HTTP only"),
        ('git = "ext::sh -c x"', "isn't the address of a repository"),
        ('git = "https://h/x"\nfollow = true', "follow is for a site only"),
        ('openapi = "https://h/x.json?v=1&private_token=s3cr3t"', "its address has a token, which reports"),
        ('openapi = "https://h/x.json?X-Sig-Signature=s3cr3t"', "its address has a token, which reports"),
    ):
        file.write_text(f'[[source]]\nurl = "{URL}"\n{written}\n')
        with pytest.raises(SettingsError, match=told) as error:
            load_sources(file)
        assert "s3cr3t" not in str(error.value)
    assert Settings.load(None, store="opensearch://h:1/x").store
    kept = KeptFiles.of(Source(url=URL, git="https://h/x"), Settings.load(None, store="opensearch://h:1/x"))
    assert kept.directory.parts[:2] == ("data", "sources")
