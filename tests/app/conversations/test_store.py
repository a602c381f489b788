"""The database of conversations, each test on SQLite and on PostgreSQL."""

import asyncio
import os
import sqlite3
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import inspect, select, text

from app.conversations import database as room
from app.conversations import tables
from app.conversations.database import Database, url_of, version_of
from app.conversations.log_figures import rows_of
from app.conversations.opening import Kept, look, open_conversations
from app.conversations.queries import QuestionLog
from app.conversations.question_log import Asked
from app.conversations.records import Found, Given, KeptAnswer, Paging, conversation_id_of
from app.conversations.store import DAY, ConversationStore
from app.conversations.tables import metadata, question_key, questions
from app.core.errors import DatabaseError, DatabaseTooNew, DatabaseUnavailable, SettingsError
from app.core.language import vocabulary
from app.core.settings import Settings
from app.core.turn import Source
from tests.app.routes.scripted import until

NOW = 1_800_000_000.0
SOURCE = Source(1, "Volumes", "https://docs.test/v", "Create", "en", "snippet", 0.9)


def kept(number: int, **values) -> KeptAnswer:
    fields = {"owner": "k", "question": f"Q{number}?", "answer": f"A{number}.", "created": NOW + number}
    return KeptAnswer(id=f"chatcmpl-{number}", **{**fields, **values})


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """A busy machine takes longer than an answer waits for the database; after a failure, nobody waits."""
    monkeypatch.setattr("app.conversations.store.WAIT", 60.0)
    monkeypatch.setattr("app.conversations.store.FLUSH", 60.0)
    monkeypatch.setattr("app.conversations.store.PAUSE", 0.01)


@asynccontextmanager
async def opened(address, days=30, clock=lambda: NOW, log=None):
    store = ConversationStore(Database(url_of(address, Path())), days, question_log=log, clock=clock)
    try:
        yield store
    finally:
        await store.close()


async def test_what_was_kept_is_read_as_it_was_and_only_by_its_owner(database):
    async with opened(database) as store:
        talk = await store.create("k")
        odd = "NUL \0, a surrogate \ud800, čeština 🙂 'quoted' %s ?"
        await store.keep(kept(1, question=odd, sources=(SOURCE,), conversation=talk.id, generation=7, language="cs"))
        await store.keep(kept(2, previous="chatcmpl-1"))
        one = await store.answer("k", "chatcmpl-1")
        assert one
        assert one.question == "NUL \ufffd, a surrogate ?, čeština 🙂 'quoted' %s ?"
        assert (one.answer, one.sources, one.generation, one.language) == ("A1.", [SOURCE], 7, "cs")
        found = await store.conversation("k", talk.id)
        assert found
        assert found.title == one.question
        assert [turn.id for turn in await store.turns_until("k", "chatcmpl-2") or ()] == ["chatcmpl-1", "chatcmpl-2"]
        others = [
            await store.answer("x", "chatcmpl-1"),
            await store.turns_until("x", "chatcmpl-1"),
            await store.turns_of("x", talk.id),
            await store.conversation("x", talk.id),
            await store.reset("x", talk.id),
            await store.rate("x", "chatcmpl-1", "up", ""),
        ]
        assert others == [None] * len(others)
        assert not await store.delete("x", talk.id)
        assert not await store.delete_answer("x", "chatcmpl-1")
        assert (await store.conversations("x", Paging())).data == []
        # the same id again changes nothing, not even if another key sends it
        await store.keep(kept(1, owner="x", question="mine"))
        assert (await store.answer("k", "chatcmpl-1")) == one
        assert await store.answer("x", "chatcmpl-1") is None


async def test_resetting_and_deleting_take_answers_and_feedback_with_them(database):
    async with opened(database) as store:
        talk = await store.create("k")
        for number in (1, 2):
            await store.keep(kept(number, conversation=talk.id))
            assert await store.rate("k", f"chatcmpl-{number}", "down", "wrong")
        assert len((await store.feedback(Paging())).data) == 2
        assert (await store.reset("k", talk.id)).title == ""
        assert not (await store.feedback(Paging())).data
        assert await store.turns_of("k", talk.id) == []
        await store.keep(kept(3, conversation=talk.id))
        assert await store.rate("k", "chatcmpl-3", "up", "good")
        assert await store.delete("k", talk.id)
        assert await store.answer("k", "chatcmpl-3") is None
        assert not (await store.feedback(Paging())).data
        await store.keep(kept(4, conversation=talk.id))  # answered while its conversation was deleted
        assert await store.answer("k", "chatcmpl-4") is None


async def test_pages_are_counted_by_the_last_answers_of_an_assistant_that_cite_them(database):
    """Once each, whatever their sections; refusals and other assistants don't count."""
    one, other = SOURCE, replace(SOURCE, url="https://docs.test/v#create")
    async with opened(database, log=QuestionLog()) as store:
        for number, outcome, assistant in (
            (1, "written", "a"),
            (2, "refused", "a"),
            (3, "written", "b"),
            (4, "marked", "a"),
        ):
            await store.keep(kept(number, outcome=outcome, assistant=assistant, sources=(one, other), found=Found()))
        assert await store.cited("a", 10) == {"https://docs.test/v": 2}
        assert await store.cited("a", 1) == {"https://docs.test/v": 1}


async def test_lists_come_in_parts_in_both_orders(database):
    times = iter([NOW, NOW, NOW, NOW + 1, NOW + 2])  # three at the same time
    async with opened(database, clock=lambda: next(times, NOW)) as store:
        made = {(await store.create("k")).id for _ in range(5)}
        for order in ("asc", "desc"):
            seen, after, more = [], "", True
            while more:
                part = await store.conversations("k", Paging(after, 2, order))
                seen += [one.id for one in part.data]
                after, more = seen[-1], part.has_more
            assert set(seen) == made
            assert len(seen) == 5
        assert await store.conversations("k", Paging("conv_other")) is None


async def test_what_is_older_than_the_retention_is_gone_after_the_clock_has_moved(database, tmp_path):
    now = [NOW]
    async with opened(database, days=30, clock=lambda: now[0]) as store:
        talk, empty = await store.create("k"), await store.create("k")
        await store.keep(kept(1, conversation=talk.id, question="an old secret", created=NOW))
        await store.rate("k", "chatcmpl-1", "up", "another secret")
        await store.keep(kept(2, conversation=talk.id, created=NOW + DAY))
        now[0] = NOW + 30 * DAY + 60
        assert await store.forget() == 2  # an answer and a conversation without any
        assert await store.answer("k", "chatcmpl-1") is None
        assert await store.conversation("k", empty.id) is None
        assert [one.id for one in await store.turns_of("k", talk.id) or ()] == ["chatcmpl-2"]
        assert not (await store.feedback(Paging())).data
        now[0] += DAY
        assert await store.forget() == 2
        assert await store.forget() == 0
        assert await store.conversation("k", talk.id) is None
    for file in tmp_path.glob("conversations.db*"):
        assert b"secret" not in file.read_bytes(), file


async def test_an_answer_that_a_slow_database_still_writes_can_be_rated_and_deleted(database, monkeypatch):
    monkeypatch.setattr("app.conversations.store.WAIT", 0.05)
    async with opened(database) as store:
        write, free = store.writer._write, threading.Event()
        store.writer._write = lambda batch: (free.wait(60), write(batch))[1]
        await store.keep(kept(1))
        assert await store.answer("k", "chatcmpl-1") is None  # it is written in the background
        asyncio.get_running_loop().call_later(0.1, free.set)
        assert await store.rate("k", "chatcmpl-1", "up", None)
        free.clear()
        await store.keep(kept(2))
        asyncio.get_running_loop().call_later(0.1, free.set)
        assert await store.delete_answer("k", "chatcmpl-2")
        assert await store.answer("k", "chatcmpl-2") is None


async def test_the_question_log_has_the_question_that_a_slow_database_still_writes(database, monkeypatch):
    monkeypatch.setattr("app.conversations.store.WAIT", 0.05)
    async with opened(database, log=QuestionLog(hashed=False)) as store:
        write, free = store.writer._write, threading.Event()
        store.writer._write = lambda batch: (free.wait(60), write(batch))[1]
        await store.keep(kept(1, found=Found(), outcome="written"))
        asyncio.get_running_loop().call_later(0.1, free.set)
        part = await store.listed(Asked(0.0, 2 * NOW), 0, 10)
        assert part
        assert [row.text for row in part.data] == ["Q1?"]


async def test_50_writers_at_once_lose_nothing(database):
    """Two replicas, 25 threads of conversations each, and readers between them."""
    async with opened(database) as one, opened(database) as other:
        lost = []
        one.writer.on_lost = other.writer.on_lost = lost.append

        async def writer(number):
            store = (one, other)[number % 2]
            talk = conversation_id_of("k", str(number % 25))
            for each in range(10):
                await store.keep(kept(number * 100 + each, conversation=talk, makes=True))
                if each % 5 == 0:
                    await store.rate("k", f"chatcmpl-{number * 100 + each}", "up", "x")

        await asyncio.gather(*map(writer, range(50)))
        counted = {len(await one.turns_of("k", conversation_id_of("k", str(number))) or ()) for number in range(25)}
        assert (lost, counted) == ([], {20})
        assert len((await one.feedback(Paging(limit=200))).data) == 100


async def test_replicas_that_start_at_once_make_the_tables_once(database):
    problems, barrier = [], threading.Barrier(6)

    def start():
        own = Database(url_of(database, Path()))
        barrier.wait()
        try:
            own.migrate()
        except Exception as error:  # noqa: BLE001
            problems.append(error)
        own.close()

    threads = [threading.Thread(target=start) for _ in range(6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not problems


def test_the_tables_are_made_whole_once(database):
    """A database of the current version opens, and keeps its key."""
    keys = []
    for _ in range(2):  # the second time, there is nothing to do
        own = Database(url_of(database, Path()))
        own.migrate()
        keys.append(own.read(lambda connection: connection.execute(select(question_key.c.key)).scalar_one()))
        assert set(own.read(lambda connection: inspect(connection).get_table_names())) == set(metadata.tables)
        assert own.count() == 0
        own.close()
    assert keys[0] == keys[1]


def test_an_older_database_is_changed_once_and_in_order(database, monkeypatch):
    def add(connection):
        connection.execute(text("ALTER TABLE feedback ADD COLUMN extra INTEGER"))

    def fill(connection):
        connection.execute(text("UPDATE feedback SET extra = 7"))

    own = Database(url_of(database, Path()))
    own.migrate()
    monkeypatch.setattr(tables, "CHANGES", (*tables.CHANGES, add, fill))
    for _ in range(2):
        own.migrate()
    assert "extra" in {one["name"] for one in own.read(lambda connection: inspect(connection).get_columns("feedback"))}
    assert own.read(version_of) == 1 + len(tables.CHANGES)
    own.close()


async def test_a_database_of_the_first_version_gets_the_new_tables_and_keeps_its_questions(database):
    """Its questions have no time yet, and can be judged."""
    async with opened(database, log=QuestionLog()) as store:
        await store.keep(kept(1, question="Why?", found=Found(), outcome="written", sources=(SOURCE,)))
    own = Database(url_of(database, Path()))

    def found(connection):
        looked = inspect(connection)
        columns, indexes = looked.get_columns("questions"), looked.get_indexes("questions")
        return {*looked.get_table_names()}, {one["name"] for one in columns}, {one["name"] for one in indexes}

    def back(connection):
        for statement in (
            "DROP INDEX questions_by_digest",
            "DROP TABLE verdicts",
            "DROP TABLE evaluations",
            "ALTER TABLE questions DROP COLUMN ms",
            "UPDATE version SET number = 1",
        ):
            connection.execute(text(statement))

    newest = own.read(found)
    own.write(back)
    assert own.read(found) != newest
    async with opened(database, log=QuestionLog()) as store:
        store.prepare()
        assert own.read(found) == newest
        own.close()
        (question,) = await read(store)
        assert (question.text, question.ms) == ("Why?", 0)
        verdict = await store.judge("chatcmpl-1", Given(verdict="good"))
        assert verdict is not None
        assert [one.id for one in await store.all_verdicts()] == ["chatcmpl-1"]


def test_a_newer_database_is_refused_by_name(database):
    own = Database(url_of(database, Path()))
    own.migrate()
    own.write(lambda connection: connection.execute(text("UPDATE version SET number = 9999")))
    own.close()
    settings = Settings.load(None, database=database)
    with pytest.raises(DatabaseTooNew, match="9999"):
        open_conversations(settings, Path())
    assert "9999" in look(settings, Path()).problem


def test_a_database_from_before_the_first_release_is_refused(database):
    own = Database(url_of(database, Path()))
    own.write(lambda connection: connection.execute(text("CREATE TABLE answers (id VARCHAR(9))")))
    with pytest.raises(DatabaseError, match="before the first release"):
        own.migrate()
    own.close()


def test_a_wrong_address_is_named_without_its_password(tmp_path):
    wrong = ("nothing", "mysql://u:geheim@h/d", "sqlite://", "sqlite:///:memory:", "postgresql://u:geheim@h:port/d")
    for address in wrong:
        with pytest.raises(SettingsError, match="DOCS_DATABASE") as caught:
            url_of(address, tmp_path)
        assert "geheim" not in str(caught.value)
    for address in ("postgresql://u:geheim@h/d", "postgresql://h/d?user=u&password=geheim"):
        assert "geheim" not in Database(url_of(address, tmp_path)).name
    assert open_conversations(Settings.load(None, retention_days=0, database="nothing"), tmp_path) is None


async def test_a_look_says_what_is_kept_and_makes_no_database(tmp_path):
    assert look(Settings.load(None, retention_days=0), tmp_path) == Kept(0)
    assert look(Settings.load(None), tmp_path) == Kept(30, str(tmp_path / "conversations.db"), 0)
    assert not list(tmp_path.iterdir())
    store = open_conversations(Settings.load(None), tmp_path)
    await store.keep(kept(1))
    assert look(Settings.load(None), tmp_path).answers == 1
    await store.close()
    (tmp_path / "noise.db").write_bytes(b"no database " * 500)
    seen = [
        look(Settings.load(None, database=f"sqlite:///{tmp_path / name}.db"), tmp_path) for name in ("noise", "x" * 300)
    ]
    assert seen[0].problem
    assert "mysql" in look(Settings.load(None, database="mysql://h/d"), tmp_path).problem


async def test_the_file_belongs_to_its_owner_alone(tmp_path):
    os.umask(0o022)
    store = open_conversations(Settings.load(None), tmp_path / "new")
    await store.keep(kept(1))
    for file in (tmp_path / "new").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file
    await store.close()


async def test_a_database_that_is_down_costs_answers_no_time_and_is_told_once(tmp_path, caplog):
    place = tmp_path / "place"
    place.write_text("a file where the directory should be")
    address = f"sqlite:///{place}/conversations.db"
    store = open_conversations(Settings.load(None, database=address), tmp_path)
    lost = []
    store.writer.on_lost = lost.append
    began = time.perf_counter()
    for number in range(50):
        await store.keep(kept(number))
    assert time.perf_counter() - began < 30  # not 50 times as long as an answer waits
    await until(lambda: sum(lost) == 50)
    assert store.breaker.state
    assert len([one for one in caplog.messages if "answers are not kept" in one]) == 1
    with pytest.raises(DatabaseUnavailable):
        await store.conversation("k", "conv_1")
    place.unlink()
    store.breaker._until = 0.0  # its pause is over
    await store.keep(kept(99))
    assert await store.answer("k", "chatcmpl-99")
    assert any("answers are kept again" in one for one in caplog.messages)
    await store.close()


@pytest.mark.parametrize("journal", [True, False], ids=["with its journal", "without its journal"])
async def test_a_file_that_is_deleted_under_the_service_is_told_and_a_new_one_keeps(tmp_path, caplog, journal):
    """SQLite would go on in the deleted file, and all that is written there is lost without a word."""
    file = tmp_path / "c.db"
    async with opened(f"sqlite:///{file}") as store:
        await store.keep(kept(1))
        for path in tmp_path.glob("c.db*" if journal else "c.db"):
            path.unlink()
        for number in range(2, 20):
            await store.keep(kept(number))
        assert await store.answer("k", "chatcmpl-1") is None
        assert await store.answer("k", "chatcmpl-2")
        assert len([one for one in caplog.messages if "was deleted while the service ran" in one]) == 1
        assert "was deleted while the service ran" in store.breaker.record.error
    async with opened(f"sqlite:///{file}") as again:
        assert all([await again.answer("k", f"chatcmpl-{number}") for number in range(2, 20)])
    assert file.stat().st_mode & 0o777 == 0o600


async def test_nothing_is_kept_in_a_file_that_took_the_place_of_the_open_one(tmp_path, caplog):
    """As a backup that was put back under the service: SQLite would apply the old file's journal to it."""
    async with opened(f"sqlite:///{tmp_path / 'backup.db'}") as backup:
        await backup.keep(kept(7))
    content = (tmp_path / "backup.db").read_bytes()
    async with opened(f"sqlite:///{tmp_path / 'c.db'}") as store:
        await store.keep(kept(1))
        (tmp_path / "backup.db").rename(tmp_path / "c.db")
        await store.keep(kept(8))
        assert any("answers are not kept" in one and "c.db-wal" in one for one in caplog.messages)
        assert "replaced by another file" in store.breaker.record.error
    assert (tmp_path / "c.db").read_bytes() == content
    for journal in tmp_path.glob("c.db-*"):
        journal.unlink()
    async with opened(f"sqlite:///{tmp_path / 'c.db'}") as again:
        assert await again.answer("k", "chatcmpl-7")


async def test_nothing_is_kept_in_a_folder_that_took_the_place_of_the_old_one(tmp_path, caplog):
    """As an unmounted volume: a new file would be covered when the volume is back. Then it is used again, with all it had."""
    folder = tmp_path / "data"
    lost = []
    async with opened(f"sqlite:///{folder / 'c.db'}") as store:
        store.writer.on_lost = lost.append
        await store.keep(kept(1))
        folder.rename(tmp_path / "away")
        folder.mkdir()
        await store.keep(kept(2))
        assert sum(lost) == 1
        assert any("answers are not kept" in one and "unmounted" in one for one in caplog.messages)
        assert "bring it back" in store.breaker.record.error
        assert list(folder.iterdir()) == []
        folder.rmdir()
        (tmp_path / "away").rename(folder)
        store.breaker._until = 0.0  # its pause is over
        await store.keep(kept(3))
        assert await store.answer("k", "chatcmpl-1")
        assert await store.answer("k", "chatcmpl-3")


async def test_a_service_starts_and_answers_with_any_broken_database(tmp_path, caplog):
    (tmp_path / "noise.db").write_bytes(b"no database " * 500)
    (tmp_path / "file").touch()
    for name in ("noise.db", "file/c.db", f"{'long' * 80}.db"):
        caplog.clear()
        store = open_conversations(Settings.load(None, database=f"sqlite:///{tmp_path / name}"), tmp_path)
        assert "answers go on" in caplog.text, name
        store.begin()
        await store.keep(kept(1))
        with pytest.raises(DatabaseError):
            await store.conversation("k", "conv_1")
        await store.close()


async def test_another_program_that_holds_the_file_does_not_end_the_deletion_of_what_is_old(tmp_path, monkeypatch):
    monkeypatch.setattr("app.conversations.store.HOUR", 0.01)
    at_once = [f"{one.partition('=')[0]}=0" if "timeout" in one else one for one in room.PRAGMAS]
    monkeypatch.setattr(room, "PRAGMAS", at_once)
    async with opened(f"sqlite:///{tmp_path / 'c.db'}", clock=lambda: NOW + 40 * DAY) as store:
        await store.keep(kept(0, answer="long " * 10_000))
        clean, failed = store._database.clean, []

        def held():
            if failed:
                return clean()
            failed.append(True)
            with sqlite3.connect(tmp_path / "c.db", isolation_level=None) as other:
                other.execute("BEGIN IMMEDIATE")
                return clean()

        monkeypatch.setattr(store._database, "clean", held)
        store.begin()
        await until(lambda: failed)
        await store.keep(kept(1))
        async with asyncio.timeout(60):
            while await store.answer("k", "chatcmpl-1"):
                await asyncio.sleep(0.01)


async def test_texts_that_no_database_takes_are_found_nowhere_and_stop_nobody(database):
    async with opened(database) as store:
        talk = await store.create("k")
        await store.keep(kept(1, conversation=talk.id, question="other \0"))
        found = await store.conversation("k", talk.id)
        assert found
        assert found.title == "other \ufffd"
        for _ in range(10):  # an open breaker would refuse
            assert await store.conversation("k", "\0") is None
            assert await store.turns_until("k", "resp_\0") is None
            assert await store.conversations("k", Paging("\0")) is None
            assert await store.rate("k", "\0", "up", "\0") is None
            assert not await store.delete("k", "\0")
        assert store.breaker.record.failures == 0


async def test_a_stuck_database_holds_the_end_of_an_answer_for_a_moment_and_then_not_at_all(tmp_path, monkeypatch):
    async with opened(f"sqlite:///{tmp_path / 'c.db'}") as store:
        await store.keep(kept(0))
        free, write = threading.Event(), store.writer._write
        store.writer._write = lambda batch: (free.wait(60), write(batch))[1]
        monkeypatch.setattr("app.conversations.store.WAIT", 0.5)
        began = time.perf_counter()
        await store.keep(kept(1))
        for number in range(2, 30):
            await store.keep(kept(number))
        assert time.perf_counter() - began < 28 * 0.5  # less than if each waited
        free.set()
        await store.writer.close()  # as at the end of the service: nothing is lost
        assert len([n for n in range(30) if await store.answer("k", f"chatcmpl-{n}")]) == 30


async def test_only_the_first_of_answers_that_end_together_has_a_transaction_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr("app.conversations.store.GATHER", 60.0)
    async with opened(f"sqlite:///{tmp_path / 'c.db'}") as store:
        await store.keep(kept(0))  # waits for no other
        assert await store.answer("k", "chatcmpl-0")
        later = [store.writer.add(kept(number)) for number in (1, 2)]
        assert await asyncio.wait(later, timeout=0.05) == (set(), set(later))  # wait for others
        monkeypatch.setattr("app.conversations.store.FLUSH", 0.0)


async def test_answers_that_a_stuck_database_did_not_take_before_the_end_are_told(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("app.conversations.store.FLUSH", 0.05)
    async with opened(f"sqlite:///{tmp_path / 'c.db'}") as store:
        free, lost = threading.Event(), []
        store.writer._write, store.writer.on_lost = lambda _: free.wait(60), lost.append
        for number in range(3):
            store.writer.add(kept(number))
        await asyncio.sleep(0.01)
        store.writer.add(kept(3))  # waits for the next batch
        await store.writer.close()
        free.set()
        await until(lambda: sum(lost) >= 4)
        assert sum(lost) == 4
        assert "the service has stopped" in caplog.text


async def test_an_answer_that_the_database_refuses_takes_no_other_with_it(database):
    async with opened(database) as store:
        lost = []
        store.writer.on_lost = lost.append
        futures = [store.writer.add(kept(number)) for number in range(3)]
        futures.append(store.writer.add(kept(4, created="no time")))
        await asyncio.wait(futures)
        assert [bool(await store.answer("k", f"chatcmpl-{number}")) for number in (0, 1, 2, 4)] == [True] * 3 + [False]
        assert lost == [1]


async def read(store, since=0.0, until=2 * NOW):
    await store.writer.settle()
    created = questions.c.created

    def rows(connection):
        numbers = select(questions.c.number).where(created >= since, created < until)
        known = rows_of(connection, list(connection.scalars(numbers)))
        return [known[number] for number in sorted(known)]

    return store._database.read(rows)


async def test_questions_are_logged_without_what_may_belong_to_a_person(database):
    found = Found(0.4, 0.5, {"url": "https://docs.test/v#create", "section": "Create"}, b"\x00<\x00@", "static")
    log = QuestionLog(words=vocabulary())
    async with opened(database, log=log) as store:
        asked = "Jan.Novak@example.org se nepřihlásí, heslo Tajne123, tel. 777 123 456. Proč?"
        about = {"sources": (SOURCE, SOURCE), "language": "cs", "outcome": "refused"}
        await store.keep(kept(1, question=asked, found=found, **about))
        await store.keep(kept(2, question="Why?", found=Found(), outcome="written"))
        await store.keep(kept(3, question="why  ", found=Found(), outcome="written"))
        await store.keep(kept(4, question="hello", found=Found(), outcome="smalltalk"))
        await store.keep(kept(5, question="not to be logged"))
        await store.rate("k", "chatcmpl-2", "down", None)
        one, two, three = await read(store)
        assert one.text == "[e-mail] se nepřihlásí, heslo [key], tel. [number]. Proč?"
        assert (one.outcome, one.evidence, one.needed, one.nearest) == ("refused", 0.4, 0.5, found.nearest)
        assert (one.used, one.vector, one.embedder, one.language) == ([SOURCE.url], found.vector, "static", "cs")
        assert (two.rating, three.rating) == ("down", "")
        assert one.digest != two.digest == three.digest
        await store.unrate("k", "chatcmpl-2")
        assert (await read(store, NOW + 1.5, NOW + 2.5))[0].rating == ""


async def test_hashed_questions_have_neither_text_nor_vector(database):
    async with opened(database, log=QuestionLog(hashed=True)) as store:
        await store.keep(kept(1, found=Found(0.4, 0.5, {}, b"\x00<", "static"), outcome="written"))
        (one,) = await read(store)
        assert (one.text, one.vector, len(one.digest)) == ("", b"", 32)


async def test_logged_questions_go_with_their_answers_and_with_time(database, tmp_path):
    now = [NOW]
    async with opened(database, log=QuestionLog(), clock=lambda: now[0]) as store:
        first, second = await store.create("k"), await store.create("k")
        for number, talk in ((1, ""), (2, first.id), (3, second.id), (4, "")):
            about = {"conversation": talk, "found": Found(), "outcome": "written"}
            await store.keep(kept(number, question=f"zebra {number}", **about))
        await store.delete_answer("other", "chatcmpl-1")
        await store.delete("other", first.id)
        assert len(await read(store)) == 4
        await store.delete_answer("k", "chatcmpl-1")
        await store.delete("k", first.id)
        await store.reset("k", second.id)
        assert [one.id for one in await read(store)] == ["chatcmpl-4"]
        now[0] += 31 * DAY
        assert await store.forget() == 3  # an answer, its question and a conversation
        assert await read(store) == []
    for file in tmp_path.glob("conversations.db*"):
        assert b"zebra" not in file.read_bytes(), file
