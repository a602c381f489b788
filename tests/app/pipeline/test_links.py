"""Invented addresses leave the answer, real ones stay, and other text isn't held up."""

import random

import pytest

from app.pipeline.links import LinkFilter

PASSAGES = [
    "See https://docs.example.cz/storage/ and [S3](https://s3.cloud.cz/bucket).",
    "https://docs.example.cz/a#limits",
]


def run(text: str, sizes: list[int]) -> str:
    links, out, at = LinkFilter(PASSAGES), "", 0
    for size in sizes:
        out += links.feed(text[at : at + size])
        at += size
    return out + links.feed(text[at:]) + links.rest()


CASES = [
    ("Read https://docs.example.cz/storage. Then go.", "Read https://docs.example.cz/storage. Then go."),
    (
        "Read [storage](https://docs.example.cz/storage/#quota) now",
        "Read [storage](https://docs.example.cz/storage/#quota) now",
    ),
    ("Read [this](https://invented.io/x) now", "Read this now"),
    ("Go to https://invented.io/x/y?z=1, please", "Go to , please"),
    ("An <https://invented.io> and <https://s3.cloud.cz/bucket>", "An  and <https://s3.cloud.cz/bucket>"),
    ("![pic](https://invented.io/p.png) and a[1] b[x](y)", "pic and a[1] b[x](y)"),
    (
        "curl http://localhost:8080/health https://example.com/a",
        "curl http://localhost:8080/health https://example.com/a",
    ),
    ("HTTPS://INVENTED.IO is out", " is out"),
    ("https://docs.example.cz.evil.io/storage is out", " is out"),
    ("https://example.com.evil.io is out", " is out"),
    ("a < b and x <y> h ht http and https: that's all [", "a < b and x <y> h ht http and https: that's all ["),
    ("(https://invented.io)", "()"),
    ("[open link without end](https://inv", "open link without end]("),
]


@pytest.mark.parametrize(("text", "left"), CASES[:-1])
@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_only_addresses_of_the_passages_stay(text: str, left: str, size: int) -> None:
    """However the stream is cut, the same text comes out."""
    assert run(text, [size] * (len(text) // size + 1)) == left


def test_random_cuts_change_nothing() -> None:
    """A hundred ways to cut one long answer give one result."""
    text = " ".join(text for text, _ in CASES)
    whole = run(text, [])
    random.seed(1)
    for _ in range(100):
        assert run(text, [random.randint(1, 9) for _ in range(400)]) == whole
    assert "inv" not in whole.lower().replace("invented.io", "!")


def test_text_without_addresses_is_not_delayed() -> None:
    """Each piece goes out as it comes."""
    links = LinkFilter(PASSAGES)
    pieces = ["The ", "limit ", "is 4 GB", ", see", " `a[b]`", ". The end"]
    assert [links.feed(piece) for piece in pieces] == pieces
