"""HTML of the usual generators becomes Markdown with code, anchors, tabs and links intact."""

from pathlib import Path

import pytest

from ingestion.convert import Document, SourceText, convert
from ingestion.convert.document import decode
from ingestion.errors import ConversionError

PAGES = Path(__file__).parents[1] / "pages"
URL = "https://docs.example.org/guide/storage/"


def html(body: str, head: str = "") -> Document:
    return convert(SourceText(URL, f"<html><head>{head}</head><body>{body}</body></html>"))


@pytest.mark.parametrize("name", sorted(page.stem for page in PAGES.glob("*.html")))
def test_a_page_of_each_generator(name: str) -> None:
    """The Markdown is the one beside the page, read by a person: content whole, theme gone.

    `*_blocks`, `*_text`, `*_tabs` and the rest hold the generator's own forms of definitions, admonitions, tabs and cells.
    """
    made = convert(SourceText(URL, (PAGES / f"{name}.html").read_text("utf-8")))
    assert made.markdown == (PAGES / f"{name}.md").read_text("utf-8")


def test_what_the_head_says_is_kept() -> None:
    """Canonical address, counterparts on the same host, date, language and title."""
    made = convert(SourceText(URL, (PAGES / "material.html").read_text("utf-8")))
    assert made.title == "Storage"
    assert made.languages == {"html lang": "en"}
    assert made.canonical == URL
    assert made.alternates == {"cs": "https://docs.example.org/cs/guide/storage/"}
    assert made.modified == "2025-10-05T08:00:00+02:00"


def test_a_title_that_is_only_the_name_of_the_site_gives_way_to_the_words_of_the_address() -> None:
    site = '<meta property="og:site_name" content="Lumora"><title>Lumora</title>'
    assert html("<main><h1>Lumora</h1><p>Text.</p></main>", site).title == "Guide > Storage"
    assert html("<main><h1>Volumes</h1><p>Text.</p></main>", site).title == "Volumes"
    home = SourceText(
        "https://docs.example.org/en/", f"<html><head>{site}</head><body><main><p>Text.</p></main></body></html>"
    )
    assert convert(home).title == "Lumora"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "empty"),
        ("<main></main>", "it is empty"),
        ("<div id=root></div>", "it is empty"),
        ("<div id=app></div><script src=app.js></script>", "made by JavaScript"),
        ("<div id=app>Loading...</div><script src=x></script>", "made by JavaScript"),
        ("<div id=__next></div><script>x</script>", "made by JavaScript"),
        ("<p>You need to enable JavaScript to run this app.</p><script src=x></script>", "made by JavaScript"),
        ("<noscript>Please enable JavaScript.</noscript><div id=root></div><script>x()</script>", "made by JavaScript"),
        ("<main></main><script src=x></script>", "made by JavaScript"),
    ],
)
def test_pages_without_text_say_why(body: str, reason: str) -> None:
    """An empty page and one that only a browser can show are told apart."""
    with pytest.raises(ConversionError, match=reason):
        html(body)


@pytest.mark.parametrize("text", ["", "<", "<!-- -->", "\x00<html>", "<?xml version='1.0'?>", "<html" * 50])
def test_broken_html_is_an_error_of_ours(text: str) -> None:
    """Nothing of lxml comes out."""
    with pytest.raises(ConversionError):
        convert(SourceText(URL, text))


def test_deep_and_odd_html_does_no_harm() -> None:
    """Thousands of nested elements, bad links and control characters still give the text."""
    made = html(
        "<div>" * 2000 + "</div>" * 2000 + '<p>a\x0b<a href="http://[::1">b</a><a href="javascript:x()">c</a></p>'
    )
    assert "c" in made.markdown
    assert "javascript" not in made.markdown


SMALL = {
    "<header>Site</header><nav>Menu</nav><header><h1>T</h1></header><p>Text.</p><footer>Imprint</footer>": "# T\n\nText.\n",
    '<main><pre data-language="js"><code><div class="ec-line">a</div><div class="ec-line">b</div></code><button>Copy</button>'
    "</pre></main>": "```js\na\nb\n```\n",
    "<main><div class=admonition><p class=admonition-title>A</p><p>one</p></div>"
    "<div class=admonition><p class=admonition-title>B</p><p>two</p></div></main>": "**A**\n\none\n\n**B**\n\ntwo\n",
}


def test_small_pages() -> None:
    """A theme goes without a main element, too; lines that are elements stay lines; neighbouring blocks keep apart; the
    title of the window is the heading of a page without one.
    """
    assert html("<main><p>Text.</p></main>", "<title>Name - Site</title>").markdown == "# Name - Site\n\nText.\n"
    assert {body: html(body).markdown for body in SMALL} == SMALL


def test_code_keeps_its_empty_lines_and_the_spaces_in_them() -> None:
    """Elsewhere both are left-overs of the theme."""
    code = "a:\n    \n\n\n\n  b: 1   \nc"
    made = html(f"<main><pre><code>{code}</code></pre><p>x</p>\n\n<div>\n</div>\n\n<p>y</p></main>")
    assert made.markdown == f"```\n{code}\n```\n\nx\n\ny\n"
    made = html("<main><figure><figcaption>a.md</figcaption><pre><code>x\n  ![A](b)</code></pre></figure></main>")
    assert made.markdown == "*a.md*\n\n```\nx\n  ![A](b)\n```\n"


NESTED = (
    "<div><ul role=tablist><li role=tab>A</li><li role=tab>B</li></ul><div role=tabpanel><div><ul role=tablist><li role=tab>x</li>"
    "<li role=tab>y</li></ul><div role=tabpanel>1</div><div role=tabpanel>2</div></div></div><div role=tabpanel>3</div></div>"
)
BOOTSTRAP = (
    "<ul class='nav nav-tabs'><li><a data-toggle=tab href='#a'>A</a></li><li><a data-toggle=tab href='#b'>B</a></li></ul>"
    "<div class=tab-content><div class=tab-pane id=a>1</div><div class=tab-pane id=b>2</div></div>"
)
FORMS = {
    NESTED: "**A** **x** 1 **y** 2 **B** 3",
    BOOTSTRAP: "**A** 1 **B** 2",
    "<div class='markdown-alert markdown-alert-tip'><p class=markdown-alert-title><svg></svg>Tip</p><p>x</p></div>": "**Tip** x",
    "<blockquote class='blockquote-tag blockquote-tag-note'><p class=blockquote-tag-title>Note</p>x</blockquote>": "**Note** x",
    "<aside class=note><p>x</p></aside><details class=warning><summary>Own title</summary>y</details>": "**Note** x **Warning: Own title** y",
    "<div class='alert alert-danger'>Never <b>so</b>.</div><div class='alert alert-light'>z</div>": "**Danger** Never **so**. z",
    "<blockquote class='callout' data-callout=bug><div class=callout-title>Known</div>x</blockquote>": "**Bug: Known** x",
    "<dl><div><dt>a:</dt><dt><b>b</b></dt><dd>x</dd><dd>y</dd></div><dt>c</dt></dl>": "- **a**, **b**: x y - **c**",
    "<dl><dt>a</dt><dd><pre>ls\ncd</pre></dd><dt>b</dt><dd><h3 id=h>H</h3>x</dd></dl>": "**a** ``` ls cd ``` **b** ### H {#h} x",
    "<dl><dt>a</dt><dd>x<dl><dt>b</dt><dd>y</dd></dl></dd></dl>": "- **a**: x * **b**: y",
    "<table><tr><th>A<tr><td><p>one</p>\n<ol><li>x<li><p>y</p><ul><li>z</ul></ol>tail</table>": "| A | | --- | | one<br>1. x<br>2. y<br> - z<br>tail |",
    "<table><tr><th>A<tr><td><pre>  if a | b:\n\n    run `x`\n</pre></table>": "| A | | --- | | ` if a \\| b:`<br>`` run `x` `` |",
}  # fmt: skip


def test_forms_of_tabs_admonitions_definitions_and_cells() -> None:
    """What stands for no generator alone: WAI-ARIA, Bootstrap, GitHub, mdBook, rustdoc, Quartz, and HTML itself."""
    assert {body: " ".join(html(f"<main>{body}</main>").markdown.split()) for body in FORMS} == FORMS


@pytest.mark.parametrize(
    "attributes",
    ["hidden", "hidden=true aria-hidden=true style='display: none;'", "inert", "style='color:red;display:none'"],
)
def test_text_that_no_reader_sees_is_left_out(attributes: str) -> None:
    """Plug-ins write notes for machines there, and whoever can edit a page could instruct a model."""
    note = f"<div {attributes}>Are you an LLM? You can read better optimized documentation at /x.md</div>"
    assert html(f"<main><h1>A</h1>{note}<p>Text of the page that all its readers can see, with enough words in it to be "
                "longer than the note.</p></main>").markdown.count("LLM") == 0  # fmt: skip


@pytest.mark.parametrize(
    "block",
    [
        "<div role=tabpanel hidden>panel</div>",
        "<button aria-controls=more>More</button><div id=more hidden>panel</div>",
        "<button>More</button><div class=accordion-body style='display:none'>panel</div>",
        "<details><summary>More</summary><div hidden>panel</div></details>",
        "<div hidden=until-found>panel</div>",
    ],
)
def test_text_that_readers_can_open_stays(block: str) -> None:
    assert "panel" in html(f"<main><h1>A</h1><p>Text of the page.</p>{block}</main>").markdown


def test_a_page_that_its_script_shows_stays() -> None:
    assert "Text." in html("<div style='display:none'><h1>A</h1><p>Text.</p></div><p>x</p>").markdown


def test_raised_and_lowered_numbers_stay_apart_from_those_before_them() -> None:
    """In code they are what its language makes of them, and a link is a footnote."""
    body = "<p>2<sup>32</sup> and 10<sup>−6</sup> m<sup>2</sup> of H<sub>2</sub>O, the 4<sup>th</sup>"
    page = f"<main><h1>T</h1>{body} note<sup><a href='#n'>1</a></sup>.</p><pre>x<sup>2</sup></pre></main>"
    made = convert(SourceText("https://a.org/x", page)).markdown
    assert "2³² and 10⁻⁶ m² of H₂O, the 4th note" in made
    assert "x2" in made


def test_headings_of_demos_are_no_sections_and_headings_keep_their_text() -> None:
    page = html(
        "<main><h1>&lt;Card&gt;<br>component</h1><h2 id=u>Usage</h2><div class=demo-box><div><h1>Shown</h1></div></div>"
        "<h3 id=p>Props<br/>and more</h3><p>x</p><div class=card><h2 id=own>Own</h2></div></main>"
    )
    assert page.title == "<Card> component"
    assert [line for line in page.markdown.split("\n") if line] == [
        "# \\<Card> component", "## Usage {#u}", "**Shown**", "### Props and more {#p}", "x", "## Own {#own}"
    ]  # fmt: skip


def test_a_title_in_another_language_may_be_the_word_for_the_kind() -> None:
    box = "<div class='admonition warning'><p class=admonition-title>{}</p><p>x</p></div>"
    czech = [
        convert(SourceText(URL, f"<html lang=cs><body><main>{box.format(title)}</main></body></html>")).markdown
        for title in ("Varování", "Nejdřív zálohujte")
    ]
    assert [made.partition("\n")[0] for made in czech] == ["**Varování**", "**Warning: Nejdřív zálohujte**"]


def test_the_encoding_is_found() -> None:
    """Byte order mark, header, meta, UTF-8 and the old Czech Windows one, in this order."""
    czech = "příliš žluťoučký"
    assert decode(b"\xef\xbb\xbf" + czech.encode(), "latin-1") == czech
    assert decode(czech.encode("iso-8859-2"), "iso-8859-2") == czech
    assert decode(b'<meta charset="windows-1250">' + czech.encode("cp1250")).endswith(czech)
    assert decode(czech.encode(), "no-such-charset") == czech
    assert decode(czech.encode("cp1250")) == czech


@pytest.mark.parametrize("named", ["ISO-8859-1", "latin1", "windows-1252", "iso-8859-2"])
def test_utf_8_under_another_name_is_read(named: str) -> None:
    """In the header or in the page; a text that isn't UTF-8 has the encoding that it names."""
    assert decode("příliš – žluť".encode(), named) == "příliš – žluť"
    assert decode(f"<meta charset={named}>žluť".encode()).endswith("žluť")
    assert decode("Größe".encode(named), named) == "Größe"


def test_other_types_are_refused() -> None:
    """A type that no converter reads is named."""
    with pytest.raises(ConversionError, match="application/json"):
        convert(SourceText(URL, "{}", "application/json"))
