"""A chunk is found by its words and by the names of the symbols that it describes."""

from dataclasses import replace

from app.core.types import Chunk, Section
from app.index.vocabulary import Vocabulary, tokens_of, tokens_of_question

CHUNK = Chunk("id", "docs", "https://docs.example.org/api", 0, "It says `LocalProxy` too.", "en", "API")


def named(question: str, *path: str) -> set[str]:
    """What question and chunk have in common but for words."""
    tokens = tokens_of(replace(CHUNK, sections=(Section(0, path, ""),)))
    common = set(tokens) & set(tokens_of_question(question, "en"))
    assert not any(Vocabulary.of({token: 1}).completions(token[:1], 1) for token in common if token.endswith("="))
    return {token for token in common if token.endswith("=")}


def test_a_question_that_names_a_symbol_finds_its_section_by_that() -> None:
    """By its own name, with its class, or in full; other sections only mention it. Plain words are no names."""
    assert named("Is LocalProxy slow?", "API", "werkzeug.local.LocalProxy") == {"localproxy="}
    assert named("What is multi of MultiDict.items?", "API", "a.MultiDict", "items()") == {"multidict.items="}
    assert named("werkzeug.serving.run_simple", "API", "werkzeug.serving.run_simple()") == {
        "werkzeug.serving.run_simple="
    }
    assert not named("Is LocalProxy slow?", "API", "werkzeug.local.Local")
    assert not named("Is LocalProxy slow?", "API", "What LocalProxy is")
    assert not named("How are items counted?", "API", "a.MultiDict", "items()")
    assert not named("Is LocalProxy slow?")
