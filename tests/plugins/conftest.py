"""Fixtures of the ingestion, for converters and sources."""

from tests.app.conftest import *  # noqa: F403
from tests.ingestion.conftest import *  # noqa: F403
