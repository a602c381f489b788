"""What a server says of a language model: which one it is, and how many tokens it reads, in its list or when a prompt was too long."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_LISTED = ("n_ctx", "max_model_len", "context_length", "context_window", "max_context_length")
"""Names of the window in an entry of `/v1/models`, or in its `meta`: of llama.cpp, of vLLM and SGLang, and of providers."""
_TELLING = (
    "id",
    "root",
    "owned_by",
    "created",
    "max_model_len",
    "n_params",
    "size",
    "n_vocab",
    "n_embd",
    "n_ctx_train",
)
"""What tells a model from another one behind the same name."""
_SAID = re.compile(
    r"(?:context (?:length|size|window)|n_ctx|max_model_len|max_seq_len)\D{0,40}(\d{3,8})", re.IGNORECASE
)
"""The window in an error, as "maximum context length is 4096 tokens" or `"n_ctx":4096`."""


def _places(entries: Iterable[Any], name: str) -> Iterator[Mapping[str, Any]]:
    """What the list of a server says of the model, what is in its `meta` first. A server's only model is meant by any name."""
    models = [entry for entry in entries if isinstance(entry, Mapping)]
    for entry in [entry for entry in models if entry.get("id") == name] or (models if len(models) == 1 else []):
        meta = entry.get("meta")
        yield meta if isinstance(meta, Mapping) else {}
        yield entry


def listed_window(entries: Iterable[Any], name: str) -> int:
    """The window of the model in the list of a server; 0 if that doesn't say it. A server's only model is meant by any name."""
    sizes = (place[key] for place in _places(entries, name) for key in _LISTED if isinstance(place.get(key), int))
    return next((int(size) for size in sizes if size), 0)


def listed_identity(entries: Iterable[Any], name: str) -> Mapping[str, str | int]:
    """What tells the model in the list of a server from others behind its name; empty if the list hasn't the model."""
    return {
        key: place[key] for place in _places(entries, name) for key in _TELLING if isinstance(place.get(key), str | int)
    }


def window_said(error: str) -> int:
    """The window that an error names; 0 if it names none."""
    found = _SAID.search(error)
    return int(found[1]) if found else 0
