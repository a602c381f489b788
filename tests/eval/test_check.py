"""A set's mistakes are found, and ours has none."""

import pytest

from app.core.prompts import load_prompts
from app.routes.html_pages import find_docs
from app.text.language import LanguageDetector
from eval.measure.conversations import ALONE, BACK
from eval.questions.cases import Case, load_cases
from eval.questions.documents import Documents
from eval.questions.evidence import check_form, check_pages, counts, holds, is_copied
from eval.questions.own_docs import IN_CONVERSATION, UNANSWERABLE, own_set

PAGE = "A volume has **10 GiB** by default and grows on demand when its claim is edited by you."
URL = "https://docs.example.org/en/volumes"


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector(load_prompts(("cs", "en")).languages, "en")


def case(id_: str, question: str, *, language: str = "en", variant: str = "1", **more) -> Case:
    return Case(id_, language, question, more.pop("doc", "en/volumes"), variant, **more)


def texts(findings) -> dict[str, tuple[str, ...]]:
    return {finding.text: finding.ids for finding in findings}


def test_repeated_questions_and_wrong_languages_are_named(detector):
    """The same words with other punctuation are the same question; keywords may be of any language."""
    same = (case("a", "How big is a volume?"), case("b", "how big is a volume"))
    czech = (case("c", "Jak velký je svazek a kde ho zvětším?"), case("d", "svazek velikost", variant="4"))
    found = texts(check_form([*same, *czech], detector))
    assert found["the same question"] == ("a", "b")
    assert found["not in the language that `lang` says"] == ("c",)


def test_missing_and_rare_variants_are_named(detector):
    """A mean over languages compares like with like only when each has the same ways of asking."""
    some = [case(str(i), f"What is number {i} good for?", variant=str(i % 2 + 1)) for i in range(8)]
    assert texts(check_form(some, detector)) == {}
    lopsided = [*some, *(case(f"x{i}", f"Why is word {i} used here?") for i in range(4))]
    assert any("unequally" in text for text in texts(check_form(lopsided, detector)))
    czech = [case("z", "Co je to generace a proč?", language="cs")]
    assert "cs has no question of variant 2" in texts(check_form([*some, *czech], detector))


def test_evidence_documents_and_copied_text_are_compared_with_the_pages():
    """Each mistake is said with the question's id."""
    cases = [
        case("a", "How big is it?", evidence="A volume has 10 GiB by default"),
        case("b", "How big is it?", evidence="A volume has 20 GiB by default"),
        case("c", "Where is it?", doc="en/nowhere"),
        case("d", "Why does it grow on demand as soon as its claim was edited?"),
        case("e", "Is it true that it grows on demand when its claim is edited?"),
    ]
    found = texts(check_pages(cases, Documents([URL]), {URL: PAGE}))
    assert found["the evidence isn't on the page"] == ("b",)
    assert found["`doc` or `also` isn't an indexed page"] == ("c",)
    assert [ids for text, ids in found.items() if "copied from the page" in text] == [("e",)]
    assert not is_copied("volume 10 GiB", PAGE)


def test_our_own_set_is_sound(detector):
    """At least 120 hand-written questions in both languages and all four variants, with evidence on pages that exist."""
    with own_set() as path:
        cases = load_cases(path)
    assert len(cases) >= 120
    assert set(counts(cases)) == {(lang, variant) for lang in ("cs", "en") for variant in "1234"}
    assert len(set(counts(cases).values())) == 1
    assert list(check_form(cases, detector)) == []
    folder = find_docs()
    pages = {doc: (folder.parent / f"{doc}.md") for one in cases for doc in one.relevant}
    assert [doc for doc, file in pages.items() if not file.is_file()] == []
    for one in cases:
        text = pages[one.doc].read_text(encoding="utf-8")
        assert holds(text, one.evidence), one.id
        assert not is_copied(one.question, text), one.id


def test_our_unanswerable_questions_are_their_own_set():
    """Kinds and languages are there, and none is in the other set."""
    with own_set(UNANSWERABLE) as path, own_set() as other:
        lines = path.read_text(encoding="utf-8").splitlines()
        asked = {one.question for one in load_cases(other)}
    assert len(lines) >= 20
    assert not any(question in line for line in lines for question in asked)


def test_our_conversations_are_of_two_kinds():
    """As many questions that stand alone as such that point back, in each language, about pages that exist."""
    with own_set(IN_CONVERSATION) as path:
        cases = load_cases(path)
    assert len(cases) >= 120
    assert counts(cases) == dict.fromkeys(counts(cases), len(cases) // 4)
    assert set(counts(cases)) == {(lang, kind) for lang in ("cs", "en") for kind in (ALONE, BACK)}
    folder = find_docs()
    assert [doc for one in cases for doc in one.relevant if not (folder.parent / f"{doc}.md").is_file()] == []
    short = [one for one in cases if one.variant == ALONE]
    assert [one.question for one in short if len(one.question.split()) > 3 or one.standalone] == []
    assert all(one.standalone for one in cases if one.variant == BACK)
