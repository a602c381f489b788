"""The sources that an index was made from: recorded with each generation, and read again by later runs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pydantic import ValidationError

from app.core.errors import SettingsError
from app.core.generation import SourceRecord
from app.core.log_message import masked, names_secret
from app.core.settings import Settings
from app.index import directory_of
from ingestion.entry import Listing
from ingestion.sources import LOGIN, OwnDocumentation, Source, check_reader, is_web


def records_of(given: Sequence[Source], listed: Listing, settings: Settings) -> tuple[SourceRecord, ...]:
    """Returns the records of the sources of a run that `listed` their pages."""
    return tuple(_record(source, listed.roots[source.without_login()], settings) for source in given)


def with_earlier_roots(listed: Listing, records: Iterable[SourceRecord], settings: Settings) -> Listing:
    """The listing with the roots that the index has of sources that failed, so that their pages stay with them."""
    earlier = {(record.collection, record.url): frozenset(record.roots) for record in records}
    failed = {failure.url for failure in listed.failed}
    more = {
        source: earlier.get((source.collection or settings.tuning.collection, source.url), frozenset())
        for source in listed.roots
        if source.url in failed
    }
    roots = {source: here | more.get(source, frozenset()) for source, here in listed.roots.items()}
    kept = frozenset[str]().union(*more.values())
    return replace(listed, sources=listed.sources | kept, complete=listed.complete - kept, roots=roots)


def sources_of(records: Iterable[SourceRecord]) -> tuple[Source, ...]:
    """The sources to read again. Raises `SettingsError` if one of them is no source of this release, or its reader is gone."""
    return tuple(map(_source, records))


def uses_this_machine(record: SourceRecord) -> bool:
    """True when the source is read through files, programs or keys of the machine that reads it."""
    options = record.options
    if options.get("directory") or options.get("reader"):
        return True
    return bool(options.get("git")) and not is_web(str(options["git"]))


def _record(source: Source, roots: frozenset[str], settings: Settings) -> SourceRecord:
    clean = source.without_login()
    unreadable = "" if clean == source else "its password, headers or certificates aren't kept in the index"
    secret = names_secret(arguments := source.reader_args + source.load_args) or masked(arguments) != arguments
    if secret:
        unreadable = "an argument of its reader is a secret, which isn't kept in the index"
    if secret or directory_of(settings) is None:  # others read an index on a server, and no reader is started from it
        clean = clean.model_copy(update={"reader_args": "{}", "load_args": "{}"})
    options = clean.model_dump(mode="json", exclude_defaults=True)
    options["collection"] = source.collection or settings.tuning.collection
    return SourceRecord(options, tuple(sorted(roots)), unreadable, isinstance(source, OwnDocumentation))


def _source(record: SourceRecord) -> Source:
    # who writes into an index on a server must not choose secrets of this machine
    options = {key: value for key, value in record.options.items() if key not in LOGIN}
    try:
        source = (OwnDocumentation if record.demo else Source)(**options)
    except ValidationError as error:
        raise SettingsError(
            f"The index was made from {record.url} with settings that this release doesn't know: name the site again."
        ) from error
    if source.reader:
        check_reader(source, f"The index was made from {source.url}: reader")
    return source
