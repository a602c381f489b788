"""ONNX models from a directory: a real embedder out of a jar, and a small cross-encoder that counts common words."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from app.core.errors import ModelTimeout, ModelUnavailable, SettingsError
from app.core.settings import Settings
from app.models import open_embedder, open_reranker
from bench.embedders import ONNX, onnx_model
from plugins.steps.choices import Rerank
from tests.app.models.test_local import cosine
from tests.app.pipeline.turns import hit

pytest.importorskip("tokenizers", reason="needs the extra local")
OVERLAP = Path(__file__).with_name("overlap.onnx")
"""Scores 2 for each word of the question that is in the passage, less 6."""
QUESTION = "how do i delete an account"
PASSAGES = ["the quota is the size of a disk", "to delete an account open settings", ""]


@pytest.fixture
def cross_encoder(tmp_path: Path) -> Path:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = dict.fromkeys(" ".join([QUESTION, *PASSAGES]).split())
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    pair = "[CLS]:0 $A:0 $B:1"
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", pair=pair, special_tokens=[("[CLS]", 2)]
    )
    directory = tmp_path / "overlap"
    directory.mkdir()
    tokenizer.save(str(directory / "tokenizer.json"))
    settings = {"model_max_length": 64, "pad_token": "[PAD]"}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    shutil.copy(OVERLAP, directory / "model.onnx")
    return directory


@pytest.fixture
def real_model(tmp_path: Path) -> Path:
    """e5-small-v2, English, 8 bits."""
    if not ONNX.is_dir():
        pytest.skip(f"needs the model of make install-dev in {ONNX}")
    return onnx_model(tmp_path)


async def test_a_directory_with_an_onnx_model_embeds_with_the_prefixes_of_its_family(real_model: Path):
    embedder = open_embedder(Settings.load(None, embedding_model=f"local:{real_model}"))
    question = "How do I delete my account?"
    texts = ["To close it, open the settings, choose Remove and confirm.", "A quota is the size of a disk.", "x \ud800"]
    (asked,), passages = await asyncio.gather(embedder.embed_queries([question]), embedder.embed_passages(texts))
    assert cosine(asked, passages[0]) > cosine(asked, passages[1]) + 0.02
    assert cosine(asked, asked) == pytest.approx(1, abs=1e-4)
    assert await embedder.dimension() == len(asked) == 384
    assert asked != (await embedder.embed_passages([question]))[0]
    assert embedder.name.startswith("local:e5-small-v2-q#")
    assert embedder.name.endswith(" prefix='passage: '")
    await embedder.close()
    (real_model / "config_sentence_transformers.json").write_text('{"prompts": {"query": "", "document": "text: "}}')
    other = open_embedder(Settings.load(None, embedding_model=f"local:{real_model}"))
    assert other.name == embedder.name.replace("passage: ", "text: "), "the model's own file says what it needs"


async def test_a_local_cross_encoder_reranks(cross_encoder: Path):
    settings = Settings.load(None, rerank_model=f"local:{cross_encoder}")
    reranker = open_reranker(settings)
    hits = [hit(number, text) for number, text in enumerate(PASSAGES, start=1)]
    chosen = await reranker.chosen(QUESTION.capitalize(), hits, "0..1", 60)
    assert [one.chunk.text for one in chosen] == [PASSAGES[1], PASSAGES[0], PASSAGES[2]]
    assert [one.rerank for one in chosen] == pytest.approx(
        [1 / (1 + 2.718281828 ** -(2 * n - 6)) for n in (3, 0, 0)], abs=1e-5
    )
    await Rerank(reranker, settings).check_scores()
    await reranker.close()
    with pytest.raises(ModelTimeout, match=r"did not answer within 1e-06 s"):
        await reranker.chosen("How?", hits, "0..1", 1e-6)


async def test_a_local_model_that_cannot_be_opened_is_refused_by_name(cross_encoder: Path, monkeypatch):
    missing, none, two = cross_encoder / "gone", cross_encoder.parent / "none", cross_encoder.parent / "two"
    for directory in (none, two):
        shutil.copytree(cross_encoder, directory)
        (directory / "model.onnx").unlink()
    (two / "a.onnx").touch()
    (two / "b.onnx").touch()
    wrong = [
        ({"embedding_model": "local:no-such"}, "no such model comes with this package. Download .*local:./model"),
        ({"rerank_model": "local:BAAI/bge-m3"}, "hf download onnx-community/bge-m3 "),
        ({"embedding_model": f"local:{missing}"}, "there is no file .*gone/tokenizer.json"),
        ({"rerank_model": f"local:{none}"}, r"there must be one ONNX file .*there is: \[\]"),
        ({"rerank_model": f"local:{two}"}, r"there must be one ONNX file .*'a.onnx', 'b.onnx'"),
        ({"rerank_model": f"local:{cross_encoder}", "rerank_url": "http://127.0.0.1:1"}, "remove DOCS_RERANK_URL"),
    ]
    for settings, message in wrong:
        with pytest.raises(SettingsError, match=message):
            (open_embedder if "embedding_model" in settings else open_reranker)(Settings.load(None, **settings))
    (cross_encoder / "model.onnx").write_bytes(b"not a model")
    reranker = open_reranker(Settings.load(None, rerank_model=f"local:{cross_encoder}"))
    with pytest.raises(ModelUnavailable, match=r"overlap can't be loaded"):
        await reranker.chosen("How?", [hit(1)], "0..1", 60)
    monkeypatch.setattr("app.models.protocols.find_spec", {"onnxruntime": "there"}.get)
    for kind, open_ in {"embedding_model": open_embedder, "rerank_model": open_reranker}.items():
        with pytest.raises(SettingsError, match=r"needs tokenizers: install docs-assistant\[local\]"):
            open_(Settings.load(None, **{kind: f"local:{cross_encoder}"}))
