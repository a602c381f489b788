"""Detect, refine and keywords: language and small talk, what they ask the model, and what they make of its answers."""

from __future__ import annotations

import pytest

from app.core.errors import ModelError, ModelTimeout, RequestError
from app.core.prompts import load_prompts
from app.core.turn import Message, Question, Request, Turn
from app.models import Model
from app.pipeline.calls import picked_numbers
from app.pipeline.conversation import KEPT_CHARACTERS, earlier
from app.pipeline.steps.retrieve import Detect, Keywords, Refine
from app.text.language import LanguageDetector, parse
from tests.app.pipeline.turns import HURRIED, SETTINGS, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
STEP = Detect(LanguageDetector(PROMPTS.languages, "en"), PROMPTS)


async def told(*messages: str) -> tuple[str, bool]:
    """The language, and whether it is small talk."""
    lines = tuple(Message("assistant" if i % 2 else "user", text) for i, text in enumerate(messages))
    changes = await STEP(Turn(request=Request(lines)))
    return changes["asked"].language, bool(changes["reply"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ahoj", "cs"),
        ("dobry den", "cs"),
        ("Můžeš mi pomoct?", "cs"),
        ("ahoj, jak se máš?", "cs"),
        ("ano", "cs"),
        ("Hi there! What can you do?", "en"),
        ("Hello, can you help me?", "en"),
    ],
)
async def test_small_talk_is_recognised_in_its_language(text: str, language: str) -> None:
    """Also as the first message, without diacritics, and in a conversation."""
    assert await told(text) == (language, True)
    assert (await told("Co je JupyterHub?" if language == "cs" else "What is a pod?", "-", text)) == (language, True)


async def test_a_message_without_any_letter_asks_for_nothing() -> None:
    """In the language so far."""
    assert await told("Co je JupyterHub?", "-", "👍") == ("cs", True)
    assert (await told("Co je JupyterHub?", "-", "512"))[1] is False


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ahoj, jak vytvořit projekt?", "cs"),
        ("Dobrý den, mám dotaz na kvótu", "cs"),
        ("Díky, a proč?", "cs"),
        ("kam napsat o pomoc?", "cs"),
        ("Can you do it?", "en"),
        ("Hi, what is a pod?", "en"),
        ("How does it work?", "en"),
        ("jak to funguje", "cs"),
        ("hello world example", "en"),
        ("thanks, and the quota?", "en"),
    ],
)
async def test_a_question_behind_a_greeting_stays_a_question(text: str, language: str) -> None:
    assert await told(text) == (language, False)


DETECTOR = LanguageDetector(PROMPTS.languages, "en")


async def detect(*messages: tuple[str, str]) -> dict:
    step = Detect(DETECTOR, PROMPTS)
    return dict(await step(Turn(request=Request(tuple(Message(*m) for m in messages)))))


async def test_detect_takes_the_last_question_and_its_own_language() -> None:
    """An earlier language counts only where the question shows none."""
    before = (("user", "Jak si požádám o projekt?"), ("assistant", "Takto."))
    for asked, language, referred in ((" How long does it take? ", "en", before[0][1]), ("512", "cs", "")):
        found = await detect(*before, ("user", asked))
        assert found == {"asked": Question(asked.strip(), language, referred=referred), "reply": None}
    assert (await detect(("user", "imagepullbackoff notebook")))["asked"].unsure


@pytest.mark.parametrize(
    ("question", "refers"),
    [
        ("And how much memory can I get there?", True),
        ("For how long?", True),
        ("A kolik paměti?", True),
        ("Proč ne přes kubectl?", True),
        ("Which storage classes does kuba-cluster offer?", False),
        ("Je možné používat GPU?", False),
        ("Jak si nastavím SSH klíč tak, aby se ho nemusel ptát?", False),
        ("How do I delete a PVC when it is stuck in Terminating?", False),
        ("What is Omero?", False),
        ("What about Kubernetes?", True),
        ("And the CPU limit of Kubernetes?", True),
        ("Omero", False),
        ("braille", False),
        ("Tell me about braille", False),
        ("místo na disku", False),
        ("barvy", False),
        ("v-if", False),
        ("Is there a webhook?", False),
        ("Proč nejde přihlášení?", False),
        ("why?", True),
        ("and how do I type it", True),
        ("give me an example", True),
        ("Dej mi prosím příklad", True),
        ("více podrobností", True),
        ("Jak velké smí být?", True),
    ],
)
async def test_a_question_refers_to_the_one_before_only_when_it_says_so(question: str, refers: bool) -> None:
    """A change of topic carries no old words; a question that can't stand alone takes them along."""
    changes = await detect(("user", "Co je JupyterHub?"), ("assistant", "Notebooky."), ("user", question))
    assert bool(changes["asked"].referred) is refers
    assert (await detect(("user", question)))["asked"].referred == ""


async def test_detect_refuses_a_conversation_without_a_question() -> None:
    """An empty question is the client's mistake and says so."""
    with pytest.raises(RequestError, match="no question"):
        await detect(("system", "Be nice."), ("user", "  "))


async def test_refine_sends_the_conversation_without_our_source_list(llm: FakeLLM, model: Model) -> None:
    """The model sees what was said, in the prompt of the question's language, and answers one question."""
    llm.reply = lambda _: Reply("„Kolik paměti mohu mít v JupyterHubu?“")
    messages = (
        Message("user", "Co je JupyterHub?"),
        Message("assistant", "Notebooky [1].\n\n**Zdroje**\n\n1. [JupyterHub](https://x)"),
        Message("user", "A kolik paměti?"),
    )
    step = Refine(model, PROMPTS, SETTINGS, DETECTOR)
    changes = await step(turn("A kolik paměti?", "cs", request=Request(messages), referred=messages[0].content))
    assert changes == {"refined": Question("Kolik paměti mohu mít v JupyterHubu?", "cs")}
    system, user = (m["content"] for m in llm.calls[0]["messages"])
    assert "neodpovídej" in system
    assert user == "<conversation>\nuser: Co je JupyterHub?\nassistant: Notebooky.\n</conversation>\n\nA kolik paměti?"


@pytest.mark.parametrize(
    ("helper", "reply", "says"),
    [
        (Refine, Reply(""), "original is used"),
        (Keywords, Reply("Sorry, no."), "no keywords"),
        (Keywords, Reply("late", delay=60), r"0\.1 s"),
    ],
    ids=["nothing", "no keywords", "late"],
)
async def test_a_helper_that_fails_is_an_error(llm: FakeLLM, model: Model, helper, reply: Reply, says: str) -> None:
    """The trace tells why the runner goes on with the original question. A helper's limit is far below the answer's."""
    llm.reply = lambda _: reply
    settings, more = HURRIED if reply.delay else SETTINGS, (DETECTOR,) if helper is Refine else ()
    with pytest.raises(ModelTimeout if reply.delay else ModelError, match=says):
        await helper(model, PROMPTS, settings, *more)(turn())


async def test_keywords_are_asked_for_in_every_language(llm: FakeLLM, model: Model) -> None:
    """The question's language comes first; the question alone is the user message on a first turn."""
    llm.reply = lambda _: Reply("en: memory, limit\ncs: paměť, limit")
    changes = await Keywords(model, PROMPTS, SETTINGS)(turn())
    assert changes == {"keywords": {"en": "memory, limit", "cs": "paměť, limit"}}
    system, user = (m["content"] for m in llm.calls[0]["messages"])
    assert "English (en), čeština (cs)" in system
    assert system.endswith("en: …, …, …\ncs: …, …, …")
    assert user == "How much memory can I get?"


@pytest.mark.parametrize(
    ("answer", "keywords"),
    [
        ("cs: kvóta, limit\nen: quota, limit", {"cs": "kvóta, limit", "en": "quota, limit"}),
        ("- **cs**: kvóta\n- **en**: quota", {"cs": "kvóta", "en": "quota"}),
        ('{"cs": ["kvóta", "limit"],\n "en": ["quota"]}', {"cs": "kvóta ,  limit", "en": "quota"}),
        ("Here you are:\nen: quota\nde: Quote\nen: again", {"en": "quota"}),
        ("cs: …\nen: ???", {}),
        ("I can't help with that.", {}),
    ],
)
def test_keywords_are_read_in_the_forms_models_write(answer: str, keywords: dict) -> None:
    """List marks, bold and JSON are read; other languages and empty lines are not."""
    assert parse(answer, ["cs", "en"], 400) == keywords


NUMBERS = {
    (1, 3): ("1, 3", "3\n1\n", "[1], [3].", "1 and 3", "1 a 3", "1 & 3", "Passages 1 and 3.", "- 1\n- 3"),
    (1, 2, 3): ("1, 2, and 3", "Pasáže: 1, 2 a 3"),
    (1, 2): ("Numbers: [1, 2]", "Úryvky 1 a 2"),
    (1,): ("Passages: 1", "9, 1"),
    (2,): ("[2]", "**Passage 2**"),
    (): ("none", "None of them.", "žádná", "Žádná z nich.", "„žádná“", ""),
}
SENTENCES = (
    "Passage 1 helps because it has 64 GB.",
    "Not 1",
    "1 doesn't help",
    "None but 1",
    "all but 2",
    "1-3",
    "1.5",
)


def test_numbers_as_models_write_them_and_sentences_that_are_none() -> None:
    for numbers, answers in NUMBERS.items():
        for answer in answers:
            assert picked_numbers(answer, 5, PROMPTS.vocabulary) == [*numbers], answer
    for answer in (*SENTENCES, "1 or 2?"):
        with pytest.raises(ModelError, match="no list of numbers from 1 to 5"):
            picked_numbers(answer, 5, PROMPTS.vocabulary)


def said(answer: str) -> list[str]:
    """What is left of an answer in the middle of a conversation."""
    messages = (Message("user", "Q"), Message("assistant", answer), Message("user", "And?"))
    return [message.content for message in earlier(messages, PROMPTS)[1:]]


@pytest.mark.parametrize(
    "answer",
    [
        "Yes [1].\n\n**Sources**\n\n1. [A](https://x)",
        "Yes [1, 2].\r\n\r\n**Sources**\r\n\r\n1. [A](https://x)\r\n2. [B](https://y)",
        "Yes.\n\nSources:\n- [A](https://x)",
        "Yes.\n**Sources:**\n\n- [A](https://x)",
        "Yes.\n\n**Zdroje**\n1. [A](https://x)",
        "Yes.\n\nMožná souvisejí tyto stránky:\n\n- [Kvóty](https://x/r)",
        "Yes.\n\n**Sources**",
        "**Sources**\n\n1. [A](https://x)\n\nYes.",
    ],
)
def test_our_lists_and_numbers_are_left_out(answer: str) -> None:
    """In whatever form a model imitates them: the numbers would point to passages of today."""
    assert said(answer) == ["Yes."]


@pytest.mark.parametrize(
    "answer",
    [
        "Files are\n\n**Sources**\n\nof truth",
        "Run:\n\n```sh\necho ${array[1]} # [2]\n```",
        "1. Open it.\n2. Close it.",
        "See [2](https://docs.example.org).",
        "A \x007\x00 and \x00" + "9" * 500 + "\x00, then `b[1]`.",
    ],
)
def test_what_an_answer_says_stays(answer: str) -> None:
    assert said(answer) == [answer]


def test_an_answer_of_a_list_alone_is_no_message() -> None:
    assert said("**Sources**\n\n1. [A](https://x)") == []


def test_long_answers_are_cut() -> None:
    assert len(said("word " * 1000)[0]) == KEPT_CHARACTERS
