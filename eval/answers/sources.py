"""What an answer is judged against if nobody knows what the model read: the pages it cites, and what the index has on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.assistants.assistant import Assistant
from app.core.filters import Filters
from app.core.turn import Message, Request, Turn
from app.core.types import Passage
from app.index.protocols import Generation
from app.pipeline.reading import CHARACTERS_PER_TOKEN
from app.text.growth import grown, heading_line
from eval.answers.types import Answer
from eval.questions.cases import Case
from eval.questions.documents import Documents, Rule

FOUND = 10  # chunks of the cited pages, and as many of all pages
LONGEST = 4000  # characters of question and answer that are searched


@dataclass(frozen=True)
class Corpus:
    """The indexed pages, searched as this assistant searches them, without a language model. `documents` finds the page of
    an address; the passages of an answer have at most `tokens`.
    """

    assistant: Assistant
    documents: Documents
    tokens: int

    @classmethod
    async def of(cls, assistant: Assistant, tokens: int, rules: Sequence[Rule] = ()) -> Corpus:
        """The live index of the assistant; `rules` rewrite cited addresses to those of the index."""
        pages = await (await assistant.store.live()).pages()
        return cls(assistant, Documents([page.url for page in pages], rules), tokens)

    async def sourced(self, answer: Answer, case: Case) -> Answer:
        """The answer with the cited pages that are indexed, and with passages: of these pages, then of all pages, those
        that the question and the answer find, grown to sections as for our own answers. One that has passages stays.
        """
        if answer.error or answer.passages:
            return answer
        cited = tuple(dict.fromkeys(url for link in answer.links for url in self.documents.pages(link)))
        everywhere = await self._search(answer, case)
        hits = everywhere.hits
        if cited:
            own = await self._search(answer, case, cited)
            hits = (*(hit for hit in own.hits if hit.chunk.url in cited), *hits)
        first = tuple({hit.chunk.id: hit for hit in reversed(hits)}.values())[::-1]
        generation: Generation = everywhere.generation
        pages = await generation.plain_texts(list(dict.fromkeys(hit.chunk.url for hit in first)))
        passages = grown(first, pages, self.tokens * CHARACTERS_PER_TOKEN)
        return replace(answer, pages=cited or answer.pages, passages=shown(passages))

    async def _search(self, answer: Answer, case: Case, cited: tuple[str, ...] = ()) -> Turn:
        text = f"{case.question}\n{answer.text}"[:LONGEST]
        request = Request(
            (Message("user", text),),
            self.assistant.id,
            "eval",
            filters=Filters(url_prefixes=cited),
            limit=FOUND,
            language=case.language,
        )
        return await self.assistant.search(request)


def shown(passages: Sequence[Passage]) -> tuple[str, ...]:
    """The passages as a model reads them, each below its page and headings."""
    return tuple(f"{heading_line(one.chunk)}\n{one.chunk.text}" for one in passages)


def citing(answers: Sequence[Answer]) -> dict[str, str]:
    """How many answers of each contestant cite an indexed page: with none, the addresses probably differ."""
    names = dict.fromkeys(answer.contestant for answer in answers)
    own = {name: [answer for answer in answers if answer.contestant == name and not answer.error] for name in names}
    return {name: f"{sum(bool(a.pages) for a in had)} of {len(had)} answers" for name, had in own.items()}
