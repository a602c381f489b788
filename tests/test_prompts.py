"""Prompts are complete in every language, so a new language needs a folder of prompts/ and no Python."""

import re
import tomllib
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import prompts
from app.assistants.assembly import build
from app.core.errors import PromptError
from app.core.language import OPTIONAL, REQUIRED, load_language, vocabulary
from app.core.prompts import load_prompts, placeholders
from app.core.settings import Settings
from app.text.language import LanguageDetector, fold

FLAGS = ("nouns_capitalised", "lends_words")
FOLDER = Path(prompts.__file__).parent
LANGUAGES = sorted(folder.name for folder in FOLDER.iterdir() if (folder / "language.toml").is_file())
FILES = {f"{name}.md" for name in placeholders()} | {
    "language.toml",
    "dates.toml",
    "exam.toml",
    "briefing.toml",
    "figures.toml",
}

ENGLISH = (FOLDER / "en/language.toml").read_text(encoding="utf-8")
PERSONAS = {f"{name}.md" for name in ("neutral", "beginner", "expert", "elderly", "kids", "emojis", "rhymes")}


def values(language: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / language / "language.toml").read_text(encoding="utf-8"))


@pytest.fixture
def override(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes one file of an override directory; gives the directory."""

    def write(name: str, text: str) -> str:
        file = tmp_path / "own" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="surrogateescape")
        return str(tmp_path / "own")

    return write


def test_czech_and_english_are_there():
    """Otherwise, the tests below would check nothing."""
    assert {"cs", "en"} <= set(LANGUAGES)


def test_a_language_has_exactly_the_files_that_are_used():
    """No file is missing, and none is unused."""
    for language in LANGUAGES:
        assert {file.name for file in (FOLDER / language).iterdir()} == FILES | {"persona"}, language
        assert {file.name for file in (FOLDER / language / "persona").iterdir()} == PERSONAS, language


def test_a_language_loads_and_every_prompt_renders():
    """Prompts have the placeholders that the steps fill, and each value is in the text."""
    for language in LANGUAGES:
        loaded = load_prompts([language])
        for name, names in placeholders().items():
            text = loaded.render(language, name, **{placeholder: f"<{placeholder} filled>" for placeholder in names})
            assert len(text) > 20, language
            assert "$" not in text, language
            assert all(f"<{placeholder} filled>" in text for placeholder in names), language
        for name in ("synthesize", "synthesize_short"):  # what is read last is followed best
            passages, _, rules = loaded.render(language, name, passages="<passages>").partition("<passages>")
            assert len(rules) > 2 * len(passages), language


def test_texts_of_a_language_are_complete():
    """language.toml has every key, none empty but `endings`, and enough words to tell a short question by. Readers and
    the search of old source lists tell languages by names and headings, so these differ.
    """
    for key in ("name", "sources", "extractive_intro"):
        assert len({values(language)[key] for language in LANGUAGES}) == len(LANGUAGES)
    for language in LANGUAGES:
        texts = values(language)
        assert isinstance(texts.pop("endings"), str), language
        translated, written = texts.pop("translated"), texts.pop("written")
        units, readers = texts.pop("units"), texts.pop("readers")
        several = {
            "letters",
            "also_called",
            "close_to",
            "encoding",
            *FLAGS,
        }  # what a language may do without
        assert set(texts) - several == {*REQUIRED, *OPTIONAL} - several - {
            "endings",
            "translated",
            "written",
            "units",
            "readers",
        }, language
        assert all(texts.pop(flag, True) is True for flag in FLAGS), language
        assert 1 <= texts.pop("characters_per_token") <= 4, language
        assert {"s", "min", "h", "day", "week", "month", "year", "percent"} <= set(units), language
        assert all(
            text.strip() for text in [*texts.values(), *translated.values(), *written.values(), *readers.values()]
        ), language
        for table in (translated, written):
            assert set(table) >= {"other", *LANGUAGES}, language
            assert "{code}" in table["other"], language
        assert "\n" not in texts["sources"], language
        assert len(set(texts["words"].split()) | set(texts["stopwords"].split())) >= 100, language


def test_the_page_knows_the_sign_of_what_is_not_proved():
    """By the pattern of `frontend/src/shared/doubt.tsx`."""
    source = (Path(__file__).parents[1] / "frontend/src/shared/doubt.tsx").read_text("utf-8")
    (pattern,) = re.findall(r"SIGN = /(.+)/g", source)
    assert all(re.fullmatch(pattern, values(language)["unproven"]) for language in LANGUAGES)


def test_words_are_folded_and_none_is_listed_twice():
    """Questions are compared without diacritics and in small letters, so the words must be so too."""
    for language in LANGUAGES:
        words = values(language)["words"].split() + values(language)["stopwords"].split()
        assert [word for word in words if fold(word) != word] == [], language
        assert sorted(word for word in set(words) if words.count(word) > 1) == [], language


@pytest.mark.parametrize(("one", "other"), list(combinations(LANGUAGES, 2)))
def test_no_word_is_shared_by_two_languages(one: str, other: str):
    """A word of two languages decides nothing and only hides that it doesn't."""
    assert set(values(one)["words"].split()) & set(values(other)["words"].split()) == set()


def test_a_prompt_is_detected_as_its_own_language():
    """A folder that was copied and not translated is noticed: its texts are in its language."""
    loaded = load_prompts(LANGUAGES)
    detector = LanguageDetector(loaded.languages, "en")
    for language in LANGUAGES:
        for name, names in placeholders().items():
            assert detector.detect(loaded.render(language, name, **dict.fromkeys(names, ""))) == language, name


MARKS = re.compile(r"\[\d\]|\"\w+\":|\{#\w+\}|\d{4}-\d\d-\d\d|</?\w+>")
"""Parts that a prompt must have in every language: forms of a reply that the code parses, and their examples."""


def test_every_language_has_the_same_rules_and_marks():
    """A rule that was lost in a translation, or a form of reply that the code doesn't read, is noticed."""
    loaded = load_prompts(LANGUAGES)

    def shape(language: str, name: str) -> tuple[int, list[str]]:
        text = loaded.render(language, name, **dict.fromkeys(placeholders()[name], ""))
        return text.count("\n- "), sorted(MARKS.findall(text))

    shapes = {name: {language: shape(language, name) for language in LANGUAGES} for name in placeholders()}
    assert {name: found for name, found in shapes.items() if len({str(one) for one in found.values()}) > 1} == {}
    assert shapes["synthesize"]["en"] == (8, ["[1]", "[2]", "[3]"])


def test_an_older_language_file_is_taken_as_it_is(override: Callable[[str, str], str]):
    """Missing keys have the shipped values; in a new language, they are empty."""
    lines = ENGLISH
    for key in OPTIONAL:
        lines = re.sub(rf"^{key} = (?:'''.*?'''|.*?)\n", "", lines, flags=re.MULTILINE | re.DOTALL)
    lines = lines.partition("[units]")[0]
    own = override("en/language.toml", lines)
    assert load_prompts(["en"], own).language("en") == load_prompts(["en"]).language("en")
    override("xx/dates.toml", (FOLDER / "en/dates.toml").read_text(encoding="utf-8"))
    language = load_language("xx", override("xx/language.toml", lines))
    assert (language.replies.passage, language.replies.source_headings, language.replies.no_answer) == (
        frozenset(),
        (),
        "",
    )
    assert vocabulary(("xx",), own).abbreviations == vocabulary().abbreviations


def test_words_of_questions_may_be_written_with_their_diacritics(override: Callable[[str, str], str]):
    """They are compared without them, so those of a folder must not fail to match for a stroke or an accent."""
    lines = re.sub(
        r'^smalltalk = """.*?"""', 'smalltalk = "cześć Dzięki całkiem"', ENGLISH, flags=re.MULTILINE | re.DOTALL
    )
    lines = re.sub(r'^smalltalk = ".*?"$', 'smalltalk = "cześć Dzięki całkiem"', lines, flags=re.MULTILINE)
    override("xx/dates.toml", (FOLDER / "en/dates.toml").read_text(encoding="utf-8"))
    language = load_language("xx", override("xx/language.toml", lines))
    assert language.questions.smalltalk == {"czesc", "dzieki", "calkiem"}


def test_a_file_of_the_override_directory_replaces_the_shipped_one(override: Callable[[str, str], str]):
    """One own file is used, all others stay as shipped; $$ is a dollar sign."""
    loaded = load_prompts(["cs", "en"], override("en/nothing_found.md", "Ask the help desk, not for 5 $$.\n"))
    assert loaded.render("en", "nothing_found") == "Ask the help desk, not for 5 $."
    assert loaded.render("cs", "nothing_found") == load_prompts(["cs"]).render("cs", "nothing_found")


def test_a_language_may_live_in_the_override_directory_alone(override: Callable[[str, str], str]):
    """A new language needs a folder and its code in the settings, nothing else."""
    for file in (FOLDER / "en").rglob("*.*"):
        name = file.relative_to(FOLDER / "en").as_posix()
        own = override(f"xx/{name}", file.read_text(encoding="utf-8").replace("Sources", "Xources"))
    assert load_prompts(["en", "xx"], own).language("xx").texts.sources == "Xources"


def test_a_persona_of_ones_own_needs_a_file_in_each_language(override: Callable[[str, str], str]):
    """The frame that protects facts surrounds it; a missing file of a language is an error that names it."""
    own = override("en/persona/pirate.md", "Talk like a pirate.")
    with pytest.raises(PromptError, match=r"prompts/cs/persona/pirate\.md"):
        load_prompts(["cs", "en"], own)
    text = load_prompts(["en"], own).persona("en", "pirate")
    assert "Talk like a pirate." in text
    assert "stay exactly" in text
    assert load_prompts(["en"], own).persona("en", "") == ""
    own = override("en/persona/Two Words.md", "x")
    with pytest.raises(PromptError, match="Two Words"):
        load_prompts(["en"], own)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("en/synthesize.md", "See $passage.", r"\$passage is unknown\. Did you mean passages\? \$passages is missing"),
        ("en/synthesize.md", "Answer.", "passages"),
        ("en/nothing_found.md", "Nothing, $name.", "name"),
        ("en/nothing_found.md", "It costs 5 $ a month.", "begins no placeholder"),
        ("en/language.toml", 'name = "English"', "lacks"),
        ("en/language.toml", 'name = "English', "TOML"),
        ("en/dates.toml", "months = [", "TOML"),
        ("en/language.toml", ENGLISH.replace("other = ", "another = "), "translated"),
        ("en/language.toml", ENGLISH.replace("name =", 'colour = "red"\nname ='), "colour"),
        (
            "en/language.toml",
            ENGLISH.replace("{count}", "{anzahl}"),
            r"has the placeholder \{anzahl\}\. Known are: \{count\}",
        ),
        ("en/language.toml", ENGLISH.replace("{done}", "{gotowe}"), "still_reading"),
        ("en/language.toml", ENGLISH.replace("{words}.", "{words."), "unknown_words"),
        ("en/nothing_found.md", "\udcff\udcfe\x00", r"en/nothing_found\.md"),
    ],
)
def test_a_wrong_file_is_an_error_that_names_it(override: Callable[[str, str], str], name: str, text: str, said: str):
    """A wrong placeholder, a single $, an incomplete language.toml or bytes that aren't UTF-8 stop the start, and the
    message says which file.
    """
    with pytest.raises(PromptError, match=said) as error:
        load_prompts(["en"], override(name, text))
    assert name in str(error.value)


def test_a_language_without_prompts_is_an_error(override: Callable[[str, str], str], tmp_path: Path):
    """It names the language and those of the package, a file that a folder lacks, and a mistyped DOCS_PROMPTS; without
    languages there is nothing to answer in.
    """
    with pytest.raises(PromptError, match="no such directory"):
        load_prompts(["en"], str(tmp_path / "absent"))
    with pytest.raises(PromptError, match="DOCS_LANGUAGES"):
        load_prompts([])
    with pytest.raises(PromptError, match=rf"DOCS_LANGUAGES has xx, .* the package has {', '.join(LANGUAGES)}"):
        load_prompts(["en", "xx"])
    with pytest.raises(PromptError, match=r"prompts/xx/\w+\.md"):
        load_prompts(["en", "xx"], override("xx/synthesize.md", "$passages"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("en/synthesise.md", r"en/synthesise\.md isn't used: .*Did you mean synthesize\.md\?"),
        ("en/langauge.toml", r"en/langauge\.toml isn't used: .*Did you mean language\.toml\?"),
        ("en/synthesize.txt", r"en/synthesize\.txt isn't used: .*Did you mean synthesize\.md\?"),
        ("en/personas/pirate.md", r"en/personas isn't used: .*Did you mean persona\?"),
        (
            "enn/synthesize.md",
            r"enn is the folder of no language \(there are [a-z, ]*\ben\b[a-z, ]*\)\. Did you mean en\?",
        ),
        ("synthesize.md", r"synthesize\.md isn't used there: put it into the folder of its language, such as .*/cs"),
        ("notes.txt", r"has no folder of a language\. Put the files into .*/cs"),
    ],
)
def test_what_nothing_uses_in_the_override_directory_is_an_error(
    override: Callable[[str, str], str], name: str, said: str
):
    """Otherwise, the shipped prompt would stay in use without a word."""
    with pytest.raises(PromptError, match=said):
        load_prompts(["cs", "en"], override(name, "Answer from $passages."))


def test_a_prompt_of_no_step_is_an_error_when_the_steps_are_known(override: Callable[[str, str], str]):
    """Until then it may be of a step of a project."""
    own = override("en/answer.md", "Answer from $passages.")
    override("de/nothing_found.md", "Nichts.")  # of a shipped language that isn't used
    override("README.md", "Notes.")
    assert load_prompts(["cs", "en"], own)
    with pytest.raises(PromptError, match=r"en/answer\.md isn't used"):
        build(Settings.load(None, prompts=own))


def test_every_unknown_and_missing_key_is_named_at_once(override: Callable[[str, str], str]):
    own = override("en/language.toml", re.sub("^found = ", "fuond = ", ENGLISH, flags=re.MULTILINE))
    with pytest.raises(PromptError) as error:
        load_prompts(["en"], own)
    assert [line.partition("language.toml ")[2] for line in str(error.value).splitlines()] == [
        "has the unknown key fuond. Did you mean found?",
        "lacks found.",
    ]


def test_values_that_do_not_match_the_placeholders_are_an_error():
    """A step that changed and a prompt that didn't are noticed."""
    loaded = load_prompts(["en"])
    with pytest.raises(PromptError, match="synthesize"):
        loaded.render("en", "synthesize", texts="x")
    with pytest.raises(PromptError, match="cs"):
        loaded.render("cs", "nothing_found")
