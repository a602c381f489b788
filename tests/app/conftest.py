"""A scripted language model behind real HTTP, and a client of ours for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from app.models.openai import Endpoint, OpenAIModel
from tests.fake_llm import FakeLLM, fake_llm


@pytest.fixture
async def llm() -> AsyncIterator[FakeLLM]:
    """The server, which keeps what it was sent."""
    async with fake_llm() as server:
        yield server


@pytest.fixture
async def model(llm: FakeLLM) -> AsyncIterator[OpenAIModel]:
    """With little patience, so that a server that hangs is noticed soon."""
    opened = OpenAIModel(Endpoint(llm.url, timeout=1), "m")
    yield opened
    await opened.close()
