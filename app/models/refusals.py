"""What a server refuses of a chat request, and the form in which it takes the same: learnt once for each model.

A refusal names a field, such as `max_tokens`, or speaks of the roles of messages. Its request is sent again in the next form of that
field, and the forms with which it is answered are kept for all later requests.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from app.core.errors import ModelError
from app.core.log_message import LogMessage
from app.models import responses
from app.models.window import window_said

log = logging.getLogger("app.models")

Body = Mapping[str, Any]
Change = Callable[[Body], Body]


@dataclass(frozen=True, slots=True)
class Form:
    """Another form of a request: what is `refused`, what is done instead, for people, and the change of the body.

    A form with a `limit` only makes a number smaller.
    """

    refused: str
    instead: str
    change: Change = field(compare=False)
    limit: bool = False


def _without(*fields: str) -> Change:
    return lambda body: {name: value for name, value in body.items() if name not in fields}


def _renamed(body: Body) -> Body:
    return {"max_completion_tokens" if name == "max_tokens" else name: value for name, value in body.items()}


def _at_most(most: int) -> Change:
    def change(body: Body) -> Body:
        return {name: min(value, most) if name in LENGTHS else value for name, value in body.items()}

    return change


def _joined(messages: Sequence[Mapping[str, str]]) -> str:
    return "\n\n".join(message["content"] for message in messages)


def _parted(body: Body) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The system messages, and the others."""
    system = [message for message in body["messages"] if message["role"] == "system"]
    return system, [message for message in body["messages"] if message["role"] != "system"]


def _alternating(body: Body) -> Body:
    """One system message, then user and assistant by turns, of which the user is the first."""
    system, others = _parted(body)
    turns: list[dict[str, str]] = []
    for message in others:
        if turns and turns[-1]["role"] == message["role"]:
            turns[-1] = message | {"content": _joined((turns[-1], message))}
        else:
            turns.append(message)
    if turns and turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": "…"})
    return {**body, "messages": [*([{"role": "system", "content": _joined(system)}] if system else []), *turns]}


def _system_asked(body: Body) -> Body:
    """The text of the system before that of the first message, which is the user's."""
    system, others = _parted(body)
    if not system:
        return body
    first, rest = ([], others) if others[:1] and others[0]["role"] != "user" else (others[:1], others[1:])
    return {**body, "messages": [{"role": "user", "content": _joined([*system, *first])}, *rest]}


LENGTHS = ("max_tokens", "max_completion_tokens")
_ROLES = Form("order of roles", "messages of one role are joined, and the user begins", _alternating)
_SYSTEM = Form("system role", "its text stands before the first question", _system_asked)
_FIELDS: Mapping[str, Form] = {
    form.refused: form
    for form in (
        Form("max_tokens", "sent as max_completion_tokens", _renamed),
        *(
            Form(name, "left out", _without(name))
            for name in ("max_completion_tokens", "temperature", "stop", "seed", "stream_options")
        ),
        Form("stream", "whole answers, without a stream", _without("stream", "stream_options")),
    )
}
_NAMES = {name.replace("_", ""): name for name in _FIELDS} | {"streaming": "stream"}
"""Fields by their names without underscores, in which their spellings agree."""
_ROLE = frozenset(("role", "roles", "alternate", "alternating"))
_MESSAGE = frozenset(("message", "messages", "prompt", "prompts", "instruction", "instructions"))
_SENDER, _OF_SYSTEM = frozenset(("user", "assistant")), frozenset(("system", "developer"))
_OF_ORDER = frozenset(("alternate", "alternating", "successive", "consecutive", "row", "first", "last", "beginning"))
LONGEST_REFUSAL, LEAST_LENGTH = 4000, 16


class Dialect:
    """The `forms` in which the server of a model takes requests, which grow with its refusals."""

    def __init__(self, model: str) -> None:
        self._model = model
        self.forms: tuple[Form, ...] = ()

    @property
    def refused(self) -> Mapping[str, str]:
        """What the server refuses, with what is done instead."""
        return {form.refused: form.instead for form in self.forms}

    def learn(self, forms: Sequence[Form]) -> None:
        """Keep these forms, with which a request was answered, and log those that are new."""
        for form in forms:
            if form not in self.forms:
                self.forms += (form,)
                told = {"model": self._model, "refused": form.refused, "instead": form.instead}
                log.warning(LogMessage("a model's server refuses a part of requests", **told))


def spoken(request: Body, forms: Sequence[Form]) -> Body:
    """The request in these forms."""
    for form in forms:
        request = form.change(request)
    return request


def next_forms(error: ModelError, request: Body, forms: Sequence[Form]) -> tuple[Form, ...]:
    """The forms in which to send a request again that was refused in these forms; empty if the refusal names nothing else to try."""
    if error.status not in {400, 422, 500} or window_said(error.body):  # the next prompt fits the window
        return ()
    sent = spoken(request, forms)
    for form in _candidates(error, sent):
        if form not in forms and form.change(sent) != sent:
            # a limit that didn't help was none
            return (*(one for one in forms if not (one.limit and form.refused in LENGTHS)), form)
    return ()


def _candidates(error: ModelError, sent: Body) -> Iterator[Form]:
    """The forms of what the refusal names: by a field of its own, else in its message, else anywhere."""
    parsed = responses.json_object(error.body.encode())
    named = _words(" ".join(_strings(parsed, ("param", "loc"))))
    anywhere = _words(error.body)
    said = _words(" ".join(_strings(parsed, ("message", "msg", "detail", "error")))) or anywhere
    if error.status != 500:  # has many reasons: only templates of models speak of roles in it
        found = (_NAMES[word] for words in (named, said, anywhere) for word in words if _NAMES.get(word) in sent)
        if name := next(found, ""):
            yield from _of_field(name, said, sent)
    told = set(said) if _speaks_of_roles(set(said)) else set(anywhere)
    if "messages" in named or _speaks_of_roles(told):
        yield from (_SYSTEM, _ROLES) if _OF_SYSTEM & told and not _OF_ORDER & told else (_ROLES, _SYSTEM)


def _of_field(name: str, said: Sequence[str], sent: Body) -> Iterator[Form]:
    counts = name in LENGTHS and not (name == LENGTHS[0] and "maxcompletiontokens" in said)
    if counts and (most := _limit(said, LEAST_LENGTH, sent[name])):
        yield Form(f"{name} above {most}", f"at most {most}", _at_most(most), limit=True)
    yield _FIELDS[name]


def named_limit(text: str, least: int, below: int) -> int:
    """The largest number in the text of a refusal that is at least `least` and below the refused one; 0 if there is none."""
    return _limit(_words(text), least, below)


def _limit(said: Sequence[str], least: int, below: int) -> int:
    return max((int(word) for word in said if word.isdecimal() and least <= int(word) < below), default=0)


def _speaks_of_roles(said: AbstractSet[str]) -> bool:
    of_messages = said & _OF_SYSTEM or (said & _OF_ORDER and said & _SENDER)
    return bool(said & _ROLE or (said & _MESSAGE and of_messages))


def _strings(value: Any, keys: Sequence[str], depth: int = 6, *, taken: bool = False) -> Iterator[str]:
    """The texts below these keys, in JSON of this depth at most."""
    if isinstance(value, str) and taken:
        yield value
    elif isinstance(value, list) and depth:
        for one in value:
            yield from _strings(one, keys, depth - 1, taken=taken)
    elif isinstance(value, dict) and depth:
        for key, one in value.items():
            yield from _strings(one, keys, depth - 1, taken=key in keys)


def _words(text: str) -> Sequence[str]:
    """The words of a refusal in small letters, names without their underscores."""
    plain = text[:LONGEST_REFUSAL].lower().replace("_", "")
    return "".join(c if c.isalnum() else " " for c in plain).split()
