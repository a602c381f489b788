"""Which questions are rewritten, which replies are rewrites or keywords, and that others change no answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Message, Question, Request, Turn
from app.models import Model
from app.pipeline.rewriting import fault_of_rewrite, keywords_in, needs_rewriting, speak_of
from app.pipeline.steps.retrieve import Keywords, Refine
from app.text.language import LanguageDetector
from plugins.steps.searches import Analyze
from tests.app.pipeline.turns import SETTINGS, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
DETECTOR = LanguageDetector(PROMPTS.languages, "en")


def asked(question: str, language: str = "en", *, referred: str = "") -> Turn:
    """A turn with this question, behind the one that it refers to."""
    messages = tuple(Message("user", text) for text in (referred, question) if text)
    return Turn(Request(messages), None, Question(question, language, False, referred))


@pytest.mark.parametrize(
    ("question", "language", "referred", "needs"),
    [
        ("gpu quota namespace", "en", "", True),
        ("Co je JupyterHub?", "cs", "", True),
        ("Which storage classes does the cluster offer for databases?", "en", "", False),
        ("Jak si nastavím, aby se kontejner po pádu sám spustil?", "cs", "", False),
        ("And on the second cluster, for users without a project of their own?", "en", "How long are jobs kept?", True),
    ],
)
def test_a_question_that_says_what_it_asks_is_not_rewritten(
    question: str, language: str, referred: str, needs: bool
) -> None:
    assert needs_rewriting(asked(question, language, referred=referred), PROMPTS) is needs


@pytest.mark.parametrize(
    ("question", "language", "rewrite", "fault"),
    [
        ("gpu quota namespace", "en", "What is the GPU quota of a namespace?", ""),
        ("kubeseal command example", "en", "How do I use the kubeseal command?", ""),
        ("omezeni pristupu ip", "cs", "Jak omezit přístup podle IP adresy?", ""),
        ("Kolik paměti?", "cs", "Kolik paměti mohu mít?", ""),
        ("gpu quota namespace", "en", "The GPU quota of a namespace is 2.", "states something"),
        ("gpu quota namespace", "en", "", "is empty"),
        ("gpu quota namespace", "en", "gpu " * 300, "is too long"),
        ("DOCS_TOP_K default?", "en", "What is the default number of passages?", "lacks DOCS_TOP_K"),
        ("node 22 LTS?", "en", "Is node an LTS version?", "lacks 22"),
        ("gpu quota namespace", "en", "How do I install Docker?", "asks something else"),
        (
            "gpu quota",
            "en",
            "What is the GPU quota of my Kubernetes project when several users share one production cluster?",
            "adds too much",
        ),
    ],
)
def test_a_rewrite_asks_the_same(question: str, language: str, rewrite: str, fault: str) -> None:
    """Weak models answer the question, or ask another."""
    assert fault_of_rewrite(rewrite, asked(question, language), PROMPTS) == fault


def test_a_rewrite_may_have_what_the_conversation_is_about() -> None:
    """What an earlier question names is no addition."""
    rewrite = "How much memory do notebooks in JupyterHub have by default?"
    follow_up = asked("And memory?", referred="What do notebooks in JupyterHub have by default?")
    assert fault_of_rewrite(rewrite, follow_up, PROMPTS) == ""
    assert fault_of_rewrite(rewrite, asked("And memory?"), PROMPTS) == "adds too much"


def test_a_rewrite_of_a_question_that_stands_alone_brings_no_earlier_subject() -> None:
    """Only one that points back takes a word of the conversation along; words of its own are none of it."""
    before = "What do screen readers need?"
    alone = asked("braille display", referred=before)
    alone = alone.changed(asked=replace(alone.asked, referred=""))
    assert fault_of_rewrite("Which screen reader has a braille display?", alone, PROMPTS) == "brings an earlier subject"
    assert fault_of_rewrite("How do I use a braille display?", alone, PROMPTS) == ""
    assert (
        fault_of_rewrite(
            "Which screen reader has a braille display?", asked("and braille display", referred=before), PROMPTS
        )
        == ""
    )


async def test_the_model_is_asked_to_rewrite_what_needs_it_alone(llm: FakeLLM, model: Model) -> None:
    """And what states something in place of asking leaves the reader's question as it is: the step says so."""
    refine = Refine(model, PROMPTS, SETTINGS, DETECTOR)
    assert await refine(turn("Which storage classes does the cluster offer for databases?")) == {}
    assert llm.calls == []
    llm.reply = lambda _: Reply("word " * 400)
    assert await refine(turn("gpu quota namespace")) == {}
    llm.reply = lambda _: Reply('{"question": "Quotas are set by admins.", "en": ["quota", "namespace"]}')
    assert await Analyze(model, PROMPTS, SETTINGS, DETECTOR)(turn("gpu quota namespace")) == {
        "refined": None,
        "keywords": {"en": "quota, namespace"},
    }


@pytest.mark.parametrize(
    ("reply", "keywords"),
    [
        ("en: quota, gpu, quota, GPU, limit", {"en": "quota, GPU, limit"}),
        ("en: You can set the quota of a project in its settings.", {}),
        ("en: First open the settings of the project, then choose the quota that you need", {}),
        (f"en: {', '.join(f'word{n}' for n in range(30))}", {"en": ", ".join(f"word{n}" for n in range(10))}),
        (
            "en: Nodes are used as nodes, which are part of it, which need it, such as the web. The web, apps, services",
            {},
        ),
        ("en: quota\ncs: Kvótu nastavíte v nastavení projektu na stránce", {"en": "quota"}),
        ("en: namespace quota, error: pods is forbidden by the admission controller", {}),
        ("en: a, namespace quota, error that pods are forbidden by the controller", {"en": "a, namespace quota"}),
    ],
)
async def test_keywords_are_a_short_list_of_short_terms(
    reply: str, keywords: dict[str, str], llm: FakeLLM, model: Model
) -> None:
    """Repeats are dropped; sentences are no keywords, and a model that writes on and on is cut."""
    assert keywords_in(reply, ("en", "cs")) == keywords
    llm.reply = lambda _: Reply(reply)
    if keywords:
        assert (await Keywords(model, PROMPTS, SETTINGS)(turn()))["keywords"] == keywords
        assert llm.calls[0]["max_tokens"] <= 120


def test_keywords_of_something_else_are_no_evidence() -> None:
    """Those of a model that never wrote any in the question's language can't be compared with it."""
    language = PROMPTS.language("en")
    question = "How much memory can a notebook get?"
    assert speak_of({"en": "memory limit, notebook"}, question, language)
    assert not speak_of({"en": "docker image, container"}, question, language)
    assert speak_of({"cs": "paměť"}, question, language)
