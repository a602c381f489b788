"""The part of a file that `literalinclude` shows."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping


def listing(text: str, options: Mapping[str, str]) -> str:
    """The lines that the options choose."""
    lines = _object(text, options["pyobject"]) if options.get("pyobject") else text.expandtabs(8).splitlines()
    if options.get("lines"):
        lines = _numbered(lines, options["lines"])
    lines = _between(lines, options)
    made = "\n".join(lines)
    if "dedent" in options:
        count = options["dedent"].strip()
        made = textwrap.dedent(made) if not count.isdecimal() else "\n".join(line[int(count) :] for line in lines)
    return made


def _numbered(lines: list[str], spec: str) -> list[str]:
    """Lines by their numbers: `1,3-5,20-`."""
    made: list[str] = []
    for part in spec.split(",")[:1000]:
        first, dash, last = part.strip().partition("-")
        if (first.isdecimal() or not first) and (last.isdecimal() or not last) and len(part) < 20:
            start = int(first or 1)
            made += lines[start - 1 : (int(last) if last else len(lines)) if dash else start]
    return made


def _between(lines: list[str], options: Mapping[str, str]) -> list[str]:
    for name, beside in (("start-at", 0), ("start-after", 1)):
        if wanted := options.get(name):
            at = next((number for number, line in enumerate(lines) if wanted in line), None)
            lines = lines[at + beside :] if at is not None else []
    for name, beside in (("end-at", 1), ("end-before", 0)):
        if wanted := options.get(name):
            at = next((number for number, line in enumerate(lines) if wanted in line), None)
            lines = lines[: at + beside] if at is not None else lines
    return lines


def _object(text: str, name: str) -> list[str]:
    """The lines of a class or function of Python."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found: ast.AST | None = None
    for part in name.split("."):
        found = next((one for one in body if getattr(one, "name", None) == part), None)
        body = getattr(found, "body", [])
    if not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    first = min([found.lineno, *(one.lineno for one in found.decorator_list)])
    return text.splitlines()[first - 1 : found.end_lineno]
