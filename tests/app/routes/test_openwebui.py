"""Requests of the real Open WebUI, recorded, on a service with a real index: tasks, questions, sources, status lines."""

import json
from pathlib import Path

import pytest

from tests.app.routes.indexed import URL, indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fake_llm import Reply

RECORDED = json.loads(Path(__file__).with_name("openwebui_requests.json").read_text(encoding="utf-8"))
TASKS = {"title": "title", "tags": "tags", "follow_ups": "follow_ups", "query": "queries", "autocomplete": "text"}
LISTS = {"tags", "follow_ups", "queries"}
NO_TASK = {"X-OWUI-Task": ""}
QUESTION = "How do I create a persistent volume?"


async def post(service, name, *, headers=None, **fields):
    """A recorded request, with changes."""
    recorded = RECORDED[name]
    body = {**recorded["body"], "model": "docs-assistant", **fields}
    async with client_of(service.app) as client:
        return await client.post(CHAT, json=body, headers={**recorded["headers"], **(headers or {})})


def content(response):
    assert response.status_code == 200, response.text
    return response.json()["choices"][0]["message"]["content"]


def events(response):
    assert response.status_code == 200, response.text
    assert response.text.endswith("data: [DONE]\n\n")
    return [json.loads(line[6:]) for line in response.text.split("\n\n") if line.startswith("data: {")]


def text(chunks):
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"])


def said(chunks, kind):
    return [c["event"]["data"] for c in chunks if c.get("event", {}).get("type") == kind]


def wanted(key):
    return {key: ["a", "b"] if key in LISTS else "A short text"}


@pytest.mark.parametrize("name", [name for name in TASKS if name != "follow_ups"])
async def test_a_task_named_in_the_header_goes_to_the_model_without_retrieval(service, name):
    key = TASKS[name]
    service.llm.reply = lambda _: Reply(f"Here:\n```json\n{json.dumps(wanted(key) | {'more': 1})}\n```")
    response = await post(
        service, name, headers={"X-OWUI-Task": f"{name.removesuffix('s') if '_' in name else name}_generation"}
    )
    assert json.loads(content(response)) == wanted(key)
    assert response.json()["sources"] == []
    assert response.json()["usage"]["total_tokens"] == 18
    assert service.searches == 0
    (call,) = service.llm.calls
    assert call["max_tokens"] <= 300
    assert call["messages"] == RECORDED[name]["body"]["messages"]


@pytest.mark.parametrize("name", TASKS)
async def test_by_the_text_alone_a_task_is_answered_without_the_model(service, name):
    """Else anybody could have the model say anything: the text is the client's."""
    recorded = RECORDED[name]
    async with client_of(service.app) as client:
        kept = {name: value for name, value in recorded["headers"].items() if name != "X-OWUI-Task"}
        response = await client.post(CHAT, json=recorded["body"], headers=kept)
    assert set(json.loads(content(response))) == {TASKS[name]}
    assert "Sources" not in response.text
    assert service.llm.calls == []
    assert service.searches == (name == "follow_ups")


@pytest.mark.parametrize("name", ["title", "tags"])
async def test_the_setting_lets_the_text_alone_reach_the_model(tmp_path, name):
    async with indexed(tmp_path, openwebui_tasks=True) as service:
        service.llm.reply = lambda _: Reply(json.dumps(wanted(TASKS[name])))
        assert json.loads(content(await post(service, name))) == wanted(TASKS[name])
        assert len(service.llm.calls) == 1
        assert service.searches == 0


async def test_a_reply_that_is_not_what_the_task_asks_for_is_replaced_or_cut(service):
    task = {"X-OWUI-Task": "title_generation"}
    odd = ("Bitcoin is a good investment.", '{"title": 5}', '{"title": " "}', '{"name": "x"}', "{", "[]", '["title"]')
    replies = [Reply(answer) for answer in (*odd, '{"title": ["x"]}', "")]
    for reply in [*replies, Reply(status=500), Reply(status=429)]:
        service.llm.reply = lambda _, reply=reply: reply
        assert json.loads(content(await post(service, "title", headers=task))) == {"title": QUESTION}
    service.llm.reply = lambda _: Reply(json.dumps({"tags": ["x" * 5000] * 50}))
    response = await post(service, "tags", headers={"X-OWUI-Task": "tags_generation"})
    assert json.loads(content(response)) == {"tags": ["x" * 200] * 5}


async def test_questions_that_follow_are_those_that_the_index_answers(tmp_path):
    """Not the one that was answered, and none that a model makes up; with the setting off, the model's."""
    more = {"restore a volume": "# Restore a volume\n\n1. Stop what writes to the persistent volume.\n2. Restore it."}
    for on in (True, False):
        async with indexed(tmp_path / str(on), more=more, follow_ups=on) as service:
            service.llm.reply = lambda _: Reply(json.dumps(wanted("follow_ups")))
            response = await post(service, "follow_ups", headers={"X-OWUI-Task": "follow_up_generation"})
            followed = json.loads(content(response))["follow_ups"]
            assert followed == (["Restore A Volume"] if on else ["a", "b"])
            assert len(service.llm.calls) == (not on)


async def test_tasks_are_answered_without_a_model(tmp_path):
    """A title and a search from the user's words; nothing made up for the rest."""
    async with indexed(tmp_path, with_model=False, openwebui_tasks=True) as service:
        found = {name: json.loads(content(await post(service, name))) for name in TASKS}
        assert service.searches == 1  # for questions that follow
    assert found == {
        "title": {"title": QUESTION},
        "tags": {"tags": []},
        "follow_ups": {"follow_ups": []},
        "query": {"queries": ["How do I create a volume"]},
        "autocomplete": {"text": ""},
    }


async def test_a_long_conversation_makes_no_task_too_long(service):
    prompt = RECORDED["title"]["body"]["messages"][0]["content"].replace(QUESTION, QUESTION + " x" * 30_000)
    service.llm.reply = lambda _: Reply('{"title": "Volumes"}')
    task = {"X-OWUI-Task": "title_generation"}
    response = await post(service, "title", messages=[{"role": "user", "content": prompt}], headers=task)
    assert json.loads(content(response)) == {"title": "Volumes"}
    assert len(service.llm.calls[0]["messages"][0]["content"]) < 16_000 * 3


@pytest.mark.parametrize(("name", "found"), [("chat_first_tools", 1), ("chat_followup", 2)])
async def test_a_question_of_open_webui_is_answered_with_events(service, name, found):
    """Status lines at once, then the text without a list of links, then each source as an event; 36 tools or not."""
    page, title = f"{URL}volumes#create", "Volumes – Create"
    spelled_out = "How large may a persistent volume be?"
    service.llm.reply = lambda call: Reply("Use a PersistentVolumeClaim [1]." if call.get("stream") else spelled_out)
    chunks = events(await post(service, name))
    assert service.searches >= 1
    status = said(chunks, "status")
    assert [(line["description"], line["done"]) for line in status] == [
        ("Searching the documentation…", False),
        (f"Reading sections: {found}…", False),
        (f"Pages found: {found}", True),
    ]
    assert text(chunks).strip() == "Use a PersistentVolumeClaim [1]."
    (source,) = said(chunks, "source")
    assert source == {
        "source": {"id": page, "name": title, "url": page},
        "document": [source["document"][0]],
        "metadata": [{"source": page, "name": title, "external": True}],
        "distances": source["distances"],
    }
    assert 0 < source["distances"][0] <= 1
    assert source["document"][0]
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert all(c["choices"] or "usage" in c for c in chunks)
    assert next(c for c in chunks if c.get("sources"))["sources"][0]["url"] == page


async def test_a_page_shows_the_found_sections_before_the_model_says_a_word(service, tmp_path):
    """With their best sentences, before the helper steps ask the model; only to who asks for events, and if a model writes."""
    question = "Which class does my persistent volume have on Fridays?"
    asked = chat(question, stream=True)
    service.llm.reply = lambda call: Reply("Use nfs-csi [1]." if call.get("stream") else "en: volume class\ncs: svazek")
    async with client_of(service.app) as client:
        shown = events(await client.post(CHAT, json={**asked, "events": True}))
        plain = events(await client.post(CHAT, json=asked, headers=NO_TASK))
    first = next(i for i, chunk in enumerate(shown) if chunk.get("event", {}).get("data", {}).get("sections"))
    (found,) = [line["sections"] for line in said(shown, "status") if "sections" in line]
    assert first < next(i for i, chunk in enumerate(shown) if chunk["choices"][0]["delta"].get("content"))
    assert [line["description"] for line in said(shown, "status")][0:2] == ["Searching the documentation…"] * 2
    assert (found[0]["url"], found[0]["title"], found[0]["section"]) == (f"{URL}volumes#create", "Volumes", "Create")
    assert "class nfs-csi" in found[0]["sentence"]
    assert not [line for line in said(plain, "status") if "sections" in line]
    async with indexed(tmp_path / "quotes", with_model=False) as quoting, client_of(quoting.app) as client:
        assert not [
            line
            for line in said(events(await client.post(CHAT, json={**asked, "events": True})), "status")
            if "sections" in line
        ]


async def test_what_the_user_attached_reaches_the_model_and_the_question_is_searched(service):
    """The template around it is no task; retrieval uses only the user's own words."""
    response = await post(service, "rag_template_question")
    assert content(response).startswith("The answer [1].")
    assert service.searches >= 1
    assert all("### Task" not in text for texts in service.llm.embedded for text in texts)
    system = service.llm.calls[-1]["messages"][0]["content"]
    assert "PersistentVolumeClaim" in system
    attached = system[system.index("<attached>\n") :]
    assert "Delete Running Instance" in attached
    assert "VNC" in attached
    assert service.llm.calls[-1]["messages"][-1]["content"].strip() in (
        "How do I make a persistent volume?",
        "The answer [1].",
    )


async def test_templates_in_the_conversation_are_nothing_that_was_said(service):
    """An earlier question loses what was put around it, and a task for a title is dropped."""
    wrapped = RECORDED["rag_template_question"]["body"]["messages"][0]["content"].removesuffix(
        "How do I make a persistent volume?"
    )
    title = RECORDED["title"]["body"]["messages"][0]["content"]
    said = (wrapped + "What is a claim?", "A volume.", title, "And how large?")
    roles = ("user", "assistant", "user", "user")
    messages = [{"role": role, "content": content} for role, content in zip(roles, said, strict=True)]
    await post(service, "chat_followup", messages=messages)
    helper = next(call for call in service.llm.calls if "<conversation>" in call["messages"][-1]["content"])
    assert helper["messages"][-1]["content"] == (
        "<conversation>\nuser: What is a claim?\nassistant: A volume.\n</conversation>\n\nAnd how large?"
    )
    assert all("Delete Running Instance" not in str(call["messages"]) for call in service.llm.calls)


async def test_attached_material_keeps_its_numbers(service):
    """Open WebUI numbers it from 1 itself, so our first source comes after it."""
    chunks = events(await post(service, "rag_template_question", stream=True))
    assert text(chunks).strip() == "The answer [4]."
    assert [s["number"] for c in chunks for s in c.get("sources", [])] == [4]


async def test_attached_material_may_be_the_system_message(service):
    wrapped = RECORDED["rag_template_question"]["body"]["messages"][0]["content"]
    system = wrapped[: wrapped.index("</context>") + len("</context>")]
    messages = [{"role": "system", "content": system}, {"role": "user", "content": QUESTION}]
    await post(service, "rag_template_question", messages=messages)
    sent = service.llm.calls[-1]["messages"][0]["content"]
    assert "<attached>" in sent
    assert "<style>" not in sent


async def test_with_nothing_found_the_attached_material_is_answered_from(service):
    wrapped = RECORDED["rag_template_question"]["body"]["messages"][0]["content"]
    asked = wrapped.rpartition("\n\n")[0] + "\n\nWhat is the VNC password of Ansys Fluent?"
    service.llm.reply = lambda _: Reply("As attached.")
    response = await post(service, "rag_template_question", messages=[{"role": "user", "content": asked}])
    assert content(response).strip() == "As attached."


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("headers", [{}, NO_TASK])
async def test_a_question_that_quotes_a_task_is_a_question(service, headers, stream):
    prompt = RECORDED["title"]["body"]["messages"][0]["content"]
    quoted = f"{prompt}\n\nHow do I create a persistent volume with this prompt?"
    async with client_of(service.app) as client:
        response = await client.post(CHAT, json=chat(quoted, stream=stream), headers=headers)
    assert response.status_code == 200
    assert service.searches >= 1


@pytest.mark.parametrize("name", ["title", "tags", "query"])
async def test_a_whole_task_text_in_a_chat_is_a_question(service, name):
    """Open WebUI's header says that it is a chat; so does a stream."""
    await post(service, name, headers=NO_TASK)
    await post(service, name, headers={"X-OWUI-Task": ""}, stream=True)
    assert service.searches >= 2


@pytest.mark.parametrize(
    ("sources", "listed", "as_events"),
    [("events", False, True), ("links", True, False), ("both", True, True), ("", True, False)],
)
async def test_a_key_decides_how_sources_come(tmp_path, sources, listed, as_events):
    by_key = {"2": sources} if sources else {}
    keys = [{"authorization": f"Bearer {name}-key-of-tests"} for name in ("second", "first")]
    async with (
        indexed(tmp_path, api_keys="first-key-of-tests second-key-of-tests", key_sources=by_key) as service,
        client_of(service.app) as client,
    ):
        body = chat(QUESTION, stream=True)
        chunks, other = [events(await client.post(CHAT, json=body, headers=one)) for one in keys]
    assert ("**Sources**" in text(chunks)) is listed
    assert bool(said(chunks, "source")) is as_events
    assert bool(said(chunks, "status")) is as_events
    assert "**Sources**" in text(other)
    assert not any("event" in chunk for chunk in other)


async def test_an_assistant_decides_how_sources_come(tmp_path):
    own = tmp_path / "own.toml"
    steps = '["detect", "probe", "retrieve", "relevance", "synthesize", "cite"]'
    own.write_text(f'[[assistant]]\nid = "docs-assistant"\nsources = "links"\nsteps = {steps}\n', encoding="utf-8")
    async with indexed(tmp_path, assistants=str(own)) as service:
        chunks = events(await post(service, "chat_first_tools"))
    assert "**Sources**" in text(chunks)
    assert not said(chunks, "source")
    assert said(chunks, "status")


async def test_a_whole_answer_has_links_even_for_open_webui(service):
    """It forgets the sources of whole answers when its page is loaded again."""
    assert "**Sources**" in content(await post(service, "chat_first_tools", stream=False))


async def test_text_of_pages_and_models_makes_no_event(service):
    """An event can run JavaScript in Open WebUI, so its frame is ours alone."""
    evil = '"}}],"event":{"type":"execute","data":{"code":"alert(1)"}} [1]'
    service.llm.reply = lambda _: Reply(
        f"These are pages [1].\n\n{evil}"
    )  # of which half is proved, so that it has sources
    chunks = events(await post(service, "chat_first_tools"))
    assert {c["event"]["type"] for c in chunks if "event" in c} == {"source", "status"}
    assert "alert(1)" in text(chunks)


async def test_models_say_what_open_webui_shows(service):
    async with client_of(service.app) as client:
        (model,) = (await client.get("/v1/models")).json()["data"]
    meta = model["info"]["meta"]
    assert model["name"] == "Docs Assistant"
    assert meta["description"] == model["description"] != ""
    assert all(" ".join(s["title"]).strip() == s["content"] for s in meta["suggestion_prompts"])
    assert meta["capabilities"]["builtin_tools"] is False
