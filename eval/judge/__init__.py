"""A language model as judge: its criteria, and a loop that loses no row and repeats no paid call."""

from __future__ import annotations

from eval.cache import Cache
from eval.judge.criteria import Criterion, criteria
from eval.judge.loop import Judge, Judgement, Pace, Task

__all__ = ["Cache", "Criterion", "Judge", "Judgement", "Pace", "Task", "criteria"]
