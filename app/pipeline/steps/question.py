"""Steps that read the question: its language, its form for synthesis, and its keywords for retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import ModelError, RequestError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper, unquoted
from app.pipeline.conversation import helper_messages, referred
from app.pipeline.runner import Changes
from app.text.language import LanguageDetector, form_of, is_smalltalk, names_of, parse


@dataclass(frozen=True)
class Detect:
    """Takes the last question. Its words decide the language, else the conversation, else the client, else a guess."""

    detector: LanguageDetector
    prompts: Prompts
    name = "detect"
    reads = ("request",)
    uses = ()
    writes = ("question", "language", "unsure", "referred", "smalltalk")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The question, its language and whether that is a guess, the question it refers to, and the reply to small talk."""
        question = turn.request.question
        if not question:
            raise RequestError("The conversation has no question of the user.", param="messages")
        known = self._shown(question, turn.request.messages) or turn.request.language
        language = known or self.detector.guessed(question)
        words = self.prompts.language(language)
        return {
            "question": question,
            "language": language,
            "unsure": not known,
            "referred": referred(turn.request.messages, words),
            "smalltalk": self.prompts.render(language, "smalltalk") if is_smalltalk(question, words) else "",
        }

    def _shown(self, question: str, messages: Sequence[Message]) -> str:
        """The language that the question shows, else the newest question before it, else the newest answer; may be empty."""
        asked, answered = ([m.content for m in reversed(messages) if m.role == role] for role in ("user", "assistant"))
        return next(filter(None, map(self.detector.shown, (question, *asked, *answered[:1]))), "")


LONGEST_QUESTION = 600


@dataclass(frozen=True)
class Refine:
    """Asks the language model to rewrite the question so that it stands on its own."""

    model: Model
    prompts: Prompts
    settings: Settings
    detector: LanguageDetector
    name = "refine"
    reads = ("question", "language")
    uses = ("sure",)
    writes = ("refined", "refined_language")
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The refined question and its language. Raises `ModelError` for a reply that is empty or too long."""
        if turn.sure:
            return {}
        messages = helper_messages(self.prompts.render(turn.language, "refine_question"), turn, self.prompts)
        answer = unquoted(await ask_helper(self.name, self.model, messages, turn, self.settings))
        if not answer or len(answer) > max(LONGEST_QUESTION, 2 * len(turn.question)):
            raise ModelError(f"The refined question is {'empty' if not answer else 'too long'}: the original is used.")
        return {"refined": answer, "refined_language": self.detector.shown(answer)}


LONGEST_KEYWORDS = 400


@dataclass(frozen=True)
class Keywords:
    """Gets keywords from the language model, one line per language."""

    model: Model
    prompts: Prompts
    settings: Settings
    name = "keywords"
    reads = ("question", "language")
    uses = ("sure",)
    writes = ("keywords",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """Keywords by language code. Raises `ModelError` if the reply has none."""
        if turn.sure:
            return {}
        codes = codes_of(turn, self.prompts)
        system = self.prompts.render(
            turn.language,
            "refine_keywords",
            languages=names_of(codes, self.prompts),
            form=form_of(codes),
        )
        messages = helper_messages(system, turn, self.prompts)
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings)
        keywords = parse(answer, codes, LONGEST_KEYWORDS)
        if not keywords:
            raise ModelError(f"The reply has no keywords: {answer[:200]!r}. Searching for the question alone.")
        return {"keywords": keywords}


def codes_of(turn: Turn, prompts: Prompts) -> list[str]:
    """The languages of the keywords, the question's first."""
    return [turn.language, *(code for code in prompts.languages if code != turn.language)]
