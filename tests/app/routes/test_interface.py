"""What the page at / fetches besides answers: what it begins with, the passages of sources, and streams with events."""

import asyncio
import json
import time
from base64 import b64encode
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from app.assistants import suggestions
from app.assistants.assistant import Assistant
from app.assistants.file import read_assistants
from app.conversations.opening import open_conversations
from app.conversations.records import Found, KeptAnswer
from app.core.brand import Brand
from app.core.errors import DatabaseUnavailable, SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Done, Source, Status, Text
from app.core.types import Chunk, Section
from app.index.run_history import RunHistory, write_runs
from app.routes import interface, warm_up
from app.routes.server import create_app
from tests.app.routes.indexed import URL, indexed
from tests.app.routes.scripted import CHAT, Scripted, ScriptedAssistants, State, chat, client_of, scripted
from tests.app.routes.test_chat import ask, events, post

SVG = b"<svg>site</svg>"
MORE = {"how large is a volume?": "A volume is large if nobody asks."}
QUESTION = chat("How do I create a volume?")


async def test_a_page_gets_what_it_begins_with(tmp_path):
    async with indexed(tmp_path) as service, client_of(service.app) as client:
        body = (await client.get("/v1/interface")).json()
    (assistant, *_) = body.pop("assistants")
    assert {"title", "version"} <= set(body)
    assert (body["key_required"], body["model"], body["languages"]) == (False, True, ["cs", "en"])
    assert (body["index"]["generation"], body["index"]["pages"]) == (1, 2)
    assert assistant["name"]["en"] == body["title"]
    assert "neutral" in [persona["id"] for persona in assistant["personas"]]
    # without a store; the page's own tests have one
    assert body["keeps"] == {"days": 0, "feedback": False, "share_days": 0}


async def test_without_its_key_a_page_learns_only_that_it_needs_one():
    async with client_of(scripted(api_keys="some-key-of-tests")) as client:
        stranger = await client.get("/v1/interface")
        wrong = await client.get("/v1/interface", headers={"authorization": "Bearer x"})
        assert (await client.get("/v1/passages/x")).status_code == 401
    assert stranger.status_code == 200
    assert set(stranger.json()) == {"title", "welcome", "version", "key_required", "sign_in", "person"}
    assert (stranger.json()["key_required"], wrong.status_code) == (True, 401)


async def test_the_brand_is_that_of_the_settings_else_of_the_site_else_ours(tmp_path, monkeypatch):
    """An image of a site may run nothing when it is opened, and pages of others may load it for the widget."""
    monkeypatch.setattr(interface, "FRESH", 0)
    paths = ("/brand.css", "/brand/icon", "/v1/interface", "/")
    async with indexed(tmp_path) as service, client_of(service.app) as client:
        plain = [await client.get(path) for path in paths]
        await write_runs(service.store, RunHistory(brand=Brand("Site", "#7a2ea0", b64encode(SVG).decode())))
        read = [await client.get(path) for path in paths]
    assert (plain[0].text, plain[1].headers["content-type"]) == ("", "image/svg+xml")
    assert "<title>Docs Assistant</title>" in plain[3].text
    assert "sandbox" in plain[1].headers["content-security-policy"]
    assert plain[1].headers["access-control-allow-origin"] == "*"
    assert ("#7a2ea0" in read[0].text, read[1].content, read[2].json()["title"]) == (True, SVG, "Site")
    icon = tmp_path / "icon.svg"
    icon.write_text("<svg/>")
    given = own_brand(
        tmp_path, name="Acme & <b>", color="#fd0", icon=str(icon), welcome="Ask us", contact="help@acme.example"
    )
    async with indexed(tmp_path / "own", assistants=given) as service, client_of(service.app) as client:
        own = [await client.get(path) for path in paths]
    assert (own[1].text, own[2].json()["title"], own[2].json()["welcome"]) == ("<svg/>", "Acme & <b>", "Ask us")
    assert (own[2].json()["contact"], read[2].json()["contact"]) == ("help@acme.example", "")
    assert "#ffdd00" in own[0].text
    assert "<title>Acme &amp; &lt;b&gt;</title>" in own[3].text


def own_brand(folder: Path, **values: object) -> str:
    """A file of assistants with this [brand]."""
    shipped = files("app").joinpath("assistants.toml").read_text(encoding="utf-8")
    brand = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    file = folder / "assistants.toml"
    file.write_text(f"{shipped}\n[brand]\n{brand}", encoding="utf-8")
    return str(file)


def test_a_brand_that_cannot_be_shown_is_named(tmp_path):
    """At the start of the service, with what would do."""
    for name, text, said in (("a", "<html>", "is no icon: use an SVG"), ("b", "", "can't be read")):
        (tmp_path / "a").write_text(text)
        with pytest.raises(SettingsError, match=said):
            interface.icon_of(str(tmp_path / name))
    with pytest.raises(
        SettingsError, match=r'brand: color = "blue" must be the colour of links and buttons, as #2558c5'
    ):
        read_assistants(Settings.load(None, assistants=own_brand(tmp_path, color="blue")))


async def test_a_page_without_an_index_says_so():
    app = create_app(ScriptedAssistants((Scripted(),), State(ok=False, index=None)), Settings.load(None))
    async with client_of(app) as client:
        assert (await client.get("/v1/interface")).json()["index"] is None


async def test_the_source_of_an_answer_leads_to_its_passage_within_the_limits_of_the_assistant(tmp_path):
    file = tmp_path / "assistants.toml"
    one = '[[assistant]]\nid = "{}"\nsteps = ["detect", "retrieve", "relevance", "synthesize", "cite"]\ncollections = ["{}"]\n'
    file.write_text(one.format("docs-assistant", "docs") + one.format("other", "elsewhere"), "utf-8")
    async with indexed(tmp_path, assistants=str(file)) as service, client_of(service.app) as client:
        answer = (await client.post(CHAT, json=QUESTION)).json()
        chunk = answer["sources"][0]["chunk"]
        passage = (await client.get(f"/v1/passages/{chunk}")).json()
        refused = [await client.get(f"/v1/passages/{id_}") for id_ in ("unknown", f"{chunk}?model=other")]
    assert passage["url"].startswith(URL)
    assert "PersistentVolumeClaim" in passage["text"]
    assert (passage["before"], passage["after"]) == ("", "")
    assert [one.json()["error"]["code"] for one in refused] == ["passage_not_found"] * 2


async def test_a_stream_with_events_has_status_lines_and_no_list_of_links():
    source = Source(1, "Limits", "https://docs.example.org/limits", "CPU", "en", "At most 4.", 0.5, "", "c1")
    script = (Status("Searching"), Text("a [1]"), source, Done())
    scripted, response = await post(script, ask(stream=True, events=True))
    chunks = events(response)
    assert [chunk["event"]["data"].get("description") for chunk in chunks if "event" in chunk] == ["Searching", None]
    assert chunks[-2]["sources"][0]["chunk"] == "c1"
    assert not scripted.asked[0].links


async def test_a_page_waits_for_no_first_questions(tmp_path, monkeypatch):
    """It is told that they are being made, and has them as soon as they are."""
    monkeypatch.setattr(interface, "PATIENCE", 0.001)
    async with indexed(tmp_path, more=MORE) as service, client_of(service.app) as client:
        body = (await client.get("/v1/interface")).json()
        assert (body["preparing"], body["assistants"][0]["suggestions"]) == (True, {})
        while body["preparing"]:
            await asyncio.sleep(0.01)
            body = (await client.get("/v1/interface")).json()
        assert body["assistants"][0]["suggestions"]["en"][0] == "How Large Is A Volume?"
        assert body["assistants"][0]["pages"]["en"][f"{URL}how large is a volume?"] == "How Large Is A Volume?"


async def test_the_page_that_a_reader_looks_at_has_its_questions_first(tmp_path, monkeypatch):
    """Whatever stands behind its address, in its language; elsewhere those of the site, and always those that the operators gave."""
    monkeypatch.setattr(interface, "PATIENCE", 60)
    names = [f"{verb} the {what}" for verb in ("close", "oil", "clean") for what in ("valve", "pump")]
    pages = {name: f"To {name}, do it at noon." for name in names}
    asked = [{"page": f"{URL}oil the valve/?x=1#y"}, {"page": "https://elsewhere.example/oil the valve"}, {}]
    async with indexed(tmp_path, more=pages) as service, client_of(service.app) as client:
        own, other, site = [(await client.get("/v1/interface", params=one)).json() for one in asked]
    assert (own["page_language"], other["page_language"]) == ("en", "")
    first, usual = own["assistants"][0]["suggestions"]["en"], site["assistants"][0]["suggestions"]["en"]
    assert "Oil The Valve" not in usual
    assert first == ["Oil The Valve", *usual[:3]]
    assert other["assistants"] == site["assistants"]
    file = tmp_path / "assistants.toml"
    file.write_text(
        '[[assistant]]\nid = "docs-assistant"\nsteps = ["detect", "retrieve", "relevance", "synthesize", "cite"]\n'
        '[assistant.suggestions]\nen = ["What is new?"]\n',
        "utf-8",
    )
    async with (
        indexed(tmp_path / "b", more=pages, assistants=str(file)) as service,
        client_of(service.app) as client,
    ):
        given = (await client.get("/v1/interface", params=asked[0])).json()["assistants"][0]["suggestions"]
    assert given == {"en": ["What is new?"]}


async def test_pages_that_many_answers_cite_come_first(tmp_path, monkeypatch):
    """Wherever they are, in the language of the reader; not those that few answers cite, and none while the log can't be read."""
    monkeypatch.setattr(interface, "PATIENCE", 60)
    pages = {
        "guide/deep/valves": "# Valves\n\nClose them.",
        "guide/deep/pumps": "# Pumps\n\nOil them.",
        "a": "# A\n\nAbout.",
    }
    kept = open_conversations(Settings.load(None), tmp_path)
    cited = ["guide/deep/valves#close"] * 6 + ["guide/deep/pumps"] * 9 + ["limits"] * 4 + ["gone"] * 9
    for number, name in enumerate(cited):
        source = Source(1, "T", URL + name, "S", "en", "s", 0.9)
        one = KeptAnswer(str(number), "", "Q?", "A [1].", time.time(), assistant="docs-assistant", outcome="written")
        await kept.keep(replace(one, sources=(source,), found=Found()))
    async with indexed(tmp_path, more=pages, conversations=kept) as service, client_of(service.app) as client:
        first = list((await client.get("/v1/interface")).json()["assistants"][0]["pages"]["en"])
    await kept.close()
    assert first[:2] == [f"{URL}guide/deep/pumps", f"{URL}guide/deep/valves"]
    assert f"{URL}limits" in first[2:]

    async def broken(*_):
        raise DatabaseUnavailable("gone")

    kept.cited = broken
    async with indexed(tmp_path / "b", more=pages, conversations=kept) as service, client_of(service.app) as client:
        first = list((await client.get("/v1/interface")).json()["assistants"][0]["pages"]["en"])
    assert f"{URL}guide/deep/pumps" not in first[:1]


def test_first_questions_come_from_all_parts_of_the_site():
    """A part with many pages doesn't fill them, and pages on sponsors give none."""
    asked = {
        **{f"guide/{one}": f"How do I clean the {one}?" for one in ("valve", "pump", "boiler", "kettle", "funnel")},
        "admin/fuse": "How do I replace the fuse?",
        "admin/sponsor": "How do I become a sponsor?",
        "api/call": "How do I call the pump?",
    }
    chunks = [
        Chunk(name, "docs", URL + name, 0, f"## {question}", "en", "Page", sections=(Section(0, (question,)),))
        for name, question in asked.items()
    ]
    tried = [question for _, question in suggestions._candidates(chunks, load_prompts(["en"]).language("en"))]
    assert tried[:4] == [asked[name] for name in ("guide/valve", "admin/fuse", "api/call", "guide/pump")]
    assert asked["admin/sponsor"] not in tried


async def test_what_the_first_reader_would_wait_for_is_made_before_anybody_asks(tmp_path, monkeypatch):
    """After a start, and of each new generation once; while nobody asks: answers would take longer by it."""
    made = []

    async def counted(assistant, cited):
        made.append((await assistant.store.live()).info.id)
        return await suggested(assistant, cited)

    suggested = suggestions.suggested
    monkeypatch.setattr(suggestions, "suggested", counted)
    monkeypatch.setattr(warm_up, "EVERY", 0.01)
    async with indexed(tmp_path) as service, service.app.router.lifespan_context(service.app), asyncio.timeout(60):
        gate = service.app.state.warm_up.gate
        gate.open = 1
        await asyncio.sleep(0.2)
        assert not made
        gate.open = 0
        looked = asyncio.get_running_loop().time() + 0.2
        while asyncio.get_running_loop().time() < looked:  # no two looks without a question between them
            async with gate.place():
                await asyncio.sleep(0)
            await asyncio.sleep(0)
        assert not made
        while not made:
            await asyncio.sleep(0.01)
        async with await service.store.draft((await service.store.live()).info.recipe) as draft:
            await draft.remove(f"{URL}limits")
            await draft.publish()
        while len(made) < 2:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert made == [1, 2]


async def test_a_start_is_ready_when_its_first_searches_are_done(tmp_path, monkeypatch):
    """Until then it is alive, and says that the index is read: a proxy sends nobody here to wait."""
    searched = asyncio.Event()
    search = Assistant.search

    async def held(assistant, request):
        await searched.wait()
        return await search(assistant, request)

    monkeypatch.setattr(Assistant, "search", held)
    async with indexed(tmp_path) as service, client_of(service.app) as client, asyncio.timeout(60):
        assert (await client.get("/health/ready")).status_code == 200  # nothing to warm up without a start
        async with service.app.router.lifespan_context(service.app):
            await asyncio.sleep(0)
            unready = await client.get("/health/ready")
            assert (unready.status_code, unready.json()["problem"]) == (503, "warming up: the index is being read")
            assert (await client.get("/health/live")).status_code == 200
            searched.set()
            while (await client.get("/health/ready")).status_code == 503:
                await asyncio.sleep(0.01)
