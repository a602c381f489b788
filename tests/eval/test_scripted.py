"""The scripted model: says what its file has, to our prompts only, by question text only."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import httpx
import openai
import pytest

from app.core.errors import ModelError, PromptError
from app.core.prompts import load_prompts
from app.core.turn import Done, Message, Text
from app.models.openai import Endpoint, OpenAIModel
from app.models.protocols import CallOptions
from eval.files import EvaluationError
from eval.questions.cases import load_cases
from tests.scripted import ScriptedModel, key_of, load_script

ROOT = Path(__file__).parents[2]
OPTIONS = CallOptions()
QUESTION = "Jak obnovím zálohu databáze?"
ROWS = [
    {"id": "cs-backups-v1", "lang": "cs", "question": QUESTION, "doc": "en/backups.md"},
    {"id": "en-login-v4", "lang": "en", "question": "login token expiry", "doc": "en/login.md"},
    {"id": "en-login-v1", "lang": "en", "question": "How long does a token live?", "doc": "en/login.md"},
]
OUTPUTS = [
    {"id": "cs-backups-v1", "refined": "Jak se obnoví záloha databáze?", "en": ["restore", "backup"], "cs": ["záloha"]},
    {"id": "en-login-v4", "refined": "When does a login token expire?", "en": ["token"], "cs": ["platnost"]},
]


@pytest.fixture
def files(write_jsonl):
    return write_jsonl("q.jsonl", *ROWS), write_jsonl("o.jsonl", *OUTPUTS)


@pytest.fixture
def prompts():
    return load_prompts(("cs", "en"))


@pytest.fixture
def model(files, prompts) -> ScriptedModel:
    cases, outputs = files
    return ScriptedModel(load_script(outputs, load_cases(cases)), prompts)


def ask(prompts, language, kind, message, **holes):
    return [Message("system", prompts.render(language, kind, **holes)), Message("user", message)]


def keywords(prompts, language, message, codes=("cs", "en")):
    form = "\n".join(f"{code}: …, …, …" for code in codes)
    return ask(prompts, language, "refine_keywords", message, languages=", ".join(codes), form=form)


async def test_each_prompt_gets_its_own_answer(model, prompts):
    """Refining gives the wording alone, keywords a line per language that was asked for."""
    refined = await model.complete(ask(prompts, "cs", "refine_question", QUESTION), OPTIONS)
    assert refined.text == "Jak se obnoví záloha databáze?"
    found = await model.complete(keywords(prompts, "cs", QUESTION), OPTIONS)
    assert sorted(found.text.splitlines()) == ["cs: záloha", "en: restore, backup"]
    english = await model.complete(keywords(prompts, "en", "login token expiry", ["en"]), OPTIONS)
    assert english.text == "en: token"
    answer = await model.complete(ask(prompts, "en", "synthesize", "anything", passages="[1] A"), OPTIONS)
    assert "[1]" in answer.text
    assert answer.text.startswith("Pages found: 1")
    assert model.calls == {"refine_question": 1, "refine_keywords": 2, "synthesize": 1}
    assert not model.unknown


async def test_the_service_can_read_the_keywords(model, prompts):
    """What it answers is what the pipeline's own parser takes."""
    from app.text.language import parse

    text = (await model.complete(keywords(prompts, "cs", QUESTION), OPTIONS)).text
    assert parse(text, ["cs", "en"], 400) == {"cs": "záloha", "en": "restore, backup"}


async def test_a_question_is_found_below_a_conversation_and_through_blanks(model, prompts):
    """The last line that is a known question counts, however it is spaced or quoted."""
    for message in (
        f"  {QUESTION}\n",
        f'"{QUESTION}"',
        f"<conversation>\nuser: login token expiry\n</conversation>\n\n{QUESTION}",
    ):
        answer = await model.complete(ask(prompts, "cs", "refine_question", message), OPTIONS)
        assert answer.text == "Jak se obnoví záloha databáze?"


async def test_what_it_does_not_know_fails_and_is_counted(model, prompts):
    """So the service uses its fallback, and the report can say how often: ids don't help."""
    for message in ("How long does a token live?", "en-login-v4", "login token", "x login token expiry x", ""):
        with pytest.raises(ModelError, match="no line"):
            await model.complete(ask(prompts, "en", "refine_question", message), OPTIONS)
    assert len(model.unknown) == 5


async def test_other_prompts_are_refused(model):
    """It stands in for our helper calls, not for a model of everything."""
    for messages in ([Message("system", "You are a pirate."), Message("user", QUESTION)], [Message("user", QUESTION)]):
        with pytest.raises(ModelError, match="our own prompts"):
            await model.complete(messages, OPTIONS)
    assert model.calls["unknown prompt"] == 2


def test_prompts_that_begin_alike_are_refused(files, tmp_path):
    """It could only guess which call it was, so it says so."""
    (tmp_path / "en").mkdir()
    own = (ROOT / "prompts/en/refine_question.md").read_text(encoding="utf-8")
    begin = (ROOT / "prompts/en/synthesize.md").read_text(encoding="utf-8").splitlines()[0]
    (tmp_path / "en/refine_question.md").write_text(f"{begin}\n{own}", encoding="utf-8")
    cases, outputs = files
    with pytest.raises(PromptError, match="begin differently"):
        ScriptedModel(load_script(outputs, load_cases(cases)), load_prompts(("cs", "en"), str(tmp_path)))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "nobody", "refined": "x"}, "no id 'nobody'"),
        ({"id": "en-login-v1"}, "'refined' is missing"),
        ({"id": "en-login-v1", "refined": "x", "en": "a, b"}, "'en' is 'a, b'"),
        ({"id": "cs-backups-v1", "refined": "x"}, "already a line"),
    ],
)
def test_a_wrong_line_of_outputs_is_named(files, write_jsonl, row, said):
    cases, _ = files
    with pytest.raises(EvaluationError) as raised:
        load_script(write_jsonl("bad.jsonl", *OUTPUTS, row), load_cases(cases))
    assert "bad.jsonl:3" in str(raised.value)
    assert said in str(raised.value)


def test_the_shared_outputs_are_known_by_text_alone(shared_eval):
    """180 lines, each found by its question, none by its id; the other 212 questions are unknown."""
    cases = load_cases(shared_eval / "questions.jsonl")
    script = load_script(shared_eval / "model_outputs.jsonl", cases)
    assert len(script.lines) == 180
    assert {code for line in script.lines.values() for code in line.keywords} == {"cs", "en"}
    assert sum(script.find(case.question) is not None for case in cases) == 180
    assert not any(script.find(case.id) for case in cases)


@asynccontextmanager
async def served(*options: str | Path):
    """`python -m tests.scripted` on a port of the system's choice; what it prints at the end is in `said`."""
    said: list[str] = []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.scripted", "--port", "0", *map(str, options)),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout
    try:
        line = (await asyncio.wait_for(process.stdout.readline(), 60)).decode()
        address = re.search(r"The (?:scripted|recorded \w+) model listens on (http://127\.0\.0\.1:\d+/v1)", line)
        assert address, line
        yield address[1], said
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = await asyncio.wait_for(process.communicate(), 30)
        said.append(rest.decode())
        assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.server
async def test_served_over_http_it_says_the_same(files, prompts):
    """Our own client and the official one read it, streamed and not; what it lacks is an error of the client's."""
    async with served("--cases", files[0], "--outputs", files[1]) as (url, said):
        ours = OpenAIModel(Endpoint(url, timeout=20), "scripted")
        refined = await ours.complete(ask(prompts, "cs", "refine_question", QUESTION), OPTIONS)
        assert refined.text == "Jak se obnoví záloha databáze?"
        async with aclosing(ours.stream(ask(prompts, "en", "synthesize", "?", passages="[1] A"), OPTIONS)) as events:
            pieces = [event async for event in events]
        assert "[1]" in "".join(piece.text for piece in pieces if isinstance(piece, Text))
        assert pieces[-1] == Done()
        with pytest.raises(ModelError, match="no line"):
            await ours.complete(ask(prompts, "en", "refine_question", "unheard of"), OPTIONS)
        await ours.close()
        async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:
            assert [one.id async for one in client.models.list()] == ["scripted"]
            messages = [{"role": m.role, "content": m.content} for m in keywords(prompts, "cs", QUESTION)]
            messages[1]["content"] = [{"type": "text", "text": QUESTION}]
            chat = await client.chat.completions.create(model="scripted", messages=messages)
            assert "en: restore, backup" in chat.choices[0].message.content
            assert chat.usage.completion_tokens > 0
            stream = await client.chat.completions.create(
                model="scripted", messages=messages, stream=True, stream_options={"include_usage": True}
            )
            chunks = [chunk async for chunk in stream]
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
            assert text == chat.choices[0].message.content
            assert chunks[-1].usage == chat.usage
        async with httpx.AsyncClient() as client:
            for body in (b"{", b"[]", b'{"messages": 1}', b'{"messages": [{"role": "user"}]}'):
                answer = await client.post(f"{url}/chat/completions", content=body)
                assert answer.status_code == 400
                assert answer.json()["error"]["message"]
    assert "refine_keywords 2, refine_question 2, synthesize 1; 1 unknown questions." in said[0]


@pytest.mark.slow
@pytest.mark.server
async def test_a_record_is_served_too(tmp_path):
    """What isn't in it is refused, and written at the end as lines to be answered."""
    record, missing = tmp_path / "record.jsonl", tmp_path / "missing.jsonl"
    known, unknown = [Message("user", "Summarise.")], [Message("user", "Translate.")]
    record.write_text(json.dumps({"key": key_of(known), "text": "A page."}), encoding="utf-8")
    async with served("--recorded", record, "--missing", missing) as (url, said):
        ours = OpenAIModel(Endpoint(url, timeout=20), "recorded")
        assert (await ours.complete(known, OPTIONS)).text == "A page."
        with pytest.raises(ModelError, match="no recorded answer"):
            await ours.complete(unknown, OPTIONS)
        await ours.close()
    assert "1 prompts had no answer." in said[0]
    assert json.loads(missing.read_text("utf-8"))["key"] == key_of(unknown)
