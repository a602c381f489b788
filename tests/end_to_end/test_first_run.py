"""What a newcomer sees: `run`, then questions by curl, the official client and a plain HTTP client."""

import json
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.end_to_end.asking import INTRO, QUESTIONS, SOURCES, Answer, ask, assert_links_lead_somewhere
from tests.end_to_end.program import Program


def assert_answers(answer: Answer, language: str, url: str) -> None:
    """In this language, extractive and saying so, with sources of our documentation that can be opened."""
    assert answer.status == 200
    assert answer.text.startswith(INTRO[language])
    assert answer.extractive
    assert SOURCES[language] in answer.text
    assert answer.links[0].startswith(f"{url}/docs/{language}/")
    assert_links_lead_somewhere(answer.links)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("language", ["cs", "en"])
def test_a_question_is_answered_in_its_language_with_links_that_work(newcomer: Program, language: str, stream: bool):
    """Both languages, streamed and not: the note, the answer, and sections that exist."""
    answer = ask(newcomer.url, QUESTIONS[language], stream=stream)
    assert_answers(answer, language, newcomer.url)
    assert answer.done is stream
    assert f"{newcomer.url}/docs/{language}/start#another-site" in answer.links


@pytest.mark.parametrize("language", ["cs", "en"])
def test_a_stream_says_what_a_whole_answer_says(newcomer: Program, language: str):
    """The pieces joined are the text, begun by the role and ended by a finish reason and the usage."""
    streamed = ask(newcomer.url, QUESTIONS[language], stream=True, stream_options={"include_usage": True})
    assert streamed.text == ask(newcomer.url, QUESTIONS[language]).text
    assert streamed.events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert streamed.events[-2]["choices"][0]["finish_reason"] == "stop"
    assert streamed.events[-1]["choices"] == []
    assert set(streamed.events[-1]["usage"]) >= {"prompt_tokens", "completion_tokens", "total_tokens"}


def test_the_curl_line_that_is_printed_works(newcomer: Program):
    """What a newcomer copies from the terminal into the next one gives an answer."""
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    command = re.search(r"  curl .*\\\n.*$", newcomer.out, re.MULTILINE)
    assert command, newcomer.out
    shown = subprocess.run(["sh", "-c", command[0]], capture_output=True, text=True, timeout=30, check=True)
    message = json.loads(shown.stdout)["choices"][0]["message"]
    assert_answers(Answer(200, message["content"], {"extractive": True}), "en", newcomer.url)


def test_the_terminal_says_what_to_do_next_and_nothing_else(newcomer: Program):
    """Address, other sites, language model and how to stop; the report; no line for each request of our own crawler."""
    for text in (newcomer.url, "make run SITEMAP=", "DOCS_LLM_URL=", "Ctrl-C"):
        assert text in newcomer.out
    assert re.search(r"^\d+ new; .* texts embedded", newcomer.err, re.MULTILINE)
    assert "path=/docs/" not in newcomer.err
    assert "Traceback" not in newcomer.err


@pytest.mark.parametrize("path", ["/health/ready", "/health", "/metrics"])
def test_balancers_and_monitors_that_ask_at_once_all_see_a_healthy_service(newcomer: Program, path: str):
    """Ten connections, each of which asks again and again."""

    def asked(_: int) -> set[tuple[int, str]]:
        with httpx.Client(base_url=newcomer.url, timeout=60) as client:
            answers = [client.get(path) for _ in range(40 if path == "/health/ready" else 10)]
        told = [
            re.findall(r"^docs_assistant_index_ok.*", one.text, re.MULTILINE)[0]
            if path == "/metrics"
            else one.json()["status"]
            for one in answers
        ]
        return {(one.status_code, said) for one, said in zip(answers, told, strict=True)}

    with ThreadPoolExecutor(10) as threads:
        seen = set().union(*threads.map(asked, range(10)))
    assert seen == {(200, 'docs_assistant_index_ok{index="default"} 1.0' if path == "/metrics" else "ok")}


def test_health_tells_what_is_indexed(newcomer: Program):
    """Pages, which are those of the sitemap, chunks and languages of the live generation, and that answers are extractive."""
    response = httpx.get(f"{newcomer.url}/health")
    health = response.json()
    assert response.status_code == 200
    assert health["status"] == "ok"
    listed = re.findall("<loc>(.*?)</loc>", httpx.get(f"{newcomer.url}/docs/sitemap.xml").text)
    assert health["index"]["pages"] == len(listed) >= 12
    assert health["index"]["chunks"] > health["index"]["pages"]
    assert set(health["index"]["languages"]) == {"cs", "en"}
    assert "extractive" in health["model"]
