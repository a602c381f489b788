"""A question log as the service writes it: questions through the real pipeline, over our own documentation, without a model."""

import asyncio
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from app.assistants.assembly import opened
from app.conversations.opening import open_conversations
from app.conversations.records import KeptAnswer
from app.core.settings import Settings
from app.core.turn import Message, Request, Source
from app.routes.keeping import _found
from eval.questions.cases import load_cases
from eval.questions.own_docs import own_set
from tests.docs_assistant.cli.stored_index import copied_docs, index_docs
from tests.plugins.gaps.planted import UNANSWERABLE

PAGES = ("index", "start", "clients", "settings", "how-it-works", "evaluate", "indexing", "operate")
"""Of our documentation, in both languages: reading all of it takes minutes."""
ANSWERABLE = 200
DAY = 86_400


def subjects() -> dict[str, dict[str, str]]:
    """The subject of each question that the documentation doesn't answer, by set: 107 of twelve subjects of a platform, in the others 100 of five."""
    here = Path(__file__)
    hpc, platform = (
        tomllib.loads(here.with_name(f"planted_{name}.toml").read_text("utf-8")) for name in ("hpc", "platform")
    )
    return {
        name: {text: subject for subject, by in found.items() for texts in by.values() for text in texts}
        for name, found in {"assistant": UNANSWERABLE, **hpc, "platform": platform}.items()
    }


def asked() -> list[str]:
    """The questions of our question set about `PAGES`, then those of all sets of subjects."""
    with own_set() as path:
        answerable = [case.question for case in load_cases(path) if str(case.doc).rpartition("/")[2] in PAGES]
    return [*answerable[:ANSWERABLE], *(text for found in subjects().values() for text in found)]


async def answered(settings: Settings, now: float) -> list[KeptAnswer]:
    """What the service keeps of these questions, one each ten minutes until now."""
    kept = []
    questions = asked()
    async with opened(settings) as assistants:
        assistant = assistants.get("")
        for number, question in enumerate(questions):
            turn = await assistant.assess(Request((Message("user", question),)))
            sources = tuple(Source(n, "", hit.chunk.link, "", "", "", 0.0) for n, hit in enumerate(turn.hits, 1))
            answer = {"id": f"answer-{number}", "owner": "", "question": question, "answer": "", "sources": sources}
            answer |= {"assistant": "docs-assistant", "language": turn.asked.language, "found": _found(turn)}
            answer |= {"outcome": "extractive" if turn.hits else "refused"}
            kept.append(KeptAnswer(**answer, created=now - (len(questions) - number) * 600))
    return kept


E5 = "local:multilingual-e5-small"  # subjects in two languages need vectors that know both


@contextmanager
def planted(now: float) -> Iterator[tuple[Settings, Sequence[KeptAnswer]]]:
    """The settings of an index of `PAGES`, and what the service keeps of the questions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        docs, store = copied_docs(folder / "docs", *PAGES), folder / "index"
        settings = Settings.load(None, store=str(store), collection="docs", embedding_model=E5)
        asyncio.run(index_docs(settings, store, docs))
        yield settings, asyncio.run(answered(settings, now))


async def write(settings: Settings, folder: Path, kept: Sequence[KeptAnswer], *, earlier: float = 0.0) -> None:
    """Write the answers into the database of these settings, as if they were given so many seconds earlier."""
    store = open_conversations(settings, folder)
    assert store
    waiting = [store.writer.add(replace(one, created=one.created - earlier)) for one in kept]
    await asyncio.gather(*(one for one in waiting if one))
    await store.close()
