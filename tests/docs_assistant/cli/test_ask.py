"""`docs-assistant ask`: answers in the terminal and as JSON, and errors."""

import json
from typing import Any

import yaml  # type: ignore[import-untyped]

from app.assistants.assistant import Assistant
from docs_assistant.cli.ask import pasteable
from tests.docs_assistant.cli.conftest import model_at
from tests.fake_llm import FakeLLM, Reply
from tests.ingestion.local_site import LocalSite

QUESTION = "What does gauge number 1 measure?"
INTRO = "Here is what the documentation says"


def traced(err: str) -> dict[str, Any]:
    """The trace below the lines of the log."""
    trace: dict[str, Any] = yaml.safe_load(err[err.index("\nquestion: ") :])
    return trace


def test_an_answer_ends_with_its_sources(cli, indexed: LocalSite):
    """All words of the command line are one question; the answer is Markdown with links."""
    done = cli("ask", *QUESTION.split())
    assert done.ok.startswith(INTRO)
    assert "pressure in boiler 1" in done.out
    assert f"1. [Gauge 1]({indexed.url}/gauge-1)" in done.out
    assert done.err == ""


def test_a_question_is_read_from_standard_input(cli, indexed: LocalSite):
    """If the command line has none; surrounding spaces are removed."""
    assert cli("ask", stdin=f"  {QUESTION}\n").out == cli("ask", QUESTION).out


def test_diacritics_survive_standard_input(cli, site: LocalSite):
    """A Czech question gets a Czech answer."""
    site.page("/gauge-9", "Tlakoměr", "Tlakoměr v kotelně měří každou hodinu přetlak páry v kotli.")
    assert cli("ingest", site.sitemap("/gauge-9")).code == 0
    czech = cli("ask", stdin="Jak často měří tlakoměr přetlak páry v kotelně?")
    assert czech.out.startswith("V dokumentaci se doslova píše")


def test_quoted_code_is_as_one_pastes_it():
    """In a shell, the sign of a quotation would write into a file."""
    text = "\n\n> Run:\n>\n> 1. now\n>\n>    ```sh\n>    a > b\n>\n>    c\n>    ```\n> and wait\n\n```\nmine\n```"
    said = "\n\n> Run:\n> \n> 1. now\n> \n   ```sh\n   a > b\n\n   c\n   ```\n> and wait\n\n```\nmine\n```"
    assert pasteable(text) == said


def test_no_question_is_one_line(cli, indexed: LocalSite):
    """Nothing, spaces, or bytes that are no text: exit code 1."""
    for stdin, words in (("", "No question"), (" \n", "No question"), (b"\xff\xfe", "as text")):
        assert words in cli("ask", stdin=stdin).one_line


def test_json_has_the_answer_and_its_sources(cli, indexed: LocalSite):
    """One object: answer, sources with their addresses, extractive, error."""
    answer = json.loads(cli("ask", QUESTION, "--json").out)
    assert answer.keys() == {"answer", "sources", "extractive", "error"}
    assert answer["answer"].startswith(INTRO)
    assert answer["sources"][0]["url"] == f"{indexed.url}/gauge-1"
    assert answer["sources"][0]["number"] == 1
    assert (answer["extractive"], answer["error"]) == (True, None)


def test_the_model_s_answer_is_shown(cli, indexed: LocalSite, llm: FakeLLM):
    """With a language model: its text and only the sources that it cited."""
    llm.reply = lambda _: Reply("Pressure, in boiler 1 [1].")
    done = cli("ask", QUESTION, **model_at(llm))
    assert done.out.startswith("Pressure, in boiler 1 [1].")
    assert done.out.count("](http") == 1
    assert json.loads(cli("ask", QUESTION, "--json", **model_at(llm)).out)["extractive"] is False


def test_an_answer_that_breaks_off_ends_with_1(cli, indexed: LocalSite, llm: FakeLLM):
    """The text so far is printed, then an error. With --json, nothing was printed yet, so the pages are quoted."""
    llm.reply = lambda body: Reply(" ".join(f"word{n}" for n in range(100)), dies_after=60)
    done = cli("ask", QUESTION, **model_at(llm))
    assert done.code == 1
    assert "word20" in done.out
    assert "Sources" not in done.out
    assert "docs-assistant: the answer broke off: " in done.err
    whole = cli("ask", QUESTION, "--json", **model_at(llm))
    assert whole.code == 0
    assert json.loads(whole.out)["extractive"] is True


def test_an_answer_is_printed_as_it_is_written(cli, indexed: LocalSite, llm: FakeLLM, capsys, monkeypatch):
    """The first sentences are printed before the last ones arrive."""
    shown: list[str] = []

    async def watched(self: Assistant, request: Any):
        async for event in original(self, request):
            shown.append(capsys.readouterr().out)
            yield event

    original = Assistant.answer
    monkeypatch.setattr(Assistant, "answer", watched)
    llm.reply = lambda _: Reply(" ".join(f"Word{n} is a word." for n in range(20)), piece_delay=0.005)
    cli("ask", QUESTION, **model_at(llm))
    assert sum(bool(text) for text in shown) > 10


def test_the_trace_goes_to_standard_error(cli, indexed: LocalSite):
    """The answer on standard output stays the same; with --json, the trace is a field."""
    done = cli("ask", QUESTION, "--trace")
    assert done.out == cli("ask", QUESTION).out
    trace = traced(done.err)
    steps = [step["step"] for step in trace["steps"]]
    assert {"detect", "first_search", "retrieve", "relevance", "synthesize", "cite"} <= set(steps)
    assert trace["fusion"]["fusion"] == "weighted"
    assert trace["evidence"] == {"found": 1.0, "needed": 0.32, "enough": True}
    (link,) = trace["links"]
    assert (link["url"], link["passage"]) == (f"{indexed.url}/gauge-1", 1)
    assert link["reason"]
    assert "removed" not in trace
    answer = json.loads(cli("ask", QUESTION, "--trace", "--json").out)
    assert answer["trace"]["steps"][-1]["step"] == "cite"
    assert answer["trace"]["links"][0]["url"] == answer["sources"][0]["url"]


def test_the_trace_shows_prompts_and_replies(cli, indexed: LocalSite, llm: FakeLLM):
    """Each message as it was sent."""
    llm.reply = lambda _: Reply("Pressure, in boiler 1 [1].")
    done = cli("ask", QUESTION, "--trace", **model_at(llm))
    (shown,) = next(step["calls"] for step in traced(done.err)["steps"] if step["step"] == "synthesize")
    assert shown["reply"].strip() == "Pressure, in boiler 1 [1]."
    steps = json.loads(cli("ask", QUESTION, "--trace", "--json", **model_at(llm)).out)["trace"]["steps"]
    (call,) = next(step["calls"] for step in steps if step["step"] == "synthesize")
    assert call["messages"] == llm.calls[-1]["messages"] == shown["messages"]
