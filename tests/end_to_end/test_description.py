"""What /openapi.json says is true: requests made up from it, in a short run (`make fuzz` is the long one)."""

import re
from pathlib import Path

import pytest

from bench.fuzz import KEY, fuzz
from tests.end_to_end.program import service

pytestmark = pytest.mark.slow


def test_answers_to_made_up_requests_are_as_described(indexed: Path, tmp_path: Path):
    """No answer of another shape or status than described, no 500, no wrong request accepted."""
    with service(indexed, "serve", DOCS_API_KEYS=KEY, DOCS_ADMIN_KEYS=KEY) as running:
        done = fuzz(running.url, 3, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) generated", done.stdout)[1]) > 200
