"""How many tokens a language model reads: what its server lists, or says when a prompt was too long."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_LISTED = ("n_ctx", "max_model_len", "context_length", "context_window", "max_context_length")
"""Names of the window in an entry of `/v1/models`, or in its `meta`: of llama.cpp, of vLLM and SGLang, and of providers."""
_SAID = re.compile(
    r"(?:context (?:length|size|window)|n_ctx|max_model_len|max_seq_len)\D{0,40}(\d{3,8})", re.IGNORECASE
)
"""The window in an error, as "maximum context length is 4096 tokens" or `"n_ctx":4096`."""


def listed_window(entries: Iterable[Any], name: str) -> int:
    """The window of the model in the list of a server; 0 if that doesn't say it. A server's only model is meant by any name."""
    models = [entry for entry in entries if isinstance(entry, Mapping)]
    of_name = [entry for entry in models if entry.get("id") == name] or (models if len(models) == 1 else [])
    for entry in of_name:
        meta = entry.get("meta")
        for place in (meta if isinstance(meta, Mapping) else {}, entry):
            if size := next((place[key] for key in _LISTED if isinstance(place.get(key), int)), 0):
                return int(size)
    return 0


def window_said(error: str) -> int:
    """The window that an error names; 0 if it names none."""
    found = _SAID.search(error)
    return int(found[1]) if found else 0
