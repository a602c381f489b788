"""Decisions that are made by numbers fitted to question sets, in place of conditions: logistic regressions of a few named features.

Their weights are in `fitted.toml`, which `docs-assistant eval fit` writes; each has the date, the sets, and its figures there.
"""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

FILE = "fitted.toml"
Decision = Literal["sure", "stated"]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A logistic regression: the weight of each feature, the `bias`, and the `least` probability that decides."""

    weights: Mapping[str, float]
    bias: float
    least: float

    def probability(self, features: Mapping[str, float]) -> float:
        """The probability, 0 to 1, of what was fitted. Raises `KeyError` if a feature is missing."""
        odds = self.bias + sum(weight * features[name] for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-odds))

    def decides(self, features: Mapping[str, float]) -> bool:
        """True if the probability is high enough."""
        return self.probability(features) >= self.least


@cache
def fitted(decision: Decision) -> Fitted:
    """The shipped model of this decision."""
    table = tomllib.loads(files("app").joinpath(FILE).read_text("utf-8"))[decision]
    return Fitted(table["weights"], table["bias"], table["least"])
