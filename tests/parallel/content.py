"""The pages of the site as Markdown in each language, made from the facts in `pages.txt`, and questions they answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

LANGUAGES = ("cs", "en", "de")
MISSING = {("cors", "cs"), ("migration", "cs"), ("sso", "cs"), ("dead-letters", "de"), ("alerts", "de")} | {
    ("python-sdk", "cs"), ("python-sdk", "de"),
}  # fmt: skip
PARTLY: Mapping[tuple[str, str], Literal["english", "cut"]] = {
    ("replication", "cs"): "english",  # what follows the first section was never translated
    ("functions", "de"): "cut",  # it was left out
    ("mount", "cs"): "cut",
}
UNRELATED = ("news", "team")  # the same name in each language, and each time another text
OLD = "v1"


@dataclass(frozen=True, slots=True)
class Texts:
    """What one page says in one language."""

    title: str
    task: str
    purpose: str
    names: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Topic:
    """What a page is about: the same command, settings and values in each language."""

    number: int
    id: str
    command: str
    values: tuple[tuple[str, str], tuple[str, str]]
    texts: Mapping[str, Texts]

    @property
    def error(self) -> str:
        """The code of its error."""
        return f"LUM-{1042 + 17 * self.number}"

    @property
    def languages(self) -> tuple[str, ...]:
        """Those that it exists in."""
        return tuple(code for code in LANGUAGES if (self.id, code) not in MISSING)


@dataclass(frozen=True, slots=True)
class Phrases:
    """The sentences that all pages of a language share."""

    headings: tuple[tuple[str, str, str], ...]  # of the three sections, in three ways
    task: str
    runs: tuple[str, ...]
    fact: str
    table: tuple[str, str]
    comment: str
    error: str
    steps: tuple[str, ...]
    contents: str
    questions: Mapping[str, str]
    news: str
    team: str


PHRASES = {
    "en": Phrases(
        (("Set it up", "Settings", "Errors"), ("First steps", "Limits", "When it fails"), ("How it works", "Values", "Troubleshooting")),
        "This page shows how to {task}.",
        ("Sign in first, then run the command in a terminal:", "The command can be repeated safely:", "An administrator runs this once:"),
        "By default {name} is {value}, and `{key}` changes that.", ("Setting", "Value"), "see the table below",
        "Error {error} is reported as soon as `{key}` is exceeded.",
        ("Read the last lines of the log.", "Raise the value step by step.", "Wait a minute and try again.", "Ask the support with the number of the request."),
        "Contents",
        {
            "task": "How do I {task}?", "fact": "{title}: what is {name}?", "key": "what is {key} for",
            "command": "{command} does not work", "error": "What does error {error} mean?",
        },
        "# News\n\nVersion 4.2 makes uploads 30 % faster.\n\n## Spring\n\nThe region eu-3 in Brno has opened.",
        "# Team\n\nEleven people in Prague build Lumora. The office is open on weekdays until 17:00.",
    ),
    "cs": Phrases(
        (("Nastavení", "Hodnoty", "Chyby"), ("První kroky", "Omezení", "Když to selže"), ("Jak to funguje", "Volby", "Řešení potíží")),
        "Na této stránce se dozvíte, jak {task}.",
        ("Nejdřív se přihlaste, pak spusťte v terminálu příkaz:", "Příkaz lze bezpečně opakovat:", "Toto jednou spustí správce:"),
        "Ve výchozím stavu činí {name} {value} a mění to `{key}`.", ("Volba", "Hodnota"), "viz tabulka níže",
        "Chyba {error} se ohlásí, jakmile se překročí `{key}`.",
        ("Přečtěte si poslední řádky logu.", "Zvyšujte hodnotu po krocích.", "Počkejte minutu a zkuste to znovu.", "Napište podpoře číslo požadavku."),
        "Obsah",
        {
            "task": "Jak můžu {task}?", "fact": "{title}: kolik činí {name}?", "key": "k čemu je {key}",
            "command": "{command} nejde", "error": "Co znamená chyba {error}?",
        },
        "# Novinky\n\nV říjnu se změnil ceník frankfurtské oblasti.\n\n## Školení\n\nDalší kurz pro začátečníky je 12. listopadu v Ostravě, míst je 25.",
        "# Tým\n\nHledáme kolegyni do podpory. Životopis pošlete do konce měsíce, nástup je možný hned.",
    ),
    "de": Phrases(
        (("Einrichten", "Werte", "Fehler"), ("Erste Schritte", "Grenzen", "Wenn es scheitert"), ("Wie es funktioniert", "Einstellungen", "Problemlösung")),
        "Diese Seite zeigt, wie Sie {task}.",
        ("Melden Sie sich an und führen Sie dann im Terminal den Befehl aus:", "Der Befehl kann gefahrlos wiederholt werden:", "Dies führt ein Administrator einmal aus:"),
        "In der Voreinstellung beträgt {name} {value}, und `{key}` ändert das.", ("Einstellung", "Wert"), "siehe Tabelle unten",
        "Der Fehler {error} wird gemeldet, sobald `{key}` überschritten ist.",
        ("Lesen Sie die letzten Zeilen des Logs.", "Erhöhen Sie den Wert schrittweise.", "Warten Sie eine Minute und versuchen Sie es erneut.", "Nennen Sie dem Support die Nummer der Anfrage."),
        "Inhalt",
        {
            "task": "Wie kann ich {task}?", "fact": "{title}: wie hoch ist {name}?", "key": "wozu dient {key}",
            "command": "{command} geht nicht", "error": "Was bedeutet der Fehler {error}?",
        },
        "# Neuigkeiten\n\nDie Bibliothek für Java wird eingestellt.\n\n## Messe\n\nBesuchen Sie uns in Halle 7, Stand 41.",
        "# Team\n\nUnser Partner in Wien betreut Kunden in Österreich und der Schweiz, auch am Samstag.",
    ),
}  # fmt: skip
KINDS = ("task", "fact", "key", "command", "error")


@cache
def topics() -> tuple[Topic, ...]:
    """All that are translated, in the order of the site's contents."""
    lines = [line for line in (Path(__file__).parent / "pages.txt").read_text("utf-8").splitlines() if line[:1] != "#"]
    return tuple(_topic(number, lines[4 * number : 4 * number + 4]) for number in range(len(lines) // 4))


def _topic(number: int, lines: list[str]) -> Topic:
    name, command, *values = lines[0].split(" | ")
    first, second = ((key, value) for key, _, value in (one.partition("=") for one in values))
    texts = {}
    for line in lines[1:]:
        title, task, purpose, *names = line[3:].split("; ")
        texts[line[:2]] = Texts(title, task, purpose, (names[0], names[1]))
    return Topic(number, name, command, (first, second), texts)


def slug(text: str) -> str:
    """The text as a site makes a part of an address of it."""
    plain = unicodedata.normalize("NFKD", text.lower()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def markdown(topic: Topic, language: str, *, old: bool = False) -> str:
    """The page in this language; an `old` one has another value in every second topic."""
    partly = PARTLY.get((topic.id, language))
    rest = list(_rest(topic, "en" if partly == "english" else language, old=old)) if partly != "cut" else []
    more = _examples(topic) if language == "en" and topic.number % 3 == 1 else ()
    return "\n\n".join([*_beginning(topic, language), *rest, *more])


def _beginning(topic: Topic, language: str) -> Iterator[str]:
    texts, phrases = topic.texts[language], PHRASES[language]
    comment = f"# {phrases.comment}\n" if topic.number % 4 == 0 else ""
    yield f"# {texts.title}"
    yield f"{texts.purpose} {phrases.task.format(task=texts.task)}"
    yield f"## {phrases.headings[topic.number % 3][0]}"
    yield phrases.runs[topic.number % len(phrases.runs)]
    yield f"```bash\n{comment}{topic.command}\n```"


def _rest(topic: Topic, language: str, *, old: bool) -> Iterator[str]:
    texts, phrases = topic.texts[language], PHRASES[language]
    values = [(key, _older(value) if old and topic.number % 2 else value) for key, value in topic.values]
    _, settings, errors = phrases.headings[topic.number % 3]
    yield f"## {settings}"
    rows = "\n".join(f"| `{key}` | {value} |" for key, value in values)
    yield f"| {' | '.join(phrases.table)} |\n|---|---|\n{rows}"
    for name, (key, value) in zip(texts.names, values, strict=True):
        yield phrases.fact.format(name=name, value=value, key=key)
    if topic.number % 2:
        yield "```yaml\n" + "\n".join(f"{key}: {value}" for key, value in values) + "\n```"
    yield f"## {errors}"
    yield phrases.error.format(error=topic.error, key=values[0][0])
    steps = [phrases.steps[(topic.number + n) % 4] for n in range(2 + topic.number % 3)]
    yield "\n".join(f"{n}. {step}" for n, step in enumerate(steps, start=1))


def _examples(topic: Topic) -> Iterator[str]:
    """What only the original has, as is usual: it says the same names once more."""
    (key, value), _ = topic.values
    command = " ".join(topic.command.split()[:3])
    yield "## Examples"
    yield f"To see what `{command}` would do without doing it, add `--dry-run`; `{key}` is shown as well:"
    yield f"```bash\n{topic.command} --dry-run --show {key}\n```"
    yield f"If `{command}` ends with {topic.error}, look at `{key}` first: {value} is enough for most."


ENCODED = "%7B%22rows%22%3A%5B" + "%7B%22id%22%3A17%7D%2C" * 60
PICTURE = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 50


def noisy(page: str) -> str:
    """The page with what generators of sites leave in it: components, badges, fence attributes, encoded data, variants."""
    first, _, rest = page.partition("\n\n")
    rest = re.sub(r"^(## .*)$", r'\1 <sup class="badge">new</sup>', rest, count=1, flags=re.MULTILINE)
    rest = rest.replace("```bash", "```bash{1,3-10}").replace("```yaml", "```yaml [lumora.yaml]")
    promo = '<PromoLink title="Lumora Cloud" href="https://promo.example.org/?utm_source=docs">Try it</PromoLink>'
    variants = "```sh [Linux]\nlumora login --device\n```\n\n```sh [Windows]\nlumora.exe login\n```"
    tail = f"![plan]({PICTURE}) [Playground](https://play.example.org/#code={ENCODED})"
    return "\n\n".join([first, promo, rest, f"::: code-group\n\n{variants}\n\n:::", tail])


def _older(value: str) -> str:
    return re.sub(r"\d+", lambda found: str(int(found[0]) // 2 + 1), value, count=1)


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the page that answers it. `elsewhere`: the page isn't there in the question's language, or lacks it."""

    language: str
    text: str
    topic: str
    kind: str
    elsewhere: bool = False

    @property
    def proof(self) -> str:
        """What its page says to it."""
        topic = next(topic for topic in topics() if topic.id == self.topic)
        (key, value), phrases = topic.values[0], PHRASES[self.language]
        if self.kind in {"task", "command"}:
            return topic.command
        if self.kind == "error":
            return phrases.error.format(error=topic.error, key=key)
        return phrases.fact.format(name=topic.texts[self.language].names[0], key=key, value=value)


def questions() -> tuple[Question, ...]:
    """Some 200 whose page exists in their language, then those about what is missing there."""
    asked = [one for topic in topics() for place, code in enumerate(LANGUAGES) for one in _asked(topic, code, place)]
    return tuple(sorted(asked, key=lambda one: one.elsewhere))


def _asked(topic: Topic, language: str, place: int) -> Iterator[Question]:
    if language not in topic.languages:
        yield _question(topic, language, "command", elsewhere=True)
        return
    for step in (0, 2):
        kind = KINDS[(topic.number + place + step) % len(KINDS)]
        lacks = PARTLY.get((topic.id, language)) == "cut" and kind in {"fact", "key", "error"}
        yield _question(topic, language, kind, elsewhere=lacks)


def _question(topic: Topic, language: str, kind: str, *, elsewhere: bool) -> Question:
    texts = topic.texts[language]
    known = {
        "task": texts.task, "title": texts.title, "name": texts.names[0], "key": topic.values[0][0],
        "command": " ".join(topic.command.split()[:3]), "error": topic.error,
    }  # fmt: skip
    return Question(language, PHRASES[language].questions[kind].format(**known), topic.id, kind, elsewhere)
