"""What no reader of a page can see isn't indexed; what readers can open, or see on other screens, is."""

from pathlib import Path

import pytest

from ingestion.convert import SourceText, convert
from tests.deadline import at_most

SEEN = (
    "Text of the page that all of its readers can see, with enough words in it to be longer than what is hidden. " * 3
)

INLINE = [
    "display:none",
    "DISPLAY : none !important",
    "color:red;display:none",
    "display:none;display:nonsense",
    "display/**/:/**/none",
    r"d\69splay:n\6fne",
    "display:none!important;display:block",
    "visibility:hidden",
    "Visibility: Hidden",
    "visibility:collapse",
    "content-visibility:hidden",
    "opacity:0",
    "opacity:0.0",
    "opacity:0%",
    "opacity:.01",
    "opacity:calc(0)",
    "filter:opacity(0)",
    "filter:blur(0) opacity(0%)",
    "font-size:0",
    "font-size:0px",
    "font-size:1px",
    "font-size:.01em",
    "font-size:0%",
    "font:0/0 a",
    "font:italic 0px serif",
    "position:absolute;left:-9999px",
    "position:fixed;top:-100vh",
    "position:absolute;right:-9999px",
    "position:relative;left:-625em",
    "position:absolute;left:9999px",
    "position:absolute;inset:-9999px auto auto -9999px",
    "position:absolute;inset-inline-start:-9999px",
    "text-indent:-9999px",
    "text-indent:-1000em;overflow:hidden",
    "margin-left:-9999px",
    "margin:0 0 0 -9999px",
    "margin:-9999px 0 0",
    "transform:translateX(-9999px)",
    "transform:translate(-9999px, 0)",
    "transform:scale(0)",
    "scale:0",
    "translate:-9999px",
    "position:absolute;clip:rect(0,0,0,0)",
    "position:absolute;clip:rect(1px 1px 1px 1px)",
    "clip-path:inset(50%)",
    "clip-path:inset(100% 0 0 0)",
    "clip-path:circle(0)",
    "clip-path:polygon(0 0, 0 0, 0 0)",
    "width:0;height:0;overflow:hidden",
    "height:0;overflow:hidden",
    "max-height:0;overflow:hidden",
    "position:absolute;width:1px;height:1px;overflow:hidden",
    "block-size:0;overflow:clip",
    "height:0;overflow-y:hidden",
    "color:transparent",
    "color:rgba(0,0,0,0)",
    "color:#fff0",
    "-webkit-text-fill-color:transparent",
    "color:white;background:#fff",
    "color:rgb(255,255,255);background-color:white",
    "color:hsl(0 0% 100%);background:no-repeat #ffffff",
]
ATTRIBUTES = ["hidden", "HIDDEN=''", "hidden=hidden", "inert", "popover", "class=sr-only", "role=dialog"]
ELEMENTS = [
    "<textarea>SECRET</textarea>",
    "<dialog>SECRET</dialog>",
    "<dialog id=d><p>SECRET</p></dialog>",
    "<template><p>SECRET</p></template>",
    "<noscript>SECRET</noscript>",
    "<datalist><option>SECRET</option></datalist>",
    "<select><option>SECRET</option></select>",
    "<canvas>SECRET</canvas>",
    "<!-- SECRET -->",
    "<table><tr><td>a</td><td style='visibility:hidden'>SECRET</td></tr></table>",
    "<ul><li>a</li><li style='opacity:0'>SECRET</li></ul>",
    "<p>a <span style='font-size:0'>SECRET</span> b</p>",
    "<div style='visibility:hidden'><p>SECRET</p></div>",
    "<div style='opacity:0'><p style='opacity:1'>SECRET</p></div>",
    "<div style='visibility:hidden'>SECRET <span style='visibility:inherit'>SECRET</span></div>",
    "<div style='visibility:hidden'>SECRET <b>SECRET <i style='visibility:visible'>seen</i> SECRET</b> SECRET</div>",
    "<div style='font-size:0'><p style='font-size:2em'>SECRET</p></div>",
    "<h2 style='display:none'>SECRET</h2>",
    "<pre style='display:none'>SECRET</pre>",
]
STYLES = [
    ".x{display:none}",
    "#x{display:none}",
    "p{display:none}p.seen{display:block}",
    ".y .x{visibility:hidden}",
    ".y > p.x{opacity:0}",
    "[data-x]{display:none}",
    "[data-x^=on]{display:none}",
    "h1 + .y .x{display:none}",
    ".x:not(.z){display:none}",
    ".y p:first-child{display:none}",
    ":is(.x, .z){display:none}",
    ".x{display:block}.x{display:none}",
    ".x{display:none}p{display:block}",
    ".x{display:none!important}#x{display:block}",
    "@media screen{.x{display:none}}",
    "@media all{.x{display:none}}",
    "@media print, screen{.x{display:none}}",
    "@supports (display:grid){.x{display:none}}",
    "@layer a{.x{display:none}}",
    ".y{.x{display:none}}",
    ".y{& > .x{display:none}}",
    ".x{@media screen{display:none}}",
    ":root{--off:none}.x{display:var(--off)}",
    ".x{display:var(--unset, none)}",
    ".x{position:absolute}.y p{left:-9999px}",
    ".x{color:#fff;background:white}",
    "/* } */ .x{display:none}",
    ".x{content:'}'; display:none}",
    "@import 'a.css'; @charset 'utf-8'; .x{display:none}",
    ".x{display:none} @media print{.x{display:block}}",
    "} .broken{ } .x{display:none}",
]


def markdown(body: str, style: str = "") -> str:
    page = f"<html><head><style>{style}</style></head><body><main><h1>A</h1>{body}<p class=seen>{SEEN}</p></main></body></html>"
    return convert(SourceText("https://a.org/x", page)).markdown


@pytest.mark.parametrize("style", INLINE)
def test_text_that_its_own_style_hides_is_left_out(style: str) -> None:
    made = markdown(f'<p>before</p><div style="{style}">SECRET</div><p>after</p>')
    assert ("SECRET" not in made, "before" in made, "after" in made) == (True, True, True)


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_text_that_an_attribute_hides_is_left_out(attribute: str) -> None:
    assert "SECRET" not in markdown(f"<div {attribute}>SECRET</div>")


@pytest.mark.parametrize("element", ELEMENTS)
def test_text_of_elements_that_nobody_sees_is_left_out(element: str) -> None:
    made = markdown(element)
    assert "SECRET" not in made
    assert ("seen\n" in made.replace("*", "")) == (">seen<" in element)


@pytest.mark.parametrize("style", STYLES)
def test_text_that_a_style_of_the_page_hides_is_left_out(style: str) -> None:
    made = markdown("<div class=y><p class=x id=x data-x=on>SECRET</p><div>near</div></div>", style)
    assert ("SECRET" not in made, "near" in made) == (True, True)


@pytest.mark.parametrize(
    "style",
    [
        "opacity:.5", "opacity:1", "visibility:visible", "font-size:8px", "font-size:.5em", "font:12px/0 serif",
        "position:absolute;left:-10px", "left:-9999px;position:static", "text-indent:-1.5em", "margin-left:-20px",
        "margin:-1px -2px", "transform:translateX(-50%)", "transform:scale(.9)", "scale:1",
        "position:absolute;clip:rect(0,100px,100px,0)", "clip:rect(0,0,0,0)", "clip-path:inset(10%)",
        "clip-path:circle(50%)", "clip-path:polygon(0 0, 100% 0, 100% 100%)", "height:0", "height:40px;overflow:hidden",
        "width:1%;overflow:hidden", "height:0;padding-bottom:56%;overflow:hidden",
        "max-width:0;overflow:hidden;text-overflow:ellipsis", "color:white", "color:white;background:black",
        "color:white;background:url(white.png)", "color:transparent;background:linear-gradient(red,blue);-webkit-background-clip:text",
        "background-clip:text;-webkit-text-fill-color:transparent;background-image:linear-gradient(red,blue)",
        "display:none;display:block", "display:block!important;display:none", "display:nonsense", "--display:none",
        "opacity:0;animation:fade-in 1s forwards", "opacity:0;transform:translateY(20px)", "content:'display:none'",
    ],
)  # fmt: skip
def test_text_that_its_style_leaves_in_sight_stays(style: str) -> None:
    assert "stays" in markdown(f'<div style="{style}">stays</div>')


@pytest.mark.parametrize(
    "style",
    [
        "@media print{.x{display:none}}",
        "@media only print{.x{display:none}}",
        "@media (max-width:600px){.x{display:none}}",
        "@media screen and (max-width:600px){.x{display:none}}",
        ".x{display:none}@media (min-width:900px){.x{display:block}}",
        "@container (max-width:9em){.x{display:none}}",
        "@starting-style{.x{opacity:0}}",
        "@keyframes a{from{opacity:0}}.x{animation:a 1s}",
        ".x{opacity:0}.x.shown{opacity:1}",
        ".x{display:none}.x:target{display:block}",
        ".x{display:none}input:checked ~ .x{display:block}",
        ".x{max-height:0;overflow:hidden}.open .x{max-height:50em}",
        ".x{visibility:hidden}.y:hover .x{visibility:visible}",
        ".x::before,.x::after{display:none}",
        ".x:hover,.x:focus{display:none}",
        ".z .x, .z{display:none}",
        ".x{display:none}#x{display:block}",
        ".x{display:block}p{display:none}p.seen{display:block}",
        ".x{display:none}.x{display:block}",
        ".no-js .x{display:none}",
        "[x-cloak]{display:none}",
        "/* .x{display:none} */",
        ".x{/* display:none */}",
        ".x:unknown(a){display:none}",
        ".tabs .x{color:red}",
    ],
)
def test_text_that_the_page_shows_or_may_show_stays(style: str) -> None:
    made = markdown("<div class='y no-js'><input type=checkbox><p class=x id=x x-cloak>stays</p></div>", style)
    assert "stays" in made


@pytest.mark.parametrize(
    "block",
    [
        "<div role=tabpanel class=o>stays</div>",
        "<div class='tab-pane o'>stays</div>",
        "<div class='accordion-body o'>stays</div>",
        "<details><summary>More</summary><div class=o>stays</div></details>",
        "<details><summary>More</summary>stays</details>",
        "<div hidden=until-found>stays</div>",
        "<button aria-controls=m>More</button><div id=m class=o>stays</div>",
        "<button popovertarget=m>More</button><div id=m popover>stays</div>",
        "<dialog open>stays</dialog>",
        "<div style='visibility:hidden'>gone<p style='visibility:visible'>stays</p></div>",
        "<div style='font-size:0'>gone<p style='font-size:16px'>stays</p></div>",
        "<div style='color:transparent'>gone<p style='color:black'>stays</p></div>",
        "<div class=o style='display:block'>stays</div>",
        "<div aria-hidden=true>stays</div>",
    ],
)
def test_text_that_readers_can_open_or_see_stays(block: str) -> None:
    made = markdown(block, ".o{display:none}")
    assert ("stays" in made, "gone" in made) == (True, False)


@pytest.mark.parametrize("media", ["print", "(max-width: 600px)"])
def test_style_elements_for_other_media_hide_nothing(media: str) -> None:
    assert "stays" in markdown(f"<style media='{media}'>.x{{display:none}}</style><p class=x>stays</p>")


def test_a_page_that_its_script_fades_in_stays() -> None:
    page = f"<style>body>div{{opacity:0}}</style><body><div><h1>A</h1><p>{SEEN}</p></div><p>Loading</p></body>"
    assert SEEN[:50] in convert(SourceText("https://a.org/x", page)).markdown


def test_formulas_for_screen_readers_stay() -> None:
    style = "mjx-assistive-mml{position:absolute;clip:rect(1px,1px,1px,1px);overflow:hidden;width:1px;height:1px}"
    formula = "<mjx-assistive-mml><math><mi>x</mi><mo>+</mo><mi>y</mi></math></mjx-assistive-mml>"
    assert "x+y" in markdown(f"<p>The sum {formula}</p>", style)


@pytest.mark.parametrize(
    "block",
    [
        *(f"<div style='{style}'>SECRET</div>" for style in INLINE),
        "<span hidden>SECRET</span>",
        '<DIV STYLE="DISPLAY:NONE">SECRET</DIV>',
        "<div hidden><div>a</div>SECRET</div>",
        "<p hidden>a <span>b</span> SECRET</p>",
        "<div title='a > b' style='display:none'>SECRET</div>",
        "<style>.x{opacity:0}</style>\n\n<p class='x'>SECRET</p>",
        "<table><tr><td>a</td><td style='display:none'>SECRET</td></tr></table>",
        "<dialog>SECRET</dialog>",
    ],
)
def test_what_markdown_hides_is_left_out(block: str) -> None:
    made = convert(SourceText("https://a.org/x.md", f"# A\n\nBefore\n\n{block}\n\n{SEEN}\n", "text/markdown")).markdown
    assert ("SECRET" not in made, "Before" in made, SEEN[:50] in made) == (True, True, True)


@pytest.mark.parametrize(
    "block",
    [
        "<div style='opacity:.5'>stays</div>",
        "<div class='tab-panel' hidden>stays</div>",
        "<p hidden>\n\nstays",
        "`<p hidden>stays</p>`",
        "```html\n<style>p{display:none}</style>\n```\n\n<p class=x>stays</p>",
        "<style>@media print{.x{display:none}}</style>\n\n<p class='x'>stays</p>",
    ],
)
def test_what_markdown_shows_stays(block: str) -> None:
    assert "stays" in convert(SourceText("https://a.org/x.md", f"# A\n\n{block}\n\n{SEEN}\n", "text/markdown")).markdown


BOMBS = {
    "a megabyte of rules": (".x{display:none}" * 65_000, "<p class=x>a</p>" * 2_000),
    "many selectors for many elements": ("".join(f"p:not(.c{n}){{display:none}}" for n in range(9_000)), "<p>a</p>" * 20_000),
    "siblings": ("p ~ p ~ p ~ p:nth-child(3n){display:none}" * 500, "<p>a</p>" * 20_000),
    "nesting": ("* * * * * * * * *{display:none}" * 500, "<div>" * 200 + "<p>a</p>" * 5_000),
    "rules in rules": ((".a,.b,.c,.d,.e,.f,.g,.h,.i{" * 40) + "display:none" + "}" * 40, "<p>a</p>"),
    "brackets": ("(" * 500_000 + "{[" * 250_000, "<p>a</p>"),
    "attributes": ("", "".join(f"<p style='opacity:.{n}1;left:-{n}px'>a</p>" for n in range(40_000))),
    "variables": ("".join(f".x{{--a{n}:var(--a{n + 1}) var(--a{n + 1});display:var(--a{n})}}" for n in range(9_000)), "<p>a</p>"),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_styles_take_a_bounded_time(name: str) -> None:
    """A style that takes more than linear time would take minutes of CPU."""
    style, body = BOMBS[name]
    with at_most(30):
        markdown(body, style)


def test_the_cleaned_pages_of_generators_lose_nothing() -> None:
    """Pages of real generators bring styles of their own; `test_built_pages` compares their text, this counts the readers' words."""
    folder = Path(__file__).parents[1] / "pages"
    for page in sorted(folder.glob("*.html")):
        text = page.read_text("utf-8")
        plain = text.replace("<style", "<!--style").replace("</style>", "-->")
        made = [convert(SourceText("https://a.org/x", one)).markdown for one in (text, plain)]
        assert made[0] == made[1], page.name
