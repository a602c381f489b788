"""Finds errors in a question set, and things that its author should look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.text.language import LanguageDetector
from eval.questions.cases import Case
from eval.questions.documents import Documents
from eval.questions.evidence import holds, words

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
        pages = [texts.get(url, "") for url in documents.pages(case.doc)]
        if case.evidence and pages and not any(holds(page, case.evidence) for page in pages):
            unproved.append(case.id)
        if any(is_copied(case.question, page) for page in pages):
            copied.append(case.id)
    if missing:
        yield Finding(error=True, text="`doc` or `also` isn't an indexed page", ids=tuple(missing))
    if unproved:
        yield Finding(error=True, text="the evidence isn't on the page", ids=tuple(unproved))
    if copied:
        yield Finding(
            error=False, text=f"{COPIED_WORDS} or more words in a row are copied from the page", ids=tuple(copied)
        )


def is_copied(question: str, page: str) -> bool:
    """True if several words in a row of the question are on the page: such a question is too easy to find."""
    asked = words(question)
    text = f" {' '.join(words(page))} "
    runs = (asked[i : i + COPIED_WORDS] for i in range(len(asked) - COPIED_WORDS + 1))
    return any(f" {' '.join(run)} " in text for run in runs)


def counts(cases: Iterable[Case]) -> Mapping[tuple[str, str], int]:
    """How many questions there are, by language and variant."""
    return Counter((case.language, case.variant) for case in cases)


def _repeated(cases: Sequence[Case]) -> Iterator[Finding]:
    by_text: dict[str, list[str]] = {}
    for case in cases:
        by_text.setdefault(" ".join(words(case.question)), []).append(case.id)
    for ids in by_text.values():
        if len(ids) > 1:
            yield Finding(error=True, text="the same question", ids=tuple(ids))


def _unbalanced(cases: Sequence[Case]) -> Iterator[Finding]:
    found = counts(cases)
    variants = sorted({variant for _, variant in found})
    for language in sorted({language for language, _ in found}):
        sizes = {variant: found.get((language, variant), 0) for variant in variants}
        lacking = [variant or "(none)" for variant, size in sizes.items() if not size]
        if lacking:
            yield Finding(error=False, text=f"{language} has no question of variant {', '.join(lacking)}")
        elif max(sizes.values()) > MOST_OF_ONE_VARIANT * min(sizes.values()):
            sizes_by_variant = ", ".join(f"{variant or '(none)'}: {size}" for variant, size in sizes.items())
            yield Finding(
                error=False, text=f"{language} has unequally many questions of its variants ({sizes_by_variant})"
            )
