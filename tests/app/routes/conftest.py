"""A service that answers from two pages."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.app.routes.indexed import Indexed, indexed


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Indexed]:
    """The service of `indexed`, as a newcomer has it."""
    async with indexed(tmp_path) as running:
        yield running
