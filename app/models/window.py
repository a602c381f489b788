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


def _names(name: str) -> tuple[str, str]:
    """The names of a model in lists: Ollama's have a tag."""
    return name, f"{name}:latest"


def _places(entries: Iterable[Any], name: str) -> Iterator[Mapping[str, Any]]:
    """What the list of a server says of the model, what is in its `meta` first. A server's only model is meant by any name."""
    models = [entry for entry in entries if isinstance(entry, Mapping)]
    of_name = [entry for entry in models if entry.get("id") in _names(name)]
    for entry in of_name or (models if len(models) == 1 else []):
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


def of_ollama(entries: Iterable[Any], name: str) -> bool:
    """True if the list is that of Ollama, which says nothing of windows there."""
    return listed_identity(entries, name).get("owned_by") == "library"


def ollama_window(shown: Mapping[str, Any], running: Mapping[str, Any], name: str) -> int:
    """The window of a model of Ollama from its `/api/show` and `/api/ps`: the model's `num_ctx`, or else that with which it is loaded, or
    else the least that Ollama loads it with, but at most what the model was trained for.
    """
    parameters = (line.split() for line in str(shown.get("parameters", "")).splitlines())
    set_ = [
        int(value)
        for key, value in (line for line in parameters if len(line) == 2)
        if key == "num_ctx" and value.isdecimal()
    ]
    models = running.get("models")
    loaded = [
        one
        for one in (models if isinstance(models, list) else ())
        if isinstance(one, Mapping) and one.get("name") in _names(name)
    ]
    sizes = [*set_, *(one["context_length"] for one in loaded if isinstance(one.get("context_length"), int))]
    info = shown.get("model_info")
    trained = [
        size
        for key, size in (info.items() if isinstance(info, Mapping) else ())
        if str(key).endswith(".context_length") and isinstance(size, int)
    ]
    return min([next(filter(None, sizes), 4096), *trained])  # https://docs.ollama.com/context-length


def window_said(error: str) -> int:
    """The window that an error names; 0 if it names none."""
    found = _SAID.search(error)
    return int(found[1]) if found else 0
