"""What only a site's generator understands goes from raw Markdown; what readers see of it stays."""

from ingestion.convert import convert
from ingestion.convert.document import SourceText
from ingestion.convert.markdown.tags import clean_components

CLEANED = {
    '## defineModel() <sup class="vt-badge" data-text="3.4+" /> {#x}': "## defineModel() {#x}",
    'New <sup class="vt-badge" data-text="3.5+"></sup> in it': "New (3.5+) in it",
    '## Limits <sup class="badge">new</sup>\n\nA <span class="badge-x">beta</span>.': "## Limits (new)\n\nA (beta).",
    '10<sup>6</sup> <Name> `<Tag a="b"/>`': '10⁶ <Name> `<Tag a="b"/>`',
    "H<sub>2</sub>O, e<sup>-</sup>, m<SUP> -12 </SUP>, x<sup>th</sup> `2<sup>32</sup>`": (
        "H₂O, e⁻, m⁻¹², x<sup>th</sup> `2<sup>32</sup>`"
    ),
    '<PromoLink href="/x" :if="a > b">Go</PromoLink><Badge type="tip" text="^3.0" />': "Go(^3.0)",
    "```js{3-10} [file.js]\na\n```\n": "**file.js**\n\n```js\na\n```\n",
    '- x\n\n  ```yaml title="a.yml" linenums="1"\n  a\n  ```\n': "- x\n\n  **a.yml**\n\n  ```yaml\n  a\n  ```\n",
    "> ```sh [npm]\n> a\n> ```\n": "> **npm**\n>\n> ```sh\n> a\n> ```\n",
    "```python\nx\n```\n": "```python\nx\n```\n",
    "![dot](data:image/png;base64,AAAA) [Try](https://play.org/#" + "A" * 1200 + ") [x](/y)": "dot Try [x](/y)",
}  # fmt: skip


def test_labels_stay_and_what_they_were_written_with_goes() -> None:
    assert {text: clean_components(text) for text in CLEANED} == CLEANED


def test_raw_markdown_is_cleaned_and_stays_so() -> None:
    page = "# T\n\n" + "\n\n".join(CLEANED)
    made = convert(SourceText("https://a.org/x.md", page, "text/markdown")).markdown
    assert "New (3.5+) in it" in made
    assert not any(sign in made for sign in ("vt-badge", "PromoLink", "js{", "linenums", "data:image", "AAAA"))
    assert convert(SourceText("https://a.org/x.md", made, "text/markdown")).markdown == made
