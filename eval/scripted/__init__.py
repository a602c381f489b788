"""Replaces a language model by the answers of files, by question or by exact prompt.

`python -m eval.scripted` serves it over the OpenAI chat API.
"""

from __future__ import annotations

from eval.scripted.model import ScriptedModel
from eval.scripted.recorded import RecordedModel, key_of, load_record, missing_lines
from eval.scripted.script import Line, Script, load_script

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
