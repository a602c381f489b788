"""Readers, operators and careless programs that use the service, at a steady rate; each request becomes a `Seen`."""

import asyncio
import json
import random
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from bench.soak.judge import Seen

READER, ADMIN = "soak-reader", "soak-admin"
RETRIES = 4
LONGEST = 120.0  # seconds that a client waits; other programs on the machine make answers slow, never wrong
_TARGET = re.compile(r"\]\(<?([^\s<>()]+)>?(?: \"[^\"]*\")?\)|<(https?://[^\s<>]+)>")
CHAT, RESPONSES, SEARCH = "/v1/chat/completions", "/v1/responses", "/v1/search"
BAD: Sequence[tuple[str, str, Any, int]] = (
    ("POST", CHAT, {"model": "docs-assistant", "messages": []}, 400),
    ("POST", CHAT, {"model": "gpt-4", "messages": [{"role": "user", "content": "Hi"}]}, 404),
    ("POST", CHAT, {"model": "docs-assistant", "messages": [{"role": "user", "content": "x" * 30_000}]}, 413),
    ("POST", CHAT, "{not JSON", 400),
    ("POST", CHAT, {"model": "docs-assistant", "n": 3, "messages": [{"role": "user", "content": "Hi"}]}, 400),
    ("POST", SEARCH, {"query": "index", "colour": "red"}, 400),
    ("POST", SEARCH, {"query": "index", "limit": 1000}, 400),
    ("POST", "/v1/answers/chatcmpl-none/feedback", {"rating": "sideways"}, 400),
    ("GET", "/v1/nothing", None, 404),
)
LOOKED_AT = (
    "index", "pages", "pages?state=failing", "generations", "settings", "errors", "feedback", "gaps?since=1d",
)  # fmt: skip


@dataclass
class Traffic:
    """The clients. `seen` has all that ended."""

    url: str
    site: str
    questions: Sequence[Mapping[str, Any]]
    now: Callable[[], float]
    session: aiohttp.ClientSession
    random: random.Random
    seen: list[Seen] = field(default_factory=list)
    _answers: deque[tuple[str, float]] = field(default_factory=lambda: deque(maxlen=50))
    _talks: deque[tuple[str, float, int]] = field(default_factory=lambda: deque(maxlen=20))

    async def run(self, rate: float, seconds: float) -> None:
        """Begin so many requests per second at random moments, without waiting for earlier ones; then wait for all."""
        kinds = self._kinds()
        names, weights = list(kinds), [weight for _, weight in kinds.values()]
        tasks: set[asyncio.Task[None]] = set()
        while self.now() < seconds:
            name = self.random.choices(names, weights)[0]
            task = asyncio.create_task(self._do(name, kinds[name][0]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await asyncio.sleep(self.random.expovariate(rate))
        await asyncio.gather(*tasks)

    def _kinds(self) -> Mapping[str, tuple[Callable[[Seen], Awaitable[None]], float]]:
        return {
            "chat, streamed": (self._chat_streamed, 18),
            "chat": (self._chat, 10),
            "follow-up": (self._follow_up, 10),
            "responses": (self._responses, 5),
            "responses, streamed": (self._responses_streamed, 5),
            "cancelled stream": (self._cancelled, 6),
            "search": (self._search, 8),
            "search as you type": (self._typed, 24),
            "feedback": (self._feedback, 5),
            "conversations": (self._conversations, 3),
            "admin": (self._admin, 2),
            "bad request": (self._bad, 5),
            "page, health": (self._page, 3),
        }

    async def _do(self, name: str, act: Callable[[Seen], Awaitable[None]]) -> None:
        seen = Seen(name, self.now(), 0.0, "")
        try:
            async with asyncio.timeout(LONGEST):
                await act(seen)
        except TimeoutError:
            seen.outcome = "timeout"
        except aiohttp.ClientError as error:
            seen.outcome = "cut" if seen.first or isinstance(error, aiohttp.ClientPayloadError) else "no connection"
            seen.detail = type(error).__name__
        except Exception as error:  # noqa: BLE001  # whatever it is, it is among the results
            seen.outcome, seen.detail = "error of the bench", repr(error)
        seen.ended = self.now()
        if seen.outcome:
            self.seen.append(seen)

    async def _send(self, seen: Seen, method: str, path: str, body: Any = None, key: str = READER) -> tuple[int, str]:
        """Status and body; where the service says when to try again, the client does, as OpenAI's do."""
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        headers = {"Authorization": f"Bearer {key}"} | ({"Content-Type": "application/json"} if data else {})
        while True:
            text = bytearray()
            async with self.session.request(method, self.url + path, data=data, headers=headers) as response:
                async for piece in response.content.iter_any():
                    if not seen.first and (b"content" in piece or b"delta" in piece or len(piece) > 500):
                        seen.first = self.now() - seen.began
                    text += piece
            wait = response.headers.get("Retry-After")
            if response.status != 503 or not wait or seen.retries == RETRIES:
                return response.status, text.decode("utf-8", "replace")
            seen.retries += 1
            seen.first = 0.0
            await asyncio.sleep(int(wait))

    async def _answer(self, seen: Seen, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Ask, and note outcome and links; the objects that came, with the text as `text`."""
        status, text = await self._send(seen, "POST", path, body)
        streamed = status == 200 and body.get("stream", False)
        objects = list(_events(text)) if streamed else [_json(text)]
        answer = Answer(objects)
        whole = not streamed or text.endswith("data: [DONE]\n\n") or '"response.completed"' in text
        if status != 200 or answer.error:
            seen.outcome, seen.detail = answer.error or str(status), text[-400:]
        elif not whole or not answer.text:
            seen.outcome, seen.detail = "cut", text[-300:]
        elif answer.extractive:
            seen.outcome = "extractive"
        else:
            seen.outcome = "ok" if answer.urls else "refused"
            seen.detail = "" if answer.urls else answer.text[:120]
        seen.links = dict.fromkeys(url for url in answer.links() if url.startswith(self.site))
        if answer.id and status == 200 and not answer.error:
            self._answers.append((answer.id, seen.began))
        return {"id": answer.id}

    def _question(self) -> str:
        return str(self.random.choice(self.questions)["question"])

    def _body(self, *, stream: bool) -> dict[str, Any]:
        question = {"role": "user", "content": self._question()}
        return {"model": "docs-assistant", "stream": stream, "messages": [question]}

    async def _chat_streamed(self, seen: Seen) -> None:
        await self._answer(seen, CHAT, self._body(stream=True))

    async def _chat(self, seen: Seen) -> None:
        await self._answer(seen, CHAT, self._body(stream=False))

    async def _follow_up(self, seen: Seen) -> None:
        """The next question of a conversation; a new one begins where all are in use or ended."""
        if self._talks and self.random.random() < 0.75:
            talk, seen.since, turns = self._talks.popleft()
        else:
            status, text = await self._send(seen, "POST", "/v1/conversations", {})
            if status != 200:
                seen.outcome, seen.detail = _code(text) or str(status), text[:300]
                return
            talk, seen.since, turns = _json(text)["id"], seen.began, 0
            seen.first = 0.0
        await self._answer(seen, CHAT, self._body(stream=self.random.random() < 0.5) | {"conversation": talk})
        if turns < 4 and seen.outcome in {"ok", "refused", "extractive"}:
            self._talks.append((talk, seen.since, turns + 1))

    async def _responses(self, seen: Seen) -> None:
        await self._answer(seen, RESPONSES, {"model": "docs-assistant", "input": self._question()})

    async def _responses_streamed(self, seen: Seen) -> None:
        await self._answer(seen, RESPONSES, {"model": "docs-assistant", "input": self._question(), "stream": True})

    async def _cancelled(self, seen: Seen) -> None:
        """A client that leaves after up to a second."""
        request = asyncio.create_task(self._answer(seen, CHAT, self._body(stream=True)))
        await asyncio.wait({request}, timeout=self.random.random())
        if request.done():
            await request
            return
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
        seen.outcome = "cancelled"

    async def _found(self, seen: Seen, status: int, text: str) -> None:
        rows = _json(text).get("data", []) if status == 200 else []
        seen.outcome = "ok" if status == 200 else _code(text) or str(status)
        seen.detail = "" if status == 200 else text[:300]
        seen.links = dict.fromkeys(row["url"] for row in rows)

    async def _search(self, seen: Seen) -> None:
        await self._found(seen, *await self._send(seen, "POST", SEARCH, {"query": self._question(), "limit": 10}))

    async def _typed(self, seen: Seen) -> None:
        question = self._question()
        query = question[: self.random.randint(3, max(4, len(question) // 2))]
        body = {"query": query, "as_you_type": True, "limit": 8}
        await self._found(seen, *await self._send(seen, "POST", SEARCH, body))

    async def _feedback(self, seen: Seen) -> None:
        if not self._answers:
            return
        id_, seen.since = self.random.choice(self._answers)
        body = {"rating": self.random.choice(["up", "down"]), "comment": "Measured."}
        await self._plain(seen, "POST", f"/v1/answers/{id_}/feedback", body)

    async def _conversations(self, seen: Seen) -> None:
        if self._talks and self.random.random() < 0.5:
            talk, seen.since, _ = self.random.choice(self._talks)
            await self._plain(seen, "GET", f"/v1/conversations/{talk}/answers")
        else:
            await self._plain(seen, "GET", "/v1/conversations?limit=20")

    async def _admin(self, seen: Seen) -> None:
        if self._answers:  # until a question was asked, there is nothing to report
            await self._plain(seen, "GET", f"/v1/admin/{self.random.choice(LOOKED_AT)}", key=ADMIN)

    async def _page(self, seen: Seen) -> None:
        path = self.random.choice(["/", "/health", "/health/ready", "/v1/models", "/v1/interface", "/metrics"])
        status, text = await self._send(seen, "GET", path, key=ADMIN)
        down = path.startswith("/health") and status == 503
        seen.outcome = "ok" if status == 200 else "not ready" if down else _code(text) or str(status)
        seen.detail = "" if status == 200 else f"{path} {text[:300]}"

    async def _bad(self, seen: Seen) -> None:
        method, path, body, expected = self.random.choice(BAD)
        status, text = await self._send(seen, method, path, body)
        seen.outcome = "ok" if status == expected else _code(text) or f"{status} instead of {expected}"
        seen.detail = "" if status == expected else f"{path} {json.dumps(body)[:80]} {status} {text[:200]}"

    async def _plain(self, seen: Seen, method: str, path: str, body: Any = None, key: str = READER) -> None:
        status, text = await self._send(seen, method, path, body, key)
        seen.outcome = "ok" if status == 200 else _code(text) or str(status)
        seen.detail = "" if status == 200 else f"{path} {text[:300]}"


class Answer:
    """An answer of either API, whole or streamed: its text, the addresses of its sources, its error."""

    def __init__(self, objects: Sequence[Mapping[str, Any]]) -> None:
        self.urls: set[str] = set()
        self.id = self.error = ""
        self.extractive = False
        self._texts: list[str] = []
        for one in objects:
            self._walk(one)
        self.text = "".join(self._texts)

    def links(self) -> set[str]:
        """All addresses that the answer leads to."""
        return self.urls | {one or other for one, other in _TARGET.findall(self.text)}

    def _walk(self, value: Any) -> None:
        if isinstance(value, list):
            for one in value:
                self._walk(one)
        elif isinstance(value, dict):
            self._read(value)
            for key, one in value.items():
                if key not in {"error", "metadata"}:
                    self._walk(one)

    def _read(self, value: Mapping[str, Any]) -> None:
        if isinstance(error := value.get("error"), dict):
            self.error = str(error.get("code") or error.get("type"))
        if isinstance(text := value.get("content", value.get("text")), str):
            self._texts.append(text)
        if isinstance(url := value.get("url"), str):
            self.urls.add(url)
        if str(id_ := value.get("id", "")).startswith(("chatcmpl-", "resp_")):
            self.id = str(id_)
        self.extractive = self.extractive or value.get("extractive") is True


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    for line in text.splitlines():
        if line.startswith("data: {"):
            yield _json(line.removeprefix("data: "))


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _code(text: str) -> str:
    error = _json(text).get("error") or {}
    return str(error.get("code") or error.get("type") or "")


def read_questions(file: Path) -> list[dict[str, Any]]:
    """Questions in both languages, full, hurried and as keywords."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def clock() -> Callable[[], float]:
    """Seconds since now."""
    start = time.monotonic()
    return lambda: time.monotonic() - start
