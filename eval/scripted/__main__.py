"""`python -m eval.scripted --cases FILE --outputs FILE`: serves the scripted model until it is interrupted."""

from __future__ import annotations

import argparse
import contextlib
import socket
import sys

import uvicorn

from app.core.errors import AssistantError
from app.core.prompts import load_prompts
from eval.cases import load_cases
from eval.scripted import ScriptedModel, load_script
from eval.scripted.server import create_app


def main(arguments: list[str] | None = None) -> int:
    """Exit code 0 after an interrupt, 2 for wrong input."""
    parser = argparse.ArgumentParser(prog="python -m eval.scripted", description="A scripted OpenAI-compatible model.")
    parser.add_argument("--cases", required=True, metavar="FILE", help="the question set")
    parser.add_argument("--outputs", required=True, metavar="FILE", help="what the model says, joined by id")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (%(default)s)")
    parser.add_argument("--languages", default="cs en", help="languages whose prompts it knows (%(default)s)")
    parser.add_argument("--prompts", default="", metavar="DIR", help="your own prompts, as DOCS_PROMPTS")
    options = parser.parse_args(arguments)
    try:
        script = load_script(options.outputs, load_cases(options.cases))
        model = ScriptedModel(script, load_prompts(options.languages.split(), options.prompts))
        listener = socket.create_server((options.host, options.port))
    except (AssistantError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    host, port = listener.getsockname()[:2]
    sys.stdout.write(f"The scripted model knows {len(script)} questions and listens on http://{host}:{port}/v1\n")
    sys.stdout.flush()
    server = uvicorn.Server(uvicorn.Config(create_app(model), log_level="warning"))
    with contextlib.suppress(KeyboardInterrupt):  # uvicorn has shut down by then and raises it again
        server.run(sockets=[listener])
    asked = ", ".join(f"{kind} {n}" for kind, n in sorted(model.calls.items())) or "nothing"
    sys.stdout.write(f"It was asked: {asked}; {len(model.unknown)} questions it didn't know.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
