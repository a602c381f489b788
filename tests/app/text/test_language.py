"""The language of a question: only configured ones, the same every time."""

import json
from pathlib import Path

import pytest

from app.core.prompts import load_prompts
from app.text.analysis import fold
from app.text.language import LanguageDetector, without_stopwords

LANGUAGES = load_prompts(("cs", "en")).languages
DETECTOR = LanguageDetector(LANGUAGES, "en")


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Jak získám přístup ke clusteru?", "cs"),
        ("How do I get access to the cluster?", "en"),
        ("kubectl apply -f deployment.yaml nefunguje, co s tim", "cs"),
        ("pod is stuck in `čekající` state, what now", "en"),
        ("kvóty úložiště", "cs"),
        ("jak velka je kvota", "cs"),
        ("storage quota", "en"),
        ("dog", "en"),
        ("zalohovani postgres databaze", "cs"),
        ("postgres s3 backup retention", "en"),
        ("user's namespace doesn't start", "en"),
        ("JAK ZVĚTŠÍM KVÓTU?", "cs"),
        ("je-li disk", "cs"),
        ("nvidia-smi", "en"),
        # a name is of the language that it is of; an English message is pasted into any
        ("Who is Jiří Novák?", "en"),
        ("Where do I find Žádost o projekt?", "en"),
        ("Where is the button „Nový projekt“?", "en"),
        ("What does the message 'Přístup odepřen' mean?", "en"),
        ("Žádost o projekt", "cs"),
        ("„Jak zvětším kvótu?“", "cs"),
        ("Co znamená error: You must be logged in to the server", "cs"),
        ("Error from the server: pod nejde spustit, co mám dělat", "cs"),
        ("you must be logged in to the server (Unauthorized) co s tim", "cs"),
    ],
)
def test_short_mixed_and_folded_questions_with_names_and_pasted_errors(question: str, language: str) -> None:
    """Function words and diacritics decide before any statistics do."""
    assert DETECTOR.detect(question) == language


@pytest.mark.parametrize(
    "question", ["pod logs", "restart pod", "Pod OOMKilled", "ci pipeline", "NIC driver", "nova api"]
)
def test_terms_of_the_field_are_of_no_language(question: str) -> None:
    """Czech has words that look the same; they keep the language so far and are searched."""
    assert DETECTOR.shown(question) == ""
    assert without_stopwords(question, LANGUAGES["cs"]) == question


def test_a_long_message_is_read_at_both_ends() -> None:
    """The work doesn't grow with a pasted log, and the question may be below it; what is in the middle says nothing."""
    log = "the server could not find what you asked for\n" * 400
    question = "Co je s tím špatně a kde to opravím?"
    assert DETECTOR.detect(log + question) == "cs"
    assert DETECTOR.detect(log + 100 * question + log) == "en"


def test_the_profiles_are_there_before_the_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for them."""
    detector = LanguageDetector(LANGUAGES, "en")
    monkeypatch.setattr("app.text.letters._profile", lambda _: pytest.fail("loaded while somebody waits"))
    assert detector.detect("imagepullbackoff notebook") in LANGUAGES


@pytest.mark.parametrize("question", ["", "512", "???", "kubectl", "a/b/c.yaml https://x.example/cs/how"])
def test_without_any_word_history_decides_then_the_default(question: str) -> None:
    """A number or a path has no language of its own."""
    assert DETECTOR.detect("512", "cs") == "cs"
    assert DETECTOR.detect(question) in {"cs", "en"}


def test_technical_terms_alone_keep_the_language_of_the_conversation() -> None:
    """English terms are used in every language, so they don't turn a Czech conversation."""
    assert DETECTOR.detect("postgres backup retention", "cs") == "cs"
    assert DETECTOR.detect("and the retention of backups?", "cs") == "en"
    assert DETECTOR.detect("imagepullbackoff notebook", "cs") == "cs"


def test_the_answer_never_changes() -> None:
    """The same text has the same language each time."""
    texts = ["omero web ingress konfigurace", "rancher dashboard", "notebook gpu limit"]
    first = [DETECTOR.detect(text) for text in texts]
    assert all([DETECTOR.detect(text) for text in texts] == first for _ in range(20))
    fresh = LanguageDetector(load_prompts(("cs", "en")).languages, "en")
    assert [fresh.detect(text) for text in texts] == first


def test_a_single_language_needs_no_guessing() -> None:
    """With one language configured every question is in it."""
    assert LanguageDetector(load_prompts(("cs",)).languages, "cs").detect("How are you?") == "cs"


@pytest.mark.parametrize(("variant", "written", "folded"), [(0, 0.98, 0.97), (4, 0.95, 0.92)])
def test_over_the_question_set(shared: Path, variant: int, written: float, folded: float) -> None:
    """Nearly all questions are told, keyword questions (variant 4) too, and without diacritics."""
    lines = (shared / "eval" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions = [(q["question"], q["lang"]) for q in map(json.loads, lines) if variant in {0, q["variant"]}]
    for change, least in ((str, written), (fold, folded)):
        right = [DETECTOR.detect(change(question)) == language for question, language in questions]
        assert sum(right) / len(right) >= least


@pytest.mark.parametrize(
    ("question", "language", "left"),
    [
        ("How do I mount the storage?", "en", "mount storage?"),
        ("Jak si můžu připojit úložiště?", "cs", "připojit úložiště?"),
        ("jak si muzu pripojit uloziste", "cs", "pripojit uloziste"),
        ("who is it", "en", "who is it"),
        ("Proč je pod ve stavu Pending?", "cs", "pod stavu Pending?"),
        ("How does IT support it", "en", "IT support"),
        ("(what) „is“ rbd?", "en", "rbd?"),
    ],
)
def test_a_question_loses_its_function_words(question: str, language: str, left: str) -> None:
    """What says nothing of the subject is not searched; a question of function words alone keeps them."""
    assert without_stopwords(question, LANGUAGES[language]) == left
