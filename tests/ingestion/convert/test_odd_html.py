"""HTML that hides its text from a converter: each kind has at least three forms, and the Markdown that readers of the page would write."""

import pytest

from ingestion.convert import SourceText, convert

URL = "https://docs.example.org/guide/"
LONG = (
    "The gateway keeps each letter for nine days and then sends it back to whoever wrote it, with the reason for that."
)
FIELDS = "<input name=q><button>Send</button>"

ROOTS = {
    f"<div class=hero><h1>Kestrel</h1><p>{LONG}</p></div><div class=vp-doc><div></div></div>": f"# Kestrel {LONG}",
    f"<main><div><h1>Kestrel</h1>{LONG}</div><div class=sl-markdown-content></div></main>": f"# Kestrel {LONG}",
    f"<section><h1>Kestrel</h1><p>{LONG}</p></section><article class=md-content__inner></article><footer>F</footer>": f"# Kestrel {LONG}",
    f"<main><div><article>Teaser</article></div><div><article><h1>Kestrel</h1><p>{LONG}</p></article></div></main>": f"# Kestrel {LONG}",
    "<main><h1>Hub</h1><div><article><h2>A</h2><p>One.</p></article></div><div><article><h2>B</h2><p>Two.</p></article></div></main>":
        "# Hub ## A One. ## B Two.",
    f"<div class=menu><a href=/a>{LONG}</a><a href=/b>{LONG}</a></div><main><h1>Short</h1><p>Text.</p></main>": "# Short Text.",
}  # fmt: skip
FORMS = {
    f"<form><nav>Menu</nav><div><h1>Quota</h1><p>{LONG}</p></div>{FIELDS}</form>": f"# Quota {LONG}",
    f"<main><form><h1>Quota</h1><p>{LONG}</p></form></main>": f"# Quota {LONG}",
    "<article><h1>Quota</h1><form><ol><li>Open it.</li><li>Type 900.</li></ol></form></article>": "# Quota 1. Open it. 2. Type 900.",
    f"<main><h1>Quota</h1><p>Text.</p><form><h3>Newsletter</h3><p>Get news each month.</p>{FIELDS}</form></main>": "# Quota Text.",
    "<main><h1>Quota</h1><form><ol><li>Type a name: <input></li><li><button>Save</button></li></ol></form></main>":
        "# Quota 1. Type a name: 2.",
    "<main><h1>Quota</h1><p>Text.</p><form>Was this page helpful? <button>Yes</button><button>No</button></form></main>": "# Quota Text.",
}  # fmt: skip
OPENERS = {
    "<h2 id=a><button data-bs-target='#x'>What is it?</button></h2><div id=x class=collapse>It.</div>": "## What is it? {#a} It.",
    "<h4><button aria-controls=x>What is it?<svg></svg></button></h4><div id=x hidden>It.</div>": "#### What is it? It.",
    "<dl><dt><button><span>What is it?</span></button></dt><dd>It.</dd></dl>": "- **What is it?**: It.",
    "<details><summary><button>What is it?</button></summary>It.</details>": "**What is it?** It.",
    "<div class='Faq-item'><button>What is it?</button><div>It.</div></div>": "**What is it?** It.",
    "<button class=accordion>What is it?</button><div class=panel>It.</div>": "**What is it?** It.",
    "<div><button aria-controls=x>What is it?</button></div><div id=x>It.</div>": "**What is it?** It.",
    "<h2 id=a><span class=copy-link>Title</span></h2><h3 id=b><span>B</span><span class=copied>Done!</span></h3>": "## Title {#a} ### B {#b}",
    "<h2 id=a>Title<button>Copy link</button></h2><button aria-controls=m>Menu</button><nav id=m>Links</nav>It.": "## Title {#a} It.",
}  # fmt: skip
LANDMARKS = {
    "<h2>A</h2><p>One.</p><aside>Never so.</aside><p>Two.</p>": "## A One. Never so. Two.",
    "<section><header><h2>A</h2><p>Lead.</p></header><p>One.</p><footer><p>See B.</p></footer></section>": "## A Lead. One. See B.",
    "<h2>A</h2><p>One.</p><footer><p>A note at the end.</p></footer>": "## A One. A note at the end.",
    "<div><aside>Sponsored by us.</aside><div><h2>A</h2><p>One.</p></div></div>": "## A One.",
    "<h2>A</h2><p>One.</p><aside><h3>On this page</h3><ul><li><a href=#a>A</a></ul></aside><footer>© Us</footer>": "## A One.",
    "<h2>A</h2><p>One.</p><footer><a href=/p>Previous page</a> <a href=/n>Next page</a></footer>": "## A One.",
}  # fmt: skip
INVISIBLE = {
    "<p>con&shy;fig&shy;u&shy;ration</p>": "configuration",
    "<p>con\u200bfig\u2060uration \ufeffof</p>": "configuration of",
    "<h2 id=a>Ver&shy;schlüs&shy;selung</h2>con<wbr>fig": "## Verschlüsselung {#a} config",
    "<p>👩\u200d💻 and <code>kestrel&#8203;ctl</code></p>": "👩\u200d💻 and `kestrelctl`",
}  # fmt: skip
NOTEBOOKS = {
    "nbsphinx": "<div class=nbinput><div class=prompt><pre>[3]:</pre></div><div class=input_area><pre>a</pre></div></div>",
    "Jupyter": "<div class=cell><div class=input><div class='prompt input_prompt'>In&nbsp;[3]:</div><div class=inner_cell><pre>a</pre></div></div></div>",
    "JupyterLab": "<div class=jp-InputArea><div class='jp-InputPrompt jp-InputArea-prompt'>In [3]:</div><pre>a</pre></div>",
    "mkdocs-jupyter": "<div class=jp-OutputArea><div class=jp-OutputPrompt>[3]:</div><pre>a</pre></div><div class=clipboard-copy-txt>a</div>",
}  # fmt: skip
FOOTNOTES = {
    "<p>Nine days<a class='footnote-reference brackets' href='#f2' role=doc-noteref>[2]</a>.</p><aside id=f2 class=footnote role=doc-footnote>"
    "<span class=label><span>[</span><a role=doc-backlink href=#r2>2</a><span>]</span></span><p>Or ten.</p></aside>": "Nine days (2). (2) Or ten.",
    "<p>Nine days<sup class=reference><a href='#n2'>[2]</a></sup>.</p><ol><li id=n2><a href=#r>↑</a> Or ten.</ol>": "Nine days (2). 1. Or ten.",
    "<p>Nine days<sup class=footnote>[<a href='#d2'>2</a>]</sup>.</p><div id=d2><a href=#r2>2</a>. Or ten.</div>": "Nine days (2). (2). Or ten.",
    "<p>Nine days [<a href='#d2'>2</a>].</p><p id=d2><sup>[2]</sup> Or ten.</p>": "Nine days (2). (2) Or ten.",
    "<p>Nine days [2], items[2], <code>[2]</code> and [2-4].</p>": "Nine days (2), items[2], `[2]` and [2-4].",
    "<h2 id=a><a href=#a>2</a> Days</h2><p>See <a href=https://a.org/#x>[2]</a>.</p>": "## Days {#a} See [(2)](https://a.org/#x).",
}  # fmt: skip
PAGERS = {
    "<div class=navheader><table summary='Navigation header'><tr><th>Chapter 3</th></tr></table></div><h2>A</h2>One.<div class=navfooter>Up</div>": "## A One.",
    "<div class=header><p>Next: <a href=b.html accesskey=n rel=next>B</a>, Up: <a href=i.html accesskey=u rel=up>Top</a></p></div><h2>A</h2>One.":
        "## A One.",
    "<p><a href=#t accesskey=s>Skip</a></p><div><a href=#t accesskey=s>Skip</a><p>One.</p></div>": "[Skip](https://docs.example.org/guide/#t) One.",
    "<table summary='Navigation footer'><tr><td><a href=p.html>Prev</a></td><td>Home</td></tr></table><h2>A</h2>One.": "## A One.",
    "<div class=topNav><ul><li>Overview</li></ul></div><h2>A</h2>One.<div class=bottomNav>Skip</div>": "## A One.",
}  # fmt: skip


def markdown(body: str, root: str = "main") -> str:
    page = f"<html><body><{root}><h1>T</h1>{body}</{root}></body></html>"
    return " ".join(convert(SourceText(URL, page)).markdown.removeprefix("# T\n").split())


@pytest.mark.parametrize(("body", "wanted"), [*ROOTS.items(), *FORMS.items()])
def test_the_text_is_read_wherever_it_stands(body: str, wanted: str) -> None:
    """The root holds most of the page's text, and a form around text is no form."""
    assert " ".join(convert(SourceText(URL, f"<html><body>{body}</body></html>")).markdown.split()) == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        *OPENERS.items(), *LANDMARKS.items(), *INVISIBLE.items(), *FOOTNOTES.items(), *PAGERS.items(),
        *((cell, "``` a ```") for cell in NOTEBOOKS.values()),
    ],
)  # fmt: skip
def test_forms_of_text(body: str, wanted: str) -> None:
    assert markdown(body) == wanted
