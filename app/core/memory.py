"""The memory of this process, for logs, health and reports."""

from __future__ import annotations

import sys

_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in the unit of `ru_maxrss`."""


def peak_mb() -> int:
    """The most memory that this process had so far, in megabytes; 0 on Windows, which has no such figure."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT // 1_000_000
