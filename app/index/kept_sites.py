"""The list of sites that is kept with an index: those that admins added in the browser, those that are paused, and those that a first
run reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from app.core.errors import IndexDamaged
from app.index.protocols import Store


@dataclass(frozen=True, slots=True)
class KeptSite:
    """A site of the list, when and by whom it was put there. `options` are fields of a source; a paused one has none."""

    at: str
    by: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptSites:
    """The list, by address without login. `paused` sites are neither read nor removed, wherever they are configured. `begun` are those
    that a run of `docs-assistant run` was given and hasn't ended with: an empty index gets them if the run was killed.
    """

    added: Mapping[str, KeptSite] = field(default_factory=dict)
    paused: Mapping[str, KeptSite] = field(default_factory=dict)
    begun: tuple[str, ...] = ()

    @classmethod
    async def of(cls, store: Store) -> Self:
        """The list of this index. Raises `IndexDamaged` if it can't be read: a run without it would read the wrong sites."""
        values = await store.kept("sites")
        try:
            return TypeAdapter(cls).validate_python(values)
        except ValidationError as error:
            raise IndexDamaged(
                f"The list of sites that is kept with the index is damaged ({error.errors()[0]['msg']}). Restore sites.json from a backup."
            ) from error

    async def write(self, store: Store) -> None:
        """Keep this list."""
        await store.keep("sites", asdict(self))

    def without(self, url: str) -> KeptSites:
        """The list without this site."""
        added, paused = ({key: one for key, one in kind.items() if key != url} for kind in (self.added, self.paused))
        return replace(self, added=added, paused=paused)


def without_user(site: str) -> str:
    """The address without user name and password, as lists and records have it."""
    parts = urlsplit(site)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
