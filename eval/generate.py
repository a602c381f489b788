"""Generates question sets from indexed pages with a language model, and checks each question against its page."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import unquote, urlsplit

from app.core.errors import ModelError
from app.core.language import vocabulary
from app.core.prompts import Prompts
from app.core.turn import Message
from app.core.types import Page
from app.index.protocols import TranslationSets
from app.models import Model
from app.models.protocols import CallOptions
from app.text.analysis import fold
from app.text.language import LanguageDetector
from eval.files import Cache, Progress, fingerprint, in_parallel, write_json_lines
from eval.judge import MalformedError, Pace, json_object
from eval.questions.evidence import holds, is_copied, words

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

    page: Page
    language: str
    variant: str
    n: int
    prompt: str

    @property
    def doc(self) -> str:
        """The path of the page."""
        return unquote(urlsplit(self.page.url).path)

    @property
    def text(self) -> str:
        """What the model reads of the page."""
        return self.page.markdown[:LONGEST_PAGE]

    @property
    def key(self) -> str:
        """A key that changes with the page's text, the prompt and the number of questions."""
        return fingerprint(self.page.url, self.language, self.variant, self.prompt)


def plan(
    pages: Sequence[Page],
    sets: TranslationSets,
    prompts: Prompts,
    per_page: int = 5,
    *,
    follow_ups: int = 0,
    unanswerable: int = 0,
) -> tuple[Job, ...]:
    """The jobs: each page in its language, and in the other configured languages if it has no translation there, with
    `per_page` questions of each wording and `follow_ups`; then the `unanswerable` questions in total.
    """
    jobs: list[Job] = []
    for page in pages:
        if page.language not in prompts.languages or len(page.markdown.split()) < FEWEST_WORDS:
            continue
        translated = sets.of[page.url].pages if page.url in sets.of else ()
        others = [code for code in prompts.languages if code != page.language and code not in translated]
        for language in (page.language, *others):
            jobs += [
                _job("questions", page, language, variant, per_page, prompts, style)
                for variant, style in STYLES.items()
            ]
            if follow_ups:
                jobs.append(_job(FOLLOW_UP, page, language, FOLLOW_UP, follow_ups, prompts))
    if unanswerable:
        titles = "\n".join(f"- {page.title}" for page in pages)
        share = -(-unanswerable // len(prompts.languages))
        for language in prompts.languages:
            whole = Page("", "", "all pages", language, titles, "")
            jobs.append(_job(UNANSWERABLE, whole, language, UNANSWERABLE, share, prompts))
    return tuple(jobs)


def tokens(jobs: Iterable[Job]) -> tuple[int, int]:
    """Estimated tokens that these jobs send and receive."""
    asked = list(jobs)
    return sum(int(len(job.prompt) / CHARACTERS_PER_TOKEN) for job in asked), sum(
        TOKENS_OF_QUESTION * j.n for j in asked
    )


def _job(  # noqa: PLR0913, PLR0917  # what one prompt is made of
    kind: str, page: Page, language: str, variant: str, n: int, prompts: Prompts, style: str = ""
) -> Job:
    template = Template((files("eval") / "prompts" / f"{kind}.md").read_text(encoding="utf-8"))
    name, text = prompts.language(language).traits.name, page.markdown[:LONGEST_PAGE]
    holes = {"n": str(n), "language": name, "style": style, "title": page.title, "page": text}
    return Job(page, language, variant, n, template.substitute(holes))


KEYWORDS = "4"
MOST_KEYWORDS = 8
SENTENCES = ("1", "2")


def reason_against(job: Job, row: Mapping[str, Any], detector: LanguageDetector) -> str:
    """The reason why the row can't be used, empty if it can: missing text, evidence that isn't on the page, copied
    text, a reference to the page, the wrong language.
    """
    needed = {UNANSWERABLE: ("question",), FOLLOW_UP: ("first", "first_answer", "question", "standalone", "evidence")}
    fields = needed.get(job.variant, ("question", "answer", "evidence"))
    if not all(isinstance(row.get(name), str) and row[name].strip() for name in fields):
        return "a text is missing"
    asked = str(row["standalone"] if job.variant == FOLLOW_UP else row["question"])
    if job.variant != UNANSWERABLE and not holds(job.text, str(row["evidence"])):
        return "evidence isn't on the page"
    if job.variant != UNANSWERABLE and is_copied(asked, job.text):
        return "copied from the page"
    if re.search(vocabulary().this_page, fold(asked)):
        return "leans on the page"
    if job.variant == FOLLOW_UP and words(str(row["question"])) == words(asked):
        return "needs no first question"
    return _wrong_style(job, asked, detector)


def _wrong_style(job: Job, asked: str, detector: LanguageDetector) -> str:
    if job.variant == KEYWORDS and (len(asked.split()) > MOST_KEYWORDS or "?" in asked):
        return "no keywords"
    sentence = job.variant in SENTENCES or job.variant not in STYLES
    if sentence and detector.detect(asked, job.language) != job.language:
        return "in another language"
    return ""


TEMPERATURE = 0.7


@dataclass
class Generated:
    """The rows of each kind, the number of rejected rows by reason, and the failed jobs."""

    questions: list[dict[str, Any]] = field(default_factory=list)
    follow_ups: list[dict[str, Any]] = field(default_factory=list)
    unanswerable: list[dict[str, Any]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)


async def ask(
    jobs: Sequence[Job], model: Model, cache: Cache, pace: Pace, progress: Progress | None = None
) -> dict[str, str]:
    """The error of each failed job by its key; answers go to the cache, and cached jobs aren't asked again."""
    errors = dict[str, str]()
    options = CallOptions(temperature=TEMPERATURE, max_tokens=4000)

    async def one(_: int, job: Job) -> None:
        if cache.get(job.key) is None:
            try:
                cache.put(job.key, {"rows": await pace.ask(model, (Message("user", job.prompt),), options, _rows)})
            except (ModelError, MalformedError) as error:
                errors[job.key] = f"{job.doc or 'unanswerable'} {job.language} {job.variant}: {error}"

    await in_parallel(jobs, one, pace.parallel, progress)
    return errors


def _rows(text: str) -> list[Mapping[str, Any]]:
    questions = json_object(text).get("questions")
    if not isinstance(questions, list):
        raise MalformedError("it sent no list of questions")
    return [row for row in questions if isinstance(row, dict)]


def gather(jobs: Iterable[Job], cache: Cache, detector: LanguageDetector) -> Generated:
    """The usable rows of the cached answers, each question once."""
    generated, seen = Generated(), set[tuple[str, ...]]()
    for job in jobs:
        answer = cache.get(job.key) or {"rows": []}
        for row in answer["rows"][: job.n]:
            reason = reason_against(job, row, detector)
            asked = tuple(words(str(row.get("standalone") or row.get("question") or "")))
            if not reason and asked in seen:
                reason = "asked before"
            if reason:
                generated.refused[reason] += 1
                continue
            seen.add(asked)
            _add(generated, job, row)
    return generated


def _add(made: Generated, job: Job, row: Mapping[str, Any]) -> None:
    id_ = fingerprint(job.language, job.doc, str(row["question"]))[:12]
    if job.variant == UNANSWERABLE:
        kind = {"id": id_, "lang": job.language, "kind": "near", "question": row["question"]}
        made.unanswerable.append(kind)
    elif job.variant == FOLLOW_UP:
        said = [("user", "first"), ("assistant", "first_answer"), ("user", "question")]
        messages = [{"role": role, "content": row[name]} for role, name in said]
        own = {"id": id_, "lang": job.language, "messages": messages, "standalone": row["standalone"], "doc": job.doc}
        made.follow_ups.append({**own, "answer": row.get("answer", ""), "evidence": row["evidence"]})
    else:
        own = {"id": id_, "lang": job.language, "variant": job.variant, "question": row["question"], "doc": job.doc}
        made.questions.append(
            {**own, "answer": row["answer"], "evidence": row["evidence"], "cross": job.language != job.page.language}
        )


def write(made: Generated, folder: Path) -> list[Path]:
    """Write the files that have rows; their paths. Raises `EvaluationError` if that fails."""
    kinds = {"questions": made.questions, "follow_ups": made.follow_ups, "unanswerable": made.unanswerable}
    written = {folder / f"{name}.jsonl": rows for name, rows in kinds.items() if rows}
    for path, rows in written.items():
        write_json_lines(rows, path)
    return list(written)
