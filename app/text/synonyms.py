"""Synonyms of a site: words of readers, and those that the pages have in their place.

They come from a file in the directory of DOCS_PROMPTS, which is read again when it changes. Questions are searched and judged with them, so the index stays as it is.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.core.errors import SettingsError, quoted
from app.core.process import locked
from app.core.prompts import SYNONYMS
from app.core.tables import WatchedFile, read_file
from app.core.turn import Question
from app.text.analysis import WORD, fold, stem

Synonyms = tuple[tuple[str, tuple[str, ...]], ...]
"""Words or phrases as readers write them, each with those that are searched in its place, too."""


def parse_synonyms(text: str, name: str) -> Synonyms:
    """The synonyms of a TOML file of this name, with lines such as `"wifi" = ["wireless"]`. Raises `SettingsError` that lists what is wrong in it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{name} isn't valid TOML: {error}") from error
    if problems := [f"{name}: {problem}" for problem in _problems(document)]:
        raise SettingsError("\n".join(problems))
    return tuple((phrase, tuple(others)) for phrase, others in document.items())


def _problems(document: Mapping[str, object]) -> Iterator[str]:
    before: dict[tuple[str, ...], str] = {}
    for phrase, others in document.items():
        told = tuple(map(fold, WORD.findall(phrase)))
        if not told:
            yield f"{quoted(phrase)} is no word."
        elif told in before:
            yield f"{quoted(phrase)} is the same as {quoted(before[told])}: put the words of both into one list."
        before[told] = phrase
        if not isinstance(others, list) or not others or not all(isinstance(one, str) for one in others):
            yield f'{quoted(phrase)} needs a list of words, such as ["wireless"].'
            continue
        for other in others:
            words = tuple(map(fold, WORD.findall(other)))
            if not words or words == told:
                yield f"{quoted(phrase)}: {quoted(other)} is {'the same' if words else 'no word'}."


def synonym_file(folder: str) -> WatchedFile[Synonyms] | None:
    """The synonyms of the file in this directory, none while it isn't there; None without a directory. Raises `SettingsError` if it can't be read."""
    return WatchedFile(str(Path(folder, SYNONYMS)), lambda: known_synonyms(folder)) if folder else None


def known_synonyms(folder: str) -> Synonyms:
    """The synonyms that the file in this directory has now; none without one. Raises `SettingsError` if it can't be read."""
    path = Path(folder, SYNONYMS)
    return parse_synonyms(read_file("DOCS_PROMPTS", str(path)), str(path)) if folder and path.exists() else ()


def add_synonym(folder: str, phrase: str, other: str) -> None:
    """Write the synonym into the file in this directory, as a line of its own or into the line of the phrase; the other lines stay.

    Raises `SettingsError` if there is no directory, the file can't be written, or the words are none.
    """
    if not folder:
        raise SettingsError("DOCS_PROMPTS isn't set: name a directory, into which synonyms.toml is written.")
    path = Path(folder, SYNONYMS).resolve()  # a link stays one
    new = path.with_name(f"{path.name}.new")
    try:
        with locked(path.parent):
            text = _with(read_file("DOCS_PROMPTS", str(path)) if path.exists() else "", phrase, other, path.name)
            new.write_text(text, encoding="utf-8")
            if path.exists():
                shutil.copymode(path, new)
            new.replace(path)
    except OSError as error:
        raise SettingsError(f"{path} can't be written: {error.strerror}.") from error


def _with(text: str, phrase: str, other: str, name: str) -> str:
    """The text of the file with this synonym, whose line is looked for as it would be written."""
    lines, before = text.splitlines(), dict(parse_synonyms(text, name))
    own = next((known for known in before if WORD.findall(fold(known)) == WORD.findall(fold(phrase))), phrase)
    others = dict.fromkeys([*before.get(own, ()), other])
    line = f"{json.dumps(own, ensure_ascii=False)} = {json.dumps([*others], ensure_ascii=False)}"
    if own in before:
        at = next((i for i, one in enumerate(lines) if _says_only(one, own)), None)
        if at is None:
            raise SettingsError(f"{name}: the list of {quoted(own)} isn't in one line. Add {quoted(other)} by hand.")
        lines[at] = line
    else:
        lines.append(line)
    made = "\n".join(lines) + "\n"
    parse_synonyms(made, name)
    return made


def _says_only(line: str, phrase: str) -> bool:
    try:
        return [*tomllib.loads(line)] == [phrase]
    except tomllib.TOMLDecodeError:
        return False


def said_in(text: str, language: str, synonyms: Synonyms) -> Synonyms:
    """The synonyms of what this text says."""
    return tuple(dict.fromkeys((place.phrase, place.others) for place in _places(text, language, synonyms)))


def reworded(question: Question) -> list[str]:
    """The question, after the one that it refers to, in the words of the pages, as `wordings` gives it; empty if it has no synonyms."""
    return wordings(question.in_context, question.language, question.synonyms) if question.synonyms else []


def wordings(text: str, language: str, synonyms: Synonyms) -> list[str]:
    """The text with all phrases replaced by their first synonyms, then by their second ones, and so on; a phrase with fewer has its last one.

    Words are compared by their stems in this language. Of phrases that overlap, the first and longest counts.
    """
    places = list(_places(text, language, synonyms))
    most = max((len(place.others) for place in places), default=0)
    return [_replaced(text, [(place, place.others[: i + 1][-1]) for place in places]) for i in range(most)]


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands between two letters of a text and has these synonyms."""

    start: int
    end: int
    phrase: str
    others: tuple[str, ...]


def _places(text: str, language: str, synonyms: Synonyms) -> Iterator[_Place]:
    by_stems = {stems_of(phrase, language): (phrase, others) for phrase, others in synonyms}
    words = list(WORD.finditer(text)) if by_stems else []
    stems = [stem(fold(word[0]), language) for word in words]
    longest = max(map(len, by_stems), default=0)
    at = 0
    while at < len(words):
        lengths = (n for n in range(min(longest, len(words) - at), 0, -1) if tuple(stems[at : at + n]) in by_stems)
        if count := next(lengths, 0):
            yield _Place(words[at].start(), words[at + count - 1].end(), *by_stems[tuple(stems[at : at + count])])
        at += count or 1


def stems_of(phrase: str, language: str) -> tuple[str, ...]:
    """The stems of the words of a phrase, by which phrases are compared."""
    return tuple(stem(fold(word), language) for word in WORD.findall(phrase))


def _replaced(text: str, chosen: Sequence[tuple[_Place, str]]) -> str:
    parts, end = list[str](), 0
    for place, word in chosen:
        parts += [text[end : place.start], word]
        end = place.end
    return "".join([*parts, text[end:]])
