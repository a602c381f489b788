"""Makes each mistake of `tests/mistakes` and prints what people are told, as Markdown: `python -m bench.mistakes > table.md`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.mistakes.table import MISTAKES
from tests.mistakes.world import Mistake, Said, world


def main() -> int:
    """Print the table. Returns 1 if a message lacks its essential part."""
    failed = 0
    with tempfile.TemporaryDirectory() as name, world(Path(name)) as places:
        Path(name).chmod(0o755)  # some mistakes are made without the rights of root
        for title, rows in MISTAKES.items():
            print(f"\n## {title}\n\n| mistake | exit code or status | what is said |\n|---|---|---|")
            for row in rows:
                folder = Path(tempfile.mkdtemp(dir=name))
                said = row.make(places, folder)
                said = Said(said.code, places.plain(said.text.replace(str(folder), "{folder}")))
                missing = said.code != row.code or row.said not in said.text
                failed += missing
                print(_line(row, said) + (" **unexpected**" if missing else ""), flush=True)
    return 1 if failed else 0


def _line(row: Mistake, said: Said) -> str:
    text = "<br>".join(line.replace("|", "\\|") for line in said.text.strip().splitlines())
    return f"| {row.what} | {said.code} | {text} |"


if __name__ == "__main__":
    sys.exit(main())
