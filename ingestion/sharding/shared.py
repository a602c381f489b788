"""The shards of a run: which pages each reads, what they have in common, which are done, and which one publishes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from typing import Any, Protocol

from pydantic import TypeAdapter

from app.core.errors import SettingsError, ShardsDiffer, ShardsMissing
from app.core.masking import masked
from app.core.settings import Settings
from app.index.protocols import Parts, Store
from app.models.protocols import Embedder
from app.models.static import StaticEmbedder
from ingestion.convert import VERSION
from ingestion.entry import Entry
from ingestion.page_reader import PageReader
from ingestion.report import Report
from ingestion.result import with_result_kept
from ingestion.sharding.kept import KeptEmbedder, KeptPageReader
from ingestion.sharding.reading import Readings
from ingestion.site_blocks import Found
from ingestion.sources import Source
from ingestion.split import open_splitter
from ingestion.split.questions import questions_name
from ingestion.split.summaries import summaries_name
from ingestion.urls import stem

MOST = 1000
READING = ("default_language", "anchors", "render", "crawl_max_bytes", "translate", "translate_from", "glossary")
"""Settings that the text of pages depends on, beside those that are a part of the name of the splitter."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_FOUND = TypeAdapter(list[Found | None])

Compare = Callable[[], Awaitable[Mapping[Source, Found]]]
"""Finds what the pages of each source repeat."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the `count` shards of a draft, with a number from 1; number 0 is the step that publishes.

    Raises `SettingsError` for a name or a number that can't be.
    """

    draft: str
    count: int
    number: int = 0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.draft):
            raise SettingsError(
                f"--draft {self.draft!r}: name the draft with lower-case letters, digits and - _ . only, at most 100: the "
                "same name for all its shards, and another one for each run."
            )
        if not 0 <= self.number <= self.count <= MOST or not self.count:
            raise SettingsError(
                f"There is no shard {self.number}/{self.count}: the first of four is 1/4, the last 4/4."
            )

    def has(self, entry: Entry) -> bool:
        """True for the pages that this shard reads: always the same ones, whatever else is listed."""
        digest = hashlib.sha256(stem(entry.address).encode("utf-8", "replace")).digest()
        return int.from_bytes(digest[:8]) % self.count == self.number - 1


class Options(Protocol):
    """Options of the run that matter to its shards."""

    @property
    def dry_run(self) -> bool:
        """True if nothing may be written."""
        ...

    @property
    def rebuild(self) -> bool:
        """True if the index is built anew."""
        ...

    @property
    def only(self) -> bool:
        """True if other pages of the same collections leave the index."""
        ...

    @property
    def replace(self) -> bool:
        """True if all other pages leave the index."""
        ...


class Alone:
    """A run of one process, which keeps nothing for others."""

    is_shard = False

    async def begin(
        self,
        sources: Sequence[Source],  # noqa: ARG002
        entries: Sequence[Entry],  # noqa: ARG002
        settings: Settings,  # noqa: ARG002
        embedder: Embedder,
    ) -> Embedder:
        """The embedder."""
        return embedder

    async def found(self, sources: Sequence[Source], compare: Compare) -> Mapping[Source, Found]:  # noqa: ARG002
        """What the pages of each source repeat."""
        return await compare()

    def reader(self, reader: PageReader) -> PageReader:
        """The reader."""
        return reader

    def own(self, entries: Sequence[Entry]) -> list[Entry]:
        """All entries."""
        return list(entries)


@dataclass
class Shared:
    """A shard, or the step that publishes, with what the other processes of its draft have kept."""

    shard: Shard
    parts: Parts
    how: Options
    _readings: Readings = field(init=False)

    def __post_init__(self) -> None:
        self._readings = Readings(self.parts, writes=self.is_shard)

    @classmethod
    def of(cls, shard: Shard, store: Store, how: Options) -> Shared:
        """Raises `SettingsError` for a store that only one process can write, and for a dry run."""
        if how.dry_run:
            raise SettingsError("A dry run has no shards: leave out --shard, --finish and --draft.")
        if (parts := getattr(store, "parts", None)) is None:
            raise SettingsError(
                "Shards need an index that several machines can write: set DOCS_STORE=opensearch://host:9200/index, or "
                "leave out --shard, --finish and --draft."
            )
        return cls(shard, parts(shard.draft), how)

    @property
    def is_shard(self) -> bool:
        """True if this process reads a part of the pages, False if it publishes."""
        return self.shard.number > 0

    def finishing(self) -> Shared:
        """The step that publishes the same draft."""
        return Shared(replace(self.shard, number=0), self.parts, self.how)

    async def begin(
        self, sources: Sequence[Source], entries: Sequence[Entry], settings: Settings, embedder: Embedder
    ) -> Embedder:
        """Begin the draft or join it; the embedder, with the vectors that shards have kept.

        Raises `ShardsDiffer`, and `SettingsError` for sources whose pages can't be divided.
        """
        for source in sources:
            if source.reader or source.follow or any(one.links for one in entries if one.site.url == source.url):
                how = "it is read by a LlamaIndex reader" if source.reader else "its pages are found by following links"
                raise SettingsError(f"{masked(source.place)} can't be divided among shards: {how}. Use one process.")
        mine = _made_with(sources, settings, embedder)
        mine |= {name: str(getattr(self.how, name)).lower() for name in ("rebuild", "only", "replace")}
        mine["shards"] = str(self.shard.count)
        await self.parts.open()
        first = await self.parts.first("begun", mine)
        if other := [name for name in mine if first.get(name) != mine[name]]:
            told = ", ".join(f"{name}: {first.get(name)}, here {mine[name]}" for name in other)
            raise ShardsDiffer(
                f"The draft {self.parts.draft} was begun differently ({told}). Start all its shards with the same release, "
                "sites and settings, or all of them again with another --draft."
            )
        # static vectors cost less than keeping them
        return embedder if isinstance(embedder, StaticEmbedder) else KeptEmbedder(embedder, self.parts)

    async def found(self, sources: Sequence[Source], compare: Compare) -> Mapping[Source, Found]:
        """What the pages of each source repeat, as the first shard that compared them has found it."""
        known = await self.parts.find("blocks")
        if known is None:
            mine = await compare()
            told = [asdict(mine[source]) if source in mine else None for source in sources]
            known = await self.parts.first("blocks", {"found": told})
        both = zip(sources, _FOUND.validate_python(known["found"]), strict=True)
        return {source: one for source, one in both if one is not None}

    def reader(self, reader: PageReader) -> PageReader:
        """The reader, with the pages that shards have kept."""
        return KeptPageReader.of(reader, self._readings)

    def own(self, entries: Sequence[Entry]) -> list[Entry]:
        """The entries that this shard reads."""
        return [entry for entry in entries if self.shard.has(entry)]

    async def done(self, report: Report) -> None:
        """All pages of this shard are read."""
        told = {"warnings": report.warnings, "calls": report.embedding_calls, "texts": report.embedded_texts}
        await self.parts.keep(_marker(self.shard.number), told)

    async def is_done(self) -> bool:
        """True if this shard was done before."""
        return await self.parts.find(_marker(self.shard.number)) is not None

    async def is_last(self) -> bool:
        """True for one process at most: all shards are done, and it is the one to publish."""
        if await self.missing():
            return False
        first = await self.parts.first("finishing", {"by": self.shard.number})
        return bool(first["by"] == self.shard.number)

    async def missing(self) -> list[int]:
        """The numbers of the shards that aren't done."""
        numbers = range(1, self.shard.count + 1)
        there = await self.parts.find_all([_marker(number) for number in numbers])
        return [number for number in numbers if _marker(number) not in there]

    async def check_done(self) -> None:
        """Raises `ShardsMissing` unless all shards are done and the draft isn't published yet."""
        if await self.parts.is_published():
            raise ShardsMissing(f"The draft {self.parts.draft} was published already, and its parts are deleted.")
        if missing := await self.missing():
            count, draft = self.shard.count, self.parts.draft
            named = ", ".join(f"{number}/{count}" for number in missing)
            raise ShardsMissing(
                f"Nothing was published: of the draft {draft}, these shards aren't done: {named}. Run each again with the "
                f"same sites: docs-assistant ingest --draft {draft} --shard {missing[0]}/{count}"
            )

    async def told(self, report: Report) -> None:
        """Add what all shards told to the report of the step that publishes."""
        found = await self.parts.find_all([_marker(number) for number in range(1, self.shard.count + 1)])
        for marker in found.values():
            report.warnings += [one for one in marker["warnings"] if one not in report.warnings]
            report.embedding_calls += marker["calls"]
            report.embedded_texts += marker["texts"]

    async def state(self) -> str:
        """What is the state of the draft, in a sentence."""
        if await self.parts.is_published():
            return f"The draft {self.parts.draft} is published."
        missing = ", ".join(map(str, await self.missing()))
        others = (
            f"of {self.shard.count}, these aren't: {missing}"
            if missing
            else "so are all others, and one of them publishes"
        )
        return f"Shard {self.shard.number} of the draft {self.parts.draft} is done; {others}."


async def run_shared(shared: Shared, store: Store, run: Callable[[Shared], Coroutine[Any, Any, Report]]) -> Report:
    """The report of a shard or, if it is the last one of its draft or none, that of the step that publishes.

    Raises `ShardsMissing` and what `run` raises.
    """
    if not shared.is_shard:
        await shared.check_done()
        report = await with_result_kept(store, run(shared))
        await shared.told(report)
        await shared.parts.publish()
        return report
    report = Report(())
    if not await shared.parts.is_published():
        if not await shared.is_done():
            report = await run(shared)
            await shared.done(report)
        if await shared.is_last():
            return await run_shared(shared.finishing(), store, run)
    report.shard = await shared.state()
    return report


def _marker(number: int) -> str:
    return f"shard-{number}"


def _made_with(sources: Sequence[Source], settings: Settings, embedder: Embedder) -> dict[str, str]:
    """What must be the same in all shards, by name."""
    told = "\n".join(source.without_login().model_dump_json(exclude_defaults=True) for source in sources)
    return {
        "release": version("docs-assistant"),
        "sites": hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:16],
        "languages": " ".join(settings.languages),
        **{name: str(getattr(settings, name)) for name in READING},
        "embedder": embedder.name,
        "splitter": f"{VERSION}/{open_splitter(settings).name}",
        "summaries": summaries_name(settings),
        "questions": questions_name(settings),
    }
