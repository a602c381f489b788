"""One question doesn't get more expensive: the calls of our functions that it takes are counted, so a busy machine changes nothing.

The kept figures stand in `cost.toml`. After a change that is worth its cost, or saves some, write the new figure there, with the
reason in the commit. Don't do so lightly: ten changes of 5 % are two thirds more for every reader, and no change looked like it.
"""

import asyncio
import sys
import tomllib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

from app.assistants.assembly import opened
from app.conversations.database import Database, url_of
from app.conversations.queries import QuestionLog
from app.conversations.store import ConversationStore
from app.core.generation import Recipe
from app.core.settings import Settings
from app.core.turn import Message, Usage
from app.core.types import Derived, Page
from app.models import Model
from app.routes.server import create_app
from ingestion.split import open_splitter
from ingestion.split.chunks import plain_text
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.scripted_llm import Piece, ScriptedLLM

ROOT = Path(__file__).parents[1]
OURS = tuple(str(ROOT / room) for room in ("app", "plugins"))
FIGURE = Path(__file__).parent / "cost.toml"
ALLOWED = 0.05
INLINED = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
"""Calls in Python 3.11 alone."""
PLANS = {
    "calls": '[[assistant]]\nid = "docs-assistant"\nsteps = ["detect", "retrieve", "synthesize", "cite"]\n',
    "calls_of_default_steps": "",
}
"""The assistants of a service, by the name of the figure of a question to the first; without any, it has the default steps."""
TOPICS = ("volumes", "networks", "certificates", "quotas", "backups", "accounts", "images", "clusters")
QUESTIONS = [f"How do I create {topic} with more memory, and where are their limits?" for topic in TOPICS]
ANSWER = """To create them, open the form and fill in a name and the size of the memory [1]. Then run this command:

```
tool create --memory 4G
```

Each step of the limits needs the project [2], and you ask an administrator for more memory [1]. Wait a minute for it then.
"""


async def say(messages: Sequence[Message], options: Mapping[str, Any]) -> AsyncGenerator[str | Piece, None]:
    """The same answer, word by word."""
    for word in ANSWER.split(" "):
        await asyncio.sleep(0)
        yield f"{word} "
    yield Piece(finish="stop", usage=Usage(1000, 60))


def pages() -> list[Page]:
    """A page for each topic and three numbers, with sections that differ and some that don't."""
    made = []
    for topic in TOPICS:
        for number in range(3):
            parts = [f"# {topic.title()} {number}\n\nAll about {topic}, part {number}.\n"]
            for section in ("Create", "Memory", "Limits", "Delete"):
                lines = [f"{section} {topic} of kind {number}: step {step} needs the project." for step in range(6)]
                parts.append(f"## {section} {topic}\n\n{' '.join(lines)}\n\n- ask an administrator\n- wait a minute\n")
            url = f"https://docs.example.org/{topic}/{number}"
            made.append(Page(url, "docs", f"{topic.title()} {number}", "en", "\n".join(parts), url))
    return made


@contextmanager
def counted() -> Any:
    """Counts the calls of our functions in this thread, by module and function."""
    calls: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(OURS) and code.co_name not in INLINED:
            calls[f"{Path(code.co_filename).relative_to(ROOT)} {code.co_qualname}"] += 1

    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.fixture(params=PLANS)
def figure(request: pytest.FixtureRequest) -> str:
    """The name of a figure in `cost.toml`."""
    return str(request.param)


@pytest.fixture
async def client(tmp_path: Path, figure: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that searches in an index of `pages` by the steps of a plan, and keeps answers."""
    monkeypatch.setattr(
        "plugins.steps.curated.FRESH", 3600.0
    )  # on a busy machine, each question would be the first of a second
    if PLANS[figure]:
        (tmp_path / "assistants.toml").write_text(PLANS[figure], encoding="utf-8")
    named = str(tmp_path / "assistants.toml") if PLANS[figure] else ""
    settings = Settings.load(None, store=str(tmp_path / "index"), assistants=named, languages=("en", "cs"))
    splitter, model = open_splitter(settings), Model(ScriptedLLM(say))
    conversations = ConversationStore(Database(url_of("", tmp_path)), 30, question_log=QuestionLog())
    async with opened(settings, model=model) as assistants:
        embedder = assistants.embedder
        recipe = Recipe(embedder.name, await embedder.dimension(), "s", "a")
        async with await assistants.store.draft(recipe) as draft:
            for page in pages():
                chunks = splitter.split(page)
                vectors = await embedder.embed_passages([chunk.embedded_text for chunk in chunks])
                derived = Derived(tuple(chunk.id for chunk in chunks), plain_text(page.markdown, chunks))
                by_id = {chunk.id: vector for chunk, vector in zip(chunks, vectors, strict=True)}
                await draft.put(replace(page, derived=derived), chunks, by_id)
            await draft.publish()
        app = create_app(assistants, settings, conversations=conversations)
        async with client_of(app) as client:
            yield client
        await conversations.close()


async def test_a_question_takes_no_more_calls(client: httpx.AsyncClient, figure: str) -> None:
    """The median over some questions, none of which is the first: caches are filled, and libraries loaded."""
    for question in QUESTIONS:
        await client.post(CHAT, json=chat(question, stream=True))
    found: list[Counter[str]] = []
    for question in QUESTIONS:
        with counted() as calls:
            response = await client.post(CHAT, json=chat(f"{question} Now?", stream=True))
        assert response.status_code == 200
        assert "[DONE]" in response.text
        assert "Sources" in response.text
        found.append(calls)
    middle = sorted(found, key=Counter.total)[len(found) // 2]
    calls, kept = middle.total(), tomllib.loads(FIGURE.read_text("utf-8"))[figure]
    most = "\n".join(f"{count:6} {name}" for name, count in middle.most_common(25))
    assert calls <= kept * (1 + ALLOWED), (
        f"A streamed question takes {calls} calls of our functions, {calls / kept - 1:+.0%} to the {kept} in {FIGURE.name}.\n"
        f"Find out which change needs them. If it is worth that, write {figure} = {calls} there and say why in the commit.\n{most}"
    )
    assert calls >= kept * (1 - 2 * ALLOWED), (
        f"A question got cheaper: write {figure} = {calls} to {FIGURE.name}, so that it stays so."
    )
