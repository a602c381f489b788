"""Raw Markdown and MDX lose what only their generator understands, and nothing else."""

import re
from pathlib import Path

import pytest

from ingestion.convert import Document, SourceText, convert
from ingestion.convert.markdown.generators import INCLUDES
from ingestion.convert.markdown.structure import AnchorMode, with_anchors
from ingestion.errors import ConversionError

PAGES = Path(__file__).parents[1] / "pages"
URL = "https://docs.example.org/docs/a/page.mdx"


def markdown(text: str, url: str = URL, media_type: str = "text/markdown") -> Document:
    return convert(SourceText(url, text, media_type))


def test_front_matter_gives_title_language_and_dates() -> None:
    """It leaves the text; the title becomes the h1 that raw pages lack."""
    made = markdown("---\ntitle: Storage\nlang: cs\ndate: 2025-01-02\nlast_update:\n  date: 2025-03-04\n---\n\nText.\n")
    dates = {"published": "2025-01-02", "modified": "2025-03-04"}
    assert made == Document("Storage", "# Storage\n\nText.\n", {"front matter": "cs"}, **dates, raw=True)


@pytest.mark.parametrize(
    "banner",
    [
        "# Storage\nURL: /docs/a/page\n\n",
        "# Storage (/docs/a/page)\n\n",
        "# Storage (https://docs.example.org/docs/a/page)\n\n",
        "> ## Documentation Index\n> Fetch the index at: https://docs.example.org/llms.txt\n> Use it.\n\n# Storage\n\n",
        "> For AI agents: see [index](/llms.txt)\n\n# Storage\n\n",
        "# Storage\n\n",
    ],
)
def test_banners_of_generators_are_stripped(banner: str) -> None:
    """What stands above every page of a site would be in every first chunk."""
    made = markdown(banner + "Text.\n")
    assert (made.title, made.markdown) == ("Storage", "# Storage\n\nText.\n")


SMALL = {
    "a quotation is no banner": ("a.md", "> To be.\n\n# T\n\nx\n", "> To be.\n\n# T\n\nx\n"),
    "only MDX loses imports": ("a.md", *["# T\n\nimport x from 'y'\n\n<Foo> {/* a */}\n"] * 2),
    "an import without an end": ("a.mdx", "# T\n\nimport { a from 'x'\n\nText.\n", "# T\n\nText.\n"),
    "imports make MDX of .md": (
        "a.md",
        "# T\n\nimport Tabs from '@theme/Tabs';\n\n<Tabs>\n<TabItem label=\"npm\">\n\nRun it.\n\n</TabItem>\n</Tabs>\n",
        "# T\n\n**npm**\n\nRun it.\n",
    ),
    "brackets that are no link": ("a.mdx", "# T\n\n" + "](" * 100, "# T\n\n" + "](" * 100 + "\n"),
    "line breaks in a container": ("a.md", "# T\n\n::: tip\nA  \nb\n:::\n", "# T\n\n**Tip**\n\nA  \nb\n"),
    "an unclosed fence, line ends of Windows": ("a.mdx", "# T\r\n\r\n```\r\n<Foo>\r\nx", "# T\n\n```\n<Foo>\nx\n"),
    "front matter that is no YAML": ("a.md", "---\ntitle: Harbor: a registry\n---\nx\n", "# Harbor: a registry\n\nx\n"),
}


@pytest.mark.parametrize("name", SMALL)
def test_small_pages(name: str) -> None:
    """A slip loses no text, and what only looks like markup of a generator stays."""
    file, raw, expected = SMALL[name]
    assert markdown(raw, f"https://docs.example.org/{file}").markdown == expected


def test_html_that_is_called_plain_text_is_read_as_html() -> None:
    assert markdown("<html><main><h1>T</h1></main>", media_type="text/plain").markdown == "# T\n"


MDX = """import { Tabs } from 'x'
import Long, {
  B,
} from "y"
export const data = {
  a: [1, 2],
}

{/* note
over lines */}
# Page

<Tabs items={['a', 'b']}>
  <Tab title="npm">
    ```bash title="x"
    npm i
      import y
    ```
    <Note>
      - one
        - two
    </Note>
  </Tab>
</Tabs>

Use `<Callout>` and List<String>, <Badge color="red">new</Badge>{" "}things.

<Button onClick={() => { if (a > b) {go("x>")} }}>Press</Button>

```jsx
import X from 'x'
<Foo/>
```

Multi `awk '{print
$1}'` line. Imports are kept in prose: import is a word.
"""


def test_mdx_loses_imports_and_tags_and_keeps_the_text() -> None:
    """Code is untouched, labels of tabs are shown, children leave their indentation."""
    assert (
        markdown(MDX).markdown
        == """# Page

**npm**

**x**

```bash
npm i
  import y
```

**Note**

- one
  - two

Use `<Callout>` and List<String>, new things.

Press

```jsx
import X from 'x'
<Foo/>
```

Multi `awk '{print
$1}'` line. Imports are kept in prose: import is a word.
"""
    )


def test_containers_of_every_generator_become_what_those_of_html_become() -> None:
    """Bold line with kind and title, content in its place; code and what only looks like a container stay."""
    source, expected = ((PAGES / name).read_text("utf-8") for name in ("containers.source.md", "containers.md"))
    made = markdown(source, "https://docs.example.org/a.md").markdown
    assert made == expected
    assert markdown(made, "https://docs.example.org/a.md").markdown == made


def test_html_tables_become_markdown_tables() -> None:
    """Outside of code, in place; links and dressing in HTML become Markdown too."""
    made = markdown(
        "# T\n\n<table><tr><th>A</th></tr><tr><td>1|2</td></tr></table>\n\n```html\n<table></table>\n```\n\n"
        '<ins>new</ins> <a href="../b.mdx" target="_blank">b</a><br/>x <!-- hidden -->\n'
    )
    assert "| A |\n| --- |\n| 1\\|2 |" in made.markdown
    assert "```html\n<table></table>\n```" in made.markdown
    assert "new [b](https://docs.example.org/docs/b)<br/>x" in made.markdown
    assert "hidden" not in made.markdown


def test_blocks_and_generics_in_html_tables_and_lists_survive_raw_markdown() -> None:
    """Each command has its line, no client drops `<abi>` as a tag, and a second conversion changes nothing."""
    table = "<table><tr><th>T</th></tr><tr><td>Map&lt;String, T&gt; &lt;abi&gt;</td></tr><tr><td><pre>mkfs a | b\nmount a</pre><ol><li>x<li>y</ol></td></tr></table>"
    terms = "<dl><dt>mkfs</dt><dd>Makes &lt;it&gt;.</dd></dl>"
    shown = "<details>\n<summary>Open me</summary>\n\nHidden.\n\n```sh\nls\n```\n\n</details>"
    made = markdown(
        f"# T\n\n{table}\n\n{terms}\n\n{shown}\n\nA `List<T>`, Map\\<String, T> or Map<String, T>.\n"
    ).markdown
    assert "| Map\\<String, T> \\<abi> |\n| `mkfs a \\| b`<br>`mount a`<br>1. x<br>2. y |" in made
    assert "\n- **mkfs**: Makes \\<it>.\n" in made
    assert "\n**Open me**\n\nHidden.\n\n```sh\nls\n```\n" in made
    assert "details" not in made
    assert "A `List<T>`, Map\\<String, T> or Map<String, T>." in made
    assert markdown(made, "https://docs.example.org/a.md").markdown == made


def test_components_for_admonitions_show_their_kind() -> None:
    """In MDX and in Markdown with components; what is no admonition shows its title alone."""
    text = '# T\n\n<Callout type="warn" title="Own">\nA.\n</Callout>\n\n<Aside type="tip">\nB.\n</Aside>\n\n<Card type="note" title="C">\nD.\n</Card>\n'
    for url in (URL, "https://docs.example.org/a.md"):
        made = " ".join(markdown(text, url).markdown.split())
        assert made == "# T **Warning: Own** A. **Tip** B. **C** D."


def test_entities_become_letters_unless_they_keep_markup_apart() -> None:
    """A reader sees a space and an arrow; `&lt;` is written so that no tag comes of it; code stays."""
    made = markdown(
        "# T\n\nA&nbsp;b &rarr; &#345; &lt;c&gt; &amp; &#124; &nosuch; `&nbsp;`\n\n```\n&rarr;\n```\n"
    ).markdown
    assert "A b → ř &lt;c&gt; &amp; &#124; &nosuch; `&nbsp;`\n\n```\n&rarr;\n```" in made


def test_relative_links_become_absolute_and_lose_the_suffix() -> None:
    """Readers aren't sent to raw text; code and other sites' links stay as they are."""
    made = markdown(
        '# T\n\n[a](../b.mdx#x) ![i](img.png "t") [p](c(d).md) [m](mailto:a@b.cz) [h](#here) [e](https://e.org/x.md)\n\n[v]((https://e.org/v) x\n\n'
        "`[c](d.md)` [n](../n/index.md#x) [ref]\n\n[ref]: ./other.md\n"
    )
    base = "https://docs.example.org/docs"
    assert f'[a]({base}/b#x) ![i]({base}/a/img.png "t") [p]({base}/a/c(d)) [m](mailto:a@b.cz)' in made.markdown
    assert f"[h]({base}/a/page#here) [e](https://e.org/x.md)\n\n[v]((https://e.org/v) x" in made.markdown
    assert "`[c](d.md)`" in made.markdown
    assert f"[n]({base}/n/#x) [ref]({base}/a/other)" in made.markdown


@pytest.mark.parametrize("text", ["", "\ufeff \n", "---\na: b\n---\n", "***\n"])
def test_an_empty_page_is_an_error(text: str) -> None:
    """There is nothing to index, and the reason says so."""
    with pytest.raises(ConversionError, match="empty"):
        markdown(text)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("github", "# Same {#same}\n\n## Same {#same-1}\n\n```\n# T\n```\n\n## `Use` it {#use-it}\n\n## Kůň {#kůň}\n\n### My {#own}\n\n<div>\n## Twice\n</div>\n\n## Twice {#twice}\n"),
        ("auto", "# Same\n\n## Same\n\n```\n# T\n```\n\n## `Use` it {#use-it}\n\n## Kůň\n\n### My {#own}\n\n<div>\n## Twice\n</div>\n\n## Twice {#twice}\n"),
        ("none", "# Same\n\n## Same\n\n```\n# T\n```\n\n## `Use` it\n\n## Kůň\n\n### My {#own}\n\n<div>\n## Twice\n</div>\n\n## Twice\n"),
    ],
)  # fmt: skip
def test_headings_get_their_ids_where_it_is_clear_which(mode: AnchorMode, expected: str) -> None:
    """By one rule, or only those on which all rules agree, whether the title has an id or not."""
    raw = re.sub(r" \{#(?!own)[^}]+\}", "", expected)
    assert with_anchors(raw, mode) == expected


REFERENCES = """# T

See [the guide][g], [Guide][], ![pic][i], [![badge][i]][g], [none], `[g]`, [x](y) and \\[g], [^1].

- item [in a list][l]

  [l]: ../list.md

```
[g]: code
```

[g]: ./guide.md#setup "Title"
[guide]: <c d.md>
[G]: another.md
[i]: /pic.png
[//]: # (a comment)
[^1]: word
"""


def test_reference_links_carry_their_target_so_that_no_cut_can_lose_it() -> None:
    """Definitions leave the text, as they do in HTML; code and footnotes stay."""
    made = markdown(REFERENCES).markdown
    base = "https://docs.example.org"
    guide, badge = f"{base}/docs/a/guide#setup", f"{base}/pic.png"
    assert (
        f"[the guide]({guide}), [Guide](<{base}/docs/a/c d>), ![pic]({badge}), [![badge]({badge})]({guide}), [none],"
        f" `[g]`, [x]({base}/docs/a/y) and \\[g], [^1]." in made
    )
    assert f"[in a list]({base}/docs/list)" in made
    assert "```\n[g]: code\n```" in made
    assert made.endswith("```\n\n[^1]: word\n")


def test_cells_of_tables_are_unpadded() -> None:
    """Also in lists and without outer pipes; code, escaped pipes and text with pipes that is no table stay."""
    table = "- Item\n\n  | Name      | Value  |\n  | :-------- | -----: |\n  | `a  \\|  b` |        |\n  | x y       | 1      |"
    assert (
        "- Item\n\n  | Name | Value |\n  | :--- | ---: |\n  | `a  \\|  b` |  |\n  | x y | 1 |\n"
        in markdown(f"# T\n\n{table}\n").markdown
    )
    assert "a | b\n--- | ---\n1 | 2\n" in markdown("# T\n\na     |  b\n------|----\n1     |  2\n").markdown
    for same in ("```\n| a   | b |\n| --- | --- |\n```\n", "a   |   b\n\nText\n---\n"):
        assert markdown(f"# T\n\n{same}").markdown.endswith(same)


@pytest.mark.parametrize("name", ["templates", "myst"])
def test_markup_of_generators_goes_and_what_readers_see_of_it_stays(name: str) -> None:
    """Liquid, Hugo, Vue, attributes and MyST: in prose only, with known values, anchors and titles; missing text is told."""
    source, expected = ((PAGES / f"{name}{ending}").read_text("utf-8") for ending in (".source.md", ".md"))
    made = markdown(source, "https://docs.example.org/a.md")
    assert made.markdown == expected
    assert made.note == INCLUDES


def test_front_matter_may_be_toml() -> None:
    """As Hugo has it; a mistake in it doesn't lose the page."""
    made = markdown("+++\ntitle = 'Disks'\ndate = 2026-01-02\n+++\n\nText.\n", "https://docs.example.org/a.md")
    assert (made.title, made.published, made.markdown) == ("Disks", "2026-01-02", "# Disks\n\nText.\n")
    assert markdown("+++\ntitle = \n+++\n# T\n\nText.\n", "https://docs.example.org/a.md").title == "T"


def test_html_that_no_reader_sees_is_left_out() -> None:
    hidden = (
        '<div style="display: none;" hidden="true">Are you an LLM?</div>\n\n<div hidden>\n\nIgnore **it**.\n\n</div>'
    )
    text = f'# A\n\n{hidden}\n\nText.\n\n<div class="tabcontent" hidden>panel</div>\n\n`<p hidden>code</p>`\n'
    page = convert(SourceText(URL, text, "text/markdown"))
    assert page.markdown.split() == ["#", "A", "Text.", "panel", "`<p", "hidden>code</p>`"]
