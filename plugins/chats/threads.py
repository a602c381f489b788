"""What the plugins of chat programs share: their secrets, asking the service in a thread, messages of a limited length, sending."""

import asyncio
import logging
import os
import textwrap
import time
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import aiohttp
import orjson
from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Message, Scope

from app.core.errors import RequestError, SettingsError
from app.core.log_message import LogMessage
from app.core.tables import read_file
from app.http.bodies import SMALL
from app.routes.keeping import THREAD
from app.routes.service import Service

log = logging.getLogger("plugins.chats")

OLDEST = 300
"""Seconds for which a signed request is taken, so that a recorded one can't be sent again later."""
REMEMBERED = 4096
"""The number of events that are known when they are sent again."""
PATIENCE = aiohttp.ClientTimeout(total=15)
TRIES = 4
LONGEST_PAUSE = 30.0
"""Seconds between two tries, whatever the other side asks for."""


def secret(name: str) -> str:
    """The value of this environment variable, or of the file that NAME_FILE names; empty without either. Raises `SettingsError`."""
    variable = f"{name}_FILE"
    if not (path := os.environ.get(variable)):
        return os.environ.get(name, "").strip()
    if name in os.environ:
        raise SettingsError(f"{name} and {variable} both set the same secret: keep one of them.")
    if value := read_file(variable, path).strip():
        return value
    raise SettingsError(f"{variable}: the file {path} is empty.")


@dataclass
class Chat:
    """The service, as a chat program asks it: with the key of the variable `key_name`, if that is set.

    Raises `SettingsError` if the service needs a key and there is none.
    """

    app: FastAPI
    service: Service
    key_name: str
    _key: str = field(init=False, repr=False)
    _known: deque[str] = field(default_factory=partial(deque, maxlen=REMEMBERED))

    def __post_init__(self) -> None:
        self._key = secret(self.key_name)
        if self.service.keys.required and not self._key:
            raise SettingsError(f"{self.key_name} is missing: this service needs a key. Make one for the chat program.")

    async def signed_body(self, request: Request, timestamp: str) -> bytes:
        """The body, whose signature is still to be checked. Raises `RequestError` if the header with this name is older than 5 minutes."""
        sent = request.headers.get(timestamp, "")
        if not (sent.isascii() and sent.isdigit() and abs(time.time() - int(sent[:12])) <= OLDEST):
            raise unsigned(f"the time in {timestamp} is missing, or isn't now; check the clock of this machine")
        return await self.service.bodies.read(request, SMALL)

    def is_new(self, event: str) -> bool:
        """True if this event is seen for the first time."""
        is_new = event not in self._known
        self._known.append(event)
        return is_new

    async def answer(self, question: str, person: str, thread: str, language: str = "") -> str:
        """The answer with its sources as Markdown, or the sentence that says why there is none.

        It is a request like that of any client, but within this process: the door of the service counts, limits and logs it. The
        name of the person takes the place of an address. `thread` names the conversation; without one, the question stands alone.
        """
        key = self._key and f"Bearer {self._key}"
        headers = {"content-type": "application/json", "accept-language": language, "authorization": key}
        path = "/v1/chat/completions"
        scope: Scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": path, "raw_path": path.encode(), "root_path": "", "query_string": b"", "server": None,
            "headers": [(name.encode(), value.encode()) for name, value in headers.items() if value],
            "client": (person, 0), THREAD: thread,
        }  # fmt: skip
        asked = {"model": "", "messages": [{"role": "user", "content": question}]}
        body = orjson.loads(await _called(self.app, scope, orjson.dumps(asked)))
        return str(body["error"]["message"] if "error" in body else body["choices"][0]["message"]["content"])


async def _called(app: FastAPI, scope: Scope, body: bytes) -> bytes:
    """The body of the response to this request."""
    coming: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    sent = bytearray()

    async def receive() -> Message:
        if coming:
            return coming.pop()
        await asyncio.Event().wait()  # the client stays
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.extend(message.get("body", b""))

    await app(scope, receive, send)
    return bytes(sent)


def unsigned(reason: str) -> RequestError:
    """The error for a request whose signature isn't right."""
    return RequestError(f"The signature of the request isn't valid: {reason}.", code="invalid_signature")


def messages_of(text: str, limit: int) -> Iterator[str]:
    """The text in parts of at most so many characters, cut between lines or words. A block of code goes on as one in the next part."""
    # with room for the ends of a block of code
    wrapped = textwrap.TextWrapper(limit - 60, expand_tabs=False, replace_whitespace=False, drop_whitespace=False)
    part, fence = "", ""
    for line in text.strip().split("\n"):
        for piece in wrapped.wrap(line) or [""]:
            if part and len(part) + 1 + len(piece) > limit - 4:
                yield part + "\n```" * bool(fence)
                part = fence
            part += f"\n{piece}" if part else piece
        if line.lstrip().startswith("```"):
            fence = "" if fence else line.strip()[:50]
    if part.strip():
        yield part


async def send(
    method: str, address: str, *, again: Collection[int] = (429,), **request: Any
) -> Mapping[str, Any] | None:
    """Send JSON, once more after a pause while the status is one of `again`; the JSON of the response, None if it failed.

    Nobody waits for it, so a failure is only logged, without the address, which may have a token in it.
    """
    failure: object = None
    try:
        # few messages: a connection for each, through the proxy of the environment
        async with aiohttp.ClientSession(timeout=PATIENCE, trust_env=True) as session:
            for _ in range(TRIES):
                async with session.request(method, address, **request) as response:
                    if response.ok:
                        return orjson.loads(await response.read() or b"{}")  # type: ignore[no-any-return]
                    failure = f"{response.status} {(await response.text())[:200]}"
                    wait = float(response.headers.get("retry-after") or 1)
                    if response.status not in again:
                        break
                await asyncio.sleep(min(wait, LONGEST_PAUSE))
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        failure = type(error).__name__
    log.warning(LogMessage("a message wasn't sent", to=address.split("/")[2], error=failure))
    return None
