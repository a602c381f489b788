"""What docs/*/retriever.md shows is run as it stands there, against a service of ours and our own documentation."""

import re
import subprocess
import sys

import pytest

from tests.docs_assistant.cli.stored_index import stored
from tests.end_to_end.program import Program, environment, finished
from tests.end_to_end.test_documented_clients import languages
from tests.fake_llm import FakeLLM, Reply
from tests.test_docs import blocks, page

pytest.importorskip("llama_index.llms.openai_like", reason="needs the extra llamaindex", exc_type=ImportError)


END = "end of an example"


def shown(example: str, folder: object = None, **settings: str) -> str:
    """What the example prints; it leaves nothing open."""
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", example]
    done = subprocess.run(
        command, cwd=folder, env=environment(settings), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Unclosed" not in done.stderr
    return done.stdout


@pytest.mark.slow
@languages
def test_the_examples_over_http_and_on_a_directory_work(newcomer: Program, llm: FakeLLM, language: str):
    """Passages, an answer with sources, an agent with a scripted model, an evaluation, a search without LlamaIndex; the same passages from data/."""
    over_http = [
        example.replace("http://localhost:8000", newcomer.url).replace("http://localhost:11434/v1", llm.url)
        for example in blocks(page(language, "retriever"), "python")[:5]
    ]
    said = iter(
        ('Thought: I look.\nAction: docs\nAction Input: {"input": "API keys"}', "Thought: Done.\nAnswer: There.")
    )
    llm.reply = lambda _: Reply(next(said))
    program = f"\nprint({END!r})\n".join([*over_http, over_http[0].replace(newcomer.url, "data/")])
    retrieved, answered, agent, evaluated, plain, local = shown(program, newcomer.folder).split(END)
    link = re.compile(rf"{newcomer.url}/docs/{language}/\S+")
    assert len(link.findall(retrieved)) == 3
    assert link.findall(local) == link.findall(retrieved)
    assert f"1 {newcomer.url}/docs/{language}/" in answered
    assert agent.strip() == "There."
    assert f"{newcomer.url}/docs/" in str(llm.calls[-1]["messages"])
    assert "1.0" in evaluated
    assert link.findall(plain)[:3] == link.findall(retrieved)
    assert plain.count("\n") > 3


@pytest.mark.opensearch
@pytest.mark.slow
def test_the_examples_of_the_stock_store_and_of_the_reader_work(newcomer: Program, tmp_path):
    """On an index that `ingest` made, and the retriever of the table on the same index; the site is that of the service."""
    with stored("opensearch", tmp_path) as index:
        finished(tmp_path, "ingest", f"{newcomer.url}/docs/sitemap.xml", DOCS_STORE=index.address)
        for language in ("cs", "en"):
            retrieve, *_, read, stock = blocks(page(language, "retriever"), "python")
            assert len(re.findall(rf"{newcomer.url}/docs/\S+", shown(stock, DOCS_STORE=index.address))) == 3
            site = read.replace("https://docs.example.org/sitemap.xml", f"{newcomer.url}/docs/sitemap.xml")
            assert int(shown(f"{site}\nprint(len(nodes))")) > 100
            own = retrieve.replace("http://localhost:8000", index.address)
            assert len(re.findall(rf"{newcomer.url}/docs/{language}/\S+", shown(own))) == 3
