"""HTML that hides its text from a converter: each kind has at least three forms, and the Markdown that readers of the page would write."""

import time
from pathlib import Path

import pytest

from ingestion.convert import SourceText, convert
from tests.ingestion.convert.main_content import URL, markdown

WILD = Path(__file__).parents[3] / "../shared/wild/html"
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
    "<main><article></article><ul><li><a href=/a>A</a></li></ul></main>": "- [A](https://docs.example.org/a)",
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
    "<div><button aria-expanded=false>What is it?</button><div style='display:none' id=x-panel>It.</div></div>": "**What is it?** It.",
    "<button aria-controls=x>What is it?</button><div id=x><p>See <a href=/y>the guide</a>.</p></div>":
        "**What is it?** See [the guide](https://docs.example.org/y).",
    "<div role=heading aria-level=3 id=a><button>What is it?</button></div>It.": "### What is it? {#a} It.",
    "<div class='Faq-item'><button>What is it?</button><div>It.</div></div>": "**What is it?** It.",
    "<button class=accordion>What is it?</button><div class=panel>It.</div>": "**What is it?** It.",
    "<div><button aria-controls=x>What is it?</button></div><div id=x>It.</div>": "**What is it?** It.",
    "<h2 id=a><span class=copy-link>Title</span></h2><h3 id=b><span>B</span><span class=copied>Done!</span></h3>": "## Title {#a} ### B {#b}",
    "<h2 id=a>Title<button>Copy link</button></h2><button aria-controls=m>Menu</button><nav id=m>Links</nav>"
    "<button aria-controls=v>v3.1</button><ul id=v class=pager><li><a href=/3>3.1</a></ul>It.": "## Title {#a} It.",
}  # fmt: skip
LANDMARKS = {
    "<h2>A</h2><p>One.</p><aside>Never so.</aside><p>Two.</p>": "## A One. Never so. Two.",
    "<section><header><h2>A</h2><p>Lead.</p></header><p>One.</p><footer><p>See B.</p></footer></section>": "## A Lead. One. See B.",
    "<h2>A</h2><p>One.</p><footer><p>A note at the end.</p></footer>": "## A One. A note at the end.",
    "<section><h2>A</h2><p>One.</p></section><aside><h2>See also</h2><p>Read about B.</p></aside>": "## A One. ## See also Read about B.",
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
CODE = {
    "twoslash": "<pre class='shiki twoslash'><code>a <span class=twoslash-hover>b<span class=twoslash-popup-container><code>const b: 1</code>"
    "<div>Docs</div></span></span>\n<div class='twoslash-meta-line twoslash-error-line'>Type error</div></code></pre>",
    "floating menu": "<pre><code>a <v-menu>b<template v-slot:popper><pre><code>const b: 1</code></pre></template></v-menu></code></pre>",
    "popper": "<pre><code>a <div class='v-popper twoslash-hover'><span>b</span><div class=v-popper__popper><div>x</div><div></div></div></div></code></pre>",
    "old shiki": "<pre class='shiki twoslash'><div class=language-id>ts</div><code>a b<span class=error-behind>Type error</span></code></pre>",
    "button": "<div><pre><code>a b</code></pre><div class=copy-code>Copy</div></div>",
    "toolbar": "<div class=code-toolbar><pre>a b</pre><div class=toolbar><span>Bash</span><button>Copy</button></div></div>",
    "copied": "<pre><code>a b</code><span class='is-copied-note'>Copied!</span></pre><div role=status>Copied!</div>",
    "clipboard": "<div class=zeroclipboard-container><clipboard-copy for=c>Copied!</clipboard-copy></div><pre>a b</pre>"
    "<div id=c class=clipboard-copy-txt>a b</div>",
    "screen readers": "<pre><span class=sr-only>Code of a file: </span><code>a b</code></pre>",
    "line numbers": "<pre><code><span aria-hidden=true>1</span>a b</code></pre>",
    "numbers by class": "<pre><code><i class='code-LineNumber'>1</i>a b</code></pre>",
    "toast": "<div><pre>a b</pre><span aria-live=polite>Copied!</span></div>",
    "all of it": "<pre><span class=copy-me>a b</span></pre>",
    "numbers by style": "<pre><code><span style='user-select: none'>1 </span>a b</code></pre>",
    "prompt": "<pre><code><span class=select-none>$ </span>a b</code></pre>",
    "style": "<div style='white-space: pre'>a b</div>",
    "old element": "<xmp>a b</xmp>",
    "highlighter": "<div class=codehilite>a b</div>",
}  # fmt: skip
NOTEBOOKS = {
    "nbsphinx": "<div class=nbinput><div class=prompt><pre>[3]:</pre></div><div class=input_area><pre>a</pre></div></div>",
    "Jupyter": "<div class=cell><div class=input><div class='prompt input_prompt'>In&nbsp;[3]:</div><div class=inner_cell><pre>a</pre></div></div></div>",
    "JupyterLab": "<div class=jp-InputArea><div class='jp-InputPrompt jp-InputArea-prompt'>In [3]:</div><pre>a</pre></div>",
    "mkdocs-jupyter": "<div class=jp-OutputArea><div class=jp-OutputPrompt>[3]:</div><pre>a</pre></div><div class=clipboard-copy-txt>a</div>",
}  # fmt: skip
TABLES = {
    "<tr><th>R</th><th>P</th></tr><tr><td rowspan=2>N</td><td>1</td></tr><tr><td>2</td></tr>": "| R | P | | --- | --- | | N | 1 | | N | 2 |",
    "<tr><th>A</th><th>B</th><th>C</th></tr><tr><td>1</td><td rowspan=2 colspan=2>x</td></tr><tr><td>2</td></tr><tr><td>3</td><td>y</td><td>z</td></tr>":
        "| A | B | C | | --- | --- | --- | | 1 | x | | | 2 | x | | | 3 | y | z |",
    "<tr><th>A</th><th>B</th></tr><tr><td rowspan=0>1</td><td rowspan=99999999>x</td></tr><tr></tr>": "| A | B | | --- | --- | | 1 | x | | 1 | x |",
    "<tr><th rowspan=2>A</th><th>B</th></tr><tr><th>C</th></tr><tr><td>1</td><td>2</td></tr>": "| A | B | | --- | --- | | A | C | | 1 | 2 |",
    "<tr><td>Port</td><td>25</td></tr><tr><td>Host</td><td>x</td></tr>": "| | | | --- | --- | | Port | 25 | | Host | x |",
    "<tr><th>Port</th><td>25</td></tr><tr><th>Host</th><td>x</td></tr>": "| | | | --- | --- | | Port | 25 | | Host | x |",
    "<tr><td><code>string</code></td><td>any text</td></tr>": "| | | | --- | --- | | `string` | any text |",
    "<tr><td><b>Name</b></td><td><b>Use</b></td></tr><tr><td>a</td><td>b</td></tr>": "| **Name** | **Use** | | --- | --- | | a | b |",
    "<tr><td>Name</td><td>Use</td></tr><tr><td><code>a</code></td><td>b</td></tr>": "| Name | Use | | --- | --- | | `a` | b |",
}  # fmt: skip
NOTES = {
    "<div class=warning><table summary=Warning><tr><td rowspan=2><img alt='[Warning]' src=w.png></td><th>Warning</th></tr>"
    "<tr><td><p>Never so.</p></td></tr></table></div>": "**Warning** Never so.",
    "<table class=noteMacro><colgroup><col></colgroup><tr><td><img src=images/icons/note.png alt=''></td><td><b>Careful</b><br>Never so.</td></tr></table>":
        "**Note** **Careful** Never so.",
    "<table><tr><td><img src=x.gif alt=Tip></td><td>Never so.</td></tr></table>": "**Tip** Never so.",
    "<table><tr><td>Note:</td><td>Never so.</td></tr></table>": "**Note** Never so.",
    "<table class=warning><tr><td>Never so.</td></tr></table>": "**Warning** Never so.",
    "<div class='confluence-information-macro confluence-information-macro-warning'><p class=title>Careful</p><div>Never so.</div></div>":
        "**Warning: Careful** Never so.",
}  # fmt: skip
FOOTNOTES = {
    "<p>Nine days<a class='footnote-reference brackets' href='#f2' role=doc-noteref>[2]</a>.</p><aside id=f2 class=footnote role=doc-footnote>"
    "<span class=label><span>[</span><a role=doc-backlink href=#r2>2</a><span>]</span></span><p>Or ten.</p></aside>": "Nine days (2). (2) Or ten.",
    "<p>Nine days<sup class=reference><a href='#n2'>[2]</a></sup>.</p><ol><li id=n2><a href=#r>↑</a> Or ten.</ol>": "Nine days (2). 1. Or ten.",
    "<p>Nine days<sup class=footnote>[<a href='#d2'>2</a>]</sup>.</p><div id=d2><a href=#r2>2</a>. Or ten.</div>": "Nine days (2). (2). Or ten.",
    "<p>Nine days [<a href='#d2'>2</a>].</p><p id=d2><sup>[2]</sup> Or ten.</p>": "Nine days (2). (2) Or ten.",
    "<p>Nine days [2], items[2], <code>x</code>[2] and [2-4] or [1, 2].</p>": "Nine days (2), items[2], `x`[2] and [2-4] or (1, 2).",
    "<h2 id=a><a href=#a>2</a> Days</h2><p>See <a href=https://a.org/#x>[2]</a>.</p>": "## Days {#a} See [(2)](https://a.org/#x).",
}  # fmt: skip
PAGERS = {
    "<div class=navheader><table summary='Navigation header'><tr><th>Chapter 3</th></tr></table></div><h2>A</h2>One.<div class=navfooter>Up</div>": "## A One.",
    "<div class=header><p>Next: <a href=b.html accesskey=n rel=next>B</a>, Up: <a href=i.html accesskey=u rel=up>Top</a></p></div><h2>A</h2>One.":
        "## A One.",
    "<p><a href=#t accesskey=s>Skip</a></p><div><a href=#t accesskey=s>Skip</a><p>One.</p></div>": "[Skip](https://docs.example.org/guide/#t) One.",
    "<table summary='Navigation footer'><tr><td><a href=p.html>Prev</a></td><td>Home</td></tr></table><h2>A</h2>One.": "## A One.",
    "<p>Go on with <a rel=next href=/n>relays</a>, the hosts that take letters on to the world.</p><p><a rel=next href=/n>Relays</a></p>":
        "Go on with [relays](https://docs.example.org/n), the hosts that take letters on to the world.",
    "<div class=NAVHEADER><table><tr><td>Prev</td></tr></table></div><h2>A</h2>One.": "## A One.",
    "<div class=topNav><ul><li>Overview</li></ul></div><h2>A</h2>One.<div class=bottomNav>Skip</div>": "## A One.",
}  # fmt: skip


@pytest.mark.parametrize(("body", "wanted"), [*ROOTS.items(), *FORMS.items()])
def test_the_text_is_read_wherever_it_stands(body: str, wanted: str) -> None:
    """The root holds most of the page's text, and a form around text is no form."""
    assert " ".join(convert(SourceText(URL, f"<html><body>{body}</body></html>")).markdown.split()) == wanted


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        *OPENERS.items(), *LANDMARKS.items(), *INVISIBLE.items(), *NOTES.items(), *FOOTNOTES.items(), *PAGERS.items(),
        *((f"<table>{rows}</table>", made) for rows, made in TABLES.items()),
        *((code, "``` a b ```") for code in CODE.values()), *((cell, "``` a ```") for cell in NOTEBOOKS.values()),
    ],
)  # fmt: skip
def test_forms_of_text(body: str, wanted: str) -> None:
    assert markdown(body) == wanted


def test_lines_of_code_without_pre_stay_lines() -> None:
    """Set so by line breaks, by a style, or by an element of their own, whose markup is the code."""
    page = "<p><code>one<br>  two</code></p><div style='white-space:pre'>a:\n  b</div><p>Use <code>a\nb</code> or <code style='white-space: pre'>a  b</code>.</p>"
    made = convert(SourceText(URL, f"<main><h1>T</h1>{page}</main>")).markdown
    assert made == "# T\n\n```\none\n  two\n```\n\n```\na:\n  b\n```\n\nUse `a b` or `a  b`.\n"


def test_twoslash_leaves_the_lines_of_code() -> None:
    menu = "<div class=v-popper><span>{}</span><div class=v-popper__popper><div></div><div></div></div></div>"
    line = "<span class=line>let {} = {}</span>"
    code = "\n".join(line.format(menu.format(name), number) for number, name in enumerate("abc"))
    made = convert(SourceText(URL, f"<main><h1>T</h1><pre class=twoslash><code>{code}</code></pre></main>")).markdown
    assert made == "# T\n\n```\nlet a = 0\nlet b = 1\nlet c = 2\n```\n"


def test_hostile_tables_and_nests_take_no_time() -> None:
    """Stairs of cells that span all rows, articles and forms within each other."""
    stairs = "<table>" + "<tr><td rowspan=9999 colspan=9999>1</td></tr>" * 3000 + "</table>"
    nests = "".join(
        f"<{tag}>" * 3000 + f"{LONG}" + f"</{tag}>" * 3000 for tag in ("article", "form", "aside", "footer")
    )
    links = "<span>" * 3000 + "<a href=#a>1</a>" * 3000 + "</span>" * 3000
    started = time.process_time()
    for body in (stairs, nests, links):
        assert "1" in convert(SourceText(URL, f"<main><h1>T1</h1>{body}</main>")).markdown
    assert time.process_time() - started < 20


REPORTED = {
    "g1_vitepress_twoslash_built": ("interface Gate { port: number; name?: string }\n/** Opens", "not assignable"),
    "g2_vitepress_home_built": ("# Kestrel Letters that arrive", "Skip to content"),
    "g3_vitepress_math_built": ("w_n = min(2^n+r,3600)", "wn"),
    "g5_nbsphinx_built": ("```python\nimport gate", "[3]"),
    "h01a_form_body": ("## Raise a quota {#raise}", "Home"),
    "h01b_form_main": ("## Set a relay {#set}", "Home"),
    "h01c_form_article": ("## Steps {#steps}\n\n1. Open the console", "Home"),
    "h02a_bootstrap": ("## Why is my vault read-only? {#q1}", "Home"),
    "h02b_uswds": ("#### What is a seal?", "Home"),
    "h02c_headless": ("- **Can I move to another shard?**: An operator", "Home"),
    "h03a_katex": ("follows $E = mc^2$ and", "mc2"),
    "h03c_kramdown_script": ("before try $n$ is given", "math/tex"),
    "h04a_rowspan": ("| North | Large | 40 |\n| South | Small | 11 |\n| South | Large | 44 |", "|  |"),
    "h06a_twoslash": ("```ts\nconst gate = open(8025)\ngate.start()\n```", "Gateway<string>"),
    "h06b_vp_floating": ("```ts\nlet count = 3\n```", "count: number"),
    "h07a_slate_aside": ("an authenticated kestrel of 512 feathers!", "toc-wrapper"),
    "h07b_plain_aside_main": ("or letters of 2 days are lost.\n\nThe file name", "Home"),
    "h08a_section_header": ("## Install on a bare host\n\nTakes ten minutes.", "Home"),
    "h09b_copy_link_text": ("## Log level {#log-level}\n", "Cop"),
    "h10a_nbsphinx": ("kestrel.count('2026-01-01')\n```\n\n```\n4711", "[1]"),
    "h11b_shy": ("The configuration of the quarantine", "\u00ad"),
    "h12d_code_no_pre": ("```\nqueue:\n  size: 20\n```", "template"),
    "h14a_confluence_script": (
        "```bash\nkestrel queue unstick --all\nkestrel queue list\n```\n\n**Warning: Careful**",
        "CDATA",
    ),
    "h15a_shadow": ("## Mirrors\n\nA mirror answers", "color:red"),
    "h16b_frameset": ("](https://docs.example.org/h16c_frame_content.html)", "<h2>"),
    "h21_empty_root_splash": ("# Kestrel {#_top}\n\nA gateway for birds", "Home"),
    "h24_mathml_subscripts": ("w_n = ∑_(k = 0)^n sqrt(x) seconds", "wn"),
}


@pytest.mark.skipif(not WILD.is_dir(), reason=f"needs the shared inputs in {WILD}")
@pytest.mark.parametrize("name", REPORTED)
def test_pages_that_people_reported(name: str) -> None:
    """Each holds what was lost, and nothing of what stood in its place."""
    page = (WILD / f"{name}.html").read_text("utf-8")
    made = convert(SourceText(f"https://docs.example.org/{name}.html", page)).markdown
    wanted, unwanted = REPORTED[name]
    assert wanted in made
    assert unwanted not in made
