"""The language model: a server whose answers repeat sentences of the passages with their numbers, and that can be broken."""

import random
import re
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any

from tests.end_to_end.program import free_port
from tests.fake_llm import FakeLLM, Reply, fake_llm

_PASSAGE = re.compile(r"^\[(\d+)\] [^\n]*\n(.*?)(?=^\[\d+\] |\Z)", re.MULTILINE | re.DOTALL)
_SENTENCE = re.compile(r"^[A-ZČŘŠŽÚ][^\n|`\[\]<>*#]{30,200}?[.:]$", re.MULTILINE)
_HELPERS = (  # what a helper step's prompt has, and the reply
    (
        ("keywords in each of these", "klíčových slov v každém"),
        "en: setting, index, page\ncs: nastavení, index, stránka",
    ),
    (("Rewrite the user", "Přepiš poslední dotaz"), "Which setting is it, and what does it change?"),
)
BREAKS: Mapping[str, Callable[[Reply], Reply]] = {
    "model hangs": lambda _: Reply(delay=600),
    "model slow": lambda reply: Reply(reply.text, delay=4, piece_delay=0.1),
    "model 500": lambda _: Reply("out of memory", status=500),
    "model 429": lambda _: Reply("slow down", status=429, headers={"Retry-After": "5"}),
    "model cut": lambda reply: Reply(reply.text, dies_after=6, piece_delay=0.03),
}


class Model:
    """The server. `fault` is empty or a key of `BREAKS`."""

    def __init__(self, seed: int) -> None:
        self._llm, self._port, self._server = FakeLLM(), free_port(), AsyncExitStack()
        self._llm.reply = self._reply
        self._random = random.Random(seed)
        self.fault = ""
        self.site = ""  # whose links it sometimes invents
        self.url = f"http://127.0.0.1:{self._port}/v1"

    async def start(self) -> None:
        """Listen."""
        await self._server.enter_async_context(fake_llm(self._llm, self._port))

    async def stop(self) -> None:
        """Refuse connections."""
        await self._server.aclose()

    def _reply(self, body: Mapping[str, Any]) -> Reply:
        for kept in (self._llm.calls, self._llm.headers, self._llm.request_ids):
            kept.clear()
        prompt = "\n".join(str(message["content"]) for message in body["messages"])
        text = next((reply for signs, reply in _HELPERS if any(sign in prompt for sign in signs)), "")
        reply = Reply(text or self._answer(prompt), piece_delay=0.0 if text else 0.02)
        return BREAKS[self.fault](reply) if self.fault else reply

    def _answer(self, prompt: str) -> str:
        parts = []
        for number, text in _PASSAGE.findall(prompt)[:3]:
            if sentences := _SENTENCE.findall(text):
                parts.append(f"{self._random.choice(sentences)[:-1]} [{number}].")
        if parts and self._random.random() < 0.1:
            parts.append(f"[More]({self.site}/en/invented-{self._random.randint(1, 99)}/#nowhere).")
        return " ".join(parts) or "The documentation has no answer to it."
