"""`docs-assistant run`: starts the service and indexes a site, for a first try."""

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
from app.cli.address import base_url, index_state, serving_line
from app.cli.ingest import IngestOptions, index, live_embedder
from app.cli.options import Commands, opened_store
from app.cli.output import print_error
from app.core.errors import AssistantError, SettingsError
from app.core.language import load_language
from app.core.settings import Settings

START_SECONDS = 60.0
NICE = 10
EXAMPLE = "How do I index another site?"


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "run",
        help="start the service, index a site, and print the next steps",
        description="Starts the service, indexes the sites (default: this product's own documentation) and keeps serving.",
    )
    parser.add_argument(
        "site",
        nargs="*",
        help="address of a sitemap or a site, or a TOML file of sources (default: DOCS_SITES and DOCS_SOURCES, else this product's docs)",
    )
    parser.add_argument("--host", help="address to listen on (DOCS_HOST)")
    parser.add_argument("--port", type=int, help="port to listen on (DOCS_PORT)")
    parser.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until stopped. Returns 1 if there is nothing to answer from; raises `SettingsError` if the service ends."""
    from ingestion.sources import configured

    settings = Settings.load(**serve.overrides(arguments))
    settings.check_open()
    logs.configure(settings)
    received = _forward_signals()
    try:
        return _serve_and_index(settings, arguments.site or configured(settings), base_url(settings))
    except KeyboardInterrupt:
        return 128 + (received or [signal.SIGINT])[0]


def _serve_and_index(settings: Settings, sites: Sequence[str], base: str) -> int:
    with _service(settings, base) as service:
        print(serving_line(settings, asyncio.run(_state(settings))), file=sys.stderr)
        if not _index(settings, sites or [f"{base}/docs/sitemap.xml"], base):
            return 1
        if service.poll() is None:
            print(next_steps(settings, base), flush=True)
            _index_better(settings, sites or [f"{base}/docs/sitemap.xml"])
        code = service.wait()
    raise SettingsError(f"The service ended by itself with code {code}: see the lines above, and start it again.")


async def _state(settings: Settings) -> str:
    async with opened_store(settings) as store:
        return await index_state(store)


def _index(settings: Settings, sites: Sequence[str], base: str) -> bool:
    """Index the sites. False if that failed and there is no earlier index."""
    try:
        print(asyncio.run(index(settings, sites, IngestOptions(only=True))).text, file=sys.stderr)
    except AssistantError as error:
        print_error(error)
        if not _is_healthy(base):
            return False
        print("Going on with what was indexed before.", file=sys.stderr)
    return True


def _index_better(settings: Settings, sites: Sequence[str]) -> None:
    """Index the sites again with the better vectors of the package, if none are configured and the index has static ones.

    The service answers from the static ones meanwhile. What a killed run computed is used by the next.
    """
    from app.models.default import BETTER

    try:
        if not asyncio.run(_is_static(settings)):
            return
        print(
            f"Indexing once more with {BETTER}, which finds more; answers come from the static vectors until then.",
            file=sys.stderr,
        )
        os.nice(NICE)  # answers are more urgent
        report = asyncio.run(
            index(settings.model_copy(update={"embedding_model": BETTER}), sites, IngestOptions(only=True))
        )
    except AssistantError as error:
        print_error(error)
        print("Going on with the static vectors.", file=sys.stderr)
    else:
        print(report.text, file=sys.stderr)


async def _is_static(settings: Settings) -> bool:
    """True if no embedder is configured, the live index has static vectors, and better ones can be computed here."""
    from app.models import open_embedder
    from app.models.default import DefaultEmbedder

    embedder = open_embedder(settings)
    if not isinstance(embedder, DefaultEmbedder) or not embedder.others:
        return False
    async with opened_store(settings) as store:
        return await live_embedder(store) == embedder.name


@contextmanager
def _service(settings: Settings, base: str) -> Iterator[subprocess.Popen[bytes]]:
    """Context of the service in a separate process, so that indexing doesn't slow its answers."""
    serve.bind(settings.host, settings.port).close()  # report a port in use before anything else
    # -P: ignore a folder called app in the working directory
    command = [sys.executable, "-P", "-m", "app.cli", "serve", "--until-stdin-ends"]
    command += ["--host", settings.host, "--port", str(settings.port)]
    # log lines of the service would break the progress bar
    quiet = {} if "log_level" in settings.model_fields_set else {"DOCS_LOG_LEVEL": "warning"}
    # the pipe closes when this program ends, even if it is killed
    service = subprocess.Popen(command, env={**os.environ, **quiet}, stdin=subprocess.PIPE)  # noqa: S603  # our own
    try:
        _wait_until_ready(service, base)
        yield service
    finally:
        service.terminate()
        try:
            service.wait(timeout=15)
        except subprocess.TimeoutExpired:
            service.kill()


def _forward_signals() -> list[int]:
    """Make SIGTERM and SIGHUP act like Ctrl-C, so that asyncio cleans up. Received signals are added to the list."""
    received: list[int] = []

    def interrupt(number: int, _: object) -> None:
        received.append(number)
        signal.raise_signal(signal.SIGINT)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it for background processes
    return received


def _wait_until_ready(service: subprocess.Popen[bytes], base: str) -> None:
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


def _is_healthy(base: str) -> bool:
    try:
        return httpx.get(f"{base}/health", timeout=10, trust_env=False).is_success
    except httpx.TransportError:  # the service is gone
        return False


def next_steps(settings: Settings, base: str) -> str:
    """The next steps for a new user, ready to copy."""
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
