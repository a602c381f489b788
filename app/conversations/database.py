"""The database: its connections, transactions and errors, and the version of its tables. All methods block."""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import orjson
from sqlalchemy import Connection, create_engine, event, exc, func, insert, inspect, make_url, select, text, update
from sqlalchemy.engine import URL

from app.conversations import tables
from app.conversations.tables import answers, metadata, question_key, version
from app.core.errors import DatabaseError, DatabaseTooNew, DatabaseUnavailable, SettingsError
from app.core.log_message import masked
from app.core.process import locked

P = ParamSpec("P")
T = TypeVar("T")

CONNECT_SECONDS = 3
STATEMENT_SECONDS = 5
"""Longest wait for a lock or a statement; only a migration may take longer."""
LOCK = 7_035_114_042
"""Number of PostgreSQL's advisory lock that migrations and deletions take, so that only one replica at a time runs them."""
PRAGMAS = (
    "auto_vacuum=INCREMENTAL",  # first: it can't be changed once there are tables
    "journal_mode=WAL",
    "synchronous=NORMAL",  # in WAL mode, only a power cut can lose the last commits
    f"busy_timeout={STATEMENT_SECONDS * 1000}",
    "foreign_keys=ON",
    "secure_delete=ON",  # deleted texts are overwritten
)
REPORTS = "-c statement_timeout=120s -c work_mem=64MB"
"""Options of PostgreSQL for reports, whose statements read a whole period: with its 4 MB, groups of a million questions are written to disk."""
WRITES = "docs_assistant_writes"
Identity = tuple[int, int] | None
"""Device and number of a file; None if there is none."""


class Database:
    """A database of conversations, with more `options` of PostgreSQL. Every method raises a `DatabaseError` if it fails."""

    def __init__(self, url: URL, options: str = "") -> None:
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._file = Path(url.database) if self.is_sqlite and url.database else None
        self._place: tuple[Identity, Identity] | None = None  # of the file and its folder, once it is made
        # SQLite has one writer at a time, and lets those who wait compete; a lock is fair enough to keep nobody out
        self._turn = threading.Lock() if self.is_sqlite else nullcontext()
        self.name = str(self._file or masked(url.render_as_string(hide_password=True)))
        connecting: dict[str, Any] = {"connect_args": _postgresql(options), "pool_pre_ping": True}
        self._engine = create_engine(
            url,
            hide_parameters=True,  # they are texts of readers
            json_serializer=lambda value: orjson.dumps(value).decode(),
            json_deserializer=orjson.loads,
            **({} if self.is_sqlite else connecting),
        )
        if self.is_sqlite:
            event.listen(self._engine, "connect", _prepare)
            event.listen(self._engine, "begin", _begin)

    def read(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of the query, called with a connection in a transaction."""
        with self._connection() as connection:
            return query(connection, *args, **kwargs)

    def write(self, query: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for a query that changes something; it is committed."""
        with self._turn, self._connection(writes=True) as connection:
            return query(connection, *args, **kwargs)

    def migrate(self) -> None:
        """Make the tables, or bring them to the newest version; other programs that do the same wait meanwhile.

        Raises `DatabaseTooNew` if a newer version of this program has changed them.
        """
        with self._alone(), self._connection(writes=True) as connection:
            lock(connection, seconds=600)
            _upgrade(connection, version_of(connection))

    def count(self) -> int:
        """The number of answers; 0 if there is no database yet, but it can be made. Raises `DatabaseTooNew` as `migrate` does."""
        if self._file and not os.path.exists(self._file):  # noqa: PTH110  # that of pathlib raises an error for some paths
            _check_place(self._file)
            return 0

        def counted(connection: Connection) -> int:
            found = version_of(connection)
            return connection.execute(select(func.count()).select_from(answers)).scalar() or 0 if found else 0

        return self.read(counted)

    def loss(self) -> str:
        """Says what happened to the file while it was open; empty if it is in its place. SQLite would write on in a deleted one.

        The next `migrate` makes a new one where that is safe.
        """
        if not self._file or self._place is None or _identity(self._file) == self._place[0]:
            return ""
        self._engine.dispose()
        gone = f"{self._file} was deleted while the service ran, with all that it held. Answers are kept in a new file."
        return self._danger(self._file) or gone

    def _danger(self, file: Path) -> str:
        """The reason why no answer may be kept in what is at the place of the file now; empty if it may."""
        there, (known, folder) = _identity(file), self._place or (None, None)
        if there and there != known and file.stat().st_size:
            return (
                f"{file} was replaced by another file while the service ran, and the journal beside it belongs to the old"
                f" one, so no answers are kept: stop the service, remove {file.name}-wal and {file.name}-shm, copy the file"
                " there again, and start the service."
            )
        if not there and folder and _identity(file.parent) != folder:
            return (
                f"{file.parent} was moved, deleted or unmounted while the service ran, so no answers are kept: bring it"
                " back, or start the service again to keep them in a new file."
            )
        return ""

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()

    def clean(self) -> None:
        """Give deleted space back to the file system, and leave no deleted text in SQLite's journal."""
        if self.is_sqlite:
            with _our_errors(self.name), self._engine.connect() as connection:
                raw = connection.connection.dbapi_connection
                assert isinstance(raw, sqlite3.Connection)
                raw.execute("PRAGMA incremental_vacuum").fetchall()
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    @contextmanager
    def _connection(self, *, writes: bool = False) -> Iterator[Connection]:
        with _our_errors(self.name), self._engine.connect() as connection:
            if writes:
                connection.execution_options(**{WRITES: True})
            with connection.begin():
                yield connection

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Make the file, and keep other programs waiting that do the same: SQLite refuses two that change to WAL mode at once."""
        with ExitStack() as stack:
            if self._file:
                self._make(self._file)
                try:
                    stack.enter_context(locked(self._file.parent))
                except OSError as error:
                    raise _not_made(self._file, error.strerror) from error
            yield

    def _make(self, file: Path) -> None:
        """An empty file that only its owner may read; SQLite gives its journal the same rights.

        Raises `DatabaseUnavailable` if another file or folder took the place of the one that was open.
        """
        if self._place and (danger := self._danger(file)):
            raise DatabaseUnavailable(danger)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise _not_made(file, error.strerror) from error
        self._place = _identity(file), _identity(file.parent)


def _identity(path: Path) -> Identity:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino


def _check_place(file: Path) -> None:
    """Raise `DatabaseUnavailable` if nothing can be made in the folder of the file, which may not be there yet either."""
    there = next((folder for folder in file.absolute().parents if os.path.lexists(folder)), Path("/"))
    if not there.is_dir():
        raise _not_made(file, f"{there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise _not_made(file, f"{there} isn't writable")


def _not_made(file: Path, reason: str | None) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"{file} can't be made: {reason}. Set DOCS_DATABASE to a place that the service may write to, or"
        " DOCS_RETENTION_DAYS=0 to keep nothing."
    )


def url_of(setting: str, folder: Path) -> URL:
    """The address of the database; an empty setting is `conversations.db` in the folder. Raises `SettingsError`."""
    if not setting:
        return URL.create("sqlite", database=str(folder / "conversations.db"))
    try:
        url = make_url(setting)
    except (exc.ArgumentError, ValueError) as error:  # ValueError: a port that is no number
        raise SettingsError("DOCS_DATABASE is no address such as sqlite:///FILE or postgresql://HOST/NAME.") from error
    kind = url.drivername.partition("+")[0]
    if kind in ("postgres", "postgresql"):
        try:
            import psycopg  # noqa: F401  # which fails without libpq, too
        except ImportError as error:
            raise SettingsError(
                "DOCS_DATABASE is a PostgreSQL database, which needs a driver: pip install '.[postgres]' in a checkout."
            ) from error
        return url.set(drivername="postgresql+psycopg")
    if kind != "sqlite" or url.database in {None, "", ":memory:"}:
        raise SettingsError(
            f"DOCS_DATABASE begins with {kind}: it must be sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."
        )
    return url.set(drivername="sqlite")


def version_of(connection: Connection) -> int:
    """The version of the tables; 0 if there are none. Raises `DatabaseTooNew` for one that this program doesn't know."""
    there = inspect(connection)
    if not there.has_table(version.name):
        if there.has_table(answers.name):
            raise DatabaseError(
                "The database of conversations was made before the first release, and can't be read: delete it, or set"
                " DOCS_DATABASE to another database."
            )
        return 0
    found, known = connection.execute(select(version.c.number)).scalar_one(), 1 + len(tables.CHANGES)
    if found > known:
        raise DatabaseTooNew(
            f"The database of conversations has version {found}, which a newer version of this program made; this one"
            f" knows {known}. Install that version again, or set DOCS_DATABASE to another database."
        )
    return int(found)


def lock(connection: Connection, *, seconds: int = STATEMENT_SECONDS) -> None:
    """Wait until no other program has this lock, and hold it until the end of the transaction."""
    if connection.dialect.name == "postgresql":  # in SQLite, a transaction that writes is alone
        connection.execute(text(f"SET LOCAL lock_timeout = '{seconds}s'; SET LOCAL statement_timeout = '{seconds}s'"))
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})


def _upgrade(connection: Connection, found: int) -> None:
    """Make the tables with the key of the digests, or change those of an older version."""
    newest = 1 + len(tables.CHANGES)
    if not found:
        metadata.create_all(connection)
        connection.execute(insert(question_key).values(key=secrets.token_bytes(32)))
        connection.execute(insert(version).values(number=newest))
    elif found < newest:
        for change in tables.CHANGES[found - 1 :]:
            change(connection)
        connection.execute(update(version).values(number=newest))


def _postgresql(options: str) -> dict[str, Any]:
    milliseconds = STATEMENT_SECONDS * 1000
    return {
        "connect_timeout": CONNECT_SECONDS,
        "tcp_user_timeout": milliseconds,
        "application_name": "docs-assistant",
        "options": f"-c statement_timeout={milliseconds} -c lock_timeout={milliseconds} {options}",
    }


def _prepare(connection: sqlite3.Connection, _: object) -> None:
    connection.isolation_level = None  # else Python begins transactions by itself, and later than SQLAlchemy believes
    for pragma in PRAGMAS:
        connection.execute(f"PRAGMA {pragma}").close()


def _begin(connection: Connection) -> None:
    # a transaction that reads first and writes later fails if another one has written meanwhile
    writes = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _our_errors(name: str) -> Iterator[None]:
    try:
        yield
    except (exc.OperationalError, exc.InterfaceError, sqlite3.OperationalError) as error:
        raise DatabaseUnavailable(f"{name} can't be used: {_first_line(getattr(error, 'orig', error))}") from error
    except exc.TimeoutError as error:
        raise DatabaseUnavailable(f"{name} can't be used: all connections were busy.") from error
    except exc.SQLAlchemyError as error:
        reason = _first_line(getattr(error, "orig", None) or error)
        raise DatabaseError(f"{name} refused a statement: {type(error).__name__}: {reason}") from error


def _first_line(error: object) -> str:
    """The other lines may quote what a reader wrote."""
    return (str(error).splitlines() or [type(error).__name__])[0]
