"""What is particular to the OpenSearch store; what every store promises is in tests/contract."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import httpx
import orjson
import pytest

from app.core.errors import NoIndex, SettingsError, StoreBusy, StoreError, StoreUnavailable
from app.core.store.opensearch import OpenSearchStore
from app.core.store.opensearch_connection import Connection, to_json
from app.core.types import Chunk, LexicalText, Page, Query, Recipe

RECIPE = Recipe(embedder="axes", dimension=4, splitter="none", analyzer="1")
SITE = "https://docs.example.org"
real = [pytest.mark.opensearch, pytest.mark.server]


@pytest.fixture
def address() -> str:
    address = os.environ.get("DOCS_TEST_OPENSEARCH", "")
    if not address:
        message = "no OpenSearch: run `make opensearch` and set DOCS_TEST_OPENSEARCH=http://127.0.0.1:9200"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return address


@pytest.fixture
async def http(address) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        yield client


@pytest.fixture
async def open_store(address, http) -> AsyncIterator[Callable[..., OpenSearchStore]]:
    """Opens an index of a name of its own; deletes it in the end."""
    name = f"test-{uuid.uuid4().hex[:12]}"
    opened: list[OpenSearchStore] = []

    def open_(**values) -> OpenSearchStore:
        store = OpenSearchStore(address, **({"index": name} | values))
        opened.append(store)
        return store

    yield open_
    for store in opened:
        await store.close()
    for index in (await http.get(f"/{name}*/_alias")).json():
        await http.delete(f"/{index}")


@pytest.fixture
def store(open_store) -> OpenSearchStore:
    return open_store()


def name_of(store: OpenSearchStore) -> str:
    return store._catalog.name


def page(path: str, text: str, **values) -> tuple[Page, tuple[Chunk, ...]]:
    url = SITE + path
    known = {"language": "en", "title": "A page", "position": 0} | values
    chunk = Chunk(id=f"{abs(hash((url, text))):x}", collection="docs", url=url, text=text, **known)
    return Page(url, "docs", chunk.title, chunk.language, text, "hash"), (chunk,)


async def put(draft, path: str, text: str, **values) -> None:
    record, chunks = page(path, text, **values)
    await draft.put(record, chunks, {c.id: [1.0, 2.0, 3.0, 4.0] for c in chunks})


async def publish(store: OpenSearchStore, *texts: str, recipe: Recipe = RECIPE):
    async with await store.draft(recipe) as draft:
        for number, text in enumerate(texts):
            await put(draft, f"/{number}", text)
        return await draft.publish()


async def found(store: OpenSearchStore, text: str, language: str = "en") -> list[str]:
    live = await store.live()
    legs = await live.search(Query(texts=(LexicalText(language, text),)))
    return [chunk.text for chunk in await live.fetch([c.id for c in legs.lexical])]


# ---- the index ---------------------------------------------------------------------------------


@pytest.mark.opensearch
@pytest.mark.server
class TestIndex:
    async def test_a_field_that_nobody_planned_is_refused(self, store, http):
        """The mapping is strict, so that a stranger's write fails instead of changing how the index is read."""
        await publish(store, "text")
        for document in ({"surprise": 1}, {"metadata": {"surprise": "x"}}):
            answer = await http.post(f"/{name_of(store)}-1/_doc", json=document)
            assert answer.status_code == 400
            assert answer.json()["error"]["type"] == "strict_dynamic_mapping_exception"

    async def test_dates_are_words(self, store):
        """A date that is none, after one that is, must not fail the row as a date field would."""
        async with await store.draft(RECIPE) as draft:
            await put(draft, "/a", "first text", modified="2024-05-01")
            await put(draft, "/b", "second text", modified="unknown")
            await draft.publish()
        assert sorted(await found(store, "text")) == ["first text", "second text"]

    async def test_the_alias_shows_the_live_generation_only(self, store, http):
        """A client that knows the alias alone sees what readers see, before and after publish and rollback."""

        async def shown() -> set[str]:
            answer = (await http.get(f"/{name_of(store)}/_search?size=100")).json()
            return {hit["_source"]["content"] for hit in answer["hits"]["hits"]}

        await publish(store, "old", "same")
        async with await store.draft(RECIPE) as draft:
            await put(draft, "/0", "new")
            await draft._batch.flush()
            await http.post(f"/{name_of(store)}-*/_refresh")
            assert await shown() == {"old", "same"}
            await draft.publish()
        assert await shown() == {"new", "same"}
        await store.rollback()
        assert await shown() == {"old", "same"}

    async def test_every_look_at_the_alias_sees_one_whole_generation(self, store, http):
        """The pointer moves in one step: no moment without an alias, none with rows of two generations."""
        recipes = [RECIPE, replace(RECIPE, splitter="other")]
        await publish(store, *["version0"] * 5)
        stop = asyncio.Event()
        looks = 0

        async def look() -> None:
            nonlocal looks
            while not stop.is_set():
                answer = await http.get(f"/{name_of(store)}/_search?size=100")
                assert answer.status_code == 200, answer.text
                texts = [hit["_source"]["content"] for hit in answer.json()["hits"]["hits"]]
                assert len(texts) == 5
                assert len(set(texts)) == 1
                looks += 1

        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(look())
            for number in range(1, 5):
                await publish(store, *[f"version{number}"] * 5, recipe=recipes[number % 2])
            await store.rollback()
            stop.set()
        assert looks > 10
        assert set(await found(store, "version3")) == {"version3"}

    async def test_what_no_generation_has_is_deleted(self, store, http):
        """Rows of dropped generations go, and whole indices after a rebuild that nothing refers to any more."""
        for number in range(5):
            await publish(store, f"text {number}")
        await http.post(f"/{name_of(store)}-1/_refresh")
        rows = (await http.get(f"/{name_of(store)}-1/_search?size=100")).json()["hits"]["hits"]
        assert {row["_source"]["content"] for row in rows} <= {"text 2", "text 3", "text 4"}
        for number in range(4):
            await publish(store, f"text {number}", recipe=replace(RECIPE, splitter=str(number % 2)))
        indices = set((await http.get(f"/{name_of(store)}-*/_alias")).json())
        assert f"{name_of(store)}-1" not in indices
        assert len(indices) == 7  # two kept, one for readers that are still at it, each with pages; and the catalog

    @pytest.mark.parametrize("language", ["de", "sk", "zh", "tr", "no", "el", "ga", "pt"])
    async def test_any_language_has_an_analysis(self, open_store, language):
        """A code without a dictionary of its own is folded, and found all the same."""
        store = open_store()
        async with await store.draft(RECIPE) as draft:
            await put(draft, "/a", "kubernetes 集群配置", language=language)
            await draft.publish()
        assert await found(store, "Kubernetes", language) == ["kubernetes 集群配置"]

    async def test_a_page_of_encoded_data_is_indexed(self, store):
        """A word longer than Lucene takes doesn't fail its row."""
        text = "x" * 40_000 + " key"
        await publish(store, text)
        assert await found(store, "key") == [text]

    @pytest.mark.parametrize(
        "rest",
        ["a.b/c-d_e " * 2000, "a1.b2.c3.d4.e5.f6.g7.h8/i9 " * 500, "集群配置" * 3000, "集群 配置 " * 2000, "🙂" * 5000, "x" * 20000],
    )  # fmt: skip
    async def test_a_long_question_of_any_script_stays_within_the_servers_limit(self, store, rest):
        """Words that the analysis takes apart count as many: the server refuses more than 1,024 clauses."""
        await publish(store, "some quota", "unrelated")
        live = await store.live()
        texts = tuple(LexicalText(language, "quota " + rest) for language in ("en", "cs", ""))
        legs = await live.search(Query(texts))
        assert legs.lexical[0].url == SITE + "/0"

    async def test_an_approximate_search_finds_what_an_exact_one_does(self, store):
        """On a small index both legs' nearest are the same rows with the same cosines."""
        async with await store.draft(RECIPE) as draft:
            for number in range(80):
                record, chunks = page(f"/{number}", f"text {number}")
                angle = [1.0, number / 40, (number * 7 % 80) / 80, -number / 80]
                await draft.put(record, chunks, {chunks[0].id: angle})
            await draft.publish()
        live = await store.live()
        for vector in ([1.0, 0.1, 0.2, 0.0], [0.0, 1.0, 1.0, -1.0], [-1.0, 0.0, 0.0, 0.0]):
            near = await live.search(Query((), vector, depth=80))
            exact = await live.search(Query((), vector, depth=80, exact=True))
            assert [c.score for c in near.vector] == pytest.approx([c.score for c in exact.vector], abs=1e-5)
            assert {c.id for c in near.vector} == {c.id for c in exact.vector}
            assert len(near.vector) == 80


# ---- one writer --------------------------------------------------------------------------------

KILLED = """
import asyncio, os, sys
from app.core.store.opensearch import OpenSearchStore
from app.core.types import Chunk, Page, Recipe

async def main():
    store = OpenSearchStore(sys.argv[1], index=sys.argv[2])
    draft = await store.draft(Recipe("axes", 4, "none", "1"))
    chunk = Chunk("half", "docs", "https://docs.example.org/0", 0, "half done", "en", "A page")
    await draft.put(Page(chunk.url, "docs", "A page", "en", "half done", "h"), [chunk], {"half": [1, 2, 3, 4]})
    await draft._batch.flush()
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


@pytest.mark.opensearch
@pytest.mark.server
class TestLock:
    async def test_a_busy_index_says_who_and_since_when(self, store, open_store):
        async with await store.draft(RECIPE):
            with pytest.raises(StoreBusy, match=rf"process {os.getpid()} on .+, since 20\d\d-.*"):
                await open_store().draft(RECIPE)
            with pytest.raises(NoIndex):
                await store.live()
        async with await open_store().draft(RECIPE):
            pass

    async def test_nobody_rolls_back_under_a_writer(self, store, open_store):
        await publish(store, "one")
        await publish(store, "two")
        async with await store.draft(RECIPE) as draft:
            await put(draft, "/0", "three")
            with pytest.raises(StoreBusy):
                await open_store().rollback()

    async def test_a_draft_that_changes_nothing_writes_nothing(self, store, http):
        """Not even its lock: no operation in any index, counted by the server."""

        async def operations() -> dict[str, int]:
            found = (await http.get(f"/{name_of(store)}-*/_stats?level=shards")).json()["indices"]
            return {index: value["shards"]["0"][0]["seq_no"]["max_seq_no"] for index, value in found.items()}

        info = await publish(store, "one", "two")
        before = await operations()
        assert f"{name_of(store)}-meta" in before
        async with await store.draft(RECIPE) as draft:
            await draft.remove(SITE + "/unknown")
            await draft.touch([])
            assert await draft.publish() == info
        assert await operations() == before

    async def test_a_rollback_under_a_draft_that_wrote_nothing_yet_is_noticed(self, store, open_store):
        """What the draft began from is no longer live."""
        first = await publish(store, "one")
        await publish(store, "two")
        async with await store.draft(RECIPE) as draft:
            await open_store().rollback()
            for _ in range(2):
                with pytest.raises(StoreBusy, match=r"Another run wrote to .* while this one read"):
                    await put(draft, "/0", "three")
        assert (await store.live()).info == first

    async def test_an_open_draft_keeps_its_lock(self, open_store):
        """The lock is renewed as long as the draft is open, however long that takes."""
        async with await open_store(lock_seconds=0.6).draft(RECIPE):
            await asyncio.sleep(1.5)
            with pytest.raises(StoreBusy):
                await open_store(lock_seconds=0.6).draft(RECIPE)

    async def test_a_lock_without_sign_of_life_expires(self, open_store, monkeypatch):
        """The writer that lost it in its sleep is refused, and what it wrote is not published."""
        sleeper = open_store(lock_seconds=0.6)
        await publish(sleeper, "kept")
        async with await sleeper.draft(RECIPE) as asleep:
            await put(asleep, "/z", "of the sleeper")
            await asleep._batch.flush()
            asleep._lock._heart.cancel()
            await asyncio.sleep(0.8)
            await publish(open_store(), "kept", "new")
            await put(asleep, "/y", "too late")
            with pytest.raises(StoreBusy, match="went to another writer"):
                await asleep.publish()
        assert sorted(await found(sleeper, "kept new sleeper late")) == ["kept", "new"]

    async def test_a_killed_writer_leaves_the_index_serving_and_the_next_draft_clean(self, store, address):
        """On its own machine it blocks nobody, although its lock hasn't expired."""
        await publish(store, "whole")
        killed = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", KILLED, address, name_of(store)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            check=False,
            capture_output=True,
        )
        assert killed.returncode == -9, killed.stderr.decode()
        assert await found(store, "whole half done") == ["whole"]
        async with await store.draft(RECIPE) as draft:
            await put(draft, "/1", "next")
            info = await draft.publish()
        assert (info.pages, info.chunks) == (2, 2)
        assert sorted(await found(store, "whole half done next")) == ["next", "whole"]

    async def test_a_writer_that_died_before_the_pointer_moved_published_nothing(self, store, open_store, monkeypatch):
        """The catalog already lists the new generation at that moment; the alias decides."""
        first = await publish(store, "one")

        async def die(*_args) -> None:
            raise KeyboardInterrupt

        draft = await store.draft(RECIPE)
        await put(draft, "/0", "two")
        with monkeypatch.context() as patch:
            patch.setattr(draft._catalog, "point", die)
            with pytest.raises(KeyboardInterrupt):
                await draft.publish()
        await draft._lock.release()
        reader = open_store()
        assert (await reader.live()).info == first
        assert await reader.generations() == (first,)
        second = await publish(reader, "three")
        assert second.id > first.id + 1
        assert await found(store, "one two three") == ["three"]
        assert await reader.rollback() == first
        assert await found(reader, "one two three") == ["one"]


# ---- failures ----------------------------------------------------------------------------------


@asynccontextmanager
async def listening(handle, port: int = 0, **values) -> AsyncIterator[int]:
    """A server of this process on a free port; its connections end with it."""
    tasks: set[asyncio.Task] = set()
    writers: list[asyncio.StreamWriter] = []

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        tasks.add(asyncio.ensure_future(handle(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", port, **values)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


def store_at(port: int, scheme: str = "http", **values) -> OpenSearchStore:
    return OpenSearchStore(f"{scheme}://127.0.0.1:{port}", index="docs", **values)


def answering(status: int, body: bytes, kind: str = "application/json", seen: list[bytes] | None = None):
    """Handles a connection by giving each request the same answer."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                if seen is not None:
                    seen.append(head)
                start = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(start.encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    return handle


class TestFailures:
    async def test_a_closed_port_is_named(self):
        async with listening(answering(200, b"{}")) as port:
            pass
        store = store_at(port)
        with pytest.raises(StoreUnavailable, match=rf"127\.0\.0\.1:{port} can't be reached.*Start it"):
            await store.live()
        await store.close()

    async def test_a_server_that_hangs_is_given_up_in_time(self):
        async def hang(reader, writer) -> None:
            await asyncio.sleep(60)

        async with listening(hang) as port:
            store = store_at(port, timeout=0.3)
            start = time.monotonic()
            with pytest.raises(StoreUnavailable, match=r"did not answer .*DOCS_STORE_TIMEOUT is 0\.3 s"):
                await store.live()
            assert time.monotonic() - start < 2
            await store.close()

    @pytest.mark.parametrize(
        ("status", "body", "error", "message"),
        [
            (401, b"Unauthorized", StoreError, "Check user, password"),
            (403, b'{"error":{"type":"security_exception","reason":"no rights"}}', StoreError, "no rights.*Check user"),
            (429, b'{"error":{"type":"rejected","reason":"queue is full"}}', StoreUnavailable, "queue is full.*later"),
            (503, b"<html>starting</html>", StoreUnavailable, "503.*overloaded or starting"),
            (500, b'{"error":{"type":"null_pointer","reason":"oops"}}', StoreError, "500, null_pointer: oops"),
            (200, b"<html>a portal</html>", StoreError, "as OpenSearch does.*Check DOCS_STORE"),
            (200, b'{"docs-1":{"aliases":{"docs":{}}}}', StoreError, "not one of this service"),
        ],
    )
    async def test_each_refusal_is_one_of_our_errors(self, status, body, error, message):
        async with listening(answering(status, body)) as port:
            store = store_at(port)
            with pytest.raises(error, match=message) as raised:
                await store.live()
            assert raised.type is error
            await store.close()

    @pytest.mark.parametrize(
        "version",
        [{"number": "2.19.1", "distribution": "opensearch"}, {"number": "8.15.0", "build_flavor": "default"}],
    )
    async def test_a_server_that_is_too_old_or_another_product_is_refused(self, version):
        async with listening(answering(200, orjson.dumps({"version": version}))) as port:
            store = store_at(port)
            with pytest.raises(StoreError, match=rf"{version['number']}; OpenSearch 3\.0 or newer is needed"):
                await store.draft(RECIPE)
            await store.close()

    async def test_a_server_without_vectors_is_told_what_it_lacks(self):
        cause = {"type": "mapper_parsing_exception", "reason": "No handler for type [knn_vector] declared on [e]"}
        error = Connection("http://127.0.0.1:1").refusal(400, {"error": cause}, "PUT /docs-1")
        assert "k-NN plugin is missing" in str(error)

    @pytest.mark.parametrize("url", ["127.0.0.1:9200", "ftp://host", "http://"])
    def test_an_address_that_is_none_is_a_wrong_setting(self, url):
        with pytest.raises(SettingsError, match="should be as http"):
            OpenSearchStore(url, index="docs")

    @pytest.mark.parametrize("index", ["", "Docs", "_docs", "a,b", "a*", "a/b"])
    def test_an_index_name_that_is_none_is_a_wrong_setting(self, index):
        with pytest.raises(SettingsError, match="DOCS_STORE names the index"):
            OpenSearchStore("http://127.0.0.1:9200", index=index)

    def test_a_password_in_the_address_is_not_shown(self):
        assert "secret" not in Connection("http://me:secret@127.0.0.1:9200").url

    def test_half_a_surrogate_pair_is_sent_as_a_mark(self):
        assert orjson.loads(to_json({"query": "a\ud83d b"})) == {"query": "a? b"}

    def test_a_store_serves_one_event_loop_after_the_other(self):
        """Two asyncio.run in one process, as command lines and notebooks do."""

        async def ask(store: OpenSearchStore, port: int) -> None:
            async with asyncio.timeout(5):
                nothing = answering(404, b'{"error":"alias [docs] missing","status":404}')
                async with listening(nothing, port=port):
                    with pytest.raises(NoIndex):
                        await store.live()

        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        store = store_at(port)
        asyncio.run(ask(store, port))
        asyncio.run(ask(store, port))
        asyncio.run(store.close())


@pytest.mark.opensearch
@pytest.mark.server
class TestRealFailures:
    async def test_a_read_only_index_is_named(self, store, http):
        """As OpenSearch blocks it when its disk has run full; the live generation still answers."""
        await publish(store, "kept")
        block = {"index.blocks.read_only_allow_delete": True}
        await http.put(f"/{name_of(store)}-1/_settings", json=block)
        with pytest.raises(StoreError, match=r"read-only.*make room"):
            await publish(store, "new")
        assert await found(store, "kept new") == ["kept"]
        await http.put(f"/{name_of(store)}-1/_settings", json={"index.blocks.read_only_allow_delete": None})
        await publish(store, "new")
        assert await found(store, "kept new") == ["new"]

    async def test_an_index_deleted_under_a_reader_is_named_and_not_made_again(self, store, http):
        await publish(store, "text")
        live = await store.live()
        await http.delete(f"/{name_of(store)}-1")
        with pytest.raises(StoreError, match="was deleted under the service"):
            await live.search(Query((LexicalText("en", "text"),)))
        with pytest.raises(NoIndex):
            await store.live()
        assert (await http.get(f"/{name_of(store)}")).status_code == 404
        await publish(store, "text again")
        assert await found(store, "text") == ["text again"]

    async def test_an_index_of_somebody_else_is_left_alone(self, store, http):
        await http.put(f"/{name_of(store)}")
        with pytest.raises(StoreError, match="index of something else"):
            await store.draft(RECIPE)
        with pytest.raises(NoIndex):
            await store.live()

    async def test_a_row_that_is_refused_stops_the_run(self, store):
        """A part of a batch that fails is an error, not a hole in the index."""
        await publish(store, "kept")
        with pytest.raises(StoreError, match=r"refused 1 of 6 rows.*embedding"):
            async with await store.draft(RECIPE) as draft:
                record, chunks = page("/bad", "bad")
                await draft.put(record, chunks, {chunks[0].id: [1.0, "x", 2.0, 3.0]})
                await put(draft, "/0", "new")
                await draft.publish()
        assert await found(store, "kept new bad") == ["kept"]

    async def test_many_questions_at_once_ask_for_the_pointer_once(self, store):
        await publish(store, "text")
        generations = await asyncio.gather(*(store.live() for _ in range(50)))
        assert len({id(generation) for generation in generations}) == 1


# ---- TLS ---------------------------------------------------------------------------------------


@pytest.fixture
def certificate(tmp_path) -> tuple[str, ssl.SSLContext]:
    """A certificate for 127.0.0.1 that signs itself: its file, and a server's context with it."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    cert, key = tmp_path / "ca.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )  # fmt: skip
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return str(cert), context


class TestTls:
    async def test_own_authority_and_password_reach_the_server(self, certificate):
        ca, context = certificate
        seen: list[bytes] = []
        nothing = answering(404, b'{"error":"alias [docs] missing","status":404}', seen=seen)
        async with listening(nothing, ssl=context) as port:
            store = store_at(port, "https", ca=ca, auth=("me", "pa:ss"))
            with pytest.raises(NoIndex):
                await store.live()
            await store.close()
        assert b"Basic " + base64.b64encode(b"me:pa:ss") in seen[0]

    async def test_an_unknown_authority_is_named(self, certificate):
        _, context = certificate
        async with listening(answering(200, b"{}"), ssl=context) as port:
            store = store_at(port, "https")
            with pytest.raises(StoreUnavailable, match=r"No TLS with .*DOCS_STORE_CA"):
                await store.live()
            await store.close()

    async def test_plain_http_to_a_tls_port_hints_at_the_scheme(self, certificate):
        _, context = certificate
        async with listening(answering(200, b"{}"), ssl=context) as port:
            store = store_at(port)
            with pytest.raises(StoreUnavailable, match="opensearchs://"):
                await store.live()
            await store.close()

    def test_a_missing_file_of_authorities_is_a_wrong_setting(self, tmp_path):
        with pytest.raises(SettingsError, match="DOCS_STORE_CA"):
            store_at(1, "https", ca=str(tmp_path / "none.pem"))
