"""Vectors that say the subject of a question in any language, for questions that were logged with others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.gaps.clusters import Failed
from app.models import e5
from app.models.static import NAME as STATIC

MOST = 1_000
"""Questions that get new vectors, which takes 7 to 10 ms of CPU each; with more, all keep their own."""


def in_one_space(failed: Sequence[Failed]) -> list[Failed]:
    """The questions, with vectors of multilingual-e5-small in the place of static ones, which hardly know Czech.

    They stay as they are where that model can't run.
    """
    rows = [at for at, one in enumerate(failed) if one.row.embedder == STATIC and one.row.text]
    found = list(failed)
    if not rows or len(rows) > MOST or e5.unusable():
        return found
    vectors = e5.E5Engine().embed([failed[at].row.text for at in rows], question=True).astype(np.float16)
    for at, vector in zip(rows, vectors, strict=True):
        found[at] = replace(failed[at], row=replace(failed[at].row, vector=vector.tobytes(), embedder=e5.EMBEDDER))
    return found
