"""Fixed translations of terms, from a file that people keep: TOML or CSV, a row per term, a column per language."""

from __future__ import annotations

import csv
import hashlib
import io
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import SettingsError

SAME = "*"
"""The column of terms that are the same in every language: names that must not be translated."""

_ENDING = 2
_INFLECTED = 5

Term = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Glossary:
    """Terms by language; the empty one fixes nothing."""

    terms: tuple[Term, ...] = ()

    @property
    def digest(self) -> str:
        """Another one means that translations made with it may differ."""
        rows = sorted("\x00".join(f"{code}={word}" for code, word in sorted(term.items())) for term in self.terms)
        return hashlib.sha256("\x01".join(rows).encode()).hexdigest()[:16]

    def pairs(self, text: str, source: str, target: str) -> list[tuple[str, str]]:
        """(term, its translation) of the terms that the text has, in any of their inflected forms."""
        found: list[tuple[str, str]] = []
        for term in self.terms:
            written, wanted = term.get(SAME) or term.get(source), term.get(SAME) or term.get(target)
            if written and wanted and _pattern(written).search(text):
                found.append((written, wanted))
        return found

    def names(self, text: str) -> list[str]:
        """The terms in the text that every language writes alike."""
        return [term[SAME] for term in self.terms if term.get(SAME) and term[SAME] in text]


def load_glossary(path: str) -> Glossary:
    """The glossary in the file; an empty one without a path. Raises `SettingsError` for an invalid file."""
    if not path:
        return Glossary()
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
        rows = _from_toml(text) if path.endswith(".toml") else _from_csv(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, csv.Error) as error:
        raise SettingsError(f"DOCS_GLOSSARY={path} can't be read: {error}") from error
    terms: list[Term] = []
    for row in rows:
        term = {code.strip(): word.strip() for code, word in row.items() if word.strip()}
        if any(not re.fullmatch(r"[a-z]{2,3}|\*", code) for code in term):
            raise SettingsError(
                f"DOCS_GLOSSARY={path}: {sorted(row)} are not all language codes such as cs, or * for what stays as it is."
            )
        if len(term) > 1 or SAME in term:
            terms.append(term)
    return Glossary(tuple(terms))


def _from_csv(text: str) -> list[dict[str, str]]:
    dialect = ";" if ";" in text.partition("\n")[0] else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=dialect, restkey="too many columns", strict=True)
    return [{str(code): str(word or "") for code, word in row.items()} for row in reader]


def _from_toml(text: str) -> list[dict[str, str]]:
    rows = tomllib.loads(text).get("term")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise tomllib.TOMLDecodeError("it needs tables [[term]], each with a term by language code")
    return [{str(code): str(word) for code, word in row.items()} for row in rows]


def _pattern(term: str) -> re.Pattern[str]:
    """The term with other endings too: úložisko, úložiska."""
    words = [re.escape(word[:-_ENDING] if len(word) > _INFLECTED else word) for word in term.split()]
    return re.compile(r"(?<!\w)" + r"\w*\s+".join(words) + r"\w*", re.IGNORECASE)
