"""How answers end: scripted answers of a model through the steps synthesize and cite, and what is left that shouldn't be.

python -m bench.answers [--show]: counts, for each promise about citations, titles, links and refusals, the answers that
break it; --show prints them. The refusals are those of `tests/answers`.
"""

import argparse
import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Event, Message, Question, Request, Source, Text, Turn
from app.core.types import Chunk, Hit, Section
from app.models import Model
from app.pipeline.steps.cite import Cite
from app.pipeline.steps.synthesize import Synthesize
from eval.measure.tables import as_table
from tests.scripted_llm import Piece, ScriptedLLM

SITE = "https://docs.example.org"
PHRASES = Path(__file__).parents[1] / "tests" / "answers"
LANGUAGES = ("cs", "en", "de")
SECTIONS = (
    ("Install", "install", "Run `lumora install --prefix /opt` once. It takes 18 minutes."),
    ("Limits", "limits", "A bucket takes 250000 objects at most. Beyond that, error 507 is returned."),
    ("Backups", "backups", "Copies are made with `lumora backup start` at 03:40 and kept for 16 days."),
)
SAYS = {
    "install": ("Installing takes 18 minutes", "Run `lumora install --prefix /opt`", "Instalace trvá 18 minut"),
    "limits": ("At most 250000 objects", "You get error 507", "Nejvýš 250000 objektů"),
    "backups": ("Copies are kept for 16 days", "Start it with `lumora backup start`", "Zálohy začínají v 03:40"),
}
REPEATED = (
    "[1][1]", "[1][1][2]", "[1] [1]", "[1, 1]", "[1][2][1]", "[1], [1]", "[1][3][1][3]", "[1]. [1]", "[passage 1][1]", "[1-2][2]",
)  # fmt: skip
CODES = (
    "```sh\nlumora install --prefix /opt\n```",
    "```\n507\n```",
    "~~~\nlumora backup start\n~~~",
    "    lumora backup start",
)
AFTER_CODE = ("\n[1]", "\n\n[1]", "\n\n[1][2]", " [1]", "\n\n[1].", "\n\n(Passage [1])")
TITLES = {
    "Limits <style>p{color:red}</style>": "Limits", "Limits<br>of buckets": "Limits of buckets", "Limits<br/>": "Limits",
    "\\<script setup> Limits": "<script setup> Limits", "<script>alert(1)</script>Limits": "Limits", "`Limits`": "Limits",
    "**Limits**": "Limits", "Limits {#limits}": "Limits", "Limits &amp; quotas": "Limits & quotas",
    "Limits <Badge type='tip' text='new'/>": "Limits", "Limits <sup class='badge'>beta</sup>": "Limits",
    "![](logo.png) Limits": "Limits", "[Limits](/limits)": "Limits", "Limits\u200b": "Limits", "Limits<!-- x -->": "Limits",
    "a < b > c": "a < b > c", "List<String>": "List<String>", "The `<input>` element": "The <input> element",
}  # fmt: skip
UNUSABLE = (
    "index",
    "Index",
    "",
    "README",
    "readme.md",
    "Untitled",
    "index.html",
    "_index",
    "Document",
    "undefined",
    "Example",
)
MENTIONS = re.compile(r"\b(?:passages?|excerpts?|pasáž\w*|úryv\w*|Textstellen?|context|kontext\w*)\b", re.IGNORECASE)
_RUN = re.compile(r"\[\d+\](?:[\s,.;]*\[\d+\])*")
_LONE = re.compile(r"^[ \t(]*(?:\[\d+\][ \t.,)]*)+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Said:
    """An answer as readers get it: its text above the list of links, that list, and the sources."""

    text: str
    links: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """What the model writes for a question over these passages, and whether what readers get breaks the promise."""

    promise: str
    answer: str
    broken: Callable[[Said], bool]
    hits: tuple[Hit, ...] = ()
    language: str = "en"
    question: str = "How many objects fit into a bucket?"


def scripted(text: str) -> ScriptedLLM:
    """A model that writes one text, word by word."""

    async def says(*_: object) -> AsyncGenerator[str | Piece, None]:
        for piece in re.findall(r"\S+\s*|\s+", text):
            yield piece
        yield Piece(finish="stop")

    return ScriptedLLM(says)


def page(name: str, *, title: str = "", parts: Sequence[tuple[str, str, str]] = SECTIONS) -> Hit:
    """A hit on a page whose one chunk has these sections."""
    text, sections = "", list[Section]()
    for heading, anchor, body in parts:
        sections.append(Section(len(text), (heading,), anchor))
        text += f"## {heading}\n\n{body}\n\n"
    address = f"{SITE}/{name}"
    title = title or name.rpartition("/")[2].capitalize()
    return Hit(Chunk(address, "docs", address, 0, text.strip(), "en", title, tuple(sections)), 1.0, 0.5, 1.0)


HITS = (page("guide/buckets"), page("guide/queues"), page("guide/tokens"))


def indexed_title(title: str) -> str:
    """What the index keeps of a page's title: to be adapted where titles are cleaned when pages are converted."""
    return title


def scripts() -> tuple[Script, ...]:
    """All of them."""
    kinds = (_repeated, _after_code, _titles, _unusable, _sections, _pages, _refusals, _answers, _related, _addresses)
    return tuple(script for kind in kinds for script in kind())


def _repeated() -> Iterator[Script]:
    for run in REPEATED:
        for ending in ("{}.", "{}, as the table shows.", " {}\n\n- First {}\n- Second {}\n"):
            answer = "At most 250000 objects " + ending.replace("{}", run)
            yield Script(
                "numbers repeated in a run", answer, lambda said: any(map(_twice, _RUN.findall(said.text))), HITS
            )


def _twice(run: str) -> bool:
    numbers = re.findall(r"\d+", run)
    return len(numbers) > len(set(numbers))


def _after_code() -> Iterator[Script]:
    for code in CODES:
        for mark in AFTER_CODE:
            answer = f"Use this command:\n\n{code}{mark}\n"
            yield Script("a citation alone below code", answer, lambda said: bool(_LONE.search(said.text)), HITS)
            if mark != " [1]":  # part of the code there, so that nothing is cited
                yield Script("the sentence before the code cited", answer, lambda said: not _cites_before(said), HITS)


def _cites_before(said: Said) -> bool:
    return bool(re.search(r"command[^\n]*\[1\]", said.text))


def _titles() -> Iterator[Script]:
    for title, plain in TITLES.items():
        hits = (page("guide/limits", title=indexed_title(title)),)
        answer = "At most 250000 objects [1]."
        yield Script("a title that isn't plain text", answer, lambda said, plain=plain: not _titled(said, plain), hits)


def _titled(said: Said, plain: str) -> bool:
    if not said.sources:
        return False
    shown = " ".join(said.sources[0].title.split()).translate({0x2039: "<", 0x203A: ">"})
    return shown in {plain, f"{plain} beta"}  # of a badge


def _unusable() -> Iterator[Script]:
    for title in UNUSABLE:
        hits = (replace(page("guide/limits/"), chunk=replace(page("guide/limits/").chunk, title=title)),)
        yield Script(
            "a source without a usable title", "At most 250000 objects [1].", lambda said: not _named(said), hits
        )


def _named(said: Said) -> bool:
    return bool(said.sources) and "limits" in said.sources[0].title.casefold()


def _sections() -> Iterator[Script]:
    for question in ("How do I start?", "How many objects fit into a bucket?"):
        for anchor, sayings in SAYS.items():
            for saying in sayings:
                hits, answer = HITS[:1], f"{saying} [1]."
                wrong = lambda said, anchor=anchor: not said.sources or not said.sources[0].url.endswith(f"#{anchor}")  # noqa: E731
                language = "en" if saying.isascii() else "cs"
                yield Script("a link to another section than the cited", answer, wrong, hits, language, question)


def _pages() -> Iterator[Script]:
    apart = tuple(page("guide/buckets", parts=[section]) for section in SECTIONS)
    for shape in (
        "A [1]. B [2].",
        "A [1][2].",
        "A [3]. B [1]. C [2].",
        "A [1].\n\n- B [3]\n- C [2]",
        "A.",
        "A [2, 3].",
    ):
        yield Script("a page twice in the list", shape, _page_twice, apart)
        yield Script("a page twice in the list", shape, _page_twice, (*apart[:2], HITS[1]))


def _page_twice(said: Said) -> bool:
    pages = [address.partition("#")[0] for address in re.findall(r"\]\((\S+?)\)", said.links)]
    return len(pages) > len(set(pages))


def phrases(file: str) -> list[tuple[str, str]]:
    """Language and text of each line."""
    lines = (PHRASES / file).read_text("utf-8").splitlines()
    return [(line[:2], line[3:]) for line in lines if line and not line.startswith("#")]


def _refusals() -> Iterator[Script]:
    for language, text in phrases("refusals.txt"):
        promise = "a refusal that cites, with sources" if "[" in text else "a refusal with sources"
        own = tuple(replace(hit, chunk=replace(hit.chunk, language=language)) for hit in HITS)
        yield Script(promise, text, lambda said: bool(said.sources), own, language, "Who won the election?")
        if MENTIONS.search(text):
            yield Script(
                "passages mentioned to readers", text, lambda said: bool(MENTIONS.search(said.text)), HITS, language
            )


def _answers() -> Iterator[Script]:
    for language, text in phrases("no_refusals.txt"):
        stated = page("guide/notes", parts=[("Notes", "notes", re.sub(r" ?\[\d\]", "", text))])
        yield Script("an answer that lost its sources", text, lambda said: not said.sources, (stated, *HITS), language)


def _related() -> Iterator[Script]:
    questions = {
        "en": ("What will the weather be tomorrow?", "Who won the election?", "Tell me a recipe for goulash"),
        "cs": ("Jaké bude zítra počasí?", "Kdo vyhrál volby?", "Napiš mi recept na guláš"),
        "de": ("Wie wird morgen das Wetter?", "Wer hat die Wahl gewonnen?", "Nenne mir ein Rezept für Gulasch"),
    }
    refusals = {language: text for language, text in reversed(phrases("refusals.txt")) if "[" not in text}
    for language, asked in questions.items():
        for question in asked:
            yield Script(
                "unrelated pages offered", refusals[language], lambda said: SITE in said.text, HITS, language, question
            )
    for question in ("How do I delete a bucket?", "Is there an audit of buckets?", "How many queues can I have?"):
        yield Script(
            "related pages not offered", refusals["en"], lambda said: SITE not in said.text, HITS, "en", question
        )


def _addresses() -> Iterator[Script]:
    contact = (
        "Contact",
        "contact",
        "Write to help@example.cz or see https://status.example.cz and [forum](https://forum.example.cz/a).",
    )
    hits = (page("guide/contact", parts=[contact]),)
    for given in ("help@example.cz", "https://status.example.cz", "https://forum.example.cz/a", "<help@example.cz>"):
        for shape in ("Write to {} [1].", "- {} [1]", "**{}** [1]"):
            bare = given.strip("<>")
            yield Script(
                "an address of the passage removed",
                shape.format(given),
                lambda said, bare=bare: bare not in said.text,
                hits,
            )
    for made_up in ("https://made-up.cz/login", "http://evil.cz", "[here](https://made-up.cz)"):
        yield Script(
            "a made-up address given",
            f"See {made_up} [1].",
            lambda said: bool(re.search(r"made-up\.cz|evil\.cz", said.text)),
            hits,
        )


async def said(script: Script, cite: Cite, settings: Settings) -> Said:
    """What readers get."""
    request = Request((Message("user", script.question),), id="bench")
    turn = Turn(request=request, asked=Question(script.question, script.language), hits=script.hits)
    written = await Synthesize(cite.prompts, settings, Model(scripted(script.answer)))(turn)
    events: list[Event] = [event async for event in (await cite(replace(turn, **written)))["events"]]
    text = "".join(event.text for event in events if isinstance(event, Text))
    heading = f"**{cite.prompts.language(script.language).texts.sources}**"
    body, _, links = text.partition(heading)
    return Said(body, links, tuple(event for event in events if isinstance(event, Source)))


async def broken(chosen: Sequence[Script]) -> list[tuple[Script, Said]]:
    """The answers that break their promise, as readers get them."""
    settings = Settings.load(None, languages=LANGUAGES)
    cite = Cite(load_prompts(LANGUAGES), unproven="mark")
    answers = [(script, await said(script, cite, settings)) for script in chosen]
    return [(script, answer) for script, answer in answers if script.broken(answer)]


def in_prompts() -> int:
    """How often the prompts for the answer speak of passages to the model."""
    prompts = load_prompts(LANGUAGES)
    texts = [prompts.render(code, "synthesize", passages="") for code in LANGUAGES]
    return sum(len(MENTIONS.findall(text)) for text in texts)


def main() -> None:
    """Ask all and print what is left."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the answers that break their promise")
    show = parser.parse_args().show
    chosen = scripts()
    left = asyncio.run(broken(chosen))
    rows = []
    for promise in dict.fromkeys(script.promise for script in chosen):
        of = [script for script in chosen if script.promise == promise]
        rows.append([promise, str(len(of)), str(sum(script.promise == promise for script, _ in left))])
    rows.append(["all", str(len(chosen)), str(len(left))])
    print("\n".join(as_table(["what must not be", "answers", "left"], rows)))
    print(f"The prompts speak of passages {in_prompts()} times.")
    for script, answer in left if show else ():
        print(f"\n--- {script.promise}: {script.answer!r}\n{answer.text}\n{answer.links}".rstrip())


if __name__ == "__main__":
    main()
