"""Sources come from addresses and TOML files, and a mistake in one is told with file, source and key."""

from pathlib import Path

import pytest

from app.core.errors import SettingsError
from app.core.settings import Settings
from ingestion.sources import LOGIN, Source, as_sources, configured, load_sources

EXAMPLE = Path(__file__).parents[2] / "deploy/sites.example.toml"
SITEMAP = "https://docs.example.org/sitemap.xml"


def written(folder: Path, content: str) -> Path:
    file = folder / "sites.toml"
    file.write_text(content, "utf-8")
    return file


@pytest.mark.plugins
def test_the_example_can_be_used(tmp_path: Path) -> None:
    """Every source in it is read, those that are commented out as well; its keys are all that there are."""
    sources = load_sources(EXAMPLE)
    assert [source.url for source in sources][:2] == [SITEMAP, "https://handbook.example.org/"]
    whole = EXAMPLE.read_text("utf-8").replace("\n#[[", "\n[[")
    of_readers = ("reader", "reader_args", "load_args", "link")
    for key in ("directory", "git", "branch", "folder", "url", "ending", *of_readers, *LOGIN):
        whole = whole.replace(f"\n#{key} =", f"\n{key} =")
    (tmp_path / "handbook/docs").mkdir(parents=True)
    (tmp_path / "deploy").mkdir()
    last, _, reader = load_sources(written(tmp_path / "deploy", whole))[-3:]
    assert last.directory == str(tmp_path / "handbook/docs")
    assert reader.arguments[0] == {"input_dir": "files", "recursive": True}
    used = {key for key in Source.model_fields if f"\n{key} = " in whole}
    assert used == set(Source.model_fields)


def test_a_source_without_more_is_as_the_settings_say() -> None:
    """A plain address has defaults for all else, and changes no setting."""
    (source,) = as_sources([SITEMAP])
    settings = Settings.load(None, collection="main", default_language="cs")
    assert source.within(settings) == settings
    assert source.reading == ""
    own = Source(url=SITEMAP, collection="c", language="en")
    assert (own.within(settings).tuning.collection, own.within(settings).default_language) == ("c", "en")


@pytest.mark.parametrize(
    "change",
    [{"content_selector": "main"}, {"drop_selectors": ("p",)}, {"anchors": "none"}, {"language": "cs"}],
)  # fmt: skip
def test_what_changes_a_pages_text_is_remembered(change: dict[str, str]) -> None:
    """A source that is read otherwise says so, one that is only asked otherwise doesn't."""
    assert Source(url=SITEMAP, **change).reading != Source(url=SITEMAP).reading
    assert Source(url=SITEMAP, delay=2, exclude="/x").reading == ""


@pytest.mark.parametrize(
    ("include", "exclude", "path", "reason"),
    [
        ((), (), "/a", ""),
        (("/en/*",), (), "/en/a/b", ""),
        (("/en/*", "/cs/*"), (), "/de/a", "matches no include pattern (/en/*, /cs/*)"),
        ((), ("*/print/*",), "/en/print/a", "excluded by */print/*"),
        (("/en/*",), ("/en/old*",), "/en/old-page", "excluded by /en/old*"),
        (("https://docs.example.org/en/*",), (), "/en/a", ""),
        ((), ("/š*",), "/%C5%A1kola", "excluded by /š*"),
        ((), ("/v1/*",), "/v1", ""),
        (("/",), (), "", ""),
    ],
)
def test_patterns(include: tuple[str, ...], exclude: tuple[str, ...], path: str, reason: str) -> None:
    """Exclude wins over include; a star stands for anything, slashes too; the whole address is compared where one is given."""
    source = Source(url=SITEMAP, include=include, exclude=exclude)
    assert source.left_out(f"https://docs.example.org{path}") == reason


def test_files_and_addresses_mix(tmp_path: Path) -> None:
    """The command line takes both; the settings name sites and a file; the same source twice is one."""
    file = written(tmp_path, f'[[source]]\nurl = "{SITEMAP}"\ncollection = "x"\n')
    assert [s.collection for s in as_sources([SITEMAP, str(file), SITEMAP])] == ["", "x"]
    settings = Settings.load(None, sites=SITEMAP, sources=str(file))
    assert as_sources(configured(settings)) == as_sources([SITEMAP, str(file)])
    assert configured(Settings.load(None)) == ()


FILES = {
    "x = [": "isn't valid TOML",
    "": "names no source",
    "source = 1": "names no source",
    '[[sources]]\nurl = "https://x.example"': r"unknown key 'sources'\. Did you mean \[\[source\]\]\?",
    '[[source]]\ncollection = "x"': r"source 1 \(no url\): url is missing",
    f'[[source]]\nurl = "{SITEMAP}"\n[[source]]\nurl = "docs.example.org"': "source 2 .*isn't a web address",
}
KEYS = {
    "parallel = 99": "parallel: 99: it must be a whole number from 1 to 64",
    "parallel = 0": "parallel: 0: ",
    'delay = "x"': "delay: 'x': it must be a number, at least 0",
    "include = [1]": "include.0: 1: it must be a text",
    'ending = "x"': "ending: 'x': it must be empty, / or .html",
    'ending = "/"': "ending is for a directory or git only",
    'exlude = "x"': r"unknown key exlude\. Did you mean exclude\? Known are url, ",
    'anchors = "x"': "anchors: 'x': is not one of auto, github, mkdocs, none",
    'content_selector = "div["': r"content_selector: 'div\[': isn't a CSS selector",
    'drop_selectors = [">"]': "drop_selectors.0: '>': isn't a CSS selector",
    'hosts = "https://x/"': "hosts.0: 'https://x/': isn't a host",
    'language = "Czech"': "language: 'Czech': isn't a language code",
    'directory = "nowhere"': r"directory: .*/nowhere is no directory",
}


@pytest.mark.parametrize(
    ("content", "message"),
    [*FILES.items(), *((f'[[source]]\nurl = "{SITEMAP}"\n{key}', message) for key, message in KEYS.items())],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, content: str, message: str) -> None:
    """File, source, key, value and what is known instead: enough to repair it."""
    file = written(tmp_path, content)
    with pytest.raises(SettingsError, match=message) as raised:
        load_sources(file)
    assert str(file) in str(raised.value)


def test_a_file_that_is_not_there_and_an_address_that_is_none() -> None:
    """Both are named in the message."""
    with pytest.raises(SettingsError, match=r"nowhere\.toml can't be read: No such file"):
        as_sources(["nowhere.toml"])
    with pytest.raises(SettingsError, match=r"'docs\.example\.org' isn't a web address.*\.toml"):
        as_sources(["docs.example.org"])
