"""A stand-in for a language model that says what a file has for a question, and nothing it wasn't told.

`python -m eval.scripted` serves it over the OpenAI chat API.
"""

from __future__ import annotations

from eval.scripted.model import ScriptedModel
from eval.scripted.script import Line, Script, load_script

__all__ = ["Line", "Script", "ScriptedModel", "load_script"]
