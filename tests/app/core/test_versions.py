"""Versions of a documentation are read from its addresses and from questions."""

import pytest

from app.core.generation import named_versions, newness, said_versions, split_version


@pytest.mark.parametrize(
    ("url", "page", "version"),
    [
        ("https://x.org/docs/v1.2/a", "https://x.org/docs/a", "1.2"),
        ("https://x.org/docs/1.2.3/a", "https://x.org/docs/a", "1.2.3"),
        ("https://x.org/2.x/a", "https://x.org/a", "2.x"),
        ("https://x.org/en/latest/a", "https://x.org/en/a", "latest"),
        ("https://x.org/v2", "https://x.org/", "2"),
        ("https://x.org/docs/a", "https://x.org/docs/a", ""),
        ("https://x.org/blog/2024/a", "https://x.org/blog/2024/a", ""),
        ("https://10.0.0.1/a", "https://10.0.0.1/a", ""),
        ("https://x.org/latest-news/a", "https://x.org/latest-news/a", ""),
    ],
)
def test_an_address_names_its_version(url: str, page: str, version: str) -> None:
    """A part of the path that is a version, and nothing that only looks like one."""
    assert split_version(url) == (page, version)


def test_the_current_version_is_newer_than_numbers_and_these_than_unreleased_ones() -> None:
    """Numbers are compared as numbers; a version without a name in the path is the current one."""
    order = ["next", "v1.9".lstrip("v"), "1.10", "2.x", "latest"]
    assert sorted(order, key=newness) == order
    assert newness("") == newness("stable")
    assert max(order, key=lambda version: newness(version, ["1.9.4"])) == "1.9"
    assert max(order, key=lambda version: newness(version, ["2.3"])) == "2.x"


@pytest.mark.parametrize(
    ("path", "said", "versions"),
    [
        ("/docs/a", "1.2", ("1.2",)),
        ("/docs/a", " v1.2, Latest ,1.2,", ("1.2", "latest")),
        ("/docs/a", "2", ("2",)),
        ("/docs/a", "24.04-lts", ("24.04-lts",)),
        ("/latest/a", "1.2", ("1.2",)),
        ("/v1.1/a", "1.2", ()),
        ("/next/a", "current", ()),
        ("/docs/a", "{{ $version }}", ()),
        ("/docs/a", "the version of 2024", ()),
        ("/docs/a", "x" * 41, ()),
        ("/docs/a", "", ()),
    ],
)
def test_a_page_says_its_versions_where_its_address_does_not(path: str, said: str, versions: tuple[str, ...]) -> None:
    """A released or unreleased version in the address overrides what the page states."""
    assert said_versions(f"https://x.org{path}", said) == versions


def test_what_a_page_says_counts_only_where_it_is_asked_for() -> None:
    """The address without a version stays the current one, whatever number it says."""
    assert newness("", (), ["3.9.2"]) == newness("")
    assert newness("", ["3.9"], ["3.9.2"]) > newness("3.8.1", ["3.9"])
    assert newness("3.8.1", ["3.8"]) > newness("", ["3.8"], ["3.9.2"])


def test_a_question_names_versions() -> None:
    """Numbers with dots or a v are versions, sizes and addresses of the network aren't."""
    assert named_versions("How do I upgrade from 1.28 to v1.29.3, or to V2?") == ("1.28", "1.29.3", "2")
    assert named_versions("500 GB, 3 replicas, python3.11, x86_64") == ()
