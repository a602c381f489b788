"""Clusters by average linkage: the two most similar clusters are joined until no two are similar enough."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


def average_linkage(similarity: Matrix, least: float) -> list[list[int]]:
    """The clusters as rows of the symmetric matrix, which is overwritten; the same for the same matrix.

    The similarity of two clusters is the mean of those of their members. Of equal ones, the first are joined. It takes
    the square of the number of rows in time.
    """
    count = len(similarity)
    if not count:
        return []
    members = [[row] for row in range(count)]
    np.fill_diagonal(similarity, -np.inf)
    nearest = similarity.argmax(axis=1)
    best = similarity[np.arange(count), nearest]
    while (score := best[row := int(best.argmax())]) >= least and np.isfinite(score):
        one, other = sorted((row, int(nearest[row])))
        a, b = len(members[one]), len(members[other])
        joined = (a * similarity[one] + b * similarity[other]) / (a + b)
        joined[one] = -np.inf
        similarity[one, :] = similarity[:, one] = joined
        similarity[other, :] = similarity[:, other] = -np.inf
        members[one] += members[other]
        members[other] = []
        best[other] = -np.inf
        stale = np.flatnonzero(np.isfinite(best) & ((nearest == one) | (nearest == other)))
        for at in {one, *stale.tolist()}:
            nearest[at] = similarity[at].argmax()
            best[at] = similarity[at, nearest[at]]
        nearer = similarity[:, one] > best
        nearest[nearer], best[nearer] = one, similarity[nearer, one]
    return [sorted(each) for each in members if each]
