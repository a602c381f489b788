"""`python -m tests.scripted`: serves a scripted model, a recorded one, or both."""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys
from pathlib import Path

import uvicorn

from app.core.errors import AssistantError
from app.core.prompts import load_prompts
from eval.questions.cases import load_cases
from tests.scripted import RecordedModel, ScriptedModel, load_record, load_script, missing_lines
from tests.scripted.server import create_app


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 after an interrupt, 2 for wrong input."""
    options = _options(arguments)
    try:
        model = _model(options)
        listener = socket.create_server((options.host, options.port))
    except (AssistantError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    host, port = listener.getsockname()[:2]
    sys.stdout.write(f"The {model.name} model listens on http://{host}:{port}/v1\n")
    sys.stdout.flush()
    server = uvicorn.Server(uvicorn.Config(create_app(model), log_level="warning"))
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has shut down by then and raises it again
        server.run(sockets=[listener])
    _report(model, options.missing)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.scripted",
        description="Serves a language model whose answers come from files over the OpenAI chat API.",
    )
    parser.add_argument("--cases", default="", metavar="FILE", help="the question set that the outputs belong to")
    parser.add_argument("--outputs", default="", metavar="FILE", help="answers of the scripted model, joined by id")
    parser.add_argument("--recorded", default="", metavar="FILE", help="answers to exactly the same messages")
    parser.add_argument("--missing", default="", metavar="FILE", help="at the end, write the prompts without an answer")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (%(default)s)")
    parser.add_argument("--languages", default="cs en", help="languages of the known prompts (%(default)s)")
    parser.add_argument("--prompts", default="", metavar="DIR", help="your own prompts, as DOCS_PROMPTS")
    options = parser.parse_args(arguments)
    if bool(options.cases) != bool(options.outputs):
        parser.error("--cases and --outputs need each other")
    if not (options.outputs or options.recorded):
        parser.error("give --cases with --outputs, or --recorded")
    return options


def _model(options: argparse.Namespace) -> ScriptedModel | RecordedModel:
    if not options.outputs:
        return RecordedModel(load_record(options.recorded))
    script = load_script(options.outputs, load_cases(options.cases))
    scripted = ScriptedModel(script, load_prompts(options.languages.split(), options.prompts))
    return RecordedModel(load_record(options.recorded), scripted) if options.recorded else scripted


def _report(model: ScriptedModel | RecordedModel, missing: str) -> None:
    if isinstance(model, RecordedModel):
        sys.stdout.write(f"{len(model.missing)} prompts had no answer.\n")
        if missing:
            Path(missing).write_text(missing_lines(model), encoding="utf-8")
        return
    asked = ", ".join(f"{kind} {n}" for kind, n in sorted(model.calls.items())) or "nothing"
    sys.stdout.write(f"Prompts: {asked}; {len(model.unknown)} unknown questions.\n")


if __name__ == "__main__":
    sys.exit(main())
