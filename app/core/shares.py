"""Shares of counts, with the interval in which the share of all such cases lies."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `of`; `share`, `low` and `high` are 0..1: the share with its 95 % interval (Wilson). All three are None of nothing."""

    count: int
    of: int
    share: float | None = None
    low: float | None = None
    high: float | None = None


def share(count: int, of: int) -> Share:
    """The share with its interval by Wilson, which holds for few cases and near 0 and 1, too."""
    if not of:
        return Share(count, of)
    z, p = NormalDist().inv_cdf(0.975), count / of
    middle, spread = p + z * z / (2 * of), z * sqrt(p * (1 - p) / of + (z / (2 * of)) ** 2)
    whole = 1 + z * z / of
    low, high = max(0.0, (middle - spread) / whole), min(1.0, (middle + spread) / whole)
    return Share(count, of, round(p, 4), round(low, 4), round(high, 4))
