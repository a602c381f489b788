"""What only a site's generator understands goes from raw Markdown; what readers see of it stays."""

from __future__ import annotations

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
    'Emit <span class="options-api">`nameOfA`</span><span class="composition-api">`nameOfB`</span> now': (
        "Emit `nameOfA` (options api) / `nameOfB` (composition api) now"
    ),
    '<div class="a-api">\n\n## One {#one}\n\nA\n</div>\n<div class="b-api">\nB\n</div><div class="b-api">\nC\n</div>': (
        "\n## One {#one}\n\n**a api**\n\nA\n</div>\n\n\n**b api**\n\nB\n</div>\n\n**b api**\n\nC\n</div>"
    ),
    '<div class="logo-wrapper">\nA\n</div>\n<div class="banner-wrapper">\nB\n</div>': (
        '<div class="logo-wrapper">\nA\n</div>\n<div class="banner-wrapper">\nB\n</div>'
    ),
    "![dot](data:image/png;base64,AAAA) [Try](https://play.org/#" + "A" * 1200 + ") [x](/y)": "dot Try [x](/y)",
}  # fmt: skip


def test_labels_stay_and_what_they_were_written_with_goes() -> None:
    assert {text: clean_components(text) for text in CLEANED} == CLEANED


def test_raw_markdown_is_cleaned_and_stays_so() -> None:
    page = "# T\n\n" + "\n\n".join(CLEANED)
    made = convert(SourceText("https://a.org/x.md", page, "text/markdown")).markdown
    assert "options api" in made
    assert not any(sign in made for sign in ("vt-badge", "PromoLink", "js{", "linenums", "data:image", "AAAA"))
    assert convert(SourceText("https://a.org/x.md", made, "text/markdown")).markdown == made


def test_variants_of_a_built_page_are_told_apart() -> None:
    blocks = '<div class="options-api"><h2 id="o">One</h2><p>A.</p></div> <div class="composition-api">Some <b>text</b></div>'
    words = '<p>Use <span class="options-api"><code>a</code></span><span class="composition-api"><code>b</code></span> now.</p>'
    layout = '<div class="left-column">L</div><div class="right-column">R</div><pre><span class="a-k">x</span><span class="b-k">y</span></pre>'
    page = f"<main><h1>T</h1>{blocks}{words}{blocks}{words}{layout}</main>"
    made = convert(SourceText("https://a.org/x", page)).markdown
    assert "Use `a` (options api) / `b` (composition api) now." in made
    assert "## One {#o}\n\n**options api**\n\nA." in made
    assert "**composition api**\n\nSome **text**" in made
    assert "column" not in made
    assert "xy" in made
