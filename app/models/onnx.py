"""Models on ONNX Runtime (extra `local`): embedders and cross-encoders from a directory with an ONNX export.

Each text is read alone, in one thread: padding to the longest of a batch costs more than a batch spares on a processor, and
the threads of the embedder read several at once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelUnavailable, SettingsError
from app.models.local import LocalEmbedder
from app.models.protocols import AUTO, missing, prefixes_of

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx", "model_optimized.onnx")
TOKENIZER = "tokenizer.json"
ORGANISATION = "onnx-community"
"""The one that has exports of most models on the hub."""
_HASHED = 1 << 20
_LONGEST = 512  # tokens, where the model's files don't say it
T = TypeVar("T")


def session(model: bytes | Path) -> InferenceSession:
    """The model, ready to run: each call uses the thread that makes it, and memory goes back after it."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 3  # errors
    given = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


class OnnxModel:
    """A model with its tokenizer, out of a directory. May be called in several threads."""

    def __init__(self, directory: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_longest(directory))
        self._session = session(directory / _onnx_file(directory))
        self._inputs = {put.name for put in self._session.get_inputs()}

    def read(self, text: str, beside: str | None = None) -> NDArray[np.float32]:
        """What the model says of a text, or of two together: its first output, without the dimension of the batch."""
        encoding = self._tokenizer.encode(text, beside)
        feeds = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        arrays = {name: np.array([feed], np.int64) for name, feed in feeds.items() if name in self._inputs}
        output, *_ = self._session.run(None, arrays)
        return np.asarray(output[0])


class OnnxEmbedder(LocalEmbedder):
    """An embedding model in a directory. Raises `SettingsError` if it is incomplete, or ONNX Runtime isn't installed."""

    def __init__(self, path: str, prefixes: tuple[str, str], max_chars: int) -> None:
        directory = directory_of(path)
        name = f"{directory.name}#{_print_of(directory)}"
        super().__init__(
            f"local:{name}",
            partial(loaded, directory, lambda: _Pooled(directory)),
            prefixes=_prompts(directory, prefixes),
            max_chars=max_chars,
        )


class _Pooled(OnnxModel):
    """An embedding model whose output for each token becomes one vector, as its files say."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        written = _read_json(directory / "1_Pooling/config.json")
        self._of_first, self._of_last = written.get("pooling_mode_cls_token"), written.get("pooling_mode_lasttoken")

    def __call__(self, text: str) -> NDArray[np.float32]:
        """The vector of a text."""
        output = self.read(text)
        if output.ndim == 1:  # the model itself did it
            return output
        if self._of_first or self._of_last:
            return np.asarray(output[0 if self._of_first else -1])
        return np.asarray(output.mean(axis=0))


def directory_of(path: str) -> Path:
    """The directory with this path, with all files that are needed."""
    if path[:1] not in {"/", ".", "~"}:
        raise SettingsError(
            f"local:{path}: no such model comes with this package. Download its ONNX export, for example with"
            f" `hf download {ORGANISATION}/{path.rpartition('/')[2]} --local-dir model`, and name the directory: local:./model."
        )
    if names := missing("onnxruntime", "tokenizers"):
        raise SettingsError(f"local:{path} needs {names}: install docs-assistant[local].")
    directory = Path(path).expanduser().resolve()
    if not (directory / TOKENIZER).is_file():
        raise SettingsError(
            f"local:{path}: there is no file {directory / TOKENIZER}. Export the model with its tokenizer."
        )
    _onnx_file(directory)
    return directory


def _longest(directory: Path) -> int:
    """How many tokens the model reads of a text."""
    sizes = (
        _read_json(directory / "sentence_bert_config.json").get("max_seq_length"),
        _read_json(directory / "tokenizer_config.json").get("model_max_length"),
    )
    return min((int(size) for size in sizes if isinstance(size, int | float) and size > 0), default=_LONGEST)


def _onnx_file(directory: Path) -> str:
    """The model's file, relative to its directory."""
    there = [str(path.relative_to(directory)) for path in sorted(directory.rglob("*.onnx"))]
    files = [name for name in FILES if name in there] or there
    if not files or (files is there and len(there) > 1):
        wanted = ", ".join(FILES)
        raise SettingsError(
            f"local:{directory}: there must be one ONNX file in it, or one called {wanted}; there is: {there}."
        )
    return files[0]


def _print_of(directory: Path) -> str:
    """A fingerprint of the weights: of the beginning, the end and the size of the model's file."""
    path = directory / _onnx_file(directory)
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(_HASHED))
        file.seek(max(0, size - _HASHED))
        digest.update(file.read())
    digest.update(str(size).encode())
    return digest.hexdigest()[:8]


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path} can't be read: {error}") from error
    return content if isinstance(content, dict) else {}


def _prompts(directory: Path, given: tuple[str, str]) -> tuple[str, str]:
    """The prefixes: the given ones, for `auto` those that the model's own file has, else those of a model of this name."""
    own = _read_json(directory / "config_sentence_transformers.json").get("prompts") or {}
    query, passage = own.get("query"), own.get("passage", own.get("document"))
    query = query if given[0] == AUTO and query is not None else given[0]
    passage = passage if given[1] == AUTO and passage is not None else given[1]
    return prefixes_of(directory.name, query, passage)


def loaded(directory: Path, make: Callable[[], T]) -> T:
    """What `make` returns. Raises `ModelUnavailable` if it fails."""
    try:
        return make()
    except Exception as error:  # of onnxruntime, of tokenizers: each has its own
        raise ModelUnavailable(f"The model local:{directory} can't be loaded: {error}") from error
