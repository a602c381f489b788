"""Embedders and rerankers of fastembed (extra `local`): ONNX models of its list, or from a directory."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.core.errors import ModelTimeout, ModelUnavailable, SettingsError, did_you_mean
from app.models.local import InThreads, LocalEmbedder, encodable
from app.models.protocols import AUTO, prefixes_of

BATCH = 8
SHOWN = 5  # models in a message
"""Texts that the model reads at once: all are padded to the longest, and memory grows with their number."""

FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx", "model_optimized.onnx")
_HASHED = 1 << 20
_POOLING = {"pooling_mode_cls_token": "CLS", "pooling_mode_lasttoken": "LAST_TOKEN"}

T = TypeVar("T")


class OnnxEmbedder(LocalEmbedder):
    """An embedding model of fastembed by its name, also without the organisation, or in a directory.

    One of its list is downloaded at the first call, from the hub to `FASTEMBED_CACHE_PATH` (`~/.cache/fastembed`).
    Raises `SettingsError` if fastembed isn't installed, or for an unknown name or an incomplete directory.
    """

    def __init__(self, name: str, prefixes: tuple[str, str], max_chars: int) -> None:
        library = _fastembed().TextEmbedding
        if directory := _directory(name):
            prefixes, name = _prompts(directory, prefixes), f"{directory.name}#{_print_of(directory)}"
            make: Callable[[], Any] = partial(_from_directory, library, name, directory)
        else:
            known = _known(name, library)
            prefixes, name = prefixes_of(known, *prefixes), known
            make = partial(library, known, cache_dir=_cache())
        super().__init__(
            f"local:{name}", lambda: OnnxEngine(_loaded(name, make)), prefixes=prefixes, max_chars=max_chars, threads=1
        )


class OnnxEngine:
    """A loaded model of fastembed. It uses all cores for each call."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def embed(self, texts: Sequence[str], *, question: bool) -> NDArray[np.float32]:
        """A row for each text."""
        embed = self._model.query_embed if question else self._model.passage_embed
        return np.stack(list(embed(list(texts), batch_size=BATCH)))


class OnnxReranker:
    """A cross-encoder of fastembed by its name, also without the organisation, or in a directory.

    Raises `SettingsError` as `OnnxEmbedder` does.
    """

    def __init__(self, name: str, timeout: float) -> None:
        _fastembed()
        from fastembed.rerank.cross_encoder import TextCrossEncoder as Library

        if directory := _directory(name):
            make: Callable[[], Any] = partial(_from_directory, Library, str(directory), directory)
        else:
            known = _known(name, Library)
            make = partial(Library, known, cache_dir=_cache())
        self.name = f"local:{name}"
        self._model = InThreads(self.name, lambda: _loaded(name, make), threads=1)
        self._timeout = timeout

    async def rerank(self, question: str, passages: Sequence[str]) -> list[float]:
        """A score in 0..1 for each passage, in their order: the sigmoid of what the model says.

        Raises `ModelError` if the model can't be loaded or takes longer than the timeout in seconds.
        """
        texts = [encodable(text) for text in passages]
        try:
            async with asyncio.timeout(self._timeout):
                scores = await self._model.call(
                    lambda model: np.array([*model.rerank(encodable(question), texts, batch_size=BATCH)], np.float64)
                )
        except TimeoutError as error:
            raise ModelTimeout(f"{self.name} took over {self._timeout:g} s for {len(texts)} passages.") from error
        return list((1 / (1 + np.exp(-np.clip(scores, -700, 700)))).tolist())

    async def close(self) -> None:
        """Release the weights and threads."""
        self._model.close()


def _fastembed() -> Any:
    try:
        import fastembed
    except ImportError as error:
        raise SettingsError(f"Local ONNX models need fastembed ({error}): install docs-assistant[local].") from error
    return fastembed


def _known(name: str, library: Any) -> str:
    """The full name of a model in the library's list."""
    names = [str(model["model"]) for model in library.list_supported_models()]
    matches = [full for full in names if name.lower() in {full.lower(), full.rpartition("/")[2].lower()}]
    if not matches:
        raise SettingsError(
            f"local:{name}: fastembed has no such model.{did_you_mean(name, [full.rpartition('/')[2] for full in names])} It has"
            f" {', '.join(names[:SHOWN])} and {len(names) - SHOWN} more. For another one, name the directory of its ONNX"
            " export: local:/path/to/model."
        )
    return matches[0]


def _directory(name: str) -> Path | None:
    """The directory with this path, checked; None for a name without a leading `/`, `.` or `~`."""
    if name[:1] not in {"/", ".", "~"}:
        return None
    directory = Path(name).expanduser().resolve()
    for needed in ("tokenizer.json", "tokenizer_config.json"):
        if not (directory / needed).is_file():
            raise SettingsError(
                f"local:{name}: there is no file {directory / needed}. Export the model with its tokenizer."
            )
    _onnx_file(directory)
    return directory


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


def _from_directory(library: Any, name: str, directory: Path) -> Any:
    """The model in this directory, registered under the name."""
    from fastembed.common.model_description import ModelSource, PoolingType

    file = _onnx_file(directory)
    if name not in {model["model"] for model in library.list_supported_models()}:
        more: dict[str, Any] = {}
        if library is _fastembed().TextEmbedding:
            written = _read_json(directory / "1_Pooling/config.json")
            pooling = next((kind for key, kind in _POOLING.items() if written.get(key)), "MEAN")
            more = {"pooling": PoolingType[pooling], "normalization": True, "dim": 0}
        # fastembed insists on a source, but reads only the directory
        library.add_custom_model(model=name, sources=ModelSource(url="file:///"), model_file=file, **more)
    return library(name, specific_model_path=str(directory))


def _loaded(name: str, make: Callable[[], T]) -> T:
    try:
        return make()
    except Exception as error:  # of the hub's client, of onnxruntime, of tokenizers: each has its own
        raise ModelUnavailable(
            f"The model local:{name} can't be loaded: {error}. If its download fails, put its ONNX export into a directory"
            " and set local:/path/to/model."
        ) from error


def _cache() -> str:
    return os.environ.get("FASTEMBED_CACHE_PATH") or str(Path.home() / ".cache/fastembed")
