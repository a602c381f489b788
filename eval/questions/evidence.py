"""Finds the chunks of an index that contain a question's evidence, an exact quote of the page.

Also finds its section: a chunk without headings contains the text, but can't link to the place.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.core.types import Chunk
from app.index.protocols import Generation
from app.text.language import LanguageDetector
from eval.questions.cases import Case
from eval.questions.documents import Documents

ENOUGH = 0.5  # a chunk's end may cut the quote: the chunk with most of it still proves it
NEXT_BEST = 0.8
GRAM = 3
_WORD = re.compile(r"\w+")
_HEADING = re.compile(r"#{1,6}\s+(.*?)(?:\s*\{#[\w-]+\})?\s*#*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Proof:
    """Ids of the chunks with a case's evidence; `placed` are those that know its section (None: it is in no section)."""

    chunks: frozenset[str]
    placed: frozenset[str] | None


def words(text: str) -> list[str]:
    """The words alone, because Markdown marks, line breaks and capitals make no difference between quotes."""
    return _WORD.findall(text.casefold())


def holds(text: str, quote: str) -> bool:
    """True if the quote is in the text, word for word."""
    return f" {' '.join(words(quote))} " in f" {' '.join(words(text))} "


def share(text: str, quote: str) -> float:
    """Share of the quote that is in the text, in runs of three words."""
    asked = words(quote)
    size = min(GRAM, len(asked))
    wanted, present = _grams(asked, size), set(_grams(words(text), size))
    return sum(gram in present for gram in wanted) / len(wanted) if wanted else 0.0


def places(text: str, quote: str) -> tuple[tuple[int, int], ...]:
    """Finds the quote in the text: begin and end of each place that has it word for word, or else of its runs of three
    words.
    """
    asked, found = words(quote), [(match[0].casefold(), *match.span()) for match in _WORD.finditer(text)]
    size = len(asked) if holds(text, quote) else min(GRAM, len(asked))
    wanted, spans = set(_grams(asked, size)), list[tuple[int, int]]()
    for i, gram in enumerate(_grams([word for word, _, _ in found], size)):
        if gram in wanted:
            start, end = found[i][1], found[i + size - 1][2]
            joined = spans and start <= spans[-1][1]
            spans[-1:] = [(spans[-1][0], end)] if joined else [*spans[-1:], (start, end)]
    return tuple(spans)


async def proofs(generation: Generation, documents: Documents, cases: Iterable[Case]) -> Mapping[str, Proof]:
    """The proof of each case, by its id; cases without evidence in the index are left out."""
    read: dict[str, tuple[str, tuple[Chunk, ...]]] = {}
    proof_of: dict[str, Proof] = {}
    for case in cases:
        urls = documents.pages(case.doc) if case.evidence else ()
        for url in urls:
            if url not in read and (page := await generation.page(url)):
                read[url] = page.markdown, await generation.fetch(page.derived.chunk_ids)
        chunks = [chunk for url in urls for chunk in read[url][1]]
        best = _best(chunks, case.evidence)
        if not best:
            continue
        headings = {heading for url in urls if (heading := heading_of(read[url][0], case.evidence))}
        placed = frozenset(chunk.id for chunk in chunks if chunk.id in best and headings & set(_headings(chunk)))
        proof_of[case.id] = Proof(best, placed if headings else None)
    return proof_of


def heading_of(markdown: str, quote: str) -> str:
    """The heading, as words, of the section with most of the quote; empty for text above all headings."""
    best, most = "", 0.0
    for heading, text in _sections(markdown):
        if (part := share(text, quote)) > most:
            best, most = heading, part
    return best


def _sections(markdown: str) -> Iterator[tuple[str, str]]:
    heading, lines, fence = "", list[str](), ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        title = None if fence else _HEADING.match(line)
        if title:
            yield heading, "\n".join(lines)
            heading, lines = " ".join(words(title[1])), []
        lines.append(line)
    yield heading, "\n".join(lines)


def _headings(chunk: Chunk) -> list[str]:
    return [" ".join(words(section.path[-1])) for section in chunk.sections if section.path]


def _best(chunks: Sequence[Chunk], quote: str) -> frozenset[str]:
    shares = {chunk.id: share(chunk.text, quote) for chunk in chunks}
    least = max(ENOUGH, NEXT_BEST * max(shares.values(), default=0.0))
    return frozenset(id_ for id_, value in shares.items() if value >= least)


def _grams(tokens: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)] if size else []


COPIED_WORDS = 7
FULL = frozenset({"1", "2"})
MOST_OF_ONE_VARIANT = 1.5


@dataclass(frozen=True, slots=True)
class Finding:
    """One error or warning, with the ids of the questions."""

    error: bool
    text: str
    ids: tuple[str, ...] = ()


def check_form(cases: Sequence[Case], detector: LanguageDetector) -> Iterator[Finding]:
    """Findings about the questions alone: repetition, language, balance of variants."""
    yield from _repeated(cases)
    other = [
        case.id
        for case in cases
        # keywords and hurried questions may show no language
        if case.variant in FULL and detector.detect(case.question, case.language) != case.language
    ]
    if other:
        yield Finding(error=False, text="not in the language that `lang` says", ids=tuple(other))
    yield from _unbalanced(cases)


def check_pages(cases: Iterable[Case], documents: Documents, texts: Mapping[str, str]) -> Iterator[Finding]:
    """Findings about the questions and the indexed pages: missing documents, missing evidence, copied questions.

    `texts` has the Markdown of the pages by address.
    """
    missing, unproved, copied = list[str](), list[str](), list[str]()
    for case in cases:
        if any(not documents.pages(doc) for doc in case.relevant):
            missing.append(case.id)
        pages = [texts.get(url, "") for url in documents.pages(case.doc)] if case.doc else []
        if case.evidence and pages and not any(holds(page, case.evidence) for page in pages):
            unproved.append(case.id)
        if any(is_copied(case.question, page) for page in pages):
            copied.append(case.id)
    for ids, error, text in (
        (missing, True, "`doc` or `also` isn't an indexed page"),
        (unproved, True, "the evidence isn't on the page"),
        (copied, False, f"{COPIED_WORDS} or more words in a row are copied from the page"),
    ):
        if ids:
            yield Finding(error, text, tuple(ids))


def is_copied(question: str, page: str) -> bool:
    """True if several words in a row of the question are on the page: such a question is too easy to find."""
    asked = words(question)
    text = f" {' '.join(words(page))} "
    runs = (asked[i : i + COPIED_WORDS] for i in range(len(asked) - COPIED_WORDS + 1))
    return any(f" {' '.join(run)} " in text for run in runs)


def counts(cases: Iterable[Case]) -> Mapping[tuple[str, str], int]:
    """Counts the questions by language and variant."""
    return Counter((case.language, case.variant) for case in cases)


def _repeated(cases: Sequence[Case]) -> Iterator[Finding]:
    by_text: dict[str, list[str]] = {}
    for case in cases:
        by_text.setdefault(" ".join(words(case.question)), []).append(case.id)
    for ids in by_text.values():
        if len(ids) > 1:
            yield Finding(error=True, text="the same question", ids=tuple(ids))


def _unbalanced(cases: Sequence[Case]) -> Iterator[Finding]:
    numbers = counts(cases)
    variants = sorted({variant for _, variant in numbers})
    for language in sorted({language for language, _ in numbers}):
        sizes = {variant: numbers.get((language, variant), 0) for variant in variants}
        lacking = [variant or "(none)" for variant, size in sizes.items() if not size]
        if lacking:
            yield Finding(error=False, text=f"{language} has no question of variant {', '.join(lacking)}")
        elif max(sizes.values()) > MOST_OF_ONE_VARIANT * min(sizes.values()):
            sizes_by_variant = ", ".join(f"{variant or '(none)'}: {size}" for variant, size in sizes.items())
            yield Finding(
                error=False, text=f"{language} has unequally many questions of its variants ({sizes_by_variant})"
            )
