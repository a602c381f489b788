"""A service over a real embedded index of two pages, with a scripted model server for answers and embeddings."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fastapi import FastAPI

from app.assistants.assembly import opened
from app.conversations.store import ConversationStore
from app.core.settings import Settings
from app.core.types import Chunk, Section
from app.index import Store
from app.routes.server import create_app
from tests.app.published import publish
from tests.fake_llm import FakeLLM, fake_llm

VOLUME = "# Volumes\n\n## Create\n\nCreate a persistent volume with a PersistentVolumeClaim of the class nfs-csi."
LIMITS = "# Limits\n\nEach notebook gets at most 4 GB of memory."
URL = "https://docs.example.org/"


@dataclass(frozen=True)
class Indexed:
    """The application, the server that stands in for the models, and the index."""

    app: FastAPI
    llm: FakeLLM
    store: Store

    @property
    def searches(self) -> int:
        """How often a question was embedded, which every search begins with."""
        return len(self.llm.embedded)


def _chunk(name: str, text: str) -> Chunk:
    title, language = name.title(), "cs" if name.startswith("cs-") else "en"
    section = Section(0, (title, "Create") if name == "volumes" else (title,), "create")
    return Chunk(name, "secret" if "secret-" in name else "docs", URL + name, 0, text, language, title, (section,))


def helped(folder: Path) -> str:
    """A file with an assistant that asks the model for help with each question, also where the question alone finds its page."""
    steps = '["detect", ["refine", "keywords", "probe"], "retrieve", "relevance", "overview", "synthesize", "cite"]'
    (file := folder / "assistants.toml").write_text(f'[[assistant]]\nid = "docs-assistant"\nsteps = {steps}\n')
    return str(file)


@asynccontextmanager
async def indexed(
    folder: Path,
    *,
    with_model: bool = True,
    more: Mapping[str, str] | None = None,
    conversations: ConversationStore | None = None,
    **options: object,
) -> AsyncIterator[Indexed]:
    """The service; its settings are those of a newcomer, and `options`. `more` are texts of pages, by name, which begins
    with cs- for a Czech one, and has secret- in it for one in the collection secret instead of docs.
    """
    async with fake_llm() as llm:
        models = {"embedding_url": llm.url, "embedding_model": "e", "exact": True, "vector_weight": {"*": 0.5}}
        if with_model:
            models |= {"llm_url": llm.url, "llm_model": "m"}
        settings = Settings.load(None, store=str(folder / "index"), **models | options)
        async with opened(settings) as assistants:
            pages = {"volumes": VOLUME, "limits": LIMITS, **(more or {})}
            await publish(assistants.store, assistants.embedder, *(_chunk(name, text) for name, text in pages.items()))
            llm.embedded.clear()
            yield Indexed(create_app(assistants, settings, conversations=conversations), llm, assistants.store)
