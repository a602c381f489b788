"""POST /slack/events: answers mentions and direct messages in Slack, each in its thread."""

import hmac
import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from app.core.errors import SettingsError
from app.core.log_message import LogMessage
from app.http.bodies import JsonResponse
from app.routes.routers import unlisted_router
from app.routes.service import Service
from plugins.chats.threads import Chat, log, messages_of, secret, send, unsigned

API = "https://slack.com/api/chat.postMessage"
LONGEST = 3_900
"""Characters of a message: Slack advises at most 4,000."""
NO_PREVIEWS = {"unfurl_links": False, "unfurl_media": False}
TIMESTAMP = "x-slack-request-timestamp"


def routers(app: FastAPI, service: Service) -> Iterator[APIRouter]:
    """The route, if its secrets are set."""
    signing, token = secret("SLACK_SIGNING_SECRET"), secret("SLACK_BOT_TOKEN")
    if not (signing or token):
        return
    if not (signing and token):
        raise SettingsError("Slack needs both SLACK_SIGNING_SECRET and SLACK_BOT_TOKEN: set the other one, too.")
    slack = Slack(Chat(app, service, "SLACK_ASSISTANT_KEY"), signing.encode(), token)
    yield unlisted_router({"/slack/events": slack.events}, "POST")


@dataclass(frozen=True)
class Slack:
    """The handler of the route."""

    chat: Chat
    signing: bytes
    token: str

    async def events(self, request: Request) -> Response:
        """Acknowledges an event at once; a question in it is answered after that. Raises `RequestError` without a valid signature."""
        body = await self.chat.signed_body(request, TIMESTAMP)
        signed = b"v0:" + request.headers[TIMESTAMP].encode() + b":" + body
        signature = f"v0={hmac.new(self.signing, signed, sha256).hexdigest()}"
        if not hmac.compare_digest(signature.encode(), request.headers.get("x-slack-signature", "").encode()):
            raise unsigned("it isn't made with SLACK_SIGNING_SECRET")
        told = orjson.loads(body)
        if told["type"] == "url_verification":
            return JsonResponse({"challenge": told["challenge"]})
        event, team = told.get("event", {}), told.get("team_id", "")
        # another instance has what Slack sends again for want of time: it took the first one
        elsewhere = request.headers.get("x-slack-retry-reason") == "http_timeout"
        if not _is_question(event) or not self.chat.is_new(f"{event['channel']} {event['ts']}") or elsewhere:
            return Response()
        return Response(background=BackgroundTask(self._answer, team, event))

    async def _answer(self, team: str, event: Mapping[str, Any]) -> None:
        channel, thread = event["channel"], event.get("thread_ts") or event["ts"]
        question = re.sub(r"<(?:[^<>|]*\|)?([^<>|]*)>", r"\1", re.sub(r"<@[^<>]*>", "", event["text"]))
        person, conversation = f"slack-{team}-{event['user']}", f"slack {team} {channel} {thread}"
        answer = await self.chat.answer(html.unescape(question).strip(), person, conversation)
        for text in messages_of(mrkdwn(answer), LONGEST):
            message = {"channel": channel, "thread_ts": thread, "text": text, **NO_PREVIEWS}
            sent = await send("POST", API, json=message, headers={"authorization": f"Bearer {self.token}"})
            if not sent or not sent.get("ok"):
                log.warning(LogMessage("an answer isn't in Slack", error=sent and sent.get("error")))
                return


def _is_question(event: Mapping[str, Any]) -> bool:
    """True for a mention and a direct message that a person wrote: not for edits, for files alone, and for what bots say."""
    asks = event.get("type") == "app_mention" or (event.get("type"), event.get("channel_type")) == ("message", "im")
    return asks and "user" in event and "subtype" not in event and "bot_id" not in event


_PIECE = re.compile(
    r"\\(?P<sign>[!-/:-@\[-`{-~])|```(?:[^`\n]*\n)?(?P<block>(?:[^`]|`(?!``))*)(?:```|\Z)|(?P<code>`[^`\n]*`)"
    r"|!?\[(?P<label>(?:[^\[\]\\\n]|\\.)*)\]\((?P<url>https?://(?:[^\s()<>|\[\]]|\([^\s()<>|\[\]]*\))+)\)"
    r"|^(?P<bullet> *)[-*+] |^#{1,6} +(?:#+ +)*(?P<heading>[^\n]*)|^>(?P<quote> ?)|\*\*(?P<bold>[^*\n]+)\*\*"
    r"|(?<![\w*])\*(?P<italic>[^*\s][^*\n]*)\*(?!\w)|~~(?P<struck>[^~\n]+)~~",
    re.MULTILINE,
)
_SIGNS = {"bold": "*", "heading": "*", "italic": "_", "struck": "~"}


def mrkdwn(text: str) -> str:
    """The Markdown in the form of Slack, which writes links, bold and bullets otherwise."""
    made, at = "", 0
    for piece in _PIECE.finditer(text):
        made += html.escape(text[at : piece.start()], quote=False) + _in_slack(piece)
        at = piece.end()
    return made + html.escape(text[at:], quote=False)


def _in_slack(piece: re.Match[str]) -> str:
    kind = piece.lastgroup or ""
    inner = html.escape(piece[kind], quote=False)
    match kind:
        case "block":
            return "```\n" + inner.strip("\n") + "\n```"
        case "url":
            label = re.sub(r"[*`|\\]", "", piece["label"])
            return f"<{inner}|{html.escape(label, quote=False)}>"
        case "bullet" | "quote":
            return f"{inner}• " if kind == "bullet" else "> "
        case "code" | "sign":
            return inner
    inner = piece[kind].replace("*", "") if kind == "heading" else piece[kind]
    return _SIGNS[kind] + mrkdwn(inner) + _SIGNS[kind]
