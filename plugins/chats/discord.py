"""POST /discord/interactions: answers the command /ask in Discord (extra `discord`)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from fastapi import APIRouter, FastAPI
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import RequestError, SettingsError
from app.http.bodies import JsonResponse
from app.routes.routers import unlisted_router
from app.routes.service import Service
from plugins.chats.threads import Chat, messages_of, secret, send, unsigned

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

API = "https://discord.com/api/v10"
LONGEST = 2_000
"""Characters of a message."""
TIMESTAMP = "x-signature-timestamp"
PING, COMMAND = 1, 2  # types of interactions
PONG, LATER = 1, 5  # types of responses
OF_ONE_TALK = frozenset({1, 3, 10, 11, 12})
"""Types of channels that are one conversation: direct messages, groups and threads."""
NO_PREVIEWS = 4  # a flag of a message


def routers(app: FastAPI, service: Service) -> Iterator[APIRouter]:
    """The route, if the public key of the application is set."""
    if public := secret("DISCORD_PUBLIC_KEY"):
        discord = Discord(Chat(app, service, "DISCORD_ASSISTANT_KEY"), _public_key(public))
        yield unlisted_router({"/discord/interactions": discord.interactions}, "POST")


def _public_key(written: str) -> "Ed25519PublicKey":
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError as error:
        raise SettingsError(
            "DISCORD_PUBLIC_KEY is set, but signatures can't be checked: install docs-assistant[discord]."
        ) from error
    try:
        return Ed25519PublicKey.from_public_bytes(bytes.fromhex(written))
    except ValueError as error:
        raise SettingsError(
            "DISCORD_PUBLIC_KEY isn't the public key of an application, which has 64 hexadecimal digits."
        ) from error


@dataclass(frozen=True)
class Discord:
    """The handler of the route."""

    chat: Chat
    key: "Ed25519PublicKey"

    async def interactions(self, request: Request) -> Response:
        """Acknowledges a command at once, and answers after that. Raises `RequestError` without a valid signature."""
        body = await self.chat.signed_body(request, TIMESTAMP)
        self._check(request.headers.get("x-signature-ed25519", ""), request.headers[TIMESTAMP].encode() + body)
        told = orjson.loads(body)
        if told["type"] == PING:
            return JsonResponse({"type": PONG})
        if told["type"] != COMMAND:
            raise RequestError("Only commands are answered.", param="type")
        task = BackgroundTask(self._answer, told) if self.chat.is_new(told["id"]) else None
        return Response(orjson.dumps({"type": LATER}), media_type="application/json", background=task)

    def _check(self, signature: str, signed: bytes) -> None:
        from cryptography.exceptions import InvalidSignature

        try:
            self.key.verify(bytes.fromhex(signature), signed)
        except (InvalidSignature, ValueError) as error:
            raise unsigned("it isn't made with the key of DISCORD_PUBLIC_KEY") from error

    async def _answer(self, told: Mapping[str, Any]) -> None:
        """Edit the message that says that the answer is coming; what has no room in it follows."""
        channel, person = told.get("channel") or {}, told.get("user") or told["member"]["user"]
        question = next((str(option["value"]) for option in told["data"].get("options", ())), "")
        thread = f"discord {told['channel_id']}" if channel.get("type") in OF_ONE_TALK else ""
        answer = await self.chat.answer(question, f"discord-{person['id']}", thread, told.get("locale", ""))
        answer = re.sub(r"^#{4,6} ", "### ", answer, flags=re.MULTILINE)  # it has three sizes
        hook = f"{API}/webhooks/{told['application_id']}/{told['token']}"
        method, address = "PATCH", f"{hook}/messages/@original"
        for text in messages_of(f"> {question}\n\n{answer}", LONGEST):
            message = {"content": text, "flags": NO_PREVIEWS, "allowed_mentions": {"parse": []}}
            # a fast answer may be there before Discord knows the message that it edits
            if await send(method, address, again=(404, 429), json=message) is None:
                return
            method, address = "POST", hook
