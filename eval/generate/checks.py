"""Checks whether a generated question can be used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from app.core.language import vocabulary
from app.text.analysis import fold
from app.text.language import LanguageDetector
from eval.generate.jobs import FOLLOW_UP, STYLES, UNANSWERABLE, Job
from eval.questions.check import is_copied
from eval.questions.evidence import holds, words

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
    if job.variant != UNANSWERABLE and not holds(job.page, str(row["evidence"])):
        return "evidence isn't on the page"
    if job.variant != UNANSWERABLE and is_copied(asked, job.page):
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
