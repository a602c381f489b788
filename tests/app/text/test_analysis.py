"""Text to the tokens that BM25 counts."""

from __future__ import annotations

import tracemalloc
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.core.generation import split_version
from app.text.analysis import MOST_MARKS, PREFIX_MARK, STEM_MARK, analyse, fold, normalized
from tests.deadline import at_most


def words(text: str, language: str) -> list[str]:
    return [token for token in analyse(text, language) if not token.endswith((PREFIX_MARK, STEM_MARK))]


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("cs", ["disk", "disku", "disků", "disky", "DISKY"]),
        ("cs", ["úložiště", "úložištím", "Úložišť"]),
        ("cs", ["kvóta", "kvótu", "kvótami", "kvotu"]),
        ("en", ["container", "containers", "Containers"]),
        ("en", ["run", "running", "runs"]),
    ],
)
def test_forms_of_a_word_share_a_token(language, forms):
    assert set.intersection(*(set(analyse(form, language)) for form in forms))


def test_threads_do_not_share_a_stemmer():
    """Pages are analysed in threads while questions are in the loop's: neither may disturb the other's word."""
    texts = [f"konfigurace{i} připojování{i} uživatelských{i}" for i in range(300)]
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(lambda text: analyse(text, "cs"), texts * 4))
    assert at_once == [analyse(text, "cs") for text in texts] * 4


def test_text_and_question_without_diacritics_meet():
    assert set(analyse("zálohování", "cs")) & set(analyse("zalohovani", "cs"))
    assert analyse("ÚLOŽIŠTĚ", "cs") == analyse("uloziste", "cs")


def test_composed_and_decomposed_letters_are_the_same():
    text = "Příliš žluťoučký kůň"
    assert analyse(unicodedata.normalize("NFD", text), "cs") == analyse(text, "cs")


def test_a_prefix_is_never_mistaken_for_a_word():
    assert "kuber*" in analyse("kubernetes", "en")
    assert "kuber" not in analyse("kubernetes", "en")
    assert analyse("kuber*", "en") == ["kuber", "kuber~", "kuber*"]
    assert analyse("abcd 12345678", "en") == ["abcd", "abcd~", "12345678"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("app.kubernetes.io/name", {"app.kubernetes.io/name", "app", "kubernetes", "io", "name"}),
        ("nvidia.com/gpu", {"nvidia.com/gpu", "nvidia", "com", "gpu"}),
        ("my_var", {"my_var", "my", "var"}),
        ("--dry-run=client", {"dry-run", "dry", "run", "client"}),
        ("ImagePullBackOff", {"imagepullbackoff", "image", "pull", "back", "off"}),
        ("ERR_CONNECTION_REFUSED", {"err_connection_refused", "err"}),
        ("kubectl.", {"kubectl"}),
        ("v1.28", {"v1.28", "v1", "28"}),
    ],
)
def test_identifiers_are_kept_whole_and_in_parts(text, tokens):
    assert tokens <= set(words(text, "en"))


def test_a_language_without_a_dictionary_is_folded():
    assert words("Größe Überall", "xx") == ["grosse", "uberall"]
    assert words("Größe", "") == ["grosse"]


@pytest.mark.parametrize("text", ["", " \n\t", "?!… -- ()", "🙂", "\x00", "_._/-"])
def test_text_without_words_has_no_tokens(text):
    assert analyse(text, "cs") == []


def test_no_token_holds_a_space_or_encoded_data():
    text = "a\u00a0b\u2003c d\u3000e " + "x" * 500 + " " + "/".join(["part"] * 100)
    tokens = analyse(text, "en")
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    assert max(len(token) for token in tokens) <= 64
    assert "part" in tokens


def test_folding_takes_case_accents_and_strokes_only():
    assert fold("Žluťoučký KŮŇ, Straße 1.5") == "zlutoucky kun, strasse 1.5"
    assert fold("Założyć trwały wolumin, Đorđe på Røros") == "zalozyc trwaly wolumin, dorde pa roros"
    assert set(analyse("trwaly", "pl")) & set(analyse("trwały", "pl"))


def test_what_is_remembered_is_bounded_by_bytes_whatever_the_words() -> None:
    """Long words, identifiers and addresses are analysed as ever, and not remembered."""
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(300):
        long = f"x{number:x}"
        analyse(f"{long * 2000} {'.'.join([long] * 200)}", "en")
        split_version(f"https://docs.example.org/{'a' * 10_000}/v{number}/")
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 1_000_000


def test_marks_are_sorted_in_linear_time():
    """Normalising sorts marks with insertion sort: 20,000 took .8 s, and a megabyte would take half an hour."""
    with at_most(20):
        assert len(fold("a" + "\u0301\u0316" * 500_000)) == 1
        assert len(normalized("NFC", "a" + "\u0301\u0316" * 500_000)) <= MOST_MARKS + 1
    assert normalized("NFC", "e" + "\u0301" * 40 + "x") == unicodedata.normalize("NFC", "e" + "\u0301" * 30 + "x")
    flags = "🏳️‍🌈" * 40
    assert normalized("NFC", flags) == flags


def test_every_mark_is_counted():
    """What becomes a mark when it is normalised matches the pattern that looks for many of them."""
    marks = [c for c in map(chr, range(0xD800)) if unicodedata.combining(unicodedata.normalize("NFKD", c)[0])]
    assert [c for c in marks if len(normalized("NFKD", c * 100)) > MOST_MARKS * 4] == []


def test_no_letter_makes_a_question_much_longer():
    longest = max((c for c in map(chr, range(0x110000)) if c.isalnum()), key=lambda c: len(fold(c)))
    assert len(fold(longest)) <= 4
