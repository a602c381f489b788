"""An answer without a language model: the parts of the best passages that speak of the question, word for word."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.core.prompts import Language
from app.core.turn import Text, Turn
from app.core.types import Hit
from app.pipeline.sections import STEM, stems

PASSAGES = 3
LONGEST_PASSAGE = 700
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")


def extract(turn: Turn, language: Language) -> list[Text]:
    """The best parts of up to three passages, each under its heading and number, below a line that says what this is."""
    wanted = stems(f"{turn.referred} {turn.question}") - {word[:STEM] for word in language.stopwords}
    said = [Text(language.extractive_intro)]
    for number, hit in enumerate(turn.hits[:PASSAGES], start=1):
        heading = " > ".join(dict.fromkeys((hit.chunk.title, *hit.chunk.heading_path)))
        said += [Text(f"\n\n**{heading}** [{number}]\n\n"), Text(_best_part(hit, wanted), quoted=True)]
    return said


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    score: int


def _best_part(hit: Hit, wanted: set[str]) -> str:
    blocks = [_Block(text, len(stems(text) & wanted)) for text in _blocks(hit.chunk.text)]
    if not blocks:
        return hit.chunk.text
    first = last = max(range(len(blocks)), key=lambda i: (blocks[i].score, -i))
    length = len(blocks[first].text)
    # what follows usually explains or shows it; what stands before only when nothing more follows
    while last + 1 < len(blocks) and length + len(blocks[last + 1].text) <= LONGEST_PASSAGE:
        last += 1
        length += len(blocks[last].text)
    while first > 0 and length + len(blocks[first - 1].text) <= LONGEST_PASSAGE:
        first -= 1
        length += len(blocks[first].text)
    return "\n\n".join(block.text for block in blocks[first : last + 1])


def _blocks(text: str) -> list[str]:
    """Paragraphs, lists and tables; a fenced block is whole; headings, which are shown above, are left out."""
    blocks: list[list[str]] = [[]]
    fence = ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if fence:
            blocks[-1].append(line)
            if mark and mark[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
                blocks.append([])
        elif mark:
            fence = mark[1]
            blocks.append([line])
        elif not line.strip():
            blocks.append([])
        elif not line.startswith("#"):
            blocks[-1].append(line)
    return [block for lines in blocks if (block := "\n".join(lines).strip("\n"))]
