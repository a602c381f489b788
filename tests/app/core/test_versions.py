"""Versions of a documentation are read from its addresses and from questions."""

import pytest

from app.core.versions import named_versions, newness, split_version


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


def test_a_question_names_versions() -> None:
    """Numbers with dots or a v are versions, sizes and addresses of the network aren't."""
    assert named_versions("How do I upgrade from 1.28 to v1.29.3, or to V2?") == ("1.28", "1.29.3", "2")
    assert named_versions("500 GB, 3 replicas, python3.11, x86_64") == ()
