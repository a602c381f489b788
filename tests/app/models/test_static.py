"""Vectors without a model server."""

from __future__ import annotations

import math
import socket
import subprocess
import sys

import pytest

from app.models.static import StaticEmbedder


def cosine(a, b) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return StaticEmbedder()


async def test_near_meanings_have_near_vectors(embedder):
    disk, storage, cat = await embedder.embed_queries(["a disk volume", "storage space", "the cat sleeps"])
    assert cosine(disk, storage) > cosine(disk, cat) + 0.1


async def test_vectors_have_the_stated_dimension_and_length_one(embedder):
    assert embedder.name == "wordllama-256"  # model and size
    texts = ["one", "two words", "x " * 5000]
    for vectors in (await embedder.embed_queries(texts), await embedder.embed_passages(texts)):
        assert [len(v) for v in vectors] == [await embedder.dimension()] * 3
        assert [math.sqrt(cosine(v, v)) for v in vectors] == pytest.approx([1.0] * 3, abs=1e-5)


async def test_a_text_has_the_same_vector_in_any_company_and_as_a_question(embedder):
    (alone,) = await embedder.embed_passages(["quota of a project"])
    assert await embedder.embed_queries(["quota of a project"]) == [alone]
    among = (await embedder.embed_passages(["", "x " * 800, "quota of a project"] * 20))[-1]
    assert among == pytest.approx(alone, abs=1e-6)


async def test_nothing_to_embed_is_zeros(embedder):
    assert await embedder.embed_queries([]) == []
    zeros = [0.0] * await embedder.dimension()
    assert await embedder.embed_queries(["", " \n"]) == [zeros, zeros]


async def test_it_never_uses_the_network(monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("no network"))
    fresh = StaticEmbedder()
    assert len(await fresh.embed_queries(["quota"])) == 1
    await fresh.close()
    assert len(await fresh.embed_queries(["quota"])) == 1


def test_its_library_leaves_the_program_s_logging_alone():
    code = (
        "import asyncio, logging; from app.models.static import StaticEmbedder; "
        "asyncio.run(StaticEmbedder().embed_queries(['x'])); "
        "assert not logging.getLogger().handlers; assert logging.getLogger().level == logging.WARNING"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
