"""What the answering model reads: cut sentences, repeated text, noise, and how much of the evidence is there.

python -m bench.prompts [FILE] [--limit 100]: asks the questions of a set over the configured index, without FILE those over
this product's own documentation, which is indexed for it. It counts in the passages of the prompts of the synthesis. With
--tokens 1700 2700 it only compares these values of DOCS_TUNING__PASSAGE_TOKENS: how much is read, and how much of the evidence
is there.
"""

import argparse
import asyncio
import logging
import re
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NoReturn

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Request
from app.index.protocols import Generation
from app.models import Model
from app.text.blocks import blocks, sentences
from eval.commands.options import quiet_pipeline
from eval.measure.tables import as_table
from eval.questions.cases import Case, load_cases, sample
from eval.questions.evidence import holds, share
from eval.questions.own_docs import indexed_docs, own_set
from tests.scripted_llm import Piece, ScriptedLLM

REPEATED = 80  # characters that stand in two passages
SIZES = (30, 12, 6, 4)  # words by which a border is found in its page
CUTS = ("sentence", "list item", "fence", "table", "admonition")
NOISE: Mapping[str, re.Pattern[str]] = {
    "component tag": re.compile(r"</?[A-Z][\w.]*(?=[\s/>])[^>]*>"),
    "HTML tag": re.compile(r"</?(?:sup|sub|span|div|br|style|script|img|a|details|summary|p|b|i)\b[^>]*>", re.IGNORECASE),
    "encoded data": re.compile(r"data:[\w/+.-]+[;,]|(?:%[0-9A-Fa-f]{2}[\w.-]{0,12}){12,}|[A-Za-z0-9+/_-]{200,}"),
    "link address": re.compile(r"(?<!!)\[[^\]]{0,300}\]\([^)\s]"),
    "image": re.compile(r"!\[[^\]]{0,300}\]\("),
}  # fmt: skip
_FENCE_ATTRIBUTES = re.compile(
    r"^\s*(?:`{3,}(?!.*`)|~{3,})[ \t]*(?:[\w+#.-]+[ \t]*[\[{(\"]|[\w+#.-]+[ \t]+\S|\{)", re.MULTILINE
)
_ADDRESS = re.compile(r"(!?\[[^\]\n]*\])\([^)\n]*\)|[ \t]*\{#[\w-]+\}(?=[ \t]*$)", re.MULTILINE)
_WORD = re.compile(r"\w+")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+\S")
_GAP = re.compile(r"\n[ \t]*…(?: \([^\n]*\))?[ \t]*(?=\n|$)")  # "..." is a page's own, in code
_NUMBER = re.compile(r"^\[(\d+)\] ", re.MULTILINE)


class Listener(ScriptedLLM):
    """A model that keeps what it is asked to answer from; without its help the other steps are skipped."""

    _heard: list[Sequence[Message]]

    def __init__(self) -> None:
        super().__init__(self.say, "listener")
        self._heard = []

    @property
    def heard(self) -> list[Sequence[Message]]:
        """The messages of each answer."""
        return self._heard

    async def achat(self, *_: object, **__: object) -> NoReturn:
        """Fails."""
        raise ModelError("It only listens.")

    async def say(self, messages: Sequence[Message], _: Mapping[str, Any]) -> AsyncGenerator[Piece, None]:
        """A word."""
        self._heard.append(messages)
        yield Piece("Yes [1].", finish="stop")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The passages that a question's prompt has, in order; `pages` has the Markdown of the pages they come from."""

    case: Case
    passages: tuple[str, ...]
    pages: tuple[str, ...]
    length: int = 0  # of all messages


def passages_in(system: str, prompts: Prompts, language: str) -> tuple[str, ...]:
    """The numbered passages of a system message, without the lines that number them."""
    before, _, after = prompts.render(language, "synthesize", passages="\x00").partition("\x00")
    text = system.removeprefix(before)
    text = text[: text.index(after.strip())] if after.strip() else text
    starts = list[re.Match[str]]()
    for found in _NUMBER.finditer(text):
        if int(found[1]) == len(starts) + 1:
            starts.append(found)
    ends = [*(found.start() for found in starts[1:]), len(text)]
    return tuple(text[found.end() : end].rstrip() for found, end in zip(starts, ends, strict=True))


def bare(markdown: str) -> str:
    """Without the addresses of links and the anchors of headings, which passages may lack."""
    return _ADDRESS.sub(r"\1", markdown)


class Source:
    """A page's Markdown, in which a passage's ends can be found again by their words."""

    def __init__(self, markdown: str) -> None:
        self._text = bare(markdown)
        self._spans = [found.span() for found in _WORD.finditer(self._text)]
        self._words = " ".join(["", *(self._text[a:b].casefold() for a, b in self._spans), ""])
        self._offsets = [found.start() for found in re.finditer(" ", self._words)]
        self._blocks = list(_blocks(self._text))

    def cut_at_end(self, words: Sequence[str]) -> str | None:
        """What the passage with these last words ends within; empty where it doesn't, None where it isn't found."""
        at = self._place(words)
        return None if at is None else self._within(self._spans[at + len(words) - 1][1])

    def cut_at_start(self, words: Sequence[str]) -> str | None:
        """The same for a passage that begins with these words."""
        at = self._place(words)
        return None if at is None else self._within(self._spans[at - 1][1]) if at else ""

    def _place(self, words: Sequence[str]) -> int | None:
        found = self._words.find(f" {' '.join(words)} ")
        return bisect_left(self._offsets, found) if found >= 0 and words else None

    def _within(self, end: int) -> str:
        """What a border right behind the word that ends here cuts."""
        place = bisect_right([start for start, _, _ in self._blocks], end - 1) - 1
        start, kind, text = self._blocks[place]
        rest = text[end - start :]
        if not _WORD.search(rest):
            return ""
        if kind != "paragraph":
            return kind
        complete = [len(piece) for piece in _growing(sentences(text))]
        read = len("".join(text[: end - start].split()))
        return "" if any(read <= length <= read + len(_closing(rest)) for length in complete) else "sentence"


def _closing(rest: str) -> str:
    return re.match(r"[^\w\s]*", rest)[0]  # type: ignore[index]  # it matches nothing too


def _growing(pieces: Sequence[str]) -> Iterator[str]:
    whole = ""
    for piece in pieces:
        whole += "".join(piece.split())
        yield whole


def _blocks(text: str) -> Iterator[tuple[int, str, str]]:
    """Offset, kind and text of each block: what must not be cut, and paragraphs, in which only sentences must not."""
    at = 0
    for code, piece in blocks(text):
        if code:
            first, _, rest = piece.partition("\n")  # the line of the fence isn't code
            yield at, "paragraph", first
            yield at + len(first) + 1, "fence", rest
        else:
            yield from _prose(piece, at)
        at += len(piece)


def _prose(text: str, at: int) -> Iterator[tuple[int, str, str]]:
    start, lines, kind = at, list[str](), "paragraph"
    for line in text.splitlines(keepends=True):
        new = _kind(line)
        goes_on = lines and line.strip() and new in {kind, "paragraph"} and not (kind == new == "list item")
        if not goes_on or line.startswith("#"):
            if lines:
                yield start, kind, "".join(lines)
            start, lines, kind = at, [], new
        lines.append(line)
        at += len(line)
    if lines:
        yield start, kind, "".join(lines)


def _kind(line: str) -> str:
    if line.lstrip().startswith("|"):
        return "table"
    if line.lstrip().startswith((">", ":::", "!!!")):
        return "admonition"
    return "list item" if _ITEM.match(line) else "paragraph"


def cuts(prompt: Prompt) -> Counter[str]:
    """What the borders of the passages cut, those of marked gaps included; "not found": no page has a border's words."""
    found: Counter[str] = Counter()
    sources = [Source(page) for page in prompt.pages]
    for passage in prompt.passages:
        for piece in _GAP.split(passage.partition("\n")[2]):
            if not (words := _WORD.findall(bare(piece).casefold())):
                continue  # a gap at the end of a passage
            found[_best([source.cut_at_start(words[:size]) for source in sources] for size in SIZES)] += 1
            found[_best([source.cut_at_end(words[-size:]) for source in sources] for size in SIZES)] += 1
    return found


def _best(tried: Iterator[list[str | None]]) -> str:
    """What is cut where the most words are found; of pages that have the same words, one where nothing is cut."""
    for each in tried:
        if known := [one for one in each if one is not None]:
            return min(known)
    return "not found"


def repeated(passages: Sequence[str]) -> int:
    """How many pairs of passages have a text in common, also where a site's pages only begin or end a sentence alike."""
    plain = [" ".join(passage.partition("\n")[2].split()) for passage in passages]
    grams = [{text[i : i + REPEATED] for i in range(len(text) - REPEATED + 1)} for text in plain]
    return sum(not a.isdisjoint(b) for a, b in combinations(grams, 2))


def repeated_blocks(passages: Sequence[str]) -> int:
    """How many pairs of passages have a whole paragraph or code block in common."""
    texts = [
        [piece for code, text in blocks(one) for piece in ([text] if code else text.split("\n\n"))] for one in passages
    ]
    long = [{plain for piece in pieces if len(plain := " ".join(piece.split())) >= REPEATED} for pieces in texts]
    return sum(not a.isdisjoint(b) for a, b in combinations(long, 2))


def noise(passages: Sequence[str]) -> Counter[str]:
    """How often each kind of noise stands in them: tags, addresses and images count outside of code only."""
    found: Counter[str] = Counter()
    for passage in passages:
        prose = re.sub(r"`[^`\n]+`", "", "".join(text for code, text in blocks(passage) if not code))
        found.update({name: len(pattern.findall(prose)) for name, pattern in NOISE.items()})
        found["open fence"] += _open_fence(passage)
        found["fence attributes"] += len(_FENCE_ATTRIBUTES.findall(passage))
    return found


def _open_fence(passage: str) -> bool:
    *_, (code, text) = [(False, ""), *blocks(passage)]
    return code and not text.rstrip().endswith(("```", "~~~"))


@asynccontextmanager
async def assistants_of(options: argparse.Namespace, model: Listener) -> AsyncIterator[Assistants]:
    """The assistants over the configured index, or over a fresh one."""
    async with settings_of(options) as settings, opened(settings, model=Model(model)) as assistants:
        yield assistants


@asynccontextmanager
async def settings_of(options: argparse.Namespace) -> AsyncIterator[Settings]:
    """The settings of the configured index, or of a fresh one."""
    settings = Settings.load()
    if options.file:
        yield settings
    else:
        async with indexed_docs(settings) as own:
            yield own


def cases_of(options: argparse.Namespace) -> tuple[Case, ...]:
    """The questions to ask."""
    with own_set() as own_file:
        return sample(load_cases(options.file or own_file), options.limit)


async def prompts_of(options: argparse.Namespace) -> list[Prompt]:
    """The prompts of the questions; of those with too little evidence there is none."""
    listener = Listener()
    async with assistants_of(options, listener) as assistants:
        return [await _prompt(assistants, listener, case) for case in cases_of(options)]


async def _prompt(assistants: Assistants, listener: Listener, case: Case) -> Prompt:
    listener.heard.clear()
    language, urls = await _answered(assistants, Request(case.messages, id="bench"))
    pages = await _texts(await assistants.store.live(), urls)
    if not listener.heard:
        return Prompt(case, (), pages)
    messages = listener.heard[0]
    passages = passages_in(messages[0].content, assistants.prompts, language)
    return Prompt(case, passages, pages, sum(len(message.content) for message in messages))


async def compared(options: argparse.Namespace) -> str:
    """A table of the values of DOCS_TUNING__PASSAGE_TOKENS: how much the model reads, and how much of the evidence."""
    rows = list[list[str]]()
    async with settings_of(options) as settings:
        for tokens in options.tokens:
            listener = Listener()
            async with opened(
                settings.model_copy(update={"passage_tokens": tokens}), model=Model(listener)
            ) as assistants:
                prompts = [await _prompt(assistants, listener, case) for case in cases_of(options)]
            lengths = [prompt.length for prompt in prompts if prompt.length]
            gold = gold_of(prompts)
            rows.append(
                [
                    str(tokens),
                    f"{statistics.median(lengths):.0f} / {max(lengths)}",
                    f"{sum(holds(*one) for one in gold)} of {len(gold)}",
                    f"{statistics.mean(share(*one) for one in gold):.3f}",
                ]
            )
    return "\n".join(as_table(["tokens", "characters, median / longest", "evidence whole", "mean share"], rows))


def gold_of(prompts: Sequence[Prompt]) -> list[tuple[str, str]]:
    """What each prompt has to read, and its evidence."""
    return [(bare("\n\n".join(one.passages)), bare(one.case.evidence)) for one in prompts if one.case.evidence]


async def _answered(assistants: Assistants, request: Request) -> tuple[str, tuple[str, ...]]:
    assistant = assistants.get("")
    turn = await assistant.find(request)
    async for _ in assistant.answer(request):
        pass  # asked for only so that the model is called
    return turn.asked.language, tuple(dict.fromkeys(hit.chunk.url for hit in turn.hits))


async def _texts(live: Generation, urls: Sequence[str]) -> tuple[str, ...]:
    pages = [await live.page(url) for url in urls]
    return tuple(page.markdown for page in pages if page)


def report(prompts: Sequence[Prompt]) -> str:
    """The figures as a table."""
    asked = [prompt for prompt in prompts if prompt.passages]
    borders, dirt = sum(map(cuts, asked), Counter[str]()), sum((noise(one.passages) for one in asked), Counter[str]())
    pairs = [repeated(one.passages) for one in asked]
    gold = gold_of(prompts)
    sizes = [sum(map(len, one.passages)) for one in asked]
    count = sum(len(one.passages) for one in asked)
    rows = [
        ["questions, with a prompt", f"{len(prompts)}, {len(asked)}"],
        ["passages", str(count)],
        ["characters of passages, median and longest", f"{statistics.median(sizes):.0f}, {max(sizes)}"],
        ["borders", str(borders.total())],
        *([f"borders within a {kind}", str(borders[kind])] for kind in CUTS),
        ["borders not found in the page", str(borders["not found"])],
        [f"pairs of passages with {REPEATED} characters in common", f"{sum(pairs)} (in {sum(map(bool, pairs))} prompts)"],
        ["of them with a whole block in common", str(sum(repeated_blocks(one.passages) for one in asked))],
        *([name, str(dirt[name])] for name in (*NOISE, "open fence", "fence attributes")),
        ["gold sentences in the prompt, whole", f"{sum(holds(*one) for one in gold)} of {len(gold)}"],
        ["gold sentences in the prompt, mean share", f"{statistics.mean(share(*one) for one in gold):.3f}"],
    ]  # fmt: skip
    return "\n".join(as_table(["", "value"], rows))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", default="", help="a question set over the configured index")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument(
        "--tokens", type=int, nargs="+", default=(), help="values of DOCS_TUNING__PASSAGE_TOKENS to compare"
    )
    options = parser.parse_args()
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with quiet_pipeline():
        print(asyncio.run(compared(options)) if options.tokens else report(asyncio.run(prompts_of(options))))


if __name__ == "__main__":
    main()
