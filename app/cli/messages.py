"""What a person is told of an error."""

from __future__ import annotations

import re
import sys

from app.core.errors import AssistantError

_PASSWORD = re.compile(r"(?<=://)(?P<user>[^/\s:@]*):(?!password@)[^/\s@]+@")  # but not in our own hints


def tell(error: AssistantError) -> None:
    """One message on standard error, without the passwords of addresses in it."""
    text = _PASSWORD.sub(r"\g<user>:…@", str(error))
    print(f"docs-assistant: {text}", file=sys.stderr)
