"""Open WebUI in front of the chat API: makes an `Ask` of its requests, with its tasks, its template around a question and its headers."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import orjson
from starlette.datastructures import Headers
from starlette.requests import Request as HttpRequest

from app.citing.asked import asked_stems
from app.citing.headings import follow_ups
from app.citing.sections import best_section
from app.conversations.records import conversation_id_of
from app.core import turn
from app.core.errors import ModelError
from app.core.log_message import LogMessage
from app.core.settings import Settings
from app.core.turn import AnswerRecord, Done, Events, Message, Request, Text, Usage
from app.http.keys import Access
from app.models import Model
from app.models.protocols import CallOptions
from app.pipeline.calls import braced
from app.pipeline.conversation import CHARACTERS_PER_TOKEN
from app.routes.ask import Ask, Display
from app.routes.ask import ask_of as question_of
from app.routes.keeping import Place, is_shared
from app.routes.request_models import ChatRequest
from app.routes.service import Service

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

log = logging.getLogger("app.http")

PREFIXES = ("x-owui-", "x-openwebui-")
WRAPPED = "Respond to the user query using the provided context"
_ID = re.compile(r'\bid="(\d{1,4})"')


def display(headers: Headers, sources: str, *, stream: bool) -> Display:
    """Returns what this client can display. `sources` is events, links, both, or empty: events for Open WebUI, else links."""
    known = any(name.startswith(PREFIXES) for name in headers)  # only Open WebUI sends such a header
    if not stream:  # Open WebUI drops the sources of answers that aren't streamed
        return Display()
    sources = sources or ("events" if known else "links")
    events = sources in ("events", "both")
    return Display(status=known or events, events=events, links=sources != "events")


def unwrap_question(text: str) -> tuple[str, tuple[str, ...]]:
    """The user's question and the attachments that Open WebUI's template wraps around it, if there is such a template."""
    # no regular expressions, because the text may be as long as a request
    head, _, rest = text.partition("\n<context>\n")
    context, closed, question = rest.rpartition("\n</context>")
    task, _, instructions = head.lstrip().partition("\n")
    if not closed or task.rstrip() != "### Task:" or not instructions.lstrip().startswith(WRAPPED):
        return text, ()
    question = question.strip().removeprefix("<user_query>").removesuffix("</user_query>")
    sources = tuple(_sources(context)) or (context.strip(),)
    return question.strip(), tuple(source for source in sources if source)


def _sources(context: str) -> Iterator[str]:
    """Each `<source>` element, including its tags."""
    end = 0
    while (start := context.find("<source", end)) >= 0:
        end = start + len("<source")
        if context[end : end + 1].isalnum():  # <sources>
            continue
        if (closing := context.find("</source>", end)) < 0:
            return
        end = closing + len("</source>")
        yield context[start:end]


def highest_source_number(attached: Iterable[str]) -> int:
    """The highest number that Open WebUI gave to an attachment; it shows attachments as numbered sources."""
    ids = (_ID.search(source.partition(">")[0]) for source in attached)
    return max((int(found[1]) for found in ids if found), default=0)


STEP = "openwebui_task"  # the name of a task's call among those of steps
MAX_TOKENS = 300
MAX_CHARS = 200
MAX_ITEMS = 5
HEADER = "x-owui-task"
# by Open WebUI's name of the task: the only key of the JSON reply
BY_NAME: Mapping[str, str] = {
    "title_generation": "title",
    "tags_generation": "tags",
    "follow_up_generation": "follow_ups",
    "query_generation": "queries",
    "autocomplete_generation": "text",
    "image_prompt_generation": "prompt",
}
LISTS = frozenset({"tags", "follow_ups", "queries"})
BY_FIRST_WORDS: Mapping[str, str] = {
    "Generate a concise title": "title",
    "Generate 1-3 broad tags": "tags",
    "Predict 3-5 useful messages": "follow_ups",
    "Suggest 3-5 relevant follow-up": "follow_ups",
    "Analyze the chat history to determine the necessity of generating search queries": "queries",
    "You are an autocompletion system.": "text",
    "Generate a detailed prompt for a": "prompt",
}
_ENDS = ("</chat_history>", "#### Output:")
_TURN = re.compile(r"^(USER|ASSISTANT): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """A task whose reply is a JSON object with this key. `trusted` is True if a header names the task."""

    key: str
    prompt: str
    trusted: bool

    @property
    def questions(self) -> list[str]:
        """The messages of the user in the conversation that the task is about."""
        history = self.prompt.partition("<chat_history>\n")[2].rpartition("\n</chat_history>")[0]
        parts = _TURN.split(history)[1:]
        return [text.strip() for role, text in zip(parts[::2], parts[1::2], strict=True) if role == "USER"]

    def fallback(self) -> str:
        """The reply without a model: a title and a query in the user's words, else nothing."""
        first, last = (self.questions[0], self.questions[-1]) if self.questions else ("", "")
        plain: Mapping[str, Any] = {
            "title": _title_of(first) or "Chat",
            "queries": [_title_of(last)] if last else [],
            "prompt": _title_of(last),
            "text": "",
        }
        return _json_object(self.key, plain.get(self.key, []))

    def parse_reply(self, text: str) -> str | None:
        """The JSON object in the model's reply, reduced to the key of the task; None if the reply is invalid."""
        try:
            found = orjson.loads(braced(text))
        except orjson.JSONDecodeError:
            return None
        value = found.get(self.key) if isinstance(found, dict) else None
        if self.key in LISTS:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                return None
            return _json_object(self.key, [item[:MAX_CHARS] for item in value[:MAX_ITEMS]])
        if not isinstance(value, str) or not (value.strip() or self.key == "text"):
            return None
        return _json_object(self.key, value[:MAX_CHARS])


def task_of(chat: ChatRequest, headers: Headers) -> Task | None:
    """The task that this request asks for; None for a question.

    Open WebUI can be configured to name the task in a header. Without the header, a request is a task only if its whole
    text is one of the templates and it isn't streamed; a question may quote a template.
    """
    prompt = chat.messages[-1].content
    if chat.messages[-1].role != "user" or not isinstance(prompt, str):
        return None
    if HEADER in headers:
        key = BY_NAME.get(headers[HEADER].strip())
        return Task(key, prompt, trusted=True) if key else None
    if chat.stream or len(chat.messages) > 1:
        return None
    key = template_of(prompt)
    return Task(key, prompt, trusted=False) if key else None


def template_of(text: str) -> str:
    """The key of the task whose template of Open WebUI is the whole text; empty for another text."""
    first, _, rest = text.strip().partition("\n")
    if first.strip() != "### Task:" or not rest.endswith(_ENDS):
        return ""
    return next((key for beginning, key in BY_FIRST_WORDS.items() if rest.startswith(beginning)), "")


@dataclass(frozen=True, slots=True)
class AskedTask:
    """A task, and who does it: the `assistant`, or a model with at most `max_tokens`."""

    task: Task
    assistant: Assistant
    model: Model | None
    settings: Settings
    max_tokens: int

    @property
    def key(self) -> str:
        """The key of the task."""
        return self.task.key

    async def run(self, record: AnswerRecord) -> Events:
        """The reply to the task as events; a call of the model is added to the record.

        Questions that follow are those that the index answers (`follow_ups`), without a model, unless the setting turns them off.
        """
        task, tuning = self.task, self.settings.tuning
        text, usage = None, Usage()
        if task.key == "follow_ups" and tuning.follow_ups and task.questions:
            text = _json_object(task.key, await _answered(task, self.assistant))
        elif self.model and (task.trusted or tuning.openwebui_tasks):
            options = CallOptions(temperature=0, max_tokens=self.max_tokens, timeout=tuning.helper_timeout)
            room = (self.settings.llm_context_window - MAX_TOKENS) * CHARACTERS_PER_TOKEN
            try:
                with record.calls.call(STEP) as call:
                    completion = await self.model.complete([Message("user", _cut(task.prompt, room))], options)
                    text, usage = task.parse_reply(completion.text), completion.usage
                    call.usage = usage
            except ModelError as error:
                log.warning(LogMessage("task not done by the language model", task=task.key, error=error))
        yield Text(text or task.fallback())
        yield usage
        yield Done()


async def _answered(task: Task, assistant: Assistant) -> tuple[str, ...]:
    """The questions that follow the last one by a search for it, besides the section that answers it."""
    turn = await assistant.search(Request(tuple(Message("user", question) for question in task.questions)))
    cited = [hit.chunk.link_to(best_section(hit.chunk, asked_stems(turn))) for hit in turn.hits[:1]]
    return follow_ups(turn, assistant.prompts, cited)


def _cut(text: str, room: int) -> str:
    """The text, with the middle of a long one cut out: its beginning and end contain the task."""
    return text if len(text) <= room else f"{text[: room // 2]}\n…\n{text[-(room // 2) :]}"


def _title_of(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:60].rsplit(" ", 1)[0] + "…"


def _json_object(key: str, value: object) -> str:
    # unlike orjson, accepts lone surrogates, which some models write
    return json.dumps({key: value}, ensure_ascii=False)


def unwrapped(text: str) -> tuple[str, tuple[str, ...]] | None:
    """The user's question and the attachments of a text; None for a task, which is no part of the conversation."""
    return None if template_of(text) else unwrap_question(text)


CHAT_HEADERS = ("x-openwebui-chat-id", "x-owui-chat-id")
TEMPORARY = "local:"
"""The beginning of ids of chats that a user doesn't want to be kept."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
MAX_READER = 200


def place_of_client(service: Service, request: HttpRequest, access: Access, *, kept: bool) -> Place:
    """The place of a question that names no conversation, but perhaps a chat of its client."""
    headers, owner = request.headers, access.owner
    client_chat = next((headers[name] for name in CHAT_HEADERS if name in headers), "")
    # nothing says that other ids belong to one chat alone; and an id that follows from that of the chat, which stands in
    # its address, must not give access
    if not _UUID.fullmatch(client_chat) or is_shared(service, request, access):
        return Place(owner, kept and not client_chat.startswith(TEMPORARY))
    return Place(owner, kept, conversation_id_of(owner, client_chat.lower()), makes=True)


def reader_of(service: Service, headers: Headers) -> str:
    """What Open WebUI says of its user, as far as DOCS_KEEP_USER keeps it."""
    wanted = service.settings.keep_user
    return "" if wanted == "none" else unquote(headers.get(f"x-openwebui-user-{wanted}", ""))[:MAX_READER]


async def ask_of(service: Service, request: HttpRequest, access: Access, chat: ChatRequest) -> Ask:
    """What a request of the chat API asks, with what Open WebUI says in its headers and texts; other clients say nothing there."""
    headers, assistant = request.headers, service.assistant(access, chat.model)
    if task := task_of(chat, headers):
        most = min(chat.max_completion_tokens or chat.max_tokens or MAX_TOKENS, MAX_TOKENS)
        asked = AskedTask(task, assistant, service.assistants.model, service.settings, most)
        nowhere, stream = Place(access.owner, kept=False), bool(chat.stream)
        return Ask(assistant, asked, Display(), nowhere, stream, chat.include_usage)
    configured = service.settings.tuning.key_sources.get(access.key, assistant.table.sources)
    shown = display(headers, "events" if chat.events else configured, stream=bool(chat.stream))
    place = place_of_client(service, request, access, kept=chat.store is not False)
    ask = await question_of(service, request, access, chat, shown, place=place, unwrap=unwrapped)
    assert isinstance(ask.what, turn.Request)
    first = highest_source_number(ask.what.attached) + 1 if shown.events else 1
    return replace(ask, what=replace(ask.what, first_number=first), reader=reader_of(service, headers))
