"""Makes the embedding model of the tests, which takes no time: python -m tests.words.make.

A vector is the sum of the vectors of all three letters in a row, each of which is the product of three random ones. So texts
that share words, or their stems, are near each other. It is an ONNX model in a directory, so that tests run the code that
a model of one's own runs in; `tests/conftest.py` sets DOCS_EMBEDDING_MODEL to it.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from app.models.e5 import Graph

SIZE = 128
FOLDER = Path(__file__).parent


def tokenizer() -> Tokenizer:
    """Bytes without case and accents; at least three."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    made.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    edge = letters[-1]
    made.post_processor = processors.TemplateProcessing(
        single=f"{edge} {edge} $A {edge}", special_tokens=[(edge, len(letters) - 1)]
    )
    return made


def model() -> bytes:
    """The graph: the products of three neighbours, summed up."""
    graph, random = Graph(), np.random.default_rng(1)
    parts = []
    for place in range(3):
        signs = graph.constant(f"signs{place}", random.choice([-1, 1], (256, SIZE)).astype(np.int8))
        table = graph.node("Cast", [signs], f"table{place}", to=1)
        begin = graph.constant(f"begin{place}", np.array([place]))
        end = graph.constant(f"end{place}", np.array([place - 2 or 1 << 40]))
        ids = graph.node(
            "Slice", ["input_ids", begin, end, graph.constant(f"axis{place}", np.array([1]))], f"ids{place}"
        )
        parts.append(graph.node("Gather", [table, ids], f"part{place}"))
    pairs = graph.node("Mul", parts[:2], "pairs")
    graph.node("Mul", [pairs, parts[2]], "last_hidden_state")
    return graph.model("words", {"input_ids": (1, "length")}, {"last_hidden_state": (1, "count", SIZE)})


if __name__ == "__main__":
    tokenizer().save(str(FOLDER / "tokenizer.json"))
    (FOLDER / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 10_000}), encoding="utf-8")
    (FOLDER / "model.onnx").write_bytes(model())
