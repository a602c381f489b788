"""A site in two languages that nothing was tuned on: GNOME Help, from Debian's package gnome-user-docs.

apt-get download gnome-user-docs && dpkg-deb -x gnome-user-docs_*.deb gnome
python -m bench.gnome_help gnome/usr/share/help OUT

Writes OUT/en/docs and OUT/cs/docs, for ../shared/eval/serve_fumadocs.py --root OUT, and OUT/questions.jsonl. The questions are
the descriptions of the pages, one sentence each, which the pages then lack. Every second page is taken; three sevenths of those
exist only in English, and their Czech questions are questions across languages.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

NAMESPACE = "{http://projectmallard.org/1.0/}"
LANGUAGES = {"en": "C", "cs": "cs"}
LEAST_WORDS, LEAST_CHARS = 4, 200  # of a description, of a page


@dataclass(frozen=True)
class HelpPage:
    """A page without its description, which is its question."""

    title: str
    question: str
    body: str


def read(path: Path) -> HelpPage | None:
    """The page in this file; None for a page of links, or one that is too short to ask about."""
    root = ET.parse(path).getroot()
    title, description = root.find(f"{NAMESPACE}title"), root.find(f"{NAMESPACE}info/{NAMESPACE}desc")
    if root.get("type") != "topic" or title is None or description is None:
        return None
    page = HelpPage(
        _text(title), _text(description), "\n\n".join(text for text in _blocks(root, 1) if text.strip("- *"))
    )
    return page if len(page.question.split()) >= LEAST_WORDS and len(page.body) >= LEAST_CHARS else None


def _blocks(element: ET.Element, depth: int) -> Iterator[str]:
    for child in element:
        kind = str(child.tag).removeprefix(NAMESPACE)
        if kind in TEXTS:
            yield TEXTS[kind](child)
        elif kind == "title" and element.tag != f"{NAMESPACE}page":
            yield f"{'#' * depth} {_text(child)}" if element.tag == f"{NAMESPACE}section" else f"**{_text(child)}**"
        elif kind == "item":
            yield "- " + "\n  ".join(_blocks(child, depth))
        elif kind not in {"info", "links", "title"}:
            yield from _blocks(child, depth + (kind == "section"))


def _text(element: ET.Element) -> str:
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip()


TEXTS: Mapping[str, Callable[[ET.Element], str]] = {
    "p": _text,
    "tr": lambda row: " | ".join(_text(cell) for cell in row),
    "code": lambda code: f"```\n{''.join(code.itertext())}\n```",
    "screen": lambda screen: f"```\n{''.join(screen.itertext())}\n```",
}


def _chance(name: str) -> int:
    return int(hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest(), 16)


def main() -> None:
    """Write the site and its questions."""
    source, out = Path(sys.argv[1]), Path(sys.argv[2])
    pages = {
        language: {path.stem: read(path) for path in sorted((source / folder / "gnome-help").glob("*.page"))}
        for language, folder in LANGUAGES.items()
    }
    questions = []
    for name in sorted(pages["en"]):
        versions = {language: page for language in LANGUAGES if (page := pages[language].get(name))}
        if len(versions) < len(LANGUAGES) or _chance(name) % 2:
            continue
        for language, page in versions.items():
            cross = language == "cs" and _chance(name) % 7 < 3
            doc = f"{'en' if cross else language}/docs/{name}.mdx"
            if not cross:
                (out / doc).parent.mkdir(parents=True, exist_ok=True)
                header = f"---\ntitle: {json.dumps(page.title, ensure_ascii=False)}\n---\n\n"
                (out / doc).write_text(f"{header}{page.body}\n", encoding="utf-8")
            asked = {
                "id": f"{language}-{name}",
                "lang": language,
                "question": page.question,
                "doc": doc,
                "cross": cross,
            }
            questions.append(json.dumps(asked, ensure_ascii=False))
    (out / "questions.jsonl").write_text("\n".join(questions) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
