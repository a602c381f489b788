"""Requests made up from our own /openapi.json, by schemathesis: `make fuzz`, or `python -m bench.fuzz 300` for each route.

A service with our documentation indexed is started for it. Every answer must be as described, wrong
requests must be refused, and nothing may be a 500. Exits with the program's own code: 0 is no failure.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.end_to_end.program import service

KEY = "key-of-the-fuzzer"
HOOKS = '''"""Names of models are made real, else every case would end as a 404."""

import schemathesis


@schemathesis.hook
def map_body(context, body):
    if isinstance(body, dict) and isinstance(body.get("model"), str):
        body["model"] = "docs-assistant"
    return body
'''
# a wrong request may also be too long for its route
CONFIG = """[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "413", "414", "422", "428", "5xx"]
"""
# A request of the right form may lack a question, or name a site that is not configured: a 400 is right.
# What a run of ingestion is called can't be guessed, so its route is left with 404s.
# After ten wrong keys, an address gets 429; that every route needs its key is tested in tests/app/http/test_keys.py.
EXCLUDED = "positive_data_acceptance,ignored_auth"


def fuzz(url: str, cases: int, folder: Path) -> subprocess.CompletedProcess[str]:
    """The program's run against this service, which wants `KEY`; `cases` is the most for one route and phase."""
    (folder / "model_names.py").write_text(HOOKS, encoding="utf-8")
    (folder / "schemathesis.toml").write_text(CONFIG, encoding="utf-8")
    options = ["--phases", "examples,coverage,fuzzing", "--exclude-checks", EXCLUDED, "--continue-on-failure"]
    options += ["--no-color", "--seed", "1", "-n", str(cases), "-H", f"Authorization: Bearer {KEY}"]
    return subprocess.run(
        [str(Path(sys.executable).parent / "schemathesis"), "run", f"{url}/openapi.json", *options],
        cwd=folder,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "model_names", "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def main() -> int:
    """Start a service, run, print what the program printed."""
    cases = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with service(folder, "run", DOCS_API_KEYS=KEY, DOCS_ADMIN_KEYS=KEY) as running:
            done = fuzz(running.url, cases, folder)
    print(done.stdout, done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
