"""The prompts for the language model, one for each page, variant and language, and their cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from urllib.parse import unquote, urlsplit

from app.core.prompts import Prompts
from app.core.turn import Message
from app.core.types import Page
from eval.cache import fingerprint
from eval.measure.embedding_space import counterparts

LONGEST_PAGE = 12_000
CHARACTERS_PER_TOKEN = 3.0
TOKENS_OF_QUESTION = 120
FEWEST_WORDS = 40
STYLES = {
    "1": "full, correct questions, as in an e-mail to support.",
    "2": "full questions about a detail: a number, a name, an option, an exception.",
    "3": "hurried and informal, as typed into a chat: lower case, abbreviations, small slips, no greeting."
    " In a language with diacritics leave them out.",
    "4": "two to six search keywords, no sentence, no question mark.",
}
"""The ways of asking by variant."""
FOLLOW_UP, UNANSWERABLE = "follow_up", "unanswerable"


@dataclass(frozen=True, slots=True)
class Job:
    """One call to the model. `variant` is a key of `STYLES` or a kind of set."""

    url: str
    doc: str
    language: str
    variant: str
    n: int
    cross: bool
    prompt: str
    page: str

    @property
    def key(self) -> str:
        """A key that changes with the page's text, the prompt and the number of questions."""
        return fingerprint(self.url, self.language, self.variant, self.prompt)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the prompt."""
        return (Message("user", self.prompt),)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requested set: questions per page and variant, the variants, follow-ups per page, unanswerable questions in
    total.
    """

    per_page: int = 5
    variants: tuple[str, ...] = tuple(STYLES)
    follow_ups: int = 0
    unanswerable: int = 0


def plan(pages: Sequence[Page], prompts: Prompts, wanted: Wanted) -> tuple[Job, ...]:
    """The jobs: each page in its language, and in the other configured languages if it has no counterpart there."""
    found: list[Job] = []
    for page, others in _with_languages([p for p in pages if len(p.markdown.split()) >= FEWEST_WORDS], prompts):
        for language in (page.language, *others):
            name = prompts.language(language).name
            cross = language != page.language
            found += [
                _job("questions", page, language, variant, wanted.per_page, cross, name, STYLES[variant])
                for variant in wanted.variants
            ]
            if wanted.follow_ups:
                found.append(_job(FOLLOW_UP, page, language, FOLLOW_UP, wanted.follow_ups, cross, name, ""))
    if wanted.unanswerable:
        titles = "\n".join(f"- {page.title}" for page in pages)
        share = -(-wanted.unanswerable // len(prompts.languages))
        for language in prompts.languages:
            whole = Page("", "", "all pages", language, titles, "")
            name = prompts.language(language).name
            found.append(_job(UNANSWERABLE, whole, language, UNANSWERABLE, share, False, name, ""))
    return tuple(found)


def tokens(jobs: Iterable[Job]) -> tuple[int, int]:
    """Estimated tokens that these jobs send and receive."""
    sent = got = 0
    for job in jobs:
        sent += int(len(job.prompt) / CHARACTERS_PER_TOKEN)
        got += job.n * TOKENS_OF_QUESTION
    return sent, got


def _with_languages(pages: Sequence[Page], prompts: Prompts) -> Iterable[tuple[Page, tuple[str, ...]]]:
    pairs = counterparts(pages)
    for i, page in enumerate(pages):
        if page.language in prompts.languages:
            there = {page.language, *([pages[pairs[i]].language] if i in pairs else [])}
            yield page, tuple(code for code in prompts.languages if code not in there)


def _job(  # noqa: PLR0913, PLR0917  # what one prompt is made of
    kind: str, page: Page, language: str, variant: str, n: int, cross: bool, name: str, style: str
) -> Job:
    template = Template((files("eval.generate") / f"{kind}.md").read_text(encoding="utf-8"))
    text = page.markdown[:LONGEST_PAGE]
    holes = {"n": str(n), "language": name, "style": style, "title": page.title, "page": text}
    doc = unquote(urlsplit(page.url).path)
    return Job(page.url, doc, language, variant, n, cross, template.substitute(holes), text)
