"""A language is a folder: German as shipped, and one that nobody speaks, made up in a temporary folder."""

import shutil
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import prompts
from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Event, Message, Request, Text, Turn
from app.core.turn import Source as Cited
from app.pipeline.calls import replied_numbers
from app.pipeline.conversation import referred
from app.pipeline.steps.relevance import ends, names
from app.text.answer_language import AnswerLanguage, is_refusal
from app.text.blocks import sentences
from app.text.language import LanguageDetector, is_smalltalk
from app.text.literals import comparable
from ingestion.crawl.fetch import Fetcher
from ingestion.options import RunOptions
from ingestion.run import ingest
from ingestion.split import open_splitter
from tests.fake_llm import Reply, fake_llm
from tests.ingestion.local_site import local_site

ZORBISH = """
name = "zorbi"
sources = "Fontaqi"
related = "Brilu zen pagiqi:"
searching = "Zerku..."
still_reading = "{done} {total} {minutes}"
found = "Pagiqi: {count}"
extractive_intro = "Gromu velt nul, lo dokti skrivu:"
extractive_failed = "Gromu nul, lo dokti skrivu:"
example_question = "Wex du indeksu webru?"
passage = "pasaqi"
source_headings = "fontu"
no_answer = 'lo dokti nul skrivu'
none = "nulqi"
labels = "pasaqi"
and_or = "ut"
up_to = "hax"
abbreviations = "zq.x"
stopwords = "zo ka lo mi du fen wex vor nim tal pru nul ut"
words = "gramlu brenqo skrivu farmok"
endings = "olqi"
references = "zet"
openers = "utra"
smalltalk = "halvo grazu"
updated = "farmokru"

[translated]
other = "tralu {code}"

[written]
other = "in {code}"

[units]
h = "orax"
"""
VOLUMES = [
    "Zo volmolqi ka farmok lo klastru, zq.x Mortu fen nim. Wex du volmolqi gramlu ka brenqo, du skrivu zo formu vor lo klastru.",
    "Mi ka lo formu tal pru zo klastru, ut du brenqo zo volmolqi fen lo noda. Zo noda ka nim tal lo volmolqi vor mi.",
    "Lo volmolqi ka gramlu pru du, ut zo klastru brenqo lo formu vor nim tal zo noda fen mi ka du.",
]
LIMITS = [
    "Zo limtolqi ka brenqo fen lo memru, vor du gramlu zo tasku. Nim tal mi ka zo limtolqi pru lo tasku ut memru.",
    "Du skrivu zo limtolqi vor lo tasku, ka mi brenqo fen nim. Tal zo memru pru lo tasku du gramlu ka limtolqi.",
]
QUESTION = "Wex du gramlu volmolqi fen lo klastru?"
PROSE = "Zo volmolqi ka gramlu vor lo klastru, ut du brenqo zo formu [1]."


def made_up(folder: Path) -> str:
    """A directory with the folder of one language: the English prompts, and words that nobody says."""
    shutil.copytree(Path(prompts.__file__).parent / "en", folder / "zq")
    (folder / "zq" / "language.toml").write_text(ZORBISH, encoding="utf-8")
    for name, text in {"smalltalk": "Halvo vor zo dokti.", "nothing_found": "Lo dokti nul skrivu."}.items():
        (folder / "zq" / f"{name}.md").write_text(text, encoding="utf-8")
    return str(folder)


@asynccontextmanager
async def indexed(folder: Path, pages: Mapping[str, list[str]], **options: object) -> AsyncIterator[Assistants]:
    """Assistants on an index of these pages, which a real site had; it told no language that is right."""
    settings = Settings.load(None, store=str(folder / "index"), default_language="en", crawl_timeout=60, **options)
    async with opened(settings) as assistants:
        with local_site() as site:
            for name, paragraphs in pages.items():
                site.page(f"/{name}", *paragraphs)
            async with Fetcher(settings) as fetcher:
                given = {"store": assistants.store, "embedder": assistants.embedder, "settings": settings}
                await ingest(
                    [site.sitemap(*(f"/{name}" for name in pages))],
                    **given,
                    fetcher=fetcher,
                    options=RunOptions(only=True),
                )
        yield assistants


async def said(assistants: Assistants, question: str) -> tuple[str, list[Event]]:
    """The whole text of an answer, and its events."""
    request = Request((Message("user", question),), id="r")
    events = [event async for event in assistants.get("").answer(request)]
    return "".join(event.text for event in events if isinstance(event, Text)), events


async def looked_up(assistants: Assistants, question: str) -> Turn:
    return await assistants.get("").find(Request((Message("user", question),), id="r"))


async def weighed_up(assistants: Assistants, question: str) -> Turn:
    return await assistants.get("").assess(Request((Message("user", question),), id="r"))


async def test_a_language_that_nobody_speaks_is_a_folder(tmp_path: Path):
    """Pages and questions are told to be of it, answers without a model are in it, and no line of Python knows it."""
    own = made_up(tmp_path / "own")
    pages = {"volmolqi": ["Volmolqi", *VOLUMES], "limtolqi": ["Limtolqi", *LIMITS]}
    async with indexed(tmp_path, pages, prompts=own, languages=("zq", "en")) as assistants:
        turn = await looked_up(assistants, QUESTION)
        assert turn.asked.language == "zq"
        assert {hit.chunk.language for hit in turn.hits} == {"zq"}
        text, events = await said(assistants, QUESTION)
        assert text.startswith("Gromu velt nul, lo dokti skrivu:")
        assert "**Fontaqi**" in text
        assert [event.url.rpartition("/")[2] for event in events if isinstance(event, Cited)][:1] == ["volmolqi"]
        assert "farmok lo klastru, zq.x Mortu fen nim." in text
        assert (await said(assistants, "Halvo, grazu!"))[0] == "Halvo vor zo dokti."
        nothing, _ = await said(assistants, "Wex du Kubrax pru Zmortex?")
        assert nothing.startswith("Lo dokti nul skrivu.")


async def test_a_model_is_read_in_a_language_that_nobody_speaks(tmp_path: Path):
    """Its answer is checked to be in it, its citations and lists of sources are understood, and its refusals."""
    own = made_up(tmp_path / "own")
    async with fake_llm() as llm:
        options = {"llm_url": llm.url, "llm_model": "m", "prompts": own, "languages": ("zq", "en")}
        async with indexed(tmp_path, {"volmolqi": ["Volmolqi", *VOLUMES]}, **options) as assistants:

            async def asked(answer: str, again: str = "") -> tuple[str, int]:
                replies = iter((answer, again))
                llm.reply = lambda body: Reply(next(replies) if body.get("stream") else "Wex du volmolqi?")
                text, _ = await said(assistants, QUESTION)
                return text, sum(bool(call.get("stream")) for call in llm.calls)

            text, calls = await asked(PROSE.replace("[1]", "[pasaqi 1 ut 1]") + "\n\nFontu:\n- [1] Volmolqi")
            assert "zo formu [1]." in text
            assert (text.count("Fontu"), text.count("**Fontaqi**"), calls) == (0, 1, 1)
            english = "You create the volume with this form, and then you can use it in all of your own notebooks."
            text, calls = await asked(english, PROSE)
            assert (text.startswith("Zo volmolqi ka gramlu"), calls) == (True, 3)
            text, _ = await asked("Lo dokti nul skrivu.")
            assert "**Fontaqi**" not in text


def test_the_words_of_a_folder_are_read_wherever_one_language_speaks_for_all(tmp_path: Path):
    """Replies of helpers, ends of sentences and words of pages."""
    own = made_up(tmp_path / "own")
    words = load_prompts(("zq", "en"), own).vocabulary
    assert replied_numbers("Nulqi.", words) == ()
    assert replied_numbers("Pasaqi: 1, 2 ut 5", words) == (1, 2, 5)
    assert replied_numbers("none of them") == replied_numbers("žádný z nich") == replied_numbers("Keine davon.") == ()
    assert "farmokru" in words.updated.split("|")
    splitter = open_splitter(Settings.load(None, prompts=own, languages=("zq", "en")))
    assert "zq.x" in splitter.abbreviations  # type: ignore[attr-defined]


GERMAN = load_prompts(("de", "cs", "en")).language("de")
PAGES = {
    "speicher": ["Speicher und Volumes", ("Ein dauerhaftes Volume legen Sie mit einem PersistentVolumeClaim an und binden es in "
                 "Ihr Notebook ein. Die Größe des Volumes ändern Sie später. Jeder Benutzer bekommt 100 GB Speicherplatz.")],
    "kontingente": ["Kontingente", ("Für GPU und Pods gelten Kontingente je Projekt. Eine Anfrage für mehr Rechenleistung "
                    "schicken Sie an den Betrieb. Der Dienst ist für Forschende kostenlos.")],
    "zugang": ["Zugang und Anmeldung", ("Mit SSH verbinden Sie sich über den Zugangsknoten. Das Passwort für S3 steht in der "
               "Konsole. Funktioniert die Anmeldung nicht, beantragen Sie die Berechtigung für Ihre Gruppe. Nur Mitglieder "
               "der Gruppe sehen den Namespace. Wird die Gruppe gelöscht, verfallen ihre Daten nach einem Monat.")],
    "container": ["Container starten", ("Startet ein Container nicht, hilft die Fehlermeldung: ImagePullBackOff heißt beim "
                  "Starten des Pods, dass es das Abbild nicht gibt. Anwendungen wie MongoDB installieren Sie mit Helm. Der "
                  "Unterschied zwischen Deployment und StatefulSet ist die feste Identität. Jupyter starten Sie auch mit "
                  "eigener Umgebung. Ein Kubernetes Cluster richten wir auf Antrag ein.")],
    "betrieb": ["Betrieb", "Die Sicherung der Datenbank läuft jede Nacht. Protokolle werden 30 Tage aufbewahrt."],
}  # fmt: skip
HELP = (
    "Wenn Sie damit nicht weiterkommen, schreiben Sie bitte an den Support und sagen Sie uns, was Sie getan haben, was "
    "danach geschehen ist und was Sie stattdessen erwartet haben, damit wir Ihnen möglichst rasch antworten können."
)
QUESTIONS = {
    "Wie lege ich ein dauerhaftes Volume für mein Notebook an?": "speicher",
    "Welche Kontingente gelten für GPU Pods in meinem Projekt?": "kontingente",
    "Was passiert mit meinen Daten, wenn die Gruppe gelöscht wird?": "zugang",
    "Wo finde ich das Passwort für den Zugang zu S3?": "zugang",
    "Warum startet mein Container nicht?": "container",
    "Kann ich z.B. MongoDB mit Helm installieren?": "container",
    "Wie viel Speicherplatz bekommt ein Benutzer?": "speicher",
    "Wer darf den Namespace sehen?": "zugang",
    "Anmeldung funktioniert nicht": "zugang",
    "Berechtigung für Gruppe beantragen": "zugang",
    "Wie verbinde ich mich mit SSH?": "zugang",
    "Gibt es eine Sicherung der Datenbank?": "betrieb",
    "Ich möchte Jupyter mit eigener Umgebung starten, wie geht das?": "container",
    "Wie lange werden Protokolle aufbewahrt?": "betrieb",
    'Fehlermeldung "ImagePullBackOff" beim Starten eines Pods': "container",
    "Ist der Dienst kostenlos?": "kontingente",
    "Kubernetes Cluster einrichten": "container",
    "Wohin schicke ich eine Anfrage für mehr Rechenleistung?": "kontingente",
    "wie ändere ich die größe eines volumes": "speicher",
    "Unterschied zwischen Deployment und StatefulSet erklären": "container",
}


async def test_german_pages_answer_german_questions(tmp_path: Path):
    """Each of twenty finds its page and isn't refused; the answer is in German, as is the refusal of what no page has."""
    pages = {name: [*paragraphs, HELP] for name, paragraphs in PAGES.items()}
    async with indexed(tmp_path, pages, languages=("cs", "de", "en")) as assistants:
        found = {question: await looked_up(assistants, question) for question in QUESTIONS}
        assert {question for question, turn in found.items() if turn.asked.language != "de"} == set()
        assert {hit.chunk.language for turn in found.values() for hit in turn.hits} == {"de"}
        first = {question: turn.hits[0].chunk.url.rpartition("/")[2] for question, turn in found.items()}
        assert first == QUESTIONS
        weighed = {question: await weighed_up(assistants, question) for question in QUESTIONS}
        assert {question for question, turn in weighed.items() if not turn.hits} == set()
        text, _ = await said(assistants, "Wie lange werden Protokolle aufbewahrt?")
        assert text.startswith((GERMAN.texts.extractive_intro, GERMAN.texts.extractive_unsure))
        assert "**Quellen**" in text
        refused, events = await said(assistants, "Wie backe ich einen Apfelkuchen mit Streuseln?")
        assert refused.startswith("Dazu habe ich in der Dokumentation nichts gefunden.")
        assert not any(isinstance(event, Cited) for event in events)


def test_german_questions_are_german_beside_czech_and_english():
    """Nouns have capitals, and they tell the language too; an acronym and a foreign name don't."""
    detector = LanguageDetector(load_prompts(("cs", "en", "de")).languages, "en")
    assert len(QUESTIONS) == 20
    assert [question for question in QUESTIONS if detector.shown(question) != "de"] == []
    others = {"How do I mount the Samsung drive?": "en", "Jak spustím Visual Studio Code?": "cs"}
    assert {text: detector.shown(text) for text in others} == others


def test_a_capital_makes_no_name_in_german():
    """A noun isn't a product that no page mentions, and a question with one may still refer to the one before."""
    assert names("Wie ändere ich die Größe des Speichers in OpenShift mit PVC?", nouns=True) == {"OpenShift", "PVC?"}
    assert names("Wie ändere ich die Größe des Speichers?", nouns=True) == frozenset()
    talk = (Message("user", "Wie lege ich ein Volume an?"), Message("assistant", "So."))
    assert referred((*talk, Message("user", "Und die Größe?")), GERMAN) == talk[0].content
    assert referred((*talk, Message("user", "Was kann OpenShift?")), GERMAN) == ""


def test_an_abbreviation_ends_no_german_sentence():
    """Where pages are cut, where an answer quotes them, and where a question begins."""
    text = "Volumes lassen sich z.B. Mit NFS teilen. Das gilt bzw. Galt i. d. R. Für alle. Ende."
    expected = ["Volumes lassen sich z.B. Mit NFS teilen.", "Das gilt bzw. Galt i. d. R. Für alle.", "Ende."]
    assert [sentence.rstrip() for sentence in sentences(text)] == expected
    abbreviations = load_prompts(("de",)).vocabulary.abbreviations
    assert ends("Hallo. Wie kann ich z.B. MongoDB starten?", abbreviations) == ["Wie kann ich z.B. MongoDB starten?"]


@pytest.mark.parametrize("language", ["cs", "de", "en"])
def test_small_talk_and_refusals_are_known_in_every_shipped_language(language: str):
    """A refusal lists no sources."""
    shipped = load_prompts((language,)).language(language)
    greetings = {"cs": "Ahoj, díky!", "de": "Hallo, danke schön!", "en": "Hello, thanks!"}
    assert is_smalltalk(greetings[language], shipped)
    assert not is_smalltalk(next(iter(QUESTIONS)), GERMAN)
    assert is_refusal(f"{shipped.replies.no_answer} [1]", shipped)
    answers = {"cs": "Stránka popisuje kvóty [1].", "de": "Die Dokumentation nennt 4 GB [1].", "en": "It is 4 GB [1]."}
    assert not is_refusal(answers[language], shipped)


def test_a_german_answer_is_german_and_its_units_are_known():
    """The check of answers takes nouns for no foreign names; fidelity compares hours in any language."""
    german = (
        "Sie legen das Volume in der Konsole an und binden es danach in Ihrem Notebook ein. Das dauert zwei Minuten."
    )
    check = AnswerLanguage("de", load_prompts(("de", "cs", "en")).languages)
    assert check.beginning(german) == "right"
    assert check.beginning("You create the volume in the console and then you mount it in your notebook.") == "wrong"
    assert comparable("10 bis 20 Stunden") == comparable("10 to 20 hours").replace("to", "bis") == "10 h bis 20 h"
