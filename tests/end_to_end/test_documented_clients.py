"""What docs/*/clients.md and docs/*/api.md show is run as it stands there, against a service of ours."""

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import httpx
import pytest
import yaml
from mcp import Client

from tests.end_to_end.asking import SOURCES
from tests.end_to_end.program import Program, environment, free_port, program, service
from tests.node import run_node
from tests.test_docs import LANGUAGES, ROOT, blocks, page, section

LOCAL = "http://localhost:8000"
CURLS = [
    (language, name, number)
    for language in LANGUAGES
    for name in ("clients", "api")
    for number, block in enumerate(blocks(page(language, name), "sh"))
    if block.startswith("curl")
]
languages = pytest.mark.parametrize("language", LANGUAGES)


def at(program: Program, text: str) -> str:
    """The text with the service's own address."""
    assert LOCAL in text
    return text.replace(LOCAL, program.url)


def shell(command: str) -> str:
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def answered(program: Program) -> str:
    """The id of a new answer."""
    body = {"model": "docs-assistant", "messages": [{"role": "user", "content": "What is a generation?"}]}
    response = httpx.post(f"{program.url}/v1/chat/completions", json=body, timeout=60, trust_env=False)
    return str(response.json()["id"])


@pytest.mark.parametrize(("language", "name", "number"), CURLS)
def test_the_curl_lines_work(newcomer: Program, language: str, name: str, number: int):
    """A whole answer, a stream with its usage, and passages."""
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    command = blocks(page(language, name), "sh")[number]
    if "/feedback" in command:
        command = command.replace("chatcmpl-123", answered(newcomer))
    shown = shell(at(newcomer, command))
    if "/feedback" in command:
        assert json.loads(shown)["rating"] == "down"
    elif "/v1/search" in command:
        passages = json.loads(shown)["data"]
        assert 3 <= len(passages) <= int(re.findall(r"limit\W+(\d)", command)[0])
        assert {passage["language"] for passage in passages} == {language}
    elif '"stream": true' in command:
        assert shown.endswith("data: [DONE]\n\n")
        assert '"total_tokens"' in shown
    else:
        assert SOURCES[language] in json.loads(shown)["choices"][0]["message"]["content"]


def test_there_are_curl_lines():
    """The test above would pass over nothing."""
    assert len(CURLS) == 5 * len(LANGUAGES)


@pytest.mark.slow
@languages
def test_the_python_examples_work(newcomer: Program, language: str):
    """The chat API whole and streamed, and the Responses API; what is to be installed is what was used."""
    text = page(language, "clients") + page(language, "api")
    assert "pip install openai\n" in blocks(text, "sh")
    assert version("openai")
    before = ""
    for example in blocks(text, "python"):
        if LOCAL in example:
            before = example  # others go on with its client
        script = at(newcomer, example if LOCAL in example else f"{before}\n{example}")
        command = [sys.executable, "-W", "error", "-c", script]
        shown = subprocess.run(command, env=environment({}), capture_output=True, text=True, timeout=60, check=False)
        assert shown.returncode == 0, shown.stderr
        if LOCAL in example:
            assert shown.stdout.count(SOURCES[language]) == example.count(".create(")


@languages
def test_the_javascript_example_works(newcomer: Program, language: str, tmp_path: Path):
    """The answer, as it is written to the terminal."""
    (example,) = blocks(page(language, "clients"), "js")
    assert SOURCES[language] in run_node(at(newcomer, example), tmp_path)


@languages
def test_the_error_shown_is_the_real_one(newcomer: Program, language: str):
    """Word for word."""
    (shown,) = blocks(section(page(language, "clients"), "errors"), "json")
    body = {"model": "gpt-4", "messages": [{"role": "user", "content": "x"}]}
    response = httpx.post(f"{newcomer.url}/v1/chat/completions", json=body)
    assert response.status_code == 404
    assert response.json() == json.loads(shown)


@pytest.mark.slow
@languages
async def test_the_mcp_server_is_where_the_example_says(indexed: Path, language: str):
    """With the key in the header, as the client would send it."""
    (example,) = blocks(page(language, "api"), "json")
    with service(indexed, "serve", DOCS_API_KEYS="KEY-OF-THE-CLIENT") as running:
        server = json.loads(at(running, example))["mcpServers"]["docs"]
        assert server["type"] == "http"
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert httpx.post(server["url"], json=body).status_code == 401
        headers = {
            **server["headers"],
            "Authorization": "Bearer KEY-OF-THE-CLIENT",
            "accept": "application/json, text/event-stream",
        }
        assert httpx.post(server["url"], json=body, headers=headers).status_code != 401


async def test_a_coding_agent_finds_and_reads(newcomer: Program):
    """Both tools of /mcp, over our own documentation."""
    async with Client(f"{newcomer.url}/mcp") as client:
        found = await client.call_tool("search_docs", {"query": "How do I index another site?"})
        (first, *_) = found.structured_content["data"]
        read = await client.call_tool("read_page", {"url": first["url"]})
    assert read.structured_content["title"] == first["title"]
    assert max(first["text"].splitlines(), key=len) in read.content[0].text


@languages
@pytest.mark.parametrize("anchor", ["librechat", "continue"])
def test_settings_of_other_clients_name_what_is_served(newcomer: Program, language: str, anchor: str):
    """The address ends where the API begins, and the model is there."""
    (example,) = blocks(section(page(language, "clients"), anchor), "yaml")
    settings = yaml.safe_load(example.replace("host.docker.internal", "localhost").replace(LOCAL, newcomer.url))
    if anchor == "librechat":
        (endpoint,) = settings["endpoints"]["custom"]
        base, models = endpoint["baseURL"], endpoint["models"]["default"]
    else:
        (endpoint,) = settings["models"]
        base, models = endpoint["apiBase"], [endpoint["model"]]
    served = httpx.get(f"{base}/models", headers={"Authorization": f"Bearer {endpoint['apiKey']}"}).json()["data"]
    assert set(models) <= {model["id"] for model in served}


@pytest.mark.slow
@languages
def test_the_service_for_open_webui_starts_as_shown(indexed: Path, language: str):
    """Its key is the one that Open WebUI is given; `make test-openwebui` starts Open WebUI itself."""
    text = section(page(language, "clients"), "open-webui")
    (line,) = re.findall(r"`(DOCS_HOST=\S+ DOCS_API_KEYS=\S+) docs-assistant serve`", text)
    key = re.search(r"-e OPENAI_API_KEY=(\S+)", text)
    assert key
    settings = dict(setting.split("=") for setting in line.split()) | {"DOCS_PORT": str(free_port())}
    with program(indexed, "serve", **settings) as running:
        running.url = f"http://127.0.0.1:{settings['DOCS_PORT']}"
        running.wait_until_served()
        assert httpx.get(f"{running.url}/v1/models").status_code == 401
        headers = {"Authorization": f"Bearer {key[1]}"}
        assert httpx.get(f"{running.url}/v1/models", headers=headers).status_code == 200
        assert httpx.get(f"{running.url}/health").status_code == 200


def test_open_webui_is_set_up_alike_everywhere():
    """Both languages and the compose file have the same variables with the same values, but for address, key and secret."""
    given = []
    for language in LANGUAGES:
        text = section(page(language, "clients"), "open-webui")
        found = re.findall(r"-e ([A-Z_]+)=('[^']*'|\S+)", text)
        given.append({name: value.strip("'") for name, value in found})
    compose = yaml.safe_load((ROOT / "deploy/compose.open-webui.yaml").read_text("utf-8"))
    given.append(compose["services"]["open-webui"]["environment"])
    assert given[-1].pop("WEBUI_SECRET_KEY") == "${OPEN_WEBUI_SECRET:-}"
    assert compose["services"]["open-webui"]["image"].endswith(":v0.12.4")
    for settings in given:
        assert settings.pop("OPENAI_API_BASE_URL").endswith(":8000/v1")
        assert settings.pop("OPENAI_API_KEY")
    assert all(settings == given[0] for settings in given)
    assert json.loads(given[0]["OPENAI_API_CONFIGS"])["0"]["headers"]["X-OWUI-Task"] == "{{TASK}}"
