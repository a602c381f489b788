"""How a result was measured: settings, store, model, fingerprint of the program."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.core.masking import masked
from app.core.prompt_files import files_in_force
from app.core.settings import Settings
from eval.cache import fingerprint

_MEASURED = ("app", "prompts")
_SOURCES = frozenset({".py", ".toml", ".md"})
_SETTINGS = (
    "languages",
    "top_k",
    "per_page",
    "fusion",
    "vector_weight",
    "other_language",
    "keyword_weight",
    "exact",
    "chunk_size",
)


def configuration(set_name: str, settings: Settings, overrides: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The part of a result's `config` that is known before the first question."""
    own = settings.model_dump(include=set(_SETTINGS), mode="json")
    return {
        "set": Path(set_name).name,
        "settings": {**own, **{name: value for name, value in overrides.items() if name in _SETTINGS}},
        "store": _store(str(overrides.get("store", settings.store))),
        "model": model,
        "prompts": fingerprint_of_prompts(str(overrides.get("prompts", settings.prompts))),
        "version": _version(),
        "code": fingerprint_of_code(),
    }


def _store(address: str) -> str:
    # the path of a directory is private, the address of a server isn't
    return masked(address) if ":" in address else "a directory"


def _version() -> str:
    try:
        return version("docs-assistant")
    except PackageNotFoundError:  # run from a checkout that isn't installed
        return ""


def fingerprint_of_prompts(folder: str) -> str:
    """A fingerprint of the texts of all prompts that are in force with this directory of DOCS_PROMPTS."""
    return fingerprint(*(part for item in sorted(files_in_force(folder).items()) for part in item))[:12]


def fingerprint_of_code() -> str:
    """A fingerprint of the program and its prompts: it differs between two results if they changed."""
    digest = hashlib.sha256()
    for package in _MEASURED:
        folder = Path(str(files(package)))
        for path in sorted(path for path in folder.rglob("*") if path.suffix in _SOURCES):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
