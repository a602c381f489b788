"""What repeats at the top and bottom of pages: running heads, feet and page numbers, found by comparing the pages."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ingestion.convert.pdf.characters import Line, PageLines

MARGIN = 0.12
"""The share of a page's height, at its top and at its bottom, that is looked at."""

FEWEST_PAGES = 0.2
"""The share of pages on which a place must have a line, if they are more than a few."""

REPEATED = 0.6
"""The share of lines at one place that must say the same as another page, but for numbers."""

_NUMBER = re.compile(r"\d+|\b[ivxlc]+\b", re.IGNORECASE)


def without_furniture(pages: Sequence[PageLines]) -> list[PageLines]:
    """The pages without the lines at those places where most lines repeat. A first line of text stands at the same
    place on every page too, but says something else on each.
    """
    places: dict[int, list[Line]] = defaultdict(list)
    for page in pages:
        for line in _outer(page):
            places[_place(line)].append(line)
    furniture = {place for place, lines in places.items() if _repeats(lines, len(pages))}
    return [
        replace(page, lines=[line for line in page.lines if not (_place(line) in furniture and _is_outer(line, page))])
        for page in pages
    ]


def _outer(page: PageLines) -> Iterator[Line]:
    return (line for line in page.lines if _is_outer(line, page))


def _is_outer(line: Line, page: PageLines) -> bool:
    return not MARGIN < line.y / (page.height or 1) < 1 - MARGIN


def _place(line: Line) -> int:
    return round(line.y / 2)


def _repeats(lines: Sequence[Line], pages: int) -> bool:
    if len({line.page for line in lines}) < max(2, FEWEST_PAGES * pages):
        return False
    said = [{_NUMBER.sub("#", "".join(run.text for run in cell)).strip() for cell in line.cells} for line in lines]
    count = Counter(words for one in said for words in one)
    return sum(any(count[words] > 1 for words in one) for one in said) >= REPEATED * len(lines)
