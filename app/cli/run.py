"""`docs-assistant run`: the service and its index in one go, for a first try."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import httpx

from app.cli import logs, serve
from app.cli.ingest import How, index
from app.cli.messages import tell
from app.cli.types import Commands
from app.core.errors import AssistantError, SettingsError
from app.core.language import load_language
from app.core.settings import Settings

START_SECONDS = 60.0
EXAMPLE = "How do I index another site?"


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "run",
        help="serve, index a site, and say what to do next",
        description="Starts the service, indexes the sites (default: this product's own documentation) and keeps serving.",
    )
    parser.add_argument(
        "site",
        nargs="*",
        help="address of a sitemap or a site, or TOML file of sources (default: DOCS_SITES and DOCS_SOURCES, else our own docs)",
    )
    parser.add_argument("--host", help="address to listen on (DOCS_HOST)")
    parser.add_argument("--port", type=int, help="port to listen on (DOCS_PORT)")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped; 1 when nothing could be indexed and nothing was before, or when the service ended."""
    from ingestion.sources import configured

    settings = Settings.load(**serve.overrides(arguments))
    logs.configure(settings)
    received = _interrupted_by()
    try:
        return _serve_and_index(settings, arguments.site or configured(settings), _base(settings))
    except KeyboardInterrupt:
        return 128 + (received or [signal.SIGINT])[0]


def _serve_and_index(settings: Settings, sites: Sequence[str], base: str) -> int:
    with _service(settings, base) as service:
        print(f"Serving on {base}", file=sys.stderr)
        if not _index(settings, sites or [f"{base}/docs/sitemap.xml"], base):
            return 1
        if service.poll() is None:
            print(next_steps(settings, base), flush=True)
        code = service.wait()
    raise SettingsError(f"The service ended by itself with code {code}: see the lines above, and start it again.")


def _index(settings: Settings, sites: Sequence[str], base: str) -> bool:
    """Index the sites; False when that failed and there is nothing older to answer from."""
    try:
        print(asyncio.run(index(settings, sites, How(only=True))).text, file=sys.stderr)
    except AssistantError as error:
        tell(error)
        if not _answers(base):
            return False
        print("Going on with what was indexed before.", file=sys.stderr)
    return True


def _base(settings: Settings) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(settings.host, settings.host)  # noqa: S104  # compared, not bound
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{settings.port}"


@contextmanager
def _service(settings: Settings, base: str) -> Iterator[subprocess.Popen[bytes]]:
    """The service as a process of its own: indexing doesn't slow its answers, and stopping stops both."""
    serve.bind(settings.host, settings.port).close()  # a taken port is told before anything else
    # -P: a folder called app in the working directory isn't ours
    command = [sys.executable, "-P", "-m", "app.cli", "serve", "--until-stdin-ends"]
    command += ["--host", settings.host, "--port", str(settings.port)]
    # a line for each page of our own site would tear the progress bar apart
    quiet = {} if "log_level" in settings.model_fields_set else {"DOCS_LOG_LEVEL": "warning"}
    # the pipe ends with this program, however that ends
    service = subprocess.Popen(command, env={**os.environ, **quiet}, stdin=subprocess.PIPE)  # noqa: S603  # our own
    try:
        _wait(service, base)
        yield service
    finally:
        service.terminate()
        try:
            service.wait(timeout=15)
        except subprocess.TimeoutExpired:
            service.kill()


def _interrupted_by() -> list[int]:
    """SIGTERM and SIGHUP act as Ctrl-C from now on, which asyncio cleans up after; they are put into the list."""
    received: list[int] = []

    def interrupt(number: int, _: object) -> None:
        received.append(number)
        signal.raise_signal(signal.SIGINT)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
    return received


def _wait(service: subprocess.Popen[bytes], base: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if service.poll() is not None:
            raise SettingsError(f"The service ended at its start with code {service.returncode}: see the lines above.")
        try:
            httpx.get(f"{base}/health", timeout=5, trust_env=False)
        except httpx.TransportError:  # not listening yet
            time.sleep(0.1)
        else:
            return
    raise SettingsError(f"The service did not answer on {base} within {START_SECONDS:g} s.")


def _answers(base: str) -> bool:
    try:
        return httpx.get(f"{base}/health", timeout=10, trust_env=False).is_success
    except httpx.TransportError:  # the service is gone
        return False


def next_steps(settings: Settings, base: str) -> str:
    """What a newcomer can do now, ready to be copied."""
    key = " -H 'Authorization: Bearer YOUR-KEY'" if settings.api_keys else ""
    question = load_language(settings.default_language, settings.prompts).example_question or EXAMPLE
    body = f'{{"model": "docs-assistant", "messages": [{{"role": "user", "content": "{question}"}}]}}'
    lines = [
        "",
        f"Ready: {base}/v1 speaks the OpenAI chat API; the documentation is at {base}/docs/",
        "",
        "Ask a question:",
        f"  curl -s {base}/v1/chat/completions{key} -H 'Content-Type: application/json' \\",
        f"    -d '{body}'",
        "",
        "Index another site instead:",
        '  make run SITEMAP="https://docs.example.org/sitemap.xml"',
        "",
    ]
    if not settings.llm_url and not settings.llm_class:
        lines += [
            "No language model is set, so answers quote the pages. With one:",
            "  DOCS_LLM_URL=http://host/v1 DOCS_LLM_MODEL=name make run",
            "",
        ]
    return "\n".join([*lines, "Ctrl-C stops it."])
