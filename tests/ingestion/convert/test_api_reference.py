"""API references as Sphinx, TypeDoc, JSDoc, Javadoc, Doxygen and rustdoc build them; `api_reference/make.sh` made the pages."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from app.core.types import Chunk, Page
from ingestion.convert import SourceText, convert
from ingestion.split import Splitter

PAGES = Path(__file__).parents[1] / "api_reference"
URL = "https://docs.example.org/api/box.html"
NAMES = sorted(path.stem for path in PAGES.glob("*.html"))


def markdown(name: str) -> str:
    return convert(SourceText(URL, (PAGES / f"{name}.html").read_text("utf-8"))).markdown


def chunks(name: str, size: int) -> tuple[Chunk, ...]:
    made = convert(SourceText(URL, (PAGES / f"{name}.html").read_text("utf-8")))
    return Splitter(size=size).split(Page(URL, "docs", made.title, "en", made.markdown, ""))


def section_at(chunk: Chunk, text: str) -> tuple[str, str]:
    """(heading path, anchor) of the section of the chunk that holds the text."""
    section = [one for one in chunk.sections if one.offset <= chunk.text.index(text)][-1]
    return " > ".join(section.path), section.anchor


@pytest.mark.parametrize(
    "name", ["sphinx", "sphinx-domains", "typedoc", "typedoc-inherited", "jsdoc", "javadoc", "doxygen", "rustdoc"]
)
def test_a_page_of_each_generator(name: str) -> None:
    """The Markdown is the one beside the page, read by a person."""
    assert markdown(name) == (PAGES / f"{name}.md").read_text("utf-8")


def test_the_theme_makes_no_difference() -> None:
    """What Sphinx says of a symbol has the same form in every theme."""
    assert markdown("sphinx") == markdown("sphinx-furo")


def test_every_anchor_is_in_the_page() -> None:
    """Links to symbols lead to them, also where an id has letters that no address may have."""
    for name in NAMES:
        page = (PAGES / f"{name}.html").read_text("utf-8")
        ids = {found.replace("&lt;", "<").replace("&gt;", ">") for found in re.findall(r'\bid="([^"]*)"', page)}
        anchors = re.findall(r"(?m)^#+ .*\{#(\S+)\}$", markdown(name))
        assert anchors, name
        assert [anchor for anchor in anchors if anchor not in ids and unquote(anchor) not in ids] == [], name


def test_overloads_are_exact() -> None:
    """Of a page that is compared with no Markdown as a whole."""
    code = re.findall(r"(?ms)^```\w+\n(.*?)\n```$", markdown("typedoc-function"))
    promise = "Promise<Map<string, number[]>>"
    assert {f"open(path: string, ...rest: number[]): {promise}", f"open(fd: number): {promise}"} <= set(code)


def test_nothing_of_the_theme_is_left() -> None:
    """No tooltips, no links to sources, no marks of anchors, no links within the page to what follows."""
    marks = re.compile(
        r"PEP 570|separator|\[source\]|Source|[¶§◆]|Permalink|in java\.|in lumora|Defined in|Blanket Implementations"
    )
    for name in NAMES:
        assert marks.findall(markdown(name)) == [], name


PARAMETERS = (
    ("sphinx", "- `angle` – degrees", "lumora.Box > Lid > lift()", "lumora.Box.Lid.lift"),
    ("sphinx", "- `name` (`str or bytes`) – its name", "lumora.pick()", "lumora.pick"),
    ("sphinx", "- `KeyError` – if *strict*", "lumora.pick()", "lumora.pick"),
    ("sphinx", "- `things` – their names", "lumora.Box > of()", "lumora.Box.of"),
    ("sphinx", "- `SIZE = 10` – How many", "lumora.Box", "lumora.Box"),
    ("sphinx", "- `GREEN = 2` – What", "lumora.Colour", "lumora.Colour"),
    ("sphinx-domains", "- `0` – it is open", "lumora_open()", "c.lumora_open"),
    ("typedoc", "- `key: K` – its name", "Class Box<T> > Methods > pick()", "pick"),
    ("typedoc", "* `strict?: boolean` (Optional) – whether", "Class Box<T> > Methods > pick()", "pick"),
    ("jsdoc", "* `size` (`number`, optional, = `10`) – How", "Class: Box > Constructor > new Box()", "Box"),
    ("jsdoc", "- `RangeError` – If there", "Class: Box > Methods > pick()", "pick"),
    ("javadoc", "- `fallback` - what else", "Method Details > pick()", "pick(java.lang.String,java.util.Map,int...)"),
    ("javadoc", "- `name` - what is written on it", "Constructor Details > Box()", "%3Cinit%3E(java.lang.String)"),
    ("doxygen", "- `found` (`out`) – whether", "pick()", "a8c86209b771283ff5bbfd7171a8f0369"),
    ("rustdoc", "Picks one thing", "impl<T: Clone> Crate<T> > pick()", "method.pick"),
)


def test_a_parameter_list_is_of_its_symbol_however_small_the_chunks() -> None:
    """The section of each list has the symbol's full name in its path and leads to it."""
    for name, text, path, anchor in PARAMETERS:
        for size in (120, 1500):
            found = [section_at(chunk, text) for chunk in chunks(name, size) if text in chunk.text]
            assert found, (name, text, size)
            assert all((at.endswith(path), one) == (True, anchor) for at, one in found), (name, text, found)


def test_values_without_a_word_to_say_are_lists_of_their_parent() -> None:
    """Members of enumerations, short attributes and fields are no sections: they would be more heading than text."""
    for name, listed in (
        ("doxygen-enum", "- `RED` – As blood.\n- `GREEN` – As grass."),
        ("javadoc-enum", "- `public static final Box.Colour RED` – As blood."),
        ("rustdoc-enum", "- `Shut` – It is shut."),
    ):
        assert listed in markdown(name), name


def test_a_name_deeper_than_headings_go_is_written_in_full() -> None:
    """Six levels of headings are all there are: symbols below that say of what they are."""
    body = "<p>end</p>"
    for name in ("a.B.C.D.E.F", "a.B.C.D.E", "a.B.C.D", "a.B.C", "a.B"):
        own = name if name == "a.B" else name.rpartition(".")[2]
        term = f'<dt class="sig py" id="{name}"><span class="sig-name descname">{own}</span></dt>'
        body = f'<dl class="py class">{term}<dd>{body}</dd></dl>'
    made = convert(SourceText(URL, f"<main><h1>A</h1><h2>Classes</h2>{body}</main>")).markdown
    assert "###### `a.B.C.D.E.F` {#a.B.C.D.E.F}" in made


def test_names_are_full_and_read_as_code_whatever_wrote_them() -> None:
    """Sphinx before 4 has no class on terms, some pages leave the package to the id, and underscores aren't emphasis."""
    old = (
        '<dl class="function"><dt id="copy.copy"><code class="descclassname">copy.</code><code class="descname">copy</code>'
        '<span class="sig-paren">(</span><em>x</em><span class="sig-paren">)</span><a class="headerlink" href="#copy.copy">\xb6</a>'
        "</dt><dd><p>Copies.</p></dd></dl>"
    )
    short = (
        '<dl class="py method"><dt class="sig sig-object py" id="lumora.Box.__init__"><span class="sig-name descname">__init__'
        '</span><span class="sig-paren">(</span><span class="sig-paren">)</span></dt><dd><p>Makes one.</p></dd></dl>'
    )
    made = convert(SourceText(URL, f"<main><h1>A</h1>{old}{short}</main>")).markdown
    assert "## `copy.copy()` {#copy.copy}\n\n```\ncopy.copy(x)\n```\n\nCopies." in made
    assert "## `lumora.Box.__init__()` {#lumora.Box.__init__}\n\n" in made
    assert "\n\nMakes one." in made
