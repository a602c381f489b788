"""Texts in several languages, as a language model writes them: one line for each, after the language's code."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from app.core.prompts import Prompts


def names_of(codes: Sequence[str], prompts: Prompts) -> str:
    """The languages as a prompt names them."""
    return ", ".join(f"{prompts.language(code).name} ({code})" for code in codes)


def form_of(codes: Sequence[str], line: str = "…, …, …") -> str:
    """The lines that `parse` reads, as a prompt shows them."""
    return "\n".join(f"{code}: {line}" for code in codes)


def parse(answer: str, codes: Collection[str], longest: int) -> dict[str, str]:
    """The texts in lines like `code: a, b, c`, which models write with list marks, quotes, bold or JSON brackets."""
    found: dict[str, str] = {}
    for line in answer.splitlines():
        match = re.match(r"\W*([a-z]{2,3})\W*[:=]\s*(.+)", line.strip())
        if match and match[1] in codes and match[1] not in found:
            text = re.sub(r"[\[\]{}\"*]", " ", match[2]).strip(" ,;.…")
            if re.search(r"\w", text):
                found[match[1]] = text[:longest]
    return found
