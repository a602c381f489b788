"""Raw Markdown and MDX lose what only their generator understands, and nothing else."""

import pytest

from ingestion.convert import Document, SourceText, convert
from ingestion.convert.raw import prefer_raw, with_anchors
from ingestion.errors import ConversionError

URL = "https://docs.example.org/docs/a/page.mdx"


def markdown(text: str, url: str = URL, media_type: str = "text/markdown") -> Document:
    return convert(SourceText(url, text, media_type))


def test_front_matter_gives_title_language_and_dates() -> None:
    """It leaves the text; the title becomes the h1 that raw pages lack."""
    made = markdown("---\ntitle: Storage\nlang: cs\ndate: 2025-01-02\nlast_update:\n  date: 2025-03-04\n---\n\nText.\n")
    assert made == Document(
        "Storage",
        "# Storage\n\nText.\n",
        {"front matter": "cs"},
        published="2025-01-02",
        modified="2025-03-04",
        raw=True,
    )


def test_front_matter_that_is_no_yaml_still_gives_the_title() -> None:
    """A colon in an unquoted title is the usual slip."""
    assert markdown("---\ntitle: Harbor: a registry\n---\nText.\n").title == "Harbor: a registry"


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


def test_a_quotation_is_no_banner() -> None:
    """An ordinary quotation at the top stays."""
    assert markdown("> To be.\n\n# T\n\nx\n").markdown.startswith("> To be.")


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


def test_only_mdx_is_stripped() -> None:
    """In Markdown the same text is content, but for the tags of components."""
    text = "# T\n\nimport x from 'y'\n\n<Foo> {/* a */}\n"
    assert markdown(text, "https://docs.example.org/a.md").markdown == text


def test_an_import_that_never_ends_takes_one_line() -> None:
    """A slip in a page doesn't swallow the rest of it."""
    assert "Text." in markdown("# T\n\nimport { a from 'x'\n\nText.\n").markdown


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


def test_entities_become_letters_unless_they_keep_markup_apart() -> None:
    """A reader sees a space and an arrow; `&lt;` is written so that no tag comes of it; code stays."""
    made = markdown(
        "# T\n\nA&nbsp;b &rarr; &#345; &lt;c&gt; &amp; &#124; &nosuch; `&nbsp;`\n\n```\n&rarr;\n```\n"
    ).markdown
    assert "A b → ř &lt;c&gt; &amp; &#124; &nosuch; `&nbsp;`\n\n```\n&rarr;\n```" in made


def test_brackets_that_are_no_link_stay() -> None:
    """Each was made an address, and a page five times as long."""
    assert markdown("# T\n\n" + "](" * 100).markdown == "# T\n\n" + "](" * 100 + "\n"


def test_relative_links_become_absolute_and_lose_the_suffix() -> None:
    """Readers aren't sent to raw text; code and other sites' links stay as they are."""
    made = markdown(
        '# T\n\n[a](../b.mdx#x) ![i](img.png "t") [p](c(d).md) [m](mailto:a@b.cz) [h](#here) [e](https://e.org/x.md)\n\n[v]((https://e.org/v) x\n\n'
        "`[c](d.md)`\n\n[ref]: ./other.md\n"
    )
    base = "https://docs.example.org/docs"
    assert f'[a]({base}/b#x) ![i]({base}/a/img.png "t") [p]({base}/a/c(d)) [m](mailto:a@b.cz)' in made.markdown
    assert f"[h]({base}/a/page#here) [e](https://e.org/x.md)\n\n[v]((https://e.org/v) x" in made.markdown
    assert "`[c](d.md)`" in made.markdown
    assert f"[ref]: {base}/a/other" in made.markdown


def test_plain_text_that_is_html_is_read_as_html() -> None:
    """Servers that call everything text/plain don't fool us."""
    assert (
        convert(SourceText("https://docs.example.org/a.md", "<html><main><h1>T</h1></main>", "text/plain")).markdown
        == "# T\n"
    )


@pytest.mark.parametrize("text", ["", "\ufeff \n", "---\na: b\n---\n", "***\n"])
def test_an_empty_page_is_an_error(text: str) -> None:
    """There is nothing to index, and the reason says so."""
    with pytest.raises(ConversionError, match="empty"):
        markdown(text)


def test_an_unclosed_fence_and_windows_line_ends_survive() -> None:
    """What is wrong in the source loses no line."""
    assert markdown("# T\r\n\r\n```\r\n<Foo>\r\nx").markdown == "# T\n\n```\n<Foo>\nx\n"


def test_anchors_come_from_equal_headings_of_the_html() -> None:
    """Raw Markdown gets the ids of the page's HTML where it is clear which is which."""
    html = "# T {#t}\n\n## Same {#same}\n\n## Same {#same-1}\n\n## Other\n\n## Twice {#twice}\n"
    raw = "# T\n\n## Same\n\n```\n# T\n```\n\n## `Same`\n\n## Other\n\n## Twice\n\n## Twice\n"
    expected = (
        "# T {#t}\n\n## Same {#same}\n\n```\n# T\n```\n\n## `Same` {#same-1}\n\n## Other\n\n## Twice\n\n## Twice\n"
    )
    assert with_anchors(raw, html) == expected


def test_raw_markdown_that_lost_half_of_the_words_is_not_taken() -> None:
    """Components that only the HTML shows are worth more than raw text."""
    page = Document("T", "# T\n\n" + "word " * 50)
    assert prefer_raw(page, Document("T", "# T\n\n<Reference/>\n")) is None
    richer = prefer_raw(page, Document("R", "# R\n\n" + "word " * 40))
    assert richer is not None
    assert richer.title == "R"
