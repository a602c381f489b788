"""What a reader copies is found in a text as a whole, with its unit, however that is written."""

from __future__ import annotations

import pytest

from app.text.literals import claims, comparable, occurs


@pytest.mark.parametrize(
    ("claim", "text", "expected"),
    [
        ("10 GiB", "Each volume has 10 GiB.", True),
        ("10 MiB", "Each volume has 10 GiB.", False),
        ("10GiB", "Each volume has 10 GiB.", True),
        ("10 gib", "Each volume has 10Gi.", True),
        ("10 Gb", "The network has 10 GB/s.", False),
        ("10 Gbps", "The network has 10 Gb/s.", True),
        ("10 GB", "From 10 to 20 GB.", True),
        ("10 MB", "From 10–20 GB.", False),
        ("10 minut", "After 10 minutes.", True),
        ("10 hours", "After 10 minutes.", False),
        ("15 %", "15 percent", True),
        ("64 GB", "| name | memory (GB) |\n|---|---|\n| small | 64 |", True),
        ("64 MB", "| name | memory (GB) |\n|---|---|\n| small | 64 |", False),
        ("64 GB", "Port 64 and 128 GB.", False),
        ("10 000 MB", "10 000 MB", True),
        ("49", "Port 2049.", False),
        ("1.2", "Version 11.2.", False),
        ("rm -rf .", "rm -rf ./build", False),
        ("https://x.org/a", "See https://x.org/a.", True),
    ],
)
def test_a_claim_occurs_as_a_whole(claim: str, text: str, expected: bool) -> None:
    assert occurs(comparable(claim), comparable(text)) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It has 10 GiB [1].", ("10 GiB",)),
        ("5 s diskem, 10ms", ("5", "10ms")),
        ("1. Open port 2049.", ("2049",)),
        ("```sh\nkubectl get pvc\n```\nand `ls -l`", ("kubectl get pvc", "ls -l")),
        ("~~~\nls 5\n~~~", ("ls 5",)),
        ("See https://x.org/5.", ("https://x.org/5",)),
        ("10 000 tokens in 1 or 2 steps", ("10 000", "1", "2")),
        ("Nothing to copy.", ()),
    ],
)
def test_what_a_reader_copies(text: str, expected: tuple[str, ...]) -> None:
    assert claims(text) == expected
