"""Replaces a language model by the answers of files, by question or by exact prompt.

`python -m tests.scripted` serves it over the OpenAI chat API, for `DOCS_LLM_URL`.
"""

from __future__ import annotations

from tests.scripted.model import ScriptedModel
from tests.scripted.recorded import RecordedModel, key_of, load_record, missing_lines
from tests.scripted.script import Line, Script, load_script

__all__ = [
    "Line",
    "RecordedModel",
    "Script",
    "ScriptedModel",
    "key_of",
    "load_record",
    "load_script",
    "missing_lines",
]
