"""How soon the language of an answer is decided, and how often wrongly: `python -m bench.answer_language DJANGO_WHEEL`.

Right answers are paragraphs of docs/; wrong ones are Django's messages in 18 languages, from its wheel
(`pip download --no-deps django`). For Czech and English questions, prints after how many words the text is let go, how many
right answers would be asked for again, and what share of wrong ones would be shown.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from app.core.prompts import load_prompts
from app.pipeline.answer_check import LONGEST_HELD
from app.text.answer_language import AnswerLanguage

DOCS = Path(__file__).parents[1] / "docs"
LANGUAGES = [
    "cs",
    "de",
    "es",
    "fr",
    "hr",
    "hu",
    "it",
    "ja",
    "nl",
    "pl",
    "pt_BR",
    "ro",
    "ru",
    "sk",
    "sl",
    "sv",
    "tr",
    "uk",
    "zh_Hans",
]
SHORTEST = 40
_MESSAGE = re.compile(r'^(msgid|msgstr) ((?:".*"\n)+)', re.MULTILINE)
_FIELD = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}")


def paragraphs(language: str) -> Iterator[str]:
    """Paragraphs of the documentation, without code and tables."""
    for file in sorted((DOCS / language).glob("*.md")):
        text = re.sub(r"```.*?```", "", file.read_text(encoding="utf-8").partition("\n---\n")[2], flags=re.DOTALL)
        for part in re.split(r"\n\s*\n", text):
            if len(part) >= SHORTEST and part.strip()[0] not in "#|-`1":
                yield " ".join(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", part).split())


def messages(wheel: Path) -> Mapping[str, Sequence[str]]:
    """Django's messages by language."""
    found: dict[str, dict[str, None]] = {language: {} for language in ("en", *LANGUAGES)}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            parts = name.split("/")
            if parts[-1] != "django.po" or parts[-3] not in LANGUAGES:
                continue
            for kind, lines in _MESSAGE.findall(archive.read(name).decode()):
                text = " ".join(_FIELD.sub("X", "".join(map(json.loads, lines.strip().split("\n")))).split())
                if len(text) >= SHORTEST:
                    found["en" if kind == "msgid" else parts[-3]][text] = None
    return {language: list(texts) for language, texts in found.items()}


def decided(check: AnswerLanguage, text: str) -> tuple[str, int]:
    """The verdict on a text that comes word by word, as the pipeline asks for it, and after how many words."""
    words = re.findall(r"\S+\s*", text)
    for number in range(1, len(words) + 1):
        begun = "".join(words[:number])
        if (verdict := check.early(begun)) != "unsure":
            return verdict, number
        if len(begun) >= LONGEST_HELD:
            return check.beginning(begun), number
    return check.beginning(text), len(words)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    wrong = messages(parser.parse_args().wheel)
    prompts = load_prompts(("cs", "en"))
    for code in ("cs", "en"):
        check = AnswerLanguage(code, prompts.languages)
        right = [decided(check, text) for text in paragraphs(code)]
        after = sorted(number for _, number in right)
        again = sum(verdict == "wrong" for verdict, _ in right)
        shares = " ".join(f"{int(100 * share)}%: {after[int(share * len(after))]}" for share in (0.25, 0.5, 0.75, 0.95))
        print(f"{code}: let go after words, {shares}; asked again though right: {again} of {len(right)}")
        shown = {
            language: sum(decided(check, text)[0] != "wrong" for text in texts) / len(texts)
            for language, texts in wrong.items()
            if language != code
        }
        print("    shown though wrong, %:", ", ".join(f"{one} {100 * share:.0f}" for one, share in shown.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
