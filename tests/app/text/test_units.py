"""Stretches of units: what is embedded of a chunk."""

from app.core.types import Chunk, Section
from app.text.units import STRETCH, stretch_texts, units_of


def chunk(text: str, *sections: Section) -> Chunk:
    return Chunk("id", "docs", "https://docs.example.org/limits", 0, text, "en", "Limits", sections)


def test_a_stretch_has_whole_rows_below_its_context() -> None:
    """All of the text is in one of them; the units say in which."""
    rows = [f"| option {n} | what the service does with it, and when it does so |" for n in range(20)]
    table = chunk("\n".join(["| option | what |", "| --- | --- |", *rows]))
    texts = stretch_texts(table)
    contexts, bodies = zip(*(text.split("\n\n") for text in texts), strict=True)
    assert set(contexts) == {table.context}
    assert [line for body in bodies for line in body.splitlines()] == table.text.splitlines()
    assert all(len(body) < 1.5 * STRETCH for body in bodies)
    lines = [sum(line in rows for line in body.splitlines()) for body in bodies]
    assert [unit.stretch for unit in units_of(table)] == [n for n, count in enumerate(lines) for _ in range(count)]


def test_a_section_begins_a_stretch() -> None:
    """Where one would end soon; it has the headings of the section, and the heading itself."""
    first, second = "Mail is kept. " * 25, "Files are copied. " * 20
    text = f"{first}\n\n## Files\n\n{second}"
    sections = Section(0, ("Limits", "Mail")), Section(len(first) + 2, ("Limits", "Files"))
    mail, files = stretch_texts(chunk(text, *sections))
    assert mail == f"Limits\nlimits\nMail\n\n{first.strip()}"
    assert files == f"Limits\nlimits\nFiles\n\n## Files\n\n{second.strip()}"


def test_a_text_without_units_is_one_stretch() -> None:
    """A chunk of headings alone."""
    assert stretch_texts(chunk("## Limits")) == ["Limits\nlimits\n\n## Limits"]
