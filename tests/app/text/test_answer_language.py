"""The answer's language: wrong ones are noticed before a reader sees them, and documentation isn't taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Done, Event, Message, Request, Text, Turn
from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.pipeline.steps.synthesize import Synthesize
from app.text.answer_language import AnswerLanguage
from tests.app.pipeline.turns import SETTINGS, hit, text_of, turn
from tests.app.routes.scripted import until
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
CZECH = AnswerLanguage("cs", PROMPTS.languages)
ENGLISH = AnswerLanguage("en", PROMPTS.languages)
CS = "Podle dokumentace je výchozí limit 4 GB a můžete si požádat o jeho zvýšení [1]."
EN = "According to the documentation the default limit is 4 GB, and you can ask for more of it [1]."
SK = "Podľa dokumentácie je predvolený limit 4 GB a môžete požiadať o jeho zvýšenie [1]."
HITS = (hit(1, "Each notebook gets 4 GB."),)

SENTENCES = {
    "cs": [
        CS,
        "Použijte `kubectl get pods -n my-namespace` a v **namespace** pak najděte Pod, který je ve stavu Pending.",
        "Hláška „You must be logged in to the server (Unauthorized)“ znamená, že vám vypršel token.",
        "Spusťte:\n\n```bash\n# this is what you have to do and it will work with the default\nkubectl apply -f pod.yaml\n```\n",
        "V Rancheru otevřete Cluster > Projects/Namespaces, zvolte Edit Config a nastavte Resource Quotas.",
        "AlphaFold, ColabFold, OmegaFold a ESMFold.",
        "4 GB [1].",
        "Namespace default obsahuje ServiceAccount, ConfigMap, Secret, NetworkPolicy a PersistentVolumeClaim.",
        "Error: the server could not find the requested resource. Zkontrolujte verzi.",
        "> You must be logged in to the server (Unauthorized), this is what it says\n\nTo znamená, že vám vypršel token.",
        "Prometheus, Grafana, Loki, Tempo, Alertmanager, Thanos, Mimir, Pyroscope, Fluentd, Jaeger, Envoy, Istio",
        "**Getting Started with the Platform**\n\n```bash\nkubectl get pods\n```\n\nPříkaz vypíše Pody.",
        "E-mail je odeslán na adresu nakonfigurovanou ve vašem účtu MetaCentrum jako preferovanou adresu.",
    ],
    "en": [
        EN,
        "The page Žádost o projekt describes it: log in, then choose Nový projekt.",
        "Default shared memory is 64MB; mount a memory emptyDir volume to /dev/shm to increase it.",
        "Run:\n\n```bash\necho „Dobrý den, to je ono a nic jiného to není, protože se to tak má“\n```\n",
        "ImagePullBackOff, CrashLoopBackOff, CreateContainerConfigError",
        "Yes [1].",
    ],
}
OTHERS = [
    "Die maximale Größe eines Volumes beträgt 100 GB, und wer mehr benötigt, der fragt uns danach.",
    "La taille maximale d'un volume est de 100 Go, et vous pouvez demander une augmentation.",
    "El tamaño máximo de un volumen es de 100 GB y se puede aumentar si lo solicita al equipo.",
    "Maksymalny rozmiar woluminu to 100 GB, a jeśli potrzebujesz więcej, skontaktuj się z nami.",
    "Максимальный размер тома составляет 100 ГБ, при необходимости обратитесь в поддержку.",
    "每个卷的最大大小为100GB,如果需要更多,请联系技术支持团队。文档中还说明了如何申请更多。",
    SK,
]


def verdict(check: AnswerLanguage, text: str) -> str:
    """As synthesis asks it: word by word, then at 80 characters or the end."""
    words = text.split(" ")
    for n in range(1, len(words) + 1):
        begun = " ".join(words[:n])
        if (settled := check.early(begun)) != "unsure":
            return settled
        if len(begun) >= 80:
            return check.beginning(begun)
    return check.beginning(text)


@pytest.mark.parametrize(("check", "code"), [(CZECH, "cs"), (ENGLISH, "en")])
def test_terms_code_and_quotations_do_not_change_the_language(check: AnswerLanguage, code: str) -> None:
    """No answer in the right language is asked for again because of what it quotes."""
    assert [text for text in SENTENCES[code] if verdict(check, text) == "wrong" or check.switched(text)] == []


def test_answers_in_another_language_are_noticed() -> None:
    """Also in languages that aren't configured, and in the one closest to Czech."""
    czech, english = (CS, "Spustíte notebook, vyberete obraz a potvrdíte tlačítkem Start."), (
        EN, "Operator offers automatic backups to S3 storage via cronjobs."
    )  # fmt: skip
    assert [text for text in (*english, *OTHERS) if verdict(CZECH, text) != "wrong"] == []
    assert [text for text in (*czech, *OTHERS) if verdict(ENGLISH, text) != "wrong"] == []


def test_a_related_language_with_many_common_words_is_noticed() -> None:
    """Slovak shares a third of its function words with Czech; its letters and endings tell it apart."""
    slovak = (
        "Uistite sa, že táto hodnota je menšia alebo rovná limitu, a potom ju môžete zmeniť v nastavení.",
        "Túto správu vidíte, pretože táto stránka vyžaduje, aby váš prehliadač zaslal hlavičku.",
        "Na to je potrebné požiadať o väčšiu kvótu, a to pre každý projekt, ku ktorému máte prístup.",
    )
    assert [text for text in slovak if verdict(CZECH, text) != "wrong"] == []


def test_an_answer_may_be_in_any_language() -> None:
    """Its letters are compared with those of all languages, not only with those that models often write."""
    others = (
        "Provjerite je li vrijednost manja ili jednaka ograničenju.",
        "Odaberite bilježnicu i pokrenite je gumbom Start.",
        "Operatorn erbjuder automatiska säkerhetskopior till lagring via schemalagda jobb.",
    )
    assert [text for text in others for check in (CZECH, ENGLISH) if verdict(check, text) != "wrong"] == []


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (ENGLISH, "Installing takes 18 minutes [1]."),
        (ENGLISH, "Default namespace quotas apply."),
        (CZECH, "Namespace default nelze smazat."),
        (CZECH, "Použijte příkaz kubectl."),
    ],
)
def test_a_few_words_are_in_no_other_language(check: AnswerLanguage, answer: str) -> None:
    """A short answer is right as often as a long one; asked for again, it would be a quotation."""
    assert verdict(check, answer) != "wrong"


def test_the_language_is_mostly_certain_after_three_words() -> None:
    """The reader waits for no more: a model needs 20 ms and more for each word."""
    begun = {
        CZECH: ["Můžete si požádat", "Příkaz vypíše všechny", "Podle dokumentace je", "Výchozí hodnota je", "Spusťte následující příkaz"],
        ENGLISH: ["The service answers", "You can ask", "According to the", "To index a", "Run the following"],
    }  # fmt: skip
    certain = [check.early(text) for check, texts in begun.items() for text in texts]
    assert certain.count("right") >= 7
    assert "wrong" not in certain
    assert "right" not in [CZECH.early(text) for text in ("Na to je", "V tom", "To je", "Run the following")]


def test_a_sentence_before_code_decides_the_language() -> None:
    """However short it is; the code after it decides nothing."""
    code = "\n\n```bash\nkubectl apply -f pod.yaml\n```\n"
    assert verdict(CZECH, f"Run the following command:{code}") == "wrong"
    assert verdict(ENGLISH, f"Spusťte následující příkaz:{code}") == "wrong"


PL, FR = OTHERS[3], OTHERS[1]


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (CZECH, f"{CS}\n\n{f'{PL} ' * 4}"),
        (CZECH, f"{CS}\n\n{f'{SK} ' * 4}"),
        (CZECH, f"{CS} {EN} {CS} {EN}"),
        (ENGLISH, f"{EN}\n\n{f'{FR} ' * 4}"),
        (ENGLISH, f"{EN} {CS} {EN} {CS}"),
    ],
    ids=["Polish", "Slovak", "half English", "French", "half Czech"],
)
def test_a_switch_is_noticed_within_a_paragraph_and_to_any_language(check: AnswerLanguage, text: str) -> None:
    assert check.switched(text)


def test_no_written_answer_of_the_question_set_is_taken_for_a_switch(shared: Path) -> None:
    """False alarms are worse than misses: the reader would wait for a second answer."""
    lines = (shared / "eval" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    answers = [(q["lang"], q["answer"]) for q in map(json.loads, lines)]
    checks = {"cs": CZECH, "en": ENGLISH}
    assert not [text for code, text in answers if checks[code].switched(text)]
    assert sum(verdict(checks[code], text) == "wrong" for code, text in answers) <= 0.01 * len(answers)
    for code, check in checks.items():
        assert not check.switched(" ".join(text for language, text in answers if language == code))


async def answer(llm: FakeLLM, given: Turn, **settings: object) -> list[Event]:
    model = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "m"))
    try:
        step = Synthesize(PROMPTS, SETTINGS.model_copy(update=settings), model)
        return [event async for event in (await step(given))["events"]]
    finally:
        await model.close()


def asked(language: str, *, whole: bool = False) -> Turn:
    request = Request((Message("user", "Limit?"),), id="t1", whole=whole)
    return turn("Limit?", language, hits=HITS, request=request)


def in_turn(*texts: str):
    """The first text for the first call, and so on."""
    left = list(texts)
    return lambda _: Reply(left.pop(0))


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("language", "wrong", "right"), [("cs", EN, CS), ("en", CS, EN), ("cs", SK, CS)])
async def test_a_wrong_language_is_asked_for_once_more(
    llm: FakeLLM, language: str, wrong: str, right: str, whole: bool
) -> None:
    """Nothing of the first answer is shown; the second request says more firmly which language is wanted."""
    llm.reply = in_turn(wrong, right)
    events = await answer(llm, asked(language, whole=whole))
    assert text_of(events).strip() == right
    assert events[-1] == Done(language="corrected")
    firmer = PROMPTS.render(language, "answer_language")
    assert [firmer in call["messages"][0]["content"] for call in llm.calls] == [False, True]
    assert [firmer in call["messages"][-1]["content"] for call in llm.calls] == [False, True]


async def test_the_refused_call_is_cancelled_upstream(llm: FakeLLM) -> None:
    """Nobody pays for the rest of an answer that nobody is going to read."""
    slow = Reply(EN + " More of it." * 200, piece_delay=0.01)
    llm.reply = lambda _: slow if len(llm.calls) == 1 else Reply(CS)
    assert text_of(await answer(llm, asked("cs"))).strip() == CS
    await until(lambda: llm.cancelled)
    assert llm.cancelled == 1


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("second", [EN, SK])
async def test_a_model_that_insists_is_asked_only_twice(llm: FakeLLM, second: str, whole: bool) -> None:
    """Nothing of its second answer is shown: the pages are quoted, with the outcome in the end."""
    llm.reply = in_turn(EN, second)
    events = await answer(llm, asked("cs", whole=whole))
    assert HITS[0].chunk.text in text_of(events)
    assert second[:20] not in text_of(events)
    assert (events[-1].extractive, events[-1].language) == (True, "wrong")
    assert len(llm.calls) == 2


@pytest.mark.parametrize("whole", [False, True])
async def test_without_pages_to_quote_the_second_answer_is_shown(llm: FakeLLM, whole: bool) -> None:
    """An answer about what the client attached is better than none."""
    llm.reply = in_turn(EN, EN)
    request = Request((Message("user", "Limit?"),), id="t1", whole=whole, attached=("Limits are in the table.",))
    events = await answer(llm, turn("Limit?", "cs", hits=(), request=request))
    assert (text_of(events).strip(), events[-1]) == (EN, Done(language="wrong"))


SWITCHING = f"{CS}\n\n{EN} {EN}"


async def test_a_switch_after_the_beginning_is_recorded_in_a_stream(llm: FakeLLM) -> None:
    """What was sent can't be taken back: no second call."""
    llm.reply = lambda _: Reply(SWITCHING)
    events = await answer(llm, asked("cs"))
    assert text_of(events).strip() == SWITCHING
    assert events[-1] == Done(language="switched")
    assert len(llm.calls) == 1


async def test_a_switch_in_a_whole_answer_is_corrected(llm: FakeLLM) -> None:
    """Nothing was sent yet; where the correction fails, the first answer is better than none."""
    llm.reply = in_turn(SWITCHING, CS)
    events = await answer(llm, asked("cs", whole=True))
    assert (text_of(events).strip(), events[-1]) == (CS, Done(language="corrected"))
    llm.calls.clear()
    llm.reply = lambda _: Reply(SWITCHING) if len(llm.calls) == 1 else Reply(status=500)
    events = await answer(llm, asked("cs", whole=True))
    assert (text_of(events).strip(), events[-1]) == (SWITCHING, Done(language="switched"))


async def test_the_first_text_waits_no_longer_than_80_characters(llm: FakeLLM) -> None:
    """Names alone tell no language: they are shown after 80 characters, and the rest as it comes."""
    names = " ".join(f"Prometheus{n}" for n in range(30))
    llm.reply = lambda _: Reply(names, piece_delay=0.03)  # faster ones are gathered
    texts = [event.text for event in await answer(llm, asked("cs")) if isinstance(event, Text)]
    assert 80 <= len(texts[0]) < 100
    assert len(texts) > 5
