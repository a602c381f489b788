"""`docs-assistant serve`: runs the HTTP service, and says where it can be reached, by whom, and what it answers from."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.core import logs
from app.core.errors import AssistantError, NoIndex, SettingsError
from app.core.log_message import LogMessage
from app.core.settings import Settings, is_loopback
from docs_assistant.cli import tracing
from docs_assistant.cli.shared import host_option, port_option

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants
    from app.index import Store
    from app.models import Embedder

log = logging.getLogger("docs_assistant.cli.serve")

BACKLOG = 8192
"""Length of the accept queue, limited by net.core.somaxconn. A client that finds it full tries again after 1 s."""
IDLE = 120
"""Seconds that an idle connection stays open: longer than in clients and proxies (httpx 5, aiohttp 15, nginx and AWS 60,
Go 90). The client must close first, or its next request may meet a closing connection."""
GARBAGE = 20_000
"""New objects between two searches for cycles; Python's default is 700, less than one search of the index returns."""
OLDER_GARBAGE = (5, 2)
"""Searches after which older objects are searched, too, and then all: with Python's (10, 10), which is after 2.4 million new
objects, what errors leave in cycles took hundreds of megabytes; this is after 360,000.
"""
SHORT_DRAIN = 1.0
"""Seconds for answers in progress when `run` ends: a person waits for it, who has pressed Ctrl-C."""
ALL = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  # compared, not bound
HOUR = 3600
INGEST = (sys.executable, "-P", "-m", "docs_assistant.cli", "ingest", "--json")


@click.command
@host_option
@port_option
@click.option("--until-stdin-ends", is_flag=True, hidden=True)
def serve(host: str | None, port: int | None, until_stdin_ends: bool) -> int:
    """Serves the OpenAI chat API and the documentation site until it is stopped."""
    settings, origins = Settings.load_with_origins(**given(host=host, port=port))
    settings.check_open()
    logs.configure(settings)
    listener = bind(settings.host, settings.port)
    if until_stdin_ends:
        threading.Thread(target=_stop_at_the_end_of_stdin, daemon=True).start()

    import uvicorn

    from app.assistants.assembly import build
    from app.conversations.opening import open_conversations
    from app.http.connections import Connections, connection_limits
    from app.http.protocol import BoundedProtocol
    from app.index import directory_of
    from app.routes.server import create_app
    from docs_assistant.cli.server import DRAIN_TIMEOUT, Server

    if settings.rerank_url:
        asyncio.run(_prove(settings))
    tracing.start()
    assistants = build(settings)
    log_left_out(assistants)
    conversations = open_conversations(settings, directory_of(settings) or Path("data"))
    app = create_app(assistants, settings, ingest_command=INGEST, origins=origins, conversations=conversations)
    config = uvicorn.Config(
        app,
        http=partial(BoundedProtocol, Connections(connection_limits())),  # type: ignore[arg-type]  # any callable that makes a protocol
        ws="none",
        backlog=BACKLOG,
        proxy_headers=False,  # app.http.door reads them
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE,
    )
    # objects from startup live forever; scanning them in each garbage collection took a sixth of an answer's CPU
    gc.collect()
    gc.freeze()
    # a search returns thousands of lists that live for milliseconds; looking for cycles in them took another 7 %
    gc.set_threshold(GARBAGE, *OLDER_GARBAGE)

    async def announce() -> None:
        index = next(iter(assistants.used().values()))
        log.info("%s", serving_line(settings, await index_state(index.store, index.embedder)))

    Server(app, config, SHORT_DRAIN if until_stdin_ends else DRAIN_TIMEOUT, announce).run(sockets=[listener])
    return 0


def given(**options: Any) -> dict[str, Any]:
    """The settings that the command line overrides: those options that are given."""
    return {name: value for name, value in options.items() if value is not None}


def log_left_out(assistants: Assistants) -> None:
    """Log steps that are left out, limits that are too low for all steps, and the exam of the model."""
    if model := assistants.model:
        exam = assistants.exams.get(model.name)
        said = exam.said if exam else "none yet, run `docs-assistant check --exam`"
        log.info(LogMessage("language model", name=model.name, exam=said))
    for assistant in assistants.by_id.values():
        plans = assistant.plans
        if plans.left_out and not assistant.persona:
            steps = ",".join(plans.left_out)
            why = "its exam says so" if assistants.model else "no language model"
            log.info(LogMessage(f"steps left out, {why}", assistant=assistant.id, steps=steps))
        if plans.helper_call_warning and not assistant.persona:
            log.warning(LogMessage(plans.helper_call_warning, assistant=assistant.id))


async def _prove(settings: Settings) -> None:
    """Check the reranker, with connections that are closed afterwards: they belong to this event loop."""
    from app.assistants.assembly import opened

    async with opened(settings):
        pass


def _stop_at_the_end_of_stdin() -> None:
    """Stop when standard input closes, that is, when the program that started this one ends or is killed."""
    while os.read(0, 64):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def bind(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `SettingsError` if the address isn't available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(BACKLOG)  # from here on, no other program can use the address
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise SettingsError(
                f"Port {port} on {host} is taken by another program. Stop it, or choose another port: DOCS_PORT={port + 1}"
            ) from error
        if isinstance(error, PermissionError):
            raise SettingsError(
                f"Only root may use port {port}, like all ports below 1024. Choose another (DOCS_PORT=8000), and put a reverse proxy in front."
            ) from error
        raise SettingsError(
            f"Can't listen on {host}:{port}: {error.strerror or error}. DOCS_HOST must be an address of this machine, such as 127.0.0.1."
        ) from error
    return listener


def base_url(settings: Settings) -> str:
    """The address of the service, as seen from this machine."""
    host = ALL.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{settings.port}"


def serving_line(settings: Settings, index: str) -> str:
    """Address, who may use it, and the state of the index."""
    keys = f"{n} API key{'s' if n > 1 else ''}" if (n := len(settings.api_keys)) else "no key needed"
    if settings.keys:
        keys = f"keys of {settings.keys}"
    if is_loopback(settings.host):
        place = "this machine only"
    else:
        place = "every network of this machine" if settings.host in ALL else f"reachable at {settings.host}"
    return f"Serving on {base_url(settings)} ({place}, {keys}); {index}"


async def index_state(store: Store, embedder: Embedder | None = None, *, fills: bool = False) -> str:
    """Pages and age of the live generation, or why nothing can be answered from it. `fills`: the caller fills an empty one."""
    from app.assistants.health import embedder_mismatch

    try:
        info = (await store.live()).info
    except NoIndex as error:
        return "the index is empty so far" if fills else f"index: {error}"
    except AssistantError as error:
        return f"index: {error}"
    if embedder and (problem := embedder_mismatch(info, embedder)):
        return f"index: {problem}"
    hours = (info.age or 0.0) / HOUR
    age = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} h" if hours >= 1 else f"{hours * 60:.0f} min"
    return f"index: {info.pages} pages, built {age} ago"
