"""What a person is told of an error."""

from __future__ import annotations

import sys

from app.core.errors import AssistantError
from app.core.masking import masked


def tell(error: AssistantError) -> None:
    """One message on standard error, without the passwords of addresses in it."""
    print(f"docs-assistant: {masked(str(error))}", file=sys.stderr)
