"""The sections of a PDF file: those of its outline, else what its fonts show, else its pages; without running heads and feet."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.text.blocks import breadcrumb
from ingestion.convert.files import Facts
from plugins.formats.pdf.characters import Bookmark, Line, PageLines

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
        for line in page.lines:
            if _is_outer(line, page):
                places[_place(line)].append(line)
    furniture = {place for place, lines in places.items() if _repeats(lines, len(pages))}
    return [
        replace(page, lines=[line for line in page.lines if not (_place(line) in furniture and _is_outer(line, page))])
        for page in pages
    ]


def _is_outer(line: Line, page: PageLines) -> bool:
    return not MARGIN < line.y / (page.height or 1) < 1 - MARGIN


def _place(line: Line) -> int:
    return round(line.y / 2)


def _repeats(lines: Sequence[Line], pages: int) -> bool:
    if len({line.page for line in lines}) < max(2, FEWEST_PAGES * pages):
        return False
    said = [{_NUMBER.sub("#", "".join(run.text for run in cell)).strip() for cell in line.cells} for line in lines]
    count = Counter(words for texts in said for words in texts)
    return sum(any(count[words] > 1 for words in texts) for texts in said) >= REPEATED * len(lines)


FEWEST_BOOKMARKS = 2
LARGER = 1.1
"""A heading without an outline is in a font larger by this factor, or bold and on a line of its own."""

LONGEST_HEADING = 150
LONGEST_BOLD = 80
DEEPEST = 6
MOST_ABOVE = 5
"""Lines above the first heading, if that is the title."""

FAR = 3
"""Pages after a heading from which on each page begins a section of its own, so that links don't lead too far back."""

_JUNK = re.compile(
    r"^(?:untitled|microsoft \w+|.*\.(?:docx?|dvi|fm|indd|odt|pdf|qxd|rtf|tex|xml|html?))\b.*$", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_]{2}")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading that begins on this page; its level is from 2."""

    level: int
    text: str
    page: int


@dataclass(frozen=True, slots=True)
class Headed:
    """Headings and lines in the order in which they are read. `body` is the size of most of the text, `pages` their number."""

    items: list[Heading | Line]
    body: float
    pages: int


def headed(pages: Sequence[PageLines], outline: Sequence[Bookmark]) -> Headed:
    """The pages with their headings."""
    body = _body([line for page in pages for line in page.lines])
    items = list(_by_outline(pages, outline, body) if len(outline) >= FEWEST_BOOKMARKS else _by_fonts(pages, body))
    items = _without_title(items)
    return Headed(list(_with_pages(items, len(pages))), body, len(pages))


def _without_title(items: list[Heading | Line]) -> list[Heading | Line]:
    """The items without levels that only the first heading, which is the title, or none has."""
    levels = sorted({item.level for item in items if isinstance(item, Heading)})
    first = next((item for item in items if isinstance(item, Heading)), None)
    if first is not None and sum(isinstance(item, Heading) and item.level == levels[0] for item in items) == 1:
        levels = levels[1:] if first.level == levels[0] else levels
    ranks = {level: at + 2 for at, level in enumerate(levels)}
    return [replace(item, level=ranks.get(item.level, 2)) if isinstance(item, Heading) else item for item in items]


def title_of(document: Headed, facts: Facts, url: str) -> str:
    """Returns the title in its metadata or the largest words of its first page, else the words of its address."""
    if _WORD.search(facts.title) and not _JUNK.match(facts.title):
        return facts.title
    first = [item for item in document.items if item.page == document.items[0].page]
    sizes = [item.size for item in first if isinstance(item, Line) and _WORD.search(item.text)]
    largest = max(sizes, default=0.0)
    if largest > LARGER * document.body:
        words = " ".join(item.text for item in first if isinstance(item, Line) and item.size == largest)
        return words[:LONGEST_HEADING]
    headings = (
        item.text for item in document.items[:MOST_ABOVE] if isinstance(item, Heading) and _WORD.search(item.text)
    )
    return next(headings, "") or breadcrumb(url)


def _body(lines: Sequence[Line]) -> float:
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += 0 if line.is_code else len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _by_outline(pages: Sequence[PageLines], outline: Sequence[Bookmark], body: float) -> Iterator[Heading | Line]:
    marks: dict[int, list[Bookmark]] = defaultdict(list)
    for mark in outline:
        marks[mark.page].append(mark)
    for page in pages:
        places: dict[int, list[Heading]] = defaultdict(list)
        dropped: set[int] = set()
        for mark in marks[page.number]:
            at, count = _found(page.lines, mark, dropped)
            text = " ".join(line.text for line in page.lines[at : at + count]) if count else mark.title
            places[at].append(Heading(min(mark.level + 2, DEEPEST), text, page.number))
            dropped.update(range(at, at + count))
            if count and at == 1 and page.lines[0].size > LARGER * body and len(page.lines[0].text) < LONGEST_BOLD:
                dropped.add(0)  # "Chapter 1" above the name of the chapter
        for at, line in enumerate(page.lines):
            yield from places[at]
            if at not in dropped:
                yield line
        yield from places[len(page.lines)]


def _found(lines: Sequence[Line], mark: Bookmark, taken: set[int]) -> tuple[int, int]:
    """(first line, number of lines) of a bookmark's heading; without its words, the place that it leads to and 0."""
    wanted = _key(mark.title)
    matches = [
        (abs(mark.y - lines[at].y) if mark.y != float("inf") else at, at, count)
        for at in range(len(lines))
        for count in (1, 2, 3)
        if at + count <= len(lines)
        and at not in taken
        and _is_heading(_key("".join(line.text for line in lines[at : at + count])), wanted)
    ]
    if matches and wanted:
        _, at, count = min(matches)
        return at, count
    return next((at for at, line in enumerate(lines) if line.y < mark.y), len(lines)), 0


def _is_heading(said: str, wanted: str) -> bool:
    """True for the words of the bookmark, also with a number before them."""
    return said == wanted or (said.endswith(wanted) and len(said) - len(wanted) < 10 and said[0].isdigit())


def _key(text: str) -> str:
    return "".join(character for character in text.casefold() if character.isalnum())


def _by_fonts(pages: Sequence[PageLines], body: float) -> Iterator[Heading | Line]:
    groups = [group for page in pages for group in _grouped(page.lines, body)]
    sizes = sorted({round(group[0].size) for group, shown in groups if shown}, reverse=True)
    levels = {size: min(at + 2, DEEPEST) for at, size in enumerate(sizes)}
    for group, shown in groups:
        if shown:
            text = " ".join(line.text for line in group)
            yield Heading(levels[round(group[0].size)], text, group[0].page)
        else:
            yield from group


def _grouped(lines: Sequence[Line], body: float) -> Iterator[tuple[list[Line], bool]]:
    """(lines, whether they are a heading): those of a heading in one font belong together."""
    at = 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end].size == lines[at].size and lines[at].size > LARGER * body:
            if not 0 < lines[end - 1].y - lines[end].y < 2 * lines[at].size:
                break
            end += 1
        group = list(lines[at:end])
        yield (
            group,
            _looks_like_heading(group, lines[at - 1] if at else None, lines[end] if end < len(lines) else None, body),
        )
        at = end


def _looks_like_heading(group: Sequence[Line], before: Line | None, after: Line | None, body: float) -> bool:
    text = " ".join(line.text for line in group)
    if len(text) > LONGEST_HEADING or not _WORD.search(text) or any(line.is_code for line in group):
        return False
    if group[0].size > LARGER * body:
        return True
    line = group[0]
    alone = all(other is None or abs(line.y - other.y) > 1.15 * line.size for other in (before, after))
    bold_beside = any(other is not None and other.is_bold and other.size == line.size for other in (before, after))
    return (
        line.is_bold and alone and not bold_beside and line.size >= body and len(line.cells) == 1
        and len(text) <= LONGEST_BOLD and not text.endswith((".", ",", ";", ":"))
    )  # fmt: skip


def _with_pages(items: Sequence[Heading | Line], pages: int) -> Iterator[Heading | Line]:
    """The items, with a heading at the top of pages that are far from the last one: "7 / 120" as viewers write it."""
    level = max((item.level for item in items if isinstance(item, Heading)), default=1)
    far = FAR if level > 1 else 1
    last, page = (0 if level == 1 else pages), 0  # none before the first heading: that is the table of contents
    for before, item in zip((None, *items), items, strict=False):
        if isinstance(item, Heading):
            last = page = item.page
        elif item.page != page and item.page - last >= far and not _is_within(before, item):
            page = item.page
            yield Heading(min(level + 1, DEEPEST), f"{page} / {pages}", page)
        yield item


def _is_within(before: Heading | Line | None, line: Line) -> bool:
    """True when this line goes on with code or with a sentence of the line before."""
    if not isinstance(before, Line):
        return False
    return (line.is_code and before.is_code) or not (
        before.text.endswith((".", "!", "?", ":")) or (before.page != line.page and line.text[:1].isupper())
    )
