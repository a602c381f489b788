"""Readers who ask one question after another in a conversation, and what each request got."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field

import aiohttp

from bench import load

QUESTIONS = tuple(question for question in load.QUESTIONS if question.isascii())
"""In English, as the answers of the fake model."""
END = "THE-END"
"""What the fake model writes last."""
WAIT = "told to wait"
"""The outcome of a request that an overloaded service refuses; the reader asks again, as clients do."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. `outcome` is "" for a whole answer, "cut" for a stream that broke off without an error, or the error."""

    ended: float
    first: float
    gap: float
    outcome: str


@dataclass
class Reader:
    """Asks in one conversation, one question after another."""

    number: int
    session: aiohttp.ClientSession
    url: str
    conversation: str = ""
    answered: list[str] = field(default_factory=list)

    async def read(self, done: list[Asked]) -> None:
        """Ask until cancelled; the first question comes within 20 s."""
        await asyncio.sleep(random.uniform(0, 20))
        async with self.session.post(f"{self.url}/v1/conversations", json={}) as response:
            self.conversation = (await response.json())["id"]
        for number in range(10_000):
            question = f"{QUESTIONS[(self.number + number) % len(QUESTIONS)]} ({number})"
            while (asked := await self._ask(question)).outcome == WAIT:
                done.append(asked)
                await asyncio.sleep(3)
            done.append(asked)
            if not asked.outcome:
                self.answered.append(question)
            await asyncio.sleep(random.uniform(0.0, 0.5))

    async def missing(self) -> int:
        """How many of its answered questions aren't in the conversation."""
        kept: set[str] = set()
        after = ""
        while True:
            address = f"{self.url}/v1/conversations/{self.conversation}/items?limit=100&order=asc{after}"
            async with self.session.get(address) as response:
                part = await response.json()
            kept |= {item["content"][0]["text"] for item in part["data"] if item["role"] == "user"}
            if not part["has_more"]:
                return len(set(self.answered) - kept)
            after = f"&after={part['last_id']}"

    async def _ask(self, question: str) -> Asked:
        began, first, gap, body = time.monotonic(), 0.0, 0.0, bytearray()
        messages = [{"role": "user", "content": question}]
        asked = {"model": "docs-assistant", "stream": True, "messages": messages, "conversation": self.conversation}
        outcome, last = "", 0.0
        try:
            async with self.session.post(f"{self.url}/v1/chat/completions", json=asked) as response:
                status = response.status
                async for piece in response.content.iter_any():
                    now = time.monotonic()
                    gap, last = max(gap, now - last) if last else 0.0, now
                    body += piece
                    first = first or (now - began if b'"content":"' in body else 0.0)
            whole = END.encode() in body and body.endswith(b"data: [DONE]\n\n") and b'"extractive":true' not in body
            if status == 503 and b'"code":"overloaded"' in body:
                outcome = WAIT
            elif status != 200 or not whole:
                outcome = f"{status} {bytes(body[-300:]).decode(errors='replace')}"
        except (aiohttp.ClientError, OSError) as error:
            outcome = "cut" if body else repr(error)
        return Asked(time.monotonic(), first, gap, outcome)
