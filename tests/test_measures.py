"""The measures of `bench` tell what is wrong from what is right: figures of theirs decide about changes."""

from bench.prompts import Prompt, Source, cuts, noise, repeated
from eval.questions.cases import Case

PAGE = """# Limits {#limits}

A bucket takes 250000 objects. Beyond that, [error 507](/errors) is returned, but you want another one.

- Objects are counted. Bytes are too.
- Versions count as well.

```sh
lumora quota set photos
lumora quota show photos
```

| key | value |
|---|---|
| objects | 250000 |
| bytes | none |

> Quotas are checked late. Writes may pass them.

The end of the page.
"""
ENDS = {
    "A bucket takes 250000 objects.": "",
    "A bucket takes 250000 objects. Beyond that, error 507 is": "sentence",
    "is returned, but you want another one.": "",
    "Objects are counted.": "list item",
    "Objects are counted. Bytes are too.": "",
    "lumora quota set photos": "fence",
    "lumora quota set photos\nlumora quota show photos\n```": "",
    "| objects | 250000 |": "table",
    "| objects | 250000 |\n| bytes | none |": "",
    "Quotas are checked late.": "admonition",
    "The end of the page.": "",
}
ENCODED = "%7B%22rows%22%3A%5B" + "%7B%22id%22%3A17%7D%2C" * 60
PICTURE = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 50
NOISY = f"""# Title

<PromoLink title="Cloud" href="https://promo.example.org/?utm_source=docs">Try it</PromoLink>

## Use <sup class="badge">new</sup>

```bash{{1,3-10}}
ls
```

`<Code>` and [a](https://a.example)

```sh [Linux]
lumora login --device
```

```sh [Windows]
lumora.exe login
```

![plan]({PICTURE}) [Playground](https://play.example.org/#code={ENCODED})
"""


def test_a_border_within_a_sentence_item_fence_table_or_admonition_is_a_cut() -> None:
    source = Source("".join(PAGE))
    for passage, cut in ENDS.items():
        words = passage.replace("|", " ").replace("`", " ").replace(",", "").replace(".", "").casefold().split()
        assert source.cut_at_end(words[-4:]) == cut, passage
    assert source.cut_at_start(["objects", "are", "counted"]) == ""
    assert source.cut_at_start(["bytes", "are", "too"]) == "list item"
    assert source.cut_at_start(["beyond", "that"]) == ""
    assert source.cut_at_start(["lumora", "quota", "show"]) == "fence"
    assert source.cut_at_start(["never", "said"]) is None


def test_a_marked_gap_has_borders_of_its_own() -> None:
    case = Case("1", "en", "How many?", "limits")
    passage = "Limits\nA bucket takes 250000 objects.\n\n…\n\nThe end of the page."
    assert cuts(Prompt(case, (passage,), (PAGE,))) == {"": 4}
    assert cuts(Prompt(case, (passage.replace("objects.", ""),), (PAGE,)))["sentence"] == 1


def test_repeated_text_and_noise_are_counted() -> None:
    long = "One sentence that is long enough to be noticed wherever it stands a second time in a prompt."
    assert repeated([f"A\n{long}", f"B\nBefore. {long}", "C\nNothing."]) == 1
    found = noise([NOISY])
    assert {name: found[name] for name in ("component tag", "HTML tag", "link address", "image", "fence attributes")} == {
        "component tag": 2, "HTML tag": 2, "link address": 2, "image": 1, "fence attributes": 3,
    }  # fmt: skip
    assert found["encoded data"] >= 2
    assert noise([ENCODED])["encoded data"]
    assert not noise(["Plain text with `<b>` in code.\n\n```sh\nls\n```"]).total()
