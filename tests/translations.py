"""The pages of our documentation that lag behind the English ones: `make translations`, with RELEASE=1 an error if there are any."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parents[1] / "docs"
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) .*?(?:\{#([\w-]+)\})?$", re.MULTILINE)
_ROW = re.compile(r"^\| (`(?:[a-z0-9_./-]+|DOCS_[A-Z_]+)`) \|", re.MULTILINE)


class Lag(NamedTuple):
    """A page that lags, since the day (ISO 8601) on which the English page was changed last, and what it lacks."""

    page: str
    since: str
    lacks: str


def languages(docs: Path = DOCS) -> list[str]:
    """Those that have a site."""
    return sorted(file.parent.name for file in docs.glob("*/site.toml"))


def checked(docs: Path = DOCS) -> list[str]:
    """Those whose pages must be complete: English, and for a release all."""
    return languages(docs) if os.environ.get("RELEASE") else ["en"]


def lagging(docs: Path = DOCS) -> list[Lag]:
    """The pages that lack sections or named things of the English ones, or have more than these."""
    return [
        Lag(f"{language}/{page.name}", _changed(page), lacks)
        for language in languages(docs)
        if language != "en"
        for page in sorted((docs / "en").glob("*.md"))
        if (lacks := _lacks(page, docs / language / page.name))
    ] + [
        Lag(f"{language}/{page.name}", _changed(page), "its English page is gone")
        for language in languages(docs)
        for page in sorted((docs / language).glob("*.md"))
        if not (docs / "en" / page.name).exists()
    ]


def _lacks(page: Path, translated: Path) -> str:
    if not translated.exists():
        return "it is missing"
    ours, theirs = _outline(page), _outline(translated)
    if ours != theirs:
        different = [name or "#" for _, name in ours if (_, name) not in theirs] or ["the order of its sections"]
        return f"sections: {', '.join(different)}"
    rows = {row for row in _rows(page) if row not in _rows(translated)}
    return f"rows: {', '.join(sorted(rows))}" if rows else ""


def _outline(page: Path) -> list[tuple[str, str]]:
    return _HEADING.findall(FENCE.sub("", page.read_text("utf-8")))


def _rows(page: Path) -> set[str]:
    return set(_ROW.findall(FENCE.sub("", page.read_text("utf-8"))))


def _changed(page: Path) -> str:
    command = ["git", "log", "-1", "--format=%cs", "--", str(page)]
    done = subprocess.run(command, cwd=page.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "an unknown day"


def main() -> int:
    """Print them."""
    lags = lagging()
    for lag in lags:
        print(f"docs/{lag.page} lags since {lag.since}: {lag.lacks}")
    print(f"{len(lags)} pages lag behind the English ones.")
    return 1 if lags and os.environ.get("RELEASE") else 0


if __name__ == "__main__":
    sys.exit(main())
