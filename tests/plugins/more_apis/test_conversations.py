"""Conversations, kept answers and feedback over HTTP; the tests of what is kept run on SQLite and on PostgreSQL."""

from contextlib import asynccontextmanager
from pathlib import Path

import openai
import pytest
from openai.types.responses import Response as OpenAIResponse
from pydantic import TypeAdapter

from app.conversations.opening import open_conversations
from app.conversations.records import conversation_id_of
from app.core.errors import ModelTimeout
from app.core.settings import Settings
from app.core.turn import Done, Source, Text, Usage
from app.routes.feedback import FeedbackList, FeedbackObject
from app.routes.server import create_app
from plugins.more_apis.conversations import ConversationList, ConversationObject, KeptAnswerList
from tests.app.routes.scripted import Scripted, ScriptedAssistants, client_of

SOURCE = Source(1, "Volumes", "https://docs.test/v#create", "Create", "en", "snippet", 0.9)
SCRIPT = (Text("Ah"), Text("oj [1]."), Usage(7, 2), SOURCE, Done())
CHAT_ID = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"
KEYS = {"api_keys": "anna-key-of-tests bert-key-of-tests", "admin_keys": "root-key-of-tests"}


class Caller:
    """A client of one service; `key` is that of its next requests."""

    def __init__(self, http, assistant, app):
        self.http, self.assistant, self.app, self.key = http, assistant, app, ""

    async def send(self, method, path, body=None, key=None, **headers):
        key = self.key if key is None else key
        headers |= {"authorization": f"Bearer {key}"} if key else {}
        return await self.http.request(method, path, json=body, headers=headers)

    async def chat(self, *messages, key=None, headers=(), **fields):
        """The answer to these messages, of which the last is the question."""
        roles = ["user", "assistant"] * len(messages)
        roles = roles[: len(messages)] if len(messages) % 2 else roles[1 : len(messages) + 1]
        given = [{"role": role, "content": text} for role, text in zip(roles, messages, strict=True)]
        body = {"model": "docs-assistant", "messages": given, **fields}
        return await self.send("POST", "/v1/chat/completions", body, key, **dict(headers))

    async def respond(self, question, **fields):
        return await self.send("POST", "/v1/responses", {"model": "docs-assistant", "input": question, **fields})

    async def new(self):
        return (await self.send("POST", "/v1/conversations")).json()["id"]

    async def kept(self, id_, query=""):
        """The questions and answers of a conversation."""
        return (await self.send("GET", f"/v1/conversations/{id_}/answers{query}")).json()

    @property
    def asked(self):
        """What the assistant was last asked, as texts."""
        return [message.content for message in self.assistant.asked[-1].messages]


@asynccontextmanager
async def service(address="", script=SCRIPT, **options):
    settings = Settings.load(None, database=address, **options)
    assistant, store = Scripted(script=script), open_conversations(settings, Path())
    app = create_app(ScriptedAssistants((assistant,)), settings, conversations=store)
    async with client_of(app) as http:
        yield Caller(http, assistant, app)
    if store:
        await store.close()


def is_error(response, status, code, *words):
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code), error
    assert all(word in error["message"] for word in words), error
    return True


async def test_a_conversation_is_begun_asked_in_read_reset_and_deleted(database):
    async with service(database) as caller:
        made = (await caller.send("POST", "/v1/conversations")).json()
        assert TypeAdapter(ConversationObject).validate_python(made, extra="forbid")
        assert made["title"] == ""
        id_, path = made["id"], f"/v1/conversations/{made['id']}"
        first = (await caller.chat("What is a volume?", conversation=id_)).json()
        await caller.chat("And how large?", conversation={"id": id_}, stream=True)
        assert caller.asked == ["What is a volume?", "Ahoj [1].", "And how large?"]
        await caller.chat("And now?", headers={"x-conversation-id": id_})
        assert len(caller.asked) == 5
        # a client that sends what was said before is believed
        await caller.chat("My own", "answer", "And then?", conversation=id_)
        assert caller.asked == ["My own", "answer", "And then?"]
        found = await caller.kept(id_, "?order=asc")
        assert TypeAdapter(KeptAnswerList).validate_python(found, extra="forbid")
        questions = ["What is a volume?", "And how large?", "And now?", "And then?"]
        assert [one["question"] for one in found["data"]] == questions
        answer = found["data"][0]
        assert (answer["id"], answer["text"], answer["sources"][0]["url"]) == (first["id"], "Ahoj [1].", SOURCE.url)
        changed = (await caller.send("GET", path)).json()
        assert changed == {**made, "title": "What is a volume?"}
        listed = (await caller.send("GET", "/v1/conversations")).json()
        assert TypeAdapter(ConversationList).validate_python(listed, extra="forbid")
        assert (listed["data"], listed["first_id"], listed["has_more"]) == ([changed], id_, False)
        assert (await caller.send("POST", f"{path}/reset")).json() == made
        assert (await caller.kept(id_))["data"] == []
        await caller.chat("Who?", conversation=id_)
        assert caller.asked == ["Who?"]
        gone = await caller.send("DELETE", path)
        assert gone.json() == {"id": id_, "object": "conversation.deleted", "deleted": True}
        assert is_error(await caller.send("GET", path), 404, "conversation_not_found", id_)
        assert is_error(await caller.chat("Who?", conversation=id_), 404, "conversation_not_found", id_)


async def test_answers_come_in_parts_that_begin_anywhere(database):
    async with service(database) as caller:
        id_ = await caller.new()
        for number in range(4):
            await caller.chat(f"Question {number}?", conversation=id_)
        for order in ("asc", "desc"):
            everything = [one["id"] for one in (await caller.kept(id_, f"?order={order}"))["data"]]
            for limit in (1, 3):
                seen, more = [], True
                while more:
                    after = f"&after={seen[-1]}" if seen else ""
                    part = await caller.kept(id_, f"?order={order}&limit={limit}{after}")
                    seen, more = [*seen, *(one["id"] for one in part["data"])], part["has_more"]
                assert seen == everything
        for wrong in ("limit=0", "limit=x", "limit=101", "order=up", "after=chatcmpl-1"):
            response = await caller.send("GET", f"/v1/conversations/{id_}/answers?{wrong}")
            assert (response.status_code, response.json()["error"]["param"]) == (400, wrong.partition("=")[0])


async def test_a_key_reaches_nothing_of_another_key(database):
    """One request for each route, by another reader and by an operator, each of whom could do the same with their own."""
    async with service(database, **KEYS, share_days=7) as caller:
        caller.key = "anna-key-of-tests"
        id_ = await caller.new()
        chat = (await caller.chat("A secret?", conversation=id_)).json()["id"]
        response = (await caller.respond("Another?")).json()["id"]
        assert (await caller.send("POST", f"/v1/answers/{chat}/feedback", {"rating": "up"})).status_code == 200
        path = f"/v1/conversations/{id_}"
        ask = {"model": "docs-assistant", "messages": [{"role": "user", "content": "Q"}]}
        several = {**ask, "messages": [*ask["messages"], {"role": "assistant", "content": "A"}, *ask["messages"]]}
        respond = {"model": "docs-assistant", "input": "Q"}
        routes = [
            ("GET", path, None),
            ("DELETE", path, None),
            ("POST", f"{path}/reset", None),
            ("GET", f"{path}/answers", None),
            ("POST", "/v1/chat/completions", {**ask, "conversation": id_}),
            ("POST", "/v1/chat/completions", {**several, "conversation": id_}),
            ("POST", "/v1/responses", {**respond, "conversation": id_}),
            ("POST", "/v1/responses", {**respond, "previous_response_id": response}),
            ("POST", "/v1/responses", {**respond, "previous_response_id": chat}),
            ("GET", f"/v1/responses/{response}", None),
            ("DELETE", f"/v1/responses/{response}", None),
            ("POST", f"/v1/answers/{chat}/feedback", {"rating": "down"}),
            ("DELETE", f"/v1/answers/{chat}/feedback", None),
            ("POST", f"/v1/answers/{chat}/link", None),
        ]
        kept = {(route.path, method) for route in caller.app.routes for method in getattr(route, "methods", None) or ()}
        own = {(p, m) for p, m in kept if "{id}" in p and ("conversations" in p or "responses" in p or "answers" in p)}
        tried = {(p.replace(id_, "{id}").replace(chat, "{id}").replace(response, "{id}"), m) for m, p, _ in routes}
        assert own <= tried, own - tried
        asked = len(caller.assistant.asked)
        for key in ("bert-key-of-tests", "root-key-of-tests"):
            for method, place, body in routes:
                refused = await caller.send(method, place, body, key)
                status = 400 if "previous_response_id" in (body or {}) else 404
                assert refused.status_code == status, (method, place, refused.text)
                assert "secret" not in refused.text
            assert (await caller.send("GET", "/v1/conversations", key=key)).json()["data"] == []
        for method, place, body in routes:
            assert (await caller.send(method, place, body, "")).status_code == 401
        headers = {"x-conversation-id": id_}
        assert (await caller.chat("Q", key="bert-key-of-tests", headers=headers)).status_code == 404
        assert len(caller.assistant.asked) == asked
        # all is as it was
        assert (await caller.send("GET", path)).json()["title"] == "A secret?"
        assert [one["rating"] for one in (await caller.kept(id_))["data"]] == ["up"]


async def test_each_chat_of_open_webui_is_a_conversation_of_its_key_and_its_own_history_counts(database):
    async with service(database, **KEYS) as caller:
        for key in ("anna-key-of-tests", "bert-key-of-tests"):
            for name in ("x-openwebui-chat-id", "x-owui-chat-id"):
                await caller.chat("Q1?", "A1", f"Q of {key}?", key=key, headers={name: CHAT_ID})
            assert caller.asked == ["Q1?", "A1", f"Q of {key}?"]
            # an edited first question begins anew
            await caller.chat("Edited?", key=key, headers={"x-openwebui-chat-id": CHAT_ID.upper()})
            assert caller.asked == ["Edited?"]
            listed = (await caller.send("GET", "/v1/conversations", key=key)).json()["data"]
            assert [one["title"] for one in listed] == [f"Q of {key}?"]
        caller.key = "anna-key-of-tests"
        (talk,) = (await caller.send("GET", "/v1/conversations")).json()["data"]
        id_ = talk["id"]
        assert len((await caller.kept(id_))["data"]) == 3
        for odd in ("1", "x" * 500):
            await caller.chat("Q?", headers={"x-openwebui-chat-id": odd})
        temporary = (await caller.chat("Q?", headers={"x-openwebui-chat-id": "local:abc"})).json()["id"]
        assert len((await caller.send("GET", "/v1/conversations")).json()["data"]) == 1
        assert (await caller.send("POST", f"/v1/answers/{temporary}/feedback", {"rating": "up"})).status_code == 404
        title = "### Task:\nGenerate a concise title of <chat_history>\nUSER: Q\n</chat_history>"
        await caller.chat(title, headers={"x-owui-task": "title_generation", "x-owui-chat-id": CHAT_ID})
        assert len((await caller.kept(id_))["data"]) == 3


async def test_the_official_client_keeps_up_a_conversation(database):
    async with service(database) as caller:
        given = {"base_url": "http://localhost/v1", "api_key": "any", "max_retries": 0}
        client = openai.AsyncOpenAI(**given, http_client=caller.http)
        ask = {"model": "docs-assistant"}
        one = await client.responses.create(**ask, input="What is a volume?")
        follows = {"previous_response_id": one.id, "instructions": "Short."}
        two = await client.responses.create(**ask, input="How large?", **follows)
        assert caller.asked == ["Short.", "What is a volume?", "Ahoj [1].", "How large?"]
        assert (two.previous_response_id, two.store) == (one.id, True)
        assert (await client.responses.retrieve(two.id)).output_text == "Ahoj [1]."
        stream = await client.responses.create(**ask, input="3?", previous_response_id=two.id, stream=True)
        events = [event async for event in stream]
        assert len(caller.asked) == 5
        assert events[-1].response.previous_response_id == two.id
        talk = await caller.new()
        for question in ("Q1?", "Q2?"):
            response = await client.responses.create(**ask, input=question, conversation=talk)
        assert caller.asked == ["Q1?", "Ahoj [1].", "Q2?"]
        assert response.conversation.id == talk
        after = await client.responses.create(**ask, input="Q3?", previous_response_id=response.id)
        assert after.conversation is None
        assert len(caller.asked) == 5
        assert (await caller.send("DELETE", f"/v1/conversations/{talk}")).json()["deleted"]
        with pytest.raises(openai.NotFoundError):
            await client.responses.create(**ask, input="Q?", conversation=talk)
        await client.responses.delete(one.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(one.id)
        unkept = await client.responses.create(**ask, input="Private?", store=False)
        assert unkept.store is False
        for wrong in (unkept.id, one.id, "resp_0"):
            with pytest.raises(openai.BadRequestError) as caught:
                await client.responses.create(**ask, input="Q?", previous_response_id=wrong)
            assert (caught.value.code, caught.value.param) == ("previous_response_not_found", "previous_response_id")
        with pytest.raises(openai.BadRequestError) as caught:
            await client.responses.create(**ask, input="Q?", previous_response_id=two.id, conversation=talk)
        assert caught.value.code == "mutually_exclusive_parameters"


async def test_feedback_is_given_changed_taken_back_and_read_by_operators(database):
    """A comment stays until another one is sent, even an empty one."""
    async with service(database, **KEYS) as caller:
        caller.key = "anna-key-of-tests"
        chat, response = (await caller.chat("Q1?")).json()["id"], (await caller.respond("Q2?")).json()["id"]
        for id_ in (chat, response):
            path = f"/v1/answers/{id_}/feedback"
            for rating, comment in (("up", ""), ("down", "No, <b>wrong</b>!")):
                given = await caller.send("POST", path, {"rating": rating, "comment": comment})
                assert given.json() == {"object": "feedback", "answer": id_, "rating": rating, "comment": comment}
                assert TypeAdapter(FeedbackObject).validate_python(given.json(), extra="forbid")
            for comment, kept in (({}, "No, <b>wrong</b>!"), ({"comment": ""}, ""), ({}, "")):
                given = await caller.send("POST", path, {"rating": "down"} | comment)
                assert given.json()["comment"] == kept  # another thumb drops no comment
        for body in ({}, {"rating": "good"}, {"rating": "up", "comment": "x" * 2001}, {"rating": "up", "comment": 5}):
            assert (await caller.send("POST", path, body)).status_code == 400
        assert is_error(await caller.send("POST", "/v1/answers/x/feedback", {"rating": "up"}), 404, "answer_not_found")
        admin = "/v1/admin/feedback"
        assert (await caller.send("GET", admin)).status_code == 401
        caller.key = "root-key-of-tests"
        listed = (await caller.send("GET", admin)).json()
        assert TypeAdapter(FeedbackList).validate_python(listed, extra="forbid")
        assert [one["answer"] for one in listed["data"]] == [response, chat]
        assert (listed["data"][1]["question"], listed["data"][1]["text"]) == ("Q1?", "Ahoj [1].")
        assert listed["data"][1]["sources"][0]["url"] == SOURCE.url
        part = (await caller.send("GET", f"{admin}?limit=1&rating=down")).json()
        assert part["has_more"]
        rest = (await caller.send("GET", f"{admin}?limit=1&rating=down&after={part['last_id']}")).json()
        assert (rest["data"][0]["answer"], rest["has_more"]) == (chat, False)
        counts = {"rating=up": 0, "since=2026-01-01": 2, "since=2999-01-01T00:00:00Z": 0, "since=5": 2}
        for query, count in counts.items():
            assert len((await caller.send("GET", f"{admin}?{query}")).json()["data"]) == count, query
        for wrong in ("since=yesterday", "rating=good", "rating=", "after=x"):
            assert (await caller.send("GET", f"{admin}?{wrong}")).status_code == 400
        metrics = (await caller.send("GET", "/metrics")).text
        assert 'docs_assistant_feedback_total{assistant="docs-assistant",rating="down"} 8.0' in metrics
        caller.key = "anna-key-of-tests"
        assert (await caller.send("DELETE", path)).json()["deleted"]
        assert (await caller.send("DELETE", path)).status_code == 404


async def test_with_a_retention_of_0_nothing_is_kept_and_each_refusal_names_the_setting(tmp_path):
    async with service(retention_days=0) as caller:
        answer = (await caller.chat("Q?", store=True, headers={"x-openwebui-chat-id": CHAT_ID})).json()["id"]
        assert (await caller.respond("Q?")).json()["store"] is False
        for method, path, body in (
            ("POST", "/v1/conversations", {}),
            ("GET", "/v1/conversations", None),
            ("GET", "/v1/conversations/conv_1", None),
            ("POST", "/v1/conversations/conv_1/reset", None),
            ("GET", "/v1/responses/resp_1", None),
        ):
            refused = await caller.send(method, path, body)
            assert is_error(refused, 403, "conversations_disabled", "DOCS_RETENTION_DAYS")
        feedback = await caller.send("POST", f"/v1/answers/{answer}/feedback", {"rating": "up"})
        assert is_error(feedback, 403, "feedback_disabled", "DOCS_RETENTION_DAYS")
        for refused, param in (
            (await caller.chat("Q?", conversation="conv_1"), "conversation"),
            (await caller.chat("Q?", headers={"x-conversation-id": "conv_1"}), "x-conversation-id"),
            (await caller.respond("Q?", conversation="conv_1"), "conversation"),
            (await caller.respond("Q?", previous_response_id="resp_1"), "previous_response_id"),
        ):
            assert is_error(refused, 400, None, "DOCS_RETENTION_DAYS")
            assert refused.json()["error"]["param"] == param
    assert list(tmp_path.iterdir()) == []


async def test_in_an_open_service_the_id_gives_access_and_nobody_sees_the_list():
    async with service("sqlite:///c.db", open=True, host="0.0.0.0") as caller:
        id_ = await caller.new()
        await caller.chat("Q?", conversation=id_)
        assert len((await caller.kept(id_))["data"]) == 1
        assert is_error(await caller.send("GET", "/v1/conversations"), 403, "listing_refused", "/v1/conversations/ID")
        # whoever knows the address of a chat of Open WebUI knows its id
        await caller.chat("Secret?", headers={"x-openwebui-chat-id": CHAT_ID})
        derived = conversation_id_of("", CHAT_ID)
        assert is_error(await caller.send("GET", f"/v1/conversations/{derived}"), 404, "conversation_not_found")
        # an id that a client or a proxy counts up could be guessed
        chosen = (await caller.chat("Q?", headers={"x-request-id": "7"})).json()["id"]
        again = (await caller.chat("Q?", headers={"x-request-id": "7"})).json()["id"]
        assert chosen != again
        assert all(one.startswith("chatcmpl-7-") and len(one) >= 27 for one in (chosen, again))
        for one in (chosen, again):
            assert (await caller.send("POST", f"/v1/answers/{one}/feedback", {"rating": "up"})).status_code == 200


async def test_through_a_proxy_or_from_another_page_nobody_sees_what_belongs_to_the_person_at_this_machine():
    async with service("sqlite:///c.db", origins="https://docs.example.org") as caller:
        await caller.new()
        assert len((await caller.send("GET", "/v1/conversations")).json()["data"]) == 1
        for header in ({"x-forwarded-for": "203.0.113.7"}, {"origin": "https://docs.example.org"}):
            assert is_error(await caller.send("GET", "/v1/conversations", **header), 403, "listing_refused")


async def test_neither_names_nor_addresses_are_kept_unless_they_are_wanted(tmp_path):
    user = {"name": "Jana%20%C4%8Cern%C3%A1", "id": "u-17", "email": "jana@example.org"}
    headers = {f"x-openwebui-user-{name}": value for name, value in user.items()}
    texts = ("Jana", "u-17", "jana@example.org", "127.0.0.1")
    for keep, wanted in (("none", ""), ("name", "Jana Černá"), ("id", "u-17"), ("email", "jana@example.org")):
        async with service(f"sqlite:///{keep}.db", keep_user=keep) as caller:
            await caller.chat("Q?", headers=headers)
        file = b"".join(path.read_bytes() for path in tmp_path.glob(f"{keep}.db*")).decode("utf-8", "replace")
        assert [text for text in texts if text in file] == [text for text in texts if text in wanted]
        assert wanted in file


async def test_what_was_asked_is_kept_even_if_the_answer_failed(database):
    async with service(database, (Text("Half"), ModelTimeout("x"))) as caller:
        id_ = await caller.new()
        await caller.chat("Q1?", conversation=id_, stream=True)
        (answered,) = (await caller.kept(id_))["data"]
        assert (answered["question"], answered["text"], answered["status"]) == ("Q1?", "Half", "incomplete")
        caller.assistant.script = (ModelTimeout("x"),)
        assert (await caller.chat("Q2?", conversation=id_)).status_code == 504
        caller.assistant.script = SCRIPT
        await caller.chat("Q3?", conversation=id_)
        assert caller.asked == ["Q1?", "Half", "Q3?"]  # a question without an answer says nothing to the model


async def test_answers_go_on_without_the_database_and_health_and_metrics_tell(tmp_path, monkeypatch):
    monkeypatch.setattr("app.conversations.store.PAUSE", 0.01)
    (tmp_path / "file").touch()
    async with service("sqlite:///file/c.db") as caller:
        for number in range(6):
            answer = await caller.chat(f"Q{number}?", stream=number % 2 == 0)
            assert answer.status_code == 200
        own = await caller.chat("Q?", "A", "And?", conversation="conv_1")
        assert own.status_code == 200  # it needs no history of ours
        asked, listed = caller.chat("And?", conversation="conv_1"), caller.send("GET", "/v1/conversations")
        for refused in (await asked, await listed):
            assert is_error(refused, 503, "database_unavailable")
            assert "file/c.db" not in refused.text
        health = (await caller.send("GET", "/health")).json()
        assert health["parts"]["database"]["state"] == "failing"
        assert "DOCS_DATABASE" in health["parts"]["database"]["last_failure"]["error"]
        metrics = (await caller.send("GET", "/metrics")).text
        assert "docs_assistant_answers_not_kept_total 6.0" in metrics
        assert 'docs_assistant_breaker_open{name="file/c.db",part="database"} 1.0' in metrics


async def test_health_tells_a_database_that_was_deleted_under_the_service(tmp_path, monkeypatch):
    """Also while nobody asks anything: the file at the path isn't the open one."""
    monkeypatch.setattr("app.assistants.health.IDLE", 0.0)
    async with service(f"sqlite:///{tmp_path / 'c.db'}") as caller:
        await caller.chat("Q?")
        (tmp_path / "c.db").unlink()
        told = (await caller.send("GET", "/health")).json()["parts"]["database"]
        assert "was deleted while the service ran" in told["last_probe_failure"]["error"]


async def test_a_kept_response_is_a_response_object():
    async with service("sqlite:///c.db") as caller:
        asked = (await caller.respond("Q?", instructions="Short.")).json()
        kept = (await caller.send("GET", f"/v1/responses/{asked['id']}")).json()
        assert OpenAIResponse.model_validate(kept)
        assert {**asked, "usage": None, "instructions": None, "created_at": 0} == {**kept, "created_at": 0}
