"""What an OpenSearch that fails, or is none, comes to: errors that say what to do."""

from __future__ import annotations

import asyncio
import base64
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from app.core.errors import NoIndex, SettingsError, StoreError, StoreUnavailable
from app.core.types import LexicalText, Query
from app.index.opensearch.connection import to_json
from app.index.opensearch.store import OpenSearchStore
from app.index.run_history import EndedRun, RunOrigin, add_run
from tests.app.index.opensearch.rows import RECIPE, SITE, found, name_of, publish, put
from tests.contract.pages import chunks_of, put_chunks
from tests.opensearch import store_at


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


def store_on(port: int, scheme: str = "http", login: str = "", **values) -> OpenSearchStore:
    return store_at(f"{scheme}://{login}127.0.0.1:{port}", **values)


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
        store = store_on(port)
        with pytest.raises(StoreUnavailable, match=rf"127\.0\.0\.1:{port} can't be reached.*Start it"):
            await store.live()
        await store.close()

    async def test_a_server_that_hangs_is_given_up_in_time(self):
        async def hang(reader, writer) -> None:
            await asyncio.sleep(600)

        async with listening(hang) as port:
            store = store_on(port, timeout=0.3)
            async with asyncio.timeout(60):
                with pytest.raises(StoreUnavailable, match=r"did not answer .*DOCS_TUNING__STORE_TIMEOUT is 0\.3 s"):
                    await store.live()
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
            store = store_on(port)
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
            store = store_on(port)
            with pytest.raises(StoreError, match=rf"{version['number']}; OpenSearch 3\.0 or newer is needed"):
                await store.draft(RECIPE)
            await store.close()

    def test_half_a_surrogate_pair_is_sent_as_a_mark(self):
        assert orjson.loads(to_json({"query": "a\ud83d b"})) == {"query": "a? b"}

    def test_a_store_serves_one_event_loop_after_the_other(self):
        """Two asyncio.run in one process, as command lines and notebooks do."""

        async def ask(store: OpenSearchStore, port: int) -> None:
            async with asyncio.timeout(60):
                nothing = answering(404, b'{"error":"alias [docs] missing","status":404}')
                async with listening(nothing, port=port):
                    with pytest.raises(NoIndex):
                        await store.live()

        import socket

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        store = store_on(port)
        asyncio.run(ask(store, port))
        asyncio.run(ask(store, port))
        asyncio.run(store.close())


@pytest.mark.opensearch
@pytest.mark.server
class TestRealFailures:
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

    async def test_an_index_of_another_program_is_left_alone(self, store, http):
        await http.put(f"/{name_of(store)}")
        with pytest.raises(StoreError, match="index of something else"):
            await store.draft(RECIPE)
        with pytest.raises(NoIndex):
            await store.live()
        with pytest.raises(StoreError, match="index of something else"):
            await add_run(store, EndedRun(RunOrigin(), 0.0, 1.0, "failed"))
        assert list((await http.get(f"/{name_of(store)}*")).json()) == [name_of(store)], "nothing is written beside it"

    async def test_a_row_that_is_refused_stops_the_run(self, store):
        """A part of a batch that fails is an error, not a hole in the index."""
        await publish(store, "kept")
        with pytest.raises(StoreError, match=r"refused 1 of 6 rows.*position"):
            async with await store.draft(RECIPE) as draft:
                (chunk,) = chunks_of(f"{SITE}/bad", "bad")
                await put_chunks(draft, [replace(chunk, position="first")])
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
    return _certificate(tmp_path / "ca", "IP:127.0.0.1")


def _certificate(place: Path, names: str) -> tuple[str, ssl.SSLContext]:
    cert, key, request = (place.with_suffix(suffix) for suffix in (".pem", ".key", ".csr"))
    for command in (
        ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=test",
         "-addext", f"subjectAltName={names}", "-keyout", key, "-out", request],
        ["x509", "-req", "-in", request, "-copy_extensions", "copy", "-signkey", key, "-days", "2", "-out", cert],
    ):  # fmt: skip
        subprocess.run(["openssl", *command], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return str(cert), context


class TestTls:
    async def test_own_authority_and_password_reach_the_server(self, certificate):
        ca, context = certificate
        seen: list[bytes] = []
        nothing = answering(404, b'{"error":"alias [docs] missing","status":404}', seen=seen)
        async with listening(nothing, ssl=context) as port:
            store = store_on(port, "https", "me:pa%3Ass@", ca=ca)
            with pytest.raises(NoIndex):
                await store.live()
            await store.close()
        assert b"Basic " + base64.b64encode(b"me:pa:ss") in seen[0]

    async def test_each_fault_of_a_certificate_is_named(self, certificate, tmp_path):
        other = _certificate(tmp_path / "other", "IP:127.0.0.2,DNS:search.example.org")
        for trusted, served, message in (
            ("", certificate[1], r"self-signed certificate\. DOCS_STORE_CA names"),
            (other[0], other[1], r"mismatch, certificate is not valid for '127\.0\.0\.1'"),
        ):
            async with listening(answering(200, b"{}"), ssl=served) as port:
                store = store_on(port, "https", ca=trusted)
                with pytest.raises(StoreUnavailable, match=f"No TLS with .*{message}"):
                    await store.live()
                await store.close()

    async def test_plain_http_to_a_tls_port_hints_at_the_scheme(self, certificate):
        _, context = certificate
        async with listening(answering(200, b"{}"), ssl=context) as port:
            store = store_on(port)
            with pytest.raises(StoreUnavailable, match="opensearchs://"):
                await store.live()
            await store.close()

    def test_a_missing_file_of_authorities_is_a_wrong_setting(self, tmp_path):
        with pytest.raises(SettingsError, match="DOCS_STORE_CA"):
            store_on(1, "https", ca=str(tmp_path / "none.pem"))
