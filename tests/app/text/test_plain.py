"""What a model reads of Markdown: the words, without what it may not repeat or can't use."""

from __future__ import annotations

from app.text.blocks import plain

DATA = "data:image/png;base64," + "iVBORw0KGgo" * 200

READ = {
    "# Title [of *it*](https://a.org/b) {#title-of}": "# Title of *it*",
    "## [Options](/x) [#options]": "## Options",
    'See [the guide](https://a.org/x_(y) "Guide") and [more](<a b>).': "See the guide and more.",
    "[![Build](https://a.org/badge.svg)](https://a.org/ci) ![](x.png)": "Build ",
    "Ask [me](mailto: me@a.org), see [it](https://a.o\nrg/x) [or](not a link).": "Ask me, see it [or](not a link).",
    "[VNC]((https://a.org/x) is [set]((https://a.org/y)).": "VNC is set.",
    "Ask [help@a.org](mailto:help@a.org), see [https://a.org/x](https://a.org/x) or <https://a.org>.": (
        "Ask help@a.org, see https://a.org/x or <https://a.org>."
    ),
    'Use [`a.b()`](/api#ab), `[x](y)` and `<Tag a="b">`.': 'Use `a.b()`, `[x](y)` and `<Tag a="b">`.',
    '<PromoLink href="/x" :if="a > b">Go</PromoLink> now<sup class="vt-badge ts" /> <MyTag/>': "Go now ",
    "Call it <name> or <YOUR_NAME> where a < b and c > d.": "Call it <name> or <YOUR_NAME> where a < b and c > d.",
    "10<sup>6</sup> H<sub>2</sub>O, <kbd>Ctrl</kbd>": "10^6 H_2O, Ctrl",
    "| small<br>large | 1 GB<br/>2 GB. <br>3 |": "| small; large | 1 GB; 2 GB. 3 |",
    "<details>\n<summary>More</summary>\n\nText\n</details>": "\nMore\n\nText\n",
    f"A ![dot]({DATA}) and {DATA} here": "A dot and  here",
    f"Open https://play.org/#{'eNp9kU1' * 100} now": f"Open https://play.org/#{('eNp9kU1' * 100)[:40]}… now",
    'Text [one][ref] and [1], arr[2].\n\n[ref]: https://a.org "T"\n': "Text one and [1], arr[2].\n\n",
    '```js{3-10} [file.js]\na [b](c) <D e="f">\n```': '```js\na [b](c) <D e="f">\n```',
    "``` {.python .numberLines}\nx\n```": "```python\nx\n```",
    '- a\n\n  ~~~yaml title="a.yml"\n  x: 1\n  ~~~\n': "- a\n\n  ~~~yaml\n  x: 1\n  ~~~\n",
}  # fmt: skip


def test_the_words_stay_and_addresses_tags_anchors_and_encoded_data_go() -> None:
    assert {text: plain(text) for text in READ} == READ


def test_what_is_plain_stays_as_it_is() -> None:
    assert {text: plain(text) for text in READ.values()} == {text: text for text in READ.values()}
