"""Texts for the servers of embedders and rerankers: in batches that they take, and again where another try may help."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable
from app.core.log_message import LogMessage
from app.core.retries import Patience, tried
from app.models.protocols import MOST_TEXTS
from app.models.refusals import named_limit

log = logging.getLogger("app.models")
Row = TypeVar("Row")
Call = Callable[[Sequence[str]], Awaitable[list[Row]]]

TOO_LARGE = (400, 413, 422)  # statuses with which servers refuse a batch
LEAST_NAMED = 8  # texts; a smaller number in an error is rarely the limit of a batch


def is_passing(error: Exception) -> bool:
    """True if the same call may succeed later: the server can't be reached, is too slow or busy, or is of no use at the moment."""
    kinds = (ModelRateLimited, ModelTimeout, ModelUnavailable)
    return isinstance(error, kinds) or (isinstance(error, ModelError) and error.status in {409, 425})


class Batches:
    """Calls for texts, each with as many as the server takes. A refused batch is halved, or cut to the limit that the refusal names;
    the size that is taken is kept.
    """

    def __init__(self, model: str, url: str) -> None:
        self._model, self._url = model, url
        self._most = MOST_TEXTS

    async def rows(self, texts: Sequence[str], call: Call[Row], patience: Patience) -> list[Row]:
        """The row of each text, in their order. Raises the `ModelError` of the last try."""
        once = partial(tried, patience=patience, again=is_passing, url=self._url)
        return await self._all(texts, lambda some: once(partial(call, some)), self._most)

    async def _all(self, texts: Sequence[str], call: Call[Row], size: int) -> list[Row]:
        found: list[Row] = []
        while len(found) < len(texts):
            try:
                found += await self._some(texts[len(found) :][: min(size, self._most)], call)
            except ModelError as error:
                error.rows = [*found, *error.rows]
                raise
            if size < self._most:
                self._most = size
                log.warning(LogMessage("a model's server takes fewer texts in one call", model=self._model, texts=size))
        return found

    async def _some(self, texts: Sequence[str], call: Call[Row]) -> list[Row]:
        try:
            return await call(texts)
        except ModelError as error:
            if error.status not in TOO_LARGE or len(texts) < 2:
                raise
            size = named_limit(error.body, LEAST_NAMED, len(texts)) or len(texts) // 2
        return await self._all(texts, call, size)
