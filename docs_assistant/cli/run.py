"""`docs-assistant run`: starts the service and indexes a site, for a first try."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import click
import httpx

from app.core import logs
from app.core.errors import AssistantError, SettingsError
from app.core.language import load_language
from app.core.settings import Settings
from app.core.settings_types import HASHED
from docs_assistant.cli import serve
from docs_assistant.cli.ingest import index, keep_begun, plan
from docs_assistant.cli.serve import base_url, index_state, serving_line
from docs_assistant.cli.shared import host_option, opened_store, port_option, print_error, site_argument

if TYPE_CHECKING:
    from ingestion.sources import Source

START_SECONDS = 60.0
EXAMPLE = "How do I index another site?"


@click.command
@site_argument
@click.option("--replace", is_flag=True, help="remove the pages of all other sites from the index, once these are read")
@host_option
@port_option
def run(site: tuple[str, ...], replace: bool, host: str | None, port: int | None) -> int:
    """Starts the service, indexes the sites and keeps serving. Other sites in the index stay there.

    Without a site, what is indexed is read again; an empty index gets this product's own documentation. The exit code is 1 if
    there is nothing to answer from.
    """
    from ingestion.sources import configured

    settings = Settings.load(**serve.given(host=host, port=port))
    settings.check_open()
    logs.configure(settings)
    named = site or configured(settings)
    if replace and not named:
        raise SettingsError("--replace needs the sites that replace the others: name them, or set DOCS_SITES.")
    received = _forward_signals()
    try:
        return _serve_and_index(settings, named, replaces=replace)
    except KeyboardInterrupt:
        if not received:
            raise
        return 128 + received[0]


def _serve_and_index(settings: Settings, named: Sequence[str], *, replaces: bool) -> int:
    base = base_url(settings)
    with _service(settings, base) as service:
        print(serving_line(settings, asyncio.run(_state(settings))), file=sys.stderr)
        sites = _index(settings, named, base, replaces=replaces)
        if sites is None and not _is_healthy(base):
            return 1
        if sites is None:
            print("Going on with what was indexed before.", file=sys.stderr)
        if service.poll() is None:
            own = _own(sites or ())
            print(next_steps(settings, base, _question(settings, base), own=own), flush=True)
        code = service.wait()
    raise SettingsError(f"The service ended by itself with code {code}: see the lines above, and start it again.")


async def _state(settings: Settings) -> str:
    async with opened_store(settings) as store:
        return await index_state(store, fills=True)


def _index(settings: Settings, named: Sequence[str], base: str, *, replaces: bool) -> Sequence[Source] | None:
    """Index the named sites, or those of the index, and return them. None if that failed."""
    from app.index.run_history import RunOrigin
    from ingestion.options import RunOptions

    try:
        if named:
            asyncio.run(keep_begun(settings, named))
        sites, lines = asyncio.run(plan(settings, named, f"{base}/docs/sitemap.xml", replaces=replaces))
        print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
        if sites:
            options = RunOptions(replace=replaces, origin=RunOrigin("start"))
            print(asyncio.run(index(settings, sites, options)).text, file=sys.stderr)
    except AssistantError as error:
        print_error(error)
        sites = None
    with suppress(AssistantError):  # a site that fails is named again, or another
        asyncio.run(keep_begun(settings, ()))
    return sites


@contextmanager
def _service(settings: Settings, base: str) -> Iterator[subprocess.Popen[bytes]]:
    """Context of the service in a separate process, so that indexing doesn't slow its answers."""
    serve.bind(settings.host, settings.port).close()  # report a port in use before anything else
    # -P: ignore a folder called app in the working directory
    command = [sys.executable, "-P", "-m", "docs_assistant.cli", "serve", "--until-stdin-ends"]
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

    def interrupt(number: int, frame: FrameType | None) -> None:
        received.append(number)
        handler = signal.getsignal(signal.SIGINT)  # asyncio has its own
        if callable(handler):
            handler(signal.SIGINT, frame)

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


def next_steps(settings: Settings, base: str, question: str = "", *, own: bool = True) -> str:
    """The next steps for a new user, ready to copy; `own`: our own documentation is what is indexed."""
    example = load_language(settings.default_language, settings.prompts).texts.example_question or EXAMPLE
    question = question or (example if own else "What does this documentation cover?")
    key = " -H 'Authorization: Bearer YOUR-KEY'" if settings.api_keys or settings.keys else ""
    other = (
        "Index your site in place of this documentation" if own else "Add another site (REPLACE=1 removes the others)"
    )
    body = json.dumps(
        {"model": "docs-assistant", "messages": [{"role": "user", "content": question}]}, ensure_ascii=False
    )
    lines = [
        "",
        f"Ready. Ask in a browser: {base}/",
        f"{base}/v1 speaks the OpenAI chat API; the documentation is at {base}/docs/",
        "",
        "Ask with curl:",
        f"  curl -s {base}/v1/chat/completions{key} -H 'Content-Type: application/json' \\",
        f"    -d {shlex.quote(body)}",
        "",
        f"{other}:",
        '  make run SITEMAP="https://docs.example.org/sitemap.xml"',
        "",
    ]
    if not settings.llm_url and not settings.llm_class:
        lines += [
            "No language model is set, so answers quote the pages. With one:",
            "  DOCS_LLM_URL=http://host/v1 DOCS_LLM_MODEL=name make run",
            "",
        ]
    return "\n".join([*lines, "Ctrl-C stops it. make run starts it again with the same sites, and reads what changed."])


def _own(sites: Sequence[Source]) -> bool:
    from ingestion.sources import OwnDocumentation

    return bool(sites) and all(isinstance(site, OwnDocumentation) for site in sites)


def _question(settings: Settings, base: str) -> str:
    """The first question that the page suggests, too; empty if there is none."""
    plain = [key.get_secret_value() for key in settings.api_keys if not key.get_secret_value().startswith(HASHED)]
    key = plain[0] if plain else ""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    try:
        models = httpx.get(f"{base}/v1/models", headers=headers, timeout=10, trust_env=False).json()
        return str(models["data"][0]["info"]["meta"]["suggestion_prompts"][0]["content"])
    except (httpx.HTTPError, ValueError, LookupError):
        return ""
