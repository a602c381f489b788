"""Code as highlighters write it keeps its language and loses its line numbers; text never becomes a tag."""

from app.text.blocks import plain
from ingestion.convert import SourceText, convert

LANGUAGES = {
    "highlight.js": ('<pre><code class="hljs python">x</code></pre>', "python"),
    "highlight.js, language first": ('<pre><code class="python hljs">x</code></pre>', "python"),
    "Shiki": ('<pre class="shiki github-dark" data-language="ts"><code><span class="line">x</span></code></pre>', "ts"),
    "VitePress": ('<div class="language-ts vp-adaptive-theme"><span class="lang">ts</span><pre><code>x</code></pre></div>', "ts"),
    "GitHub": ('<div class="highlight highlight-source-python"><pre>x</pre></div>', "python"),
    "GitHub, a text grammar": ('<div class="highlight highlight-text-html-basic"><pre>x</pre></div>', "html"),
    "SyntaxHighlighter": ('<pre class="brush: js; gutter: false">x</pre>', "js"),
    "Pandoc": ('<div class="sourceCode"><pre class="sourceCode numberSource python"><code>x</code></pre></div>', "python"),
    "Prism": ('<pre class="language-jsx"><code class="language-jsx">x</code></pre>', "jsx"),
    "Rouge": ('<div class="language-ruby highlighter-rouge"><div class="highlight"><pre><code>x</code></pre></div></div>', "ruby"),
    "Chroma": ('<pre class="chroma"><code class="language-go" data-lang="go">x</code></pre>', "go"),
    "Pygments": ('<div class="highlight-python3 notranslate"><div class="highlight"><pre><span></span>x</pre></div></div>', "python3"),
    "Asciidoctor": ('<pre class="CodeRay highlight"><code data-lang="ruby">x</code></pre>', "ruby"),
    "rustdoc": ('<pre class="rust rust-example-rendered"><code>x</code></pre>', "rust"),
    "TypeDoc": ('<pre><code class="typescript">x</code><button>Copy</button></pre>', "typescript"),
    "JSDoc": ('<pre class="prettyprint source lang-js"><code>x</code></pre>', "js"),
    "Mermaid": ('<pre class="mermaid hx:mt-6">x</pre>', "mermaid"),
    "Confluence": ('<pre class="syntaxhighlighter-pre" data-syntaxhighlighter-params="brush: bash; gutter: false">x</pre>', "bash"),
    "mkdocs-jupyter": ('<div class="highlight-ipynb hl-python"><pre>x</pre></div>', "python"),
    "only classes of a theme": ('<pre class="chroma dark wrap screen"><code>x</code></pre>', ""),
}  # fmt: skip
NUMBERED = {
    "Pygments": '<div class="highlight-python"><table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2</pre></div></td>'
    '<td class="code"><div class="highlight"><pre><span></span>a = 1\nb = 2\n</pre></div></td></tr></table></div>',
    "Hugo": '<div class="chroma"><table class="lntable"><tr><td class="lntd"><pre class="chroma"><code><span class="lnt">1\n</span><span class="lnt">2\n</span></code></pre></td>'
    '<td class="lntd"><pre class="chroma"><code class="language-python" data-lang="python"><span class="line">a = 1\n</span><span class="line">b = 2\n</span></code></pre></td></tr></table></div>',
    "Hugo, in the line": '<pre class="chroma"><code class="language-python"><span class="line"><span class="ln">1</span><span class="cl">a = 1\n</span></span>'
    '<span class="line"><span class="ln">2</span><span class="cl">b = 2\n</span></span></code></pre>',
    "Rouge": '<div class="language-python highlighter-rouge"><code><table class="rouge-table"><tr><td class="rouge-gutter gl"><pre class="lineno">1\n2\n</pre></td>'
    '<td class="rouge-code"><pre>a = 1\nb = 2\n</pre></td></tr></table></code></div>',
    "SyntaxHighlighter": '<div class="syntaxhighlighter  python"><table><tr><td class="gutter"><div class="line">1</div><div class="line">2</div></td><td class="code"><div class="container">'
    '<div class="line"><code class="python plain">a = 1</code></div><div class="line"><code class="python plain">b = 2</code></div></div></td></tr></table></div>',
    "highlightjs-line-numbers": '<pre><code class="hljs python"><table class="hljs-ln"><tr><td class="hljs-ln-numbers">1</td><td class="hljs-ln-code">a = 1</td></tr>'
    '<tr><td class="hljs-ln-numbers">2</td><td class="hljs-ln-code">b = 2</td></tr></table></code></pre>',
    "Asciidoctor": '<pre class="CodeRay highlight"><code data-lang="python"><table class="linenotable"><tr><td class="linenos"><pre>1\n2</pre></td>'
    '<td class="code"><pre>a = 1\nb = 2</pre></td></tr></table></code></pre>',
}  # fmt: skip


def markdown(body: str) -> str:
    made = convert(SourceText("https://docs.example.org/", f"<html><body><main><h1>T</h1>{body}</main></body></html>"))
    return made.markdown.removeprefix("# T\n").strip()


def test_the_language_of_code_is_read_from_each_highlighter() -> None:
    """Classes with and without a prefix, and attributes; what only styles the block is no language."""
    found = {name: markdown(body) for name, (body, _) in LANGUAGES.items()}
    assert found == {name: f"```{language}\nx\n```" for name, (_, language) in LANGUAGES.items()}


def test_line_numbers_beside_code_are_left_out() -> None:
    """A table of numbers and code is one block of code; a table of exit codes stays a table."""
    found = {name: markdown(body) for name, body in NUMBERED.items()}
    assert found == dict.fromkeys(NUMBERED, "```python\na = 1\nb = 2\n```")
    codes = "<table><tr><th>Code</th><th>Command</th></tr><tr><td>1</td><td><pre>stop</pre></td></tr></table>"
    assert markdown(codes).startswith("| Code | Command |")
    fragment = '<div class="fragment"><div class="line"><span class="lineno"> 1</span>int x;</div><div class="line">int y;</div></div>'
    assert markdown(fragment) == "```\nint x;\nint y;\n```"


def test_a_table_around_code_is_no_table() -> None:
    """DocBook draws its frame so; a cell of a table that has more keeps its place."""
    frame = "<table border='0'><tr><td><pre>a = 1\nb = 2</pre></td></tr></table>"
    assert markdown(f"<p>Write:</p>{frame}") == "Write:\n\n```\na = 1\nb = 2\n```"
    assert markdown(frame.replace("</tr>", "<td>two</td></tr>")).startswith("|  |  |\n| --- | --- |\n| `a = 1`")


def test_a_blank_before_a_link_in_code_is_no_code() -> None:
    """Code that is more than the link keeps its text."""
    link = "<a href='https://docs.example.org/x'>y</a>"
    assert markdown(f"<p>Set the <tt> {link}</tt> option.</p>") == "Set the [`y`](https://docs.example.org/x) option."
    assert markdown(f"<p>Call <code>--set {link}</code>.</p>") == "Call `--set `[`y`](https://docs.example.org/x)."


def test_text_that_looks_like_a_tag_stays_text() -> None:
    """It is escaped outside code, so that no client drops it; what a model reads has no backslashes."""
    text = "Returns Map&lt;string, T&gt; or &lt;abi&gt; if 3 &lt; 4, written <code>&lt;abi&gt;</code> or &amp;lt;abi."
    made = markdown(f"<h2 id=a>class Box&lt;T&gt;</h2><p>{text}</p>")
    assert made == (
        "## class Box\\<T> {#a}\n\nReturns Map\\<string, T> or \\<abi> if 3 < 4, written `<abi>` or \\&lt;abi."
    )
    assert plain(made).endswith("Returns Map<string, T> or <abi> if 3 < 4, written `<abi>` or &lt;abi.")
    assert plain("A \\<b>word\\</b> and <b>bold</b>.") == "A <b>word</b> and bold."


def test_task_lists_show_what_is_done() -> None:
    """Checkboxes of Markdown and icons of Asciidoctor; a box elsewhere in an item is no mark."""
    box = '<input type="checkbox" disabled{}>'
    items = f"<li><label>{box.format(' checked')}<span></span></label> One</li><li>{box.format('')} Two</li>"
    icon = '<li><p><i class="fa fa-check-square-o"></i> Three</p></li>'
    assert markdown(f"<ul>{items}</ul>") == "- [x] One\n- [ ] Two"
    assert markdown(f"<ul>{icon}</ul>") == "- [x] Three"
    assert markdown(f"<ul><li>Press {box.format('')} now</li></ul>") == "- Press now"
