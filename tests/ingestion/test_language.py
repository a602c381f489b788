"""The language of a page: clear text beats what is declared, and disagreements are told."""

import pytest

from ingestion.convert.language import Languages, PageLanguage, page_language

CZECH = "Příkaz spustíte v terminálu a výsledek najdete v adresáři, který jste zvolili při zakládání projektu. " * 4
ENGLISH = "Run the command in a terminal and find the result in the directory that you chose for the project. " * 4
SLOVAK = (
    "Príkaz spustíte v termináli a výsledok nájdete v priečinku, ktorý ste si vybrali pri zakladaní projektu, ak ste prihlásený. "
    * 4
)
TABLE = "# HW\n\n| a | b |\n|---|---|\n" + "| Speicher und Netzwerk | die Karte wird schnell |\n" * 30


def told(text: str, url: str = "https://docs.example.org/a", **declared: str) -> PageLanguage:
    return page_language(
        text, url, {k.replace("_", " "): v for k, v in declared.items()}, Languages(("cs", "en"), "en")
    )


def test_clear_text_beats_every_declaration() -> None:
    """A Czech page in the English folder is Czech, and a Slovak one in the Czech folder Slovak; the report says so."""
    found = told(CZECH, "https://docs.example.org/en/a", html_lang="en")
    assert found == PageLanguage("cs", "the text is cs, the address says en")
    assert told(CZECH, "https://docs.example.org/cs/a") == PageLanguage("cs")
    found = told(SLOVAK, "https://docs.example.org/cs/a")
    assert (found.code, "the text is sk, the address says cs" in found.note) == ("sk", True)
    assert told(ENGLISH, html_lang="en-US") == PageLanguage("en")


@pytest.mark.parametrize(
    ("url", "declared", "expected"),
    [
        ("https://docs.example.org/en/a.cs.md", {"front_matter": "en", "html_lang": "cs"}, "en"),
        ("https://docs.example.org/en/a.cs.md", {"html_lang": "en"}, "cs"),
        ("https://docs.example.org/docs/cz/a", {"html_lang": "en"}, "cs"),
        ("https://docs.example.org/docs/en-US/a", {"html_lang": "cs"}, "en"),
        ("https://docs.example.org/a", {"hreflang": "cs", "html_lang": "en"}, "cs"),
        ("https://docs.example.org/a", {"html_lang": "cs-CZ"}, "cs"),
        ("https://docs.example.org/a", {"html_lang": "{{ lang }}"}, "en"),
        ("https://docs.example.org/js/io/a", {}, "en"),
    ],
)
def test_short_pages_have_the_language_that_is_declared(url: str, declared: dict[str, str], expected: str) -> None:
    """Front matter, suffix, folder, hreflang, html lang, default: the first that says one."""
    assert told("# TBD", url, **declared).code == expected


def test_code_and_tables_say_nothing() -> None:
    """Only prose counts: German words in a table, English ones in code. A failed include of Antora was Romanian."""
    failed = "Unresolved include directive in modules/cli/pages/man1/asciidoctor.adoc - include::partial$man.adoc[]"
    assert told(f"# Asciidoctor -\n\n{failed}", html_lang="en") == PageLanguage("en")
    assert told(TABLE, html_lang="cs").code == "cs"
    assert told("# T\n\n```\n" + ENGLISH + "\n```\n", html_lang="cs").code == "cs"


def test_the_same_text_always_has_the_same_language() -> None:
    """Nothing is drawn at random."""
    mixed = (CZECH[:150] + SLOVAK[:150]) * 2
    assert len({told(mixed).code for _ in range(10)}) == 1
