"""Which chunks prove an answer, and in which section."""

from types import SimpleNamespace

from app.core.types import Chunk, Derived, Page, Section
from eval.questions.cases import Case
from eval.questions.documents import Documents
from eval.questions.evidence import heading_of, holds, proofs, share

URL = "https://docs.example.org/en/volumes"
PAGE = """# Volumes

Intro words.

## Size {#size}

A volume has **10 GiB** by default.
It grows on demand.

```sh
# resize it
kubectl edit
```

## Delete {#delete}

Deleted volumes are gone.
"""


def chunk(n: int, text: str, *headings: str) -> Chunk:
    sections = (Section(0, ("Volumes", *headings)),) if headings else ()
    return Chunk(f"c{n}", "docs", URL, n, text, "en", "Volumes", sections)


async def proof_of(evidence: str, *chunks: Chunk):
    async def page(url: str):
        return Page(url, "docs", "Volumes", "en", PAGE, "h", derived=Derived(tuple(c.id for c in chunks)))

    async def fetch(ids):
        return tuple(c for c in chunks if c.id in ids)

    case = Case("a", "en", "How big?", "en/volumes.md", evidence=evidence)
    generation = SimpleNamespace(page=page, fetch=fetch)
    return (await proofs(generation, Documents([URL]), [case])).get("a")


def test_marks_of_markdown_and_line_breaks_hide_no_quote():
    """A quote is copied from what a reader sees."""
    assert holds(PAGE, "a volume has 10 GiB by default. It grows")
    assert not holds(PAGE, "a volume has 20 GiB by default")
    assert share("a volume has 10 GiB", "A volume has 10 GiB by default") == 3 / 5


def test_the_heading_is_the_one_above_the_quote():
    """A comment in a code block is no heading, and the id is no part of it."""
    assert heading_of(PAGE, "kubectl edit") == "size"
    assert heading_of(PAGE, "Deleted volumes are gone") == "delete"
    assert heading_of("no heading at all", "at all") == ""


async def test_the_chunk_with_the_quote_proves_it():
    """Others of the page don't, and the section counts only where the chunk knows it."""
    other = chunk(1, "Deleted volumes are gone.", "Delete")
    proof = await proof_of(
        "A volume has 10 GiB by default", chunk(0, "A volume has **10 GiB** by default.", "Size"), other
    )
    assert (proof.chunks, proof.placed) == ({"c0"}, {"c0"})
    proof = await proof_of("A volume has 10 GiB by default", chunk(0, "A volume has **10 GiB** by default."), other)
    assert (proof.chunks, proof.placed) == ({"c0"}, frozenset())


async def test_a_quote_cut_by_a_chunks_end_is_proved_by_the_larger_part():
    """Half of it is needed; a stray word isn't enough."""
    quote = "A volume has 10 GiB by default. It grows on demand."
    proof = await proof_of(quote, chunk(0, "A volume has 10 GiB by default. It"), chunk(1, "grows on demand."))
    assert proof.chunks == {"c0"}
    assert await proof_of(quote, chunk(1, "grows on demand.")) is None
