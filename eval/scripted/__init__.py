"""Stand-ins for a language model that say what a file has for a question, or once had for a prompt, and nothing else.

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
