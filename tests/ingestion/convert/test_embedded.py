"""What a page holds in a form of its own: formulas, shadow roots, frames, code in scripts and elements, pictures that load late."""

import pytest

from ingestion.convert import SourceText, convert
from tests.ingestion.convert.main_content import URL, markdown

FORMULAS = {
    "KaTeX": "<span class=katex><span class=katex-mathml><math><semantics><mi>E</mi><annotation encoding='application/x-tex'>E = mc^2</annotation>"
    "</semantics></math></span><span class=katex-html aria-hidden=true>E=mc2</span></span>",
    "MathJax 2": "<span class=MathJax_Preview>E</span><span class=MathJax><nobr>E=mc2</nobr></span><script type='math/tex'>E = mc^2</script>",
    "kramdown": "<script type='math/tex'>% <![CDATA[\nE = mc^2 %]]></script>",
    "Wikipedia": "<span class=mwe-math-element><span hidden><math alttext='{\\displaystyle E = mc^2}'><mi>E</mi></math></span>"
    "<img class=mwe-math-fallback-image-inline alt='{\\displaystyle E = mc^2}' src=e.svg></span>",
    "Sphinx": "<span class='math notranslate'>\\(E = mc^2\\)</span>",
    "Jekyll": "<script src=/MathJax.js></script>\\(E = mc^2\\)",
    "arithmatex": "<span class=arithmatex>\\(E = mc^2\\)</span>",
    "picture": "<img class=math alt='E = mc^2' src=e.png>",
    "MathJax 4": "<mjx-container><mjx-math aria-hidden=true>E</mjx-math><mjx-assistive-mml><math data-latex='E = mc^2'><mi>E</mi></math>"
    "</mjx-assistive-mml></mjx-container>",
}  # fmt: skip
BLOCKS_OF_FORMULAS = {
    "KaTeX": "<span class=katex-display><span class=katex><math display=block><semantics><mi>x</mi><annotation encoding='application/x-tex'>"
    "x_1</annotation></semantics></math></span></span>",
    "kramdown": "<script type='math/tex; mode=display'>x_1</script>",
    "Sphinx": "<div class=math><span class=eqno>(1)<a href=#e>#</a></span>\\[x_1\\]</div>",
    "arithmatex": "<div class=arithmatex>\\[x_1\\]</div>",
}  # fmt: skip
MATHML = {
    "<msub><mi>w</mi><mi>n</mi></msub>": "w_n",
    "<msup><mi>x</mi><mrow><mi>n</mi><mo>+</mo><mn>1</mn></mrow></msup>": "x^(n+1)",
    "<mi>y</mi><mo>=</mo><mn>2</mn><msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>": "y = 2 sqrt(x+1)",
    "<mroot><mi>x</mi><mn>3</mn></mroot>": "root(x, 3)",
    "<mfrac><mn>1</mn><mrow><mi>a</mi><mi>b</mi></mrow></mfrac>": "1/ab",
    "<mo>(</mo><mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>2</mn></mtd></mtr><mtr><mtd><mn>3</mn></mtd><mtd><mn>4</mn></mtd></mtr></mtable><mo>)</mo>":
        "([1, 2; 3, 4])",
    "<munderover><mo>∑</mo><mrow><mi>k</mi><mo>=</mo><mn>0</mn></mrow><mi>n</mi></munderover><mi>k</mi>": "∑_(k = 0)^n k",
}  # fmt: skip
SHADOWS = {
    "<a-card><template shadowrootmode=open><style>:host{display:block}.x{display:none}</style><h2>M</h2><p class=x>Instruction.</p><p>One.</p>"
    "<slot></slot></template><p>Two.</p></a-card><p class=x>Three.</p>": "## M One. Two. Three.",
    "<a-card><template shadowroot=open><slot name=title></slot><p>One.</p></template><h2 slot=title>M</h2></a-card>": "## M One.",
    "<a-tip><template shadowrootmode=open><b>Tip</b> <slot>empty</slot></template>Two.</a-tip>": "**Tip** Two.",
    "<a-a><template shadowrootmode=open><a-b><template shadowrootmode=open><p>One.</p><slot></slot></template><slot></slot></a-b></template>"
    "<p>Two.</p></a-a>": "One. Two.",
}  # fmt: skip
PICTURES = {
    "<p><img src='data:image/gif;base64,R0' data-src=a.png alt=Plan></p>": "![Plan](https://docs.example.org/guide/a.png)",
    "<p><img src=/blank.gif data-src=a.png alt=Plan></p>": "![Plan](https://docs.example.org/guide/a.png)",
    "<p><img src=a.png srcset='b.png 2x' alt=Plan></p>": "![Plan](https://docs.example.org/guide/a.png)",
    "<p><img data-srcset='a.png 1x, b.png 2x' alt=Plan></p>": "![Plan](https://docs.example.org/guide/a.png)",
    "<p><img loading=lazy alt='Plan of the relay'></p>": "Plan of the relay",
    "<p><img class=lazyload src='data:image/gif;base64,R0' alt='Plan of the relay'></p>": "Plan of the relay",
    "<p><img class=math src=a.png></p>": "![](https://docs.example.org/guide/a.png)",
    "<p>x <img src='data:image/svg+xml,x' alt=icon loading=lazy></p>": "x",
}  # fmt: skip
CODE_LANGUAGES = {
    "Confluence": "<script type=syntaxhighlighter class='theme: Confluence; brush: bash; gutter: false'><![CDATA[a]]></script>",
    "Prism": "<script type='text/plain' class='language-bash'>a</script>",
    "custom element": "<code-block language=bash><template>a</template></code-block>",
    "another one": "<deckgo-highlight-code language=bash><code slot=code>a</code></deckgo-highlight-code>",
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        *SHADOWS.items(), *PICTURES.items(),
        *((f"<p>It is <math>{math}</math>.</p>", f"It is {made}.") for math, made in MATHML.items()),
        *((f"<p>It is {formula}.</p>", "It is $E = mc^2$.") for formula in FORMULAS.values()),
        *((f"<p>It is:</p>{formula}<p>x</p>", "It is: $$x_1$$ x") for formula in BLOCKS_OF_FORMULAS.values()),
        *((code, "```bash a ```") for code in CODE_LANGUAGES.values()),
    ],
)  # fmt: skip
def test_it_is_read_once_and_as_it_was_written(body: str, wanted: str) -> None:
    assert markdown(body) == wanted


def test_tex_keeps_its_backslashes() -> None:
    """Also in a title; elsewhere, one before a mark is that mark."""
    tex = "\\{a\\}\\,\\frac{b}{c} \\\\ d"
    page = f"<h1>On <script type='math/tex'>{tex}</script></h1><p>A \\* and <span class=math>\\({tex}\\)</span>.</p>"
    made = convert(SourceText(URL, page))
    assert made.title == f"On ${tex}$"
    assert made.markdown == f"# On ${tex}$\n\nA \\\\* and ${tex}$.\n"


def test_markup_in_an_element_of_code_is_its_code() -> None:
    page = "<h1>T</h1><code-block language=html><template>\n  <b>x</b>\n    y\n</template></code-block>"
    assert convert(SourceText(URL, page)).markdown == "# T\n\n```html\n<b>x</b>\n  y\n```\n"


def test_frames_are_links_and_what_stands_for_them_is_text() -> None:
    frames = "<frameset cols='2'><frame src=menu.html name=Menu><frameset><frame src=text.html title=Text></frameset>{}</frameset>"
    page = "<html><head><title>Overview</title></head>{}</html>"
    links = "[Menu](https://docs.example.org/guide/menu.html)\n\n[Text](https://docs.example.org/guide/text.html)\n"
    without = "<noframes><h2>Alert</h2><p>See <a href=text.html>the text</a>.</p></noframes>"
    made = [convert(SourceText(URL, page.format(frames.format(one)))).markdown for one in ("", without)]
    assert made[0] == f"# Overview\n\n{links}"
    assert made[1] == (
        f"# Overview\n\n## Alert\n\nSee [the text](https://docs.example.org/guide/text.html).\n\n{links}"
    )
