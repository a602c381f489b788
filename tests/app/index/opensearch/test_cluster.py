"""An address with several hosts and parameters: failover between hosts, and what the indices are made with."""

from __future__ import annotations

import asyncio
import json

import pytest

from app.core.errors import SettingsError, StoreError, StoreUnavailable
from app.core.settings import Settings
from app.core.types import LexicalText, Query
from app.index import open_store
from app.index.opensearch import catalog, connection
from app.index.opensearch.connection import Connection, Layout, parse
from tests.app.index.opensearch.rows import found, name_of, publish
from tests.app.index.opensearch.test_failures import answering, listening
from tests.contract.pages import axis

OK = b'{"it": "works"}'


def hosts(*ports: int) -> list[str]:
    return [f"http://127.0.0.1:{port}" for port in ports]


async def cut_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes the connection in the middle of a request, as a killed process does."""
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@pytest.fixture
def first_host_first(monkeypatch) -> None:
    monkeypatch.setattr("opensearchpy.connection_pool.random.shuffle", lambda _: None)


class TestAddress:
    def test_hosts_user_index_and_parameters_are_read(self):
        address = parse("opensearchs://me:p%40ss@a:9201,b,[::1]:9203/docs?replicas=0&shards=2&m=24&ef_search=200")
        assert address.hosts == ("https://a:9201", "https://b:9200", "https://[::1]:9203")
        assert (address.index, address.auth) == ("docs", ("me", "p@ss"))
        assert address.layout == Layout(shards=2, replicas=0, m=24, ef_search=200)

    def test_each_mistake_is_named_without_the_password(self):
        for tail, message in {
            "a,,b/docs": "a host is missing",
            "a:1,b:x/docs": "port isn't a number",
            "a,b": "write it as opensearch://",
            "a/Docs": "use lower-case letters",
            "a/b/c": "use lower-case letters",
            "a/docs?replica=1": "'replica' is not a parameter.*shards, replicas, m,",
            "a/docs?shards=0": "shards must be a number from 1 to 100",
            "a/docs?ef_search=": "ef_search must be a number",
        }.items():
            with pytest.raises(SettingsError, match=message) as raised:
                open_store(Settings(store=f"opensearch://me:secret@{tail}"))
            assert "secret" not in str(raised.value)


class TestFailover:
    async def test_calls_go_on_when_a_host_is_gone_and_come_back_to_it(self, monkeypatch):
        monkeypatch.setattr(connection, "DEAD_SECONDS", 0.2)
        seen: list[bytes] = []
        async with listening(answering(200, OK)) as live:
            async with listening(answering(200, OK)) as dying:
                calls = Connection(hosts(dying, live), timeout=60)
                await asyncio.gather(*(calls.call("GET", "/") for _ in range(20)))
            for _ in range(10):  # the idle connections of one host are closed, and nothing listens there
                assert await calls.call("POST", "/_bulk", b"{}\n") == {"it": "works"}
            await asyncio.sleep(0.3)
            async with listening(answering(200, OK, seen=seen), port=dying):
                for _ in range(6):
                    await calls.call("GET", "/")
                assert seen, "the host is used again"
                await calls.close()

    async def test_only_reads_are_repeated_after_a_timeout_or_503(self, first_host_first):
        """A write that timed out may still be running, and a repeated one would add to the load."""
        for handle in (hang, answering(503, b'{"error":{"type":"x","reason":"starting"}}')):
            async with listening(handle) as bad, listening(answering(200, OK)) as good:
                for path in ("/docs/_search", "/_msearch", "/_bulk", "/_aliases"):
                    calls = Connection(hosts(bad, good), timeout=0.1 if handle is hang else 60)
                    if path.endswith("search"):
                        assert await calls.call("POST", path) == {"it": "works"}
                    else:
                        with pytest.raises(StoreUnavailable):
                            await calls.call("POST", path)
                        assert await calls.call("POST", path) == {"it": "works"}, "the next one goes to the other host"
                    await calls.close()

    async def test_a_write_whose_response_was_lost_counts_as_done(self, first_host_first):
        """The type of the second error tells that the first call has done it; without a first call, it is an error."""
        cause = {"type": "aliases_not_found_exception", "reason": "gone"}
        refused = answering(404, json.dumps({"error": cause, "status": 404}).encode())
        async with listening(cut_off) as dying, listening(refused) as live:
            calls = Connection(hosts(dying, live), timeout=60)
            assert await calls.call("POST", "/_aliases", b"{}", allow=(cause["type"],)) is None
            with pytest.raises(StoreError, match="aliases_not_found"):
                await calls.call("POST", "/_aliases", b"{}", allow=(cause["type"],))
            await calls.close()

    async def test_when_all_hosts_are_gone_the_error_names_them(self):
        async with listening(hang) as one, listening(hang) as other:
            pass
        calls = Connection(hosts(one, other), timeout=60)
        with pytest.raises(StoreUnavailable, match=rf"127\.0\.0\.1:{one},http://127\.0\.0\.1:{other} can't be reached"):
            await calls.call("GET", "/")
        await calls.close()


@pytest.mark.opensearch
@pytest.mark.server
class TestLayout:
    async def test_indices_are_made_as_the_address_says_and_find_the_same(self, store, open_store, http):
        """Scores by words don't depend on the number of shards."""
        other = f"{name_of(store)}-other"
        split = open_store(index=other, layout=Layout(shards=3, replicas=0, m=24, ef_construction=60, ef_search=50))
        texts = [f"the gauge {number} " + "measures pressure " * (number % 4) for number in range(12)]
        query = Query((LexicalText("en", "pressure gauge 7"),), vector=axis(0), depth=20)
        scores = []
        for one in (store, split):
            await publish(one, *texts)
            legs = await (await one.live()).search(query)
            scores.append({hit.id: round(hit.score, 4) for hit in legs.lexical})
            assert len(legs.vector) == 12
        assert scores[0] == scores[1]
        made = (await http.get(f"/{other}-1")).json()[f"{other}-1"]
        settings = made["settings"]["index"]
        assert (settings["number_of_shards"], settings["number_of_replicas"], settings["refresh_interval"]) == (
            "3",
            "0",
            "-1",
        )
        method = made["mappings"]["properties"]["embedding"]["method"]
        assert method["parameters"] == {"m": 24, "ef_construction": 60}

    async def test_an_index_that_is_not_green_is_not_published(self, store, open_store, http, monkeypatch):
        """A replica that no node takes: the run ends with an error, the live index serves, and another run finishes."""
        await publish(store, "before")
        monkeypatch.setattr(catalog, "HEALTH_SECONDS", 1)
        with pytest.raises(StoreUnavailable, match=r"Nothing was published: .*-1 .* is yellow, not green.*replicas"):
            await publish(open_store(layout=Layout(replicas=1)), "after")
        assert await found(open_store(), "before after") == ["before"]
        await publish(open_store(layout=Layout(replicas=0)), "after")
        assert await found(open_store(), "before after") == ["after"]

    async def test_a_missing_shard_is_an_error_and_not_a_part_of_the_results(self, open_store, http):
        store = open_store(layout=Layout(shards=2, replicas=0))
        await publish(store, *(f"text {number}" for number in range(8)))
        live = await store.live()
        chunks = f"{name_of(store)}-1"
        await http.delete(f"/{chunks}")
        one_too_many = {"number_of_shards": 2, "number_of_replicas": 0, "routing.allocation.total_shards_per_node": 1}
        created = await http.put(f"/{chunks}?wait_for_active_shards=0", json={"settings": {"index": one_too_many}})
        assert created.status_code == 200, created.text
        async with asyncio.timeout(60):
            while sorted((await http.get(f"/_cat/shards/{chunks}?h=state")).text.split()) != ["STARTED", "UNASSIGNED"]:
                await asyncio.sleep(0.1)
        with pytest.raises(StoreUnavailable):
            await live.search(Query((LexicalText("en", "text"),)))
        with pytest.raises(StoreUnavailable):
            await live.fetch(["1"])
