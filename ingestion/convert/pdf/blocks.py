"""Lines of a PDF file -> HTML of headings, paragraphs, lists, code and tables."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from ingestion.convert.pdf.characters import SOFT_HYPHEN, Line, Run
from ingestion.convert.pdf.headings import Headed, Heading
from ingestion.convert.pdf.tables import table

NEAR = 1.5
"""The most that the baselines of a paragraph's lines are apart, in sizes of their font."""

SMALL = 0.75
INDENT = 4.0
"""Points from which on a line is indented."""

MOST_SPACES = 100
_LEADERS = re.compile(r"(?:[.·…_] ?){3}[.·…_]\Z")
_NUMBER_ONLY = re.compile(r"\d+|[ivxlc]+", re.IGNORECASE)
_BULLET = re.compile(r"^[•●○◦▪■□–—‣∙·*\uf0b7\uf0a7] *(?=\S)|^- (?=\S)")
_COUNTED = re.compile(r"^(\d{1,3})[.)] +(?=\S)")
_IN_ADDRESS = tuple("/.-_=&?#%")
_BROKEN = re.compile(rf"(?<!\w)(\w++){SOFT_HYPHEN}\s*+(\w++)")


def written(document: Headed, title: str) -> str:
    """The HTML of the whole text below its title; the id of a heading is the page where it begins."""
    first = document.items[0].page
    made = [f'<h1 id="page={first}">{html.escape(title)}</h1>']
    joined = _joiner(document)
    for is_heading, items in groupby(document.items, lambda item: isinstance(item, Heading)):
        if is_heading:
            made += [_heading(item) for item in items if isinstance(item, Heading) and item.text != title]
        else:
            lines = [item for item in items if isinstance(item, Line) and item.text != title]
            kept = _without_contents(lines, document.body)
            if lines and not kept and made[-1].startswith("<h") and len(made) > 1:
                made.pop()  # "Contents"
            made += _blocks(kept, joined)
    return "\n".join(made)


def _heading(heading: Heading) -> str:
    text = heading.text.replace(f"{SOFT_HYPHEN} ", "").replace(SOFT_HYPHEN, "")
    return f'<h{heading.level} id="page={heading.page}">{html.escape(text)}</h{heading.level}>'


def _is_mark(line: Line, body: float) -> bool:
    """True for the raised number of a note."""
    return line.size < SMALL * body and _NUMBER_ONLY.fullmatch(line.text) is not None


def _without_contents(lines: Sequence[Line], body: float) -> list[Line]:
    """The lines without those of a table of contents or an index, whose words lead to a page number, and marks of notes."""
    led = [bool(_LEADERS.search(line.text.rstrip("0123456789ivxlcIVXLC, "))) for line in lines]
    kept = []
    for at, line in enumerate(lines):
        numbered = len(line.cells) > 1 and _NUMBER_ONLY.fullmatch(line.text.rpartition(" ")[2])
        if not led[at] and not (numbered and any(led[max(0, at - 2) : at + 3])) and not _is_mark(line, body):
            kept.append(line)
    return kept


def _blocks(lines: Sequence[Line], joined: Callable[[str], str]) -> Iterator[str]:
    at = 0
    while at < len(lines):
        end, kind = _block(lines, at)
        part = lines[at:end]
        if kind == "code":
            yield f"<pre><code>{html.escape(_code(part))}</code></pre>"
        elif kind == "table":
            yield from table(part, lambda runs: _inline(runs, joined))
        elif kind == "list":
            yield from _list(part, joined)
        else:
            yield f"<p>{_text(part, joined)}</p>"
        at = end


def _block(lines: Sequence[Line], at: int) -> tuple[int, str]:
    """(its end, its kind) of the block that begins with this line."""
    first = lines[at]
    if first.row is not None:
        return _while(lines, at, _is_same_grid), "table"
    if first.is_code:
        return _while(lines, at, lambda _, line: line.is_code), "code"
    if len(first.cells) > 1 and not _is_item(first):
        end = _while(lines, at, lambda before, line: _in_table(first, before, line))
        if sum(len(line.cells) > 1 for line in lines[at:end]) > 1:
            return end, "table"
    if _is_item(first):
        return _while(lines, at, lambda before, line: _is_item(line) or _goes_on(lines[at:], before, line)), "list"
    return _paragraph(lines, at), "text"


def _while(lines: Sequence[Line], at: int, belongs: Callable[[Line, Line], bool]) -> int:
    end = at + 1
    while end < len(lines) and belongs(lines[end - 1], lines[end]):
        end += 1
    return end


def _is_same_grid(before: Line, line: Line) -> bool:
    return before.row is not None and line.row is not None and (before.page, before.row[0]) == (line.page, line.row[0])


def _in_table(first: Line, before: Line, line: Line) -> bool:
    if line.page != before.page or line.is_code or _is_item(line) or line.row is not None:
        return False
    indented = line.x0 > first.x0 + INDENT
    return before.y - line.y < 3 * line.size and (len(line.cells) > 1 or (indented and _is_near(before, line)))


def _paragraph(lines: Sequence[Line], at: int) -> int:
    end = at + 1
    while end < len(lines):
        before, line = lines[end - 1], lines[end]
        if line.is_code and not (_is_near(before, line) and abs(line.x0 - before.x0) < INDENT):
            break
        if _is_item(line) or len(line.cells) > 1 or not _goes_on(lines[at:end], before, line):
            break
        end += 1
    return end


def _goes_on(block: Sequence[Line], before: Line, line: Line) -> bool:
    """True when this line goes on with the text of the line before."""
    if before.text.endswith(SOFT_HYPHEN):
        return True
    if line.page != before.page or line.y >= before.y:  # the next page or column
        return line.text[:1].islower() and not before.text.endswith((".", "!", "?", ":"))
    if not _is_near(before, line) or line.is_code != before.is_code:
        return False
    if len(block) > 1 and block[1] is not line:
        return abs(line.x0 - before.x0) < INDENT or (line.x0 < before.x0 and block[0] is before)
    return line.x0 < before.x0 + INDENT or _is_item(before)


def _is_near(before: Line, line: Line) -> bool:
    return abs(line.size - before.size) <= 0.1 * line.size and 0 < before.y - line.y <= NEAR * line.size


def _is_item(line: Line) -> bool:
    return bool(line.dotted or _BULLET.match(line.text) or _COUNTED.match(line.text))


def _list(lines: Sequence[Line], joined: Callable[[str], str]) -> Iterator[str]:
    items: list[list[Line]] = []
    for line in lines:
        if _is_item(line) or not items:
            items.append([])
        items[-1].append(line)
    for counted, group in groupby(items, lambda item: _COUNTED.match(item[0].text) is not None):
        inner = list(group)
        texts = [_text(item, joined) for item in inner]
        first = _COUNTED.match(inner[0][0].text)
        start = f' start="{first[1]}"' if first else ""
        mark = _COUNTED if counted else _BULLET
        shown = "".join(f"<li>{mark.sub('', text, count=1)}</li>" for text in texts)
        yield f"<ol{start}>{shown}</ol>" if counted else f"<ul>{shown}</ul>"


def _text(lines: Sequence[Line], joined: Callable[[str], str]) -> str:
    runs: list[Run] = []
    for line in lines:
        for cell in line.cells:
            if runs and not runs[-1].text.endswith((" ", SOFT_HYPHEN)) and not _is_in_address(runs[-1].text):
                runs.append(Run(" ", 0, 0, mono=runs[-1].mono and cell[0].mono, bold=False))
            runs += cell
    return _inline(runs, joined)


def _is_in_address(text: str) -> bool:
    """True when a line ends within the address of a page."""
    return text.endswith(_IN_ADDRESS) and "://" in text.rpartition(" ")[2]


def _inline(runs: Sequence[Run], joined: Callable[[str], str]) -> str:
    parts = []
    for mono, group in groupby(runs, lambda run: run.mono):
        text = "".join(run.text for run in group)
        words = text.strip()
        if mono and words:
            before, _, after = text.partition(words)
            parts.append(f"{before}<code>{html.escape(words)}</code>{after}")
        else:
            parts.append(html.escape(text))
    return re.sub(r"(?<=</code>) (?=[.,)])", "", " ".join(joined("".join(parts)).split()))


def _code(lines: Sequence[Line]) -> str:
    """The lines with their indentation, and blank lines where there are gaps."""
    left = min(line.x0 for line in lines)
    widths = [(len(run.text), (run.x1 - run.x0) / len(run.text)) for line in lines for run in line.cells[0] if run.text]
    width = max(widths)[1] or 1.0
    made: list[str] = []
    for at, line in enumerate(lines):
        before = lines[at - 1] if at else None
        if before is not None and before.page == line.page and before.y - line.y > 1.7 * line.size:
            made.append("")
        made.append(" " * round((line.x0 - left) / width) + _code_line(line, width))
    return "\n".join(made)


def _code_line(line: Line, width: float) -> str:
    text, end = "", line.x0
    for run in (run for cell in line.cells for run in cell if run.text.strip()):
        gap = min(int((run.x0 - end) / width + 0.3), MOST_SPACES) - (len(text) - len(text.rstrip()))
        text += " " * gap + run.text.rstrip() + " " * run.text.endswith(" ")
        end = run.x1
    return text.rstrip().replace(SOFT_HYPHEN, "-")


def _joiner(document: Headed) -> Callable[[str], str]:
    """How the parts of words are joined that a hyphen ends a line between: as the document writes them elsewhere."""
    text = " ".join(item.text for item in document.items)
    words = set(re.findall(r"[\w]+(?:-\w+)*", text.casefold()))

    def one(match: re.Match[str]) -> str:
        whole, hyphened = match[1] + match[2], f"{match[1]}-{match[2]}"
        as_hyphened = hyphened.casefold() in words and whole.casefold() not in words
        return hyphened if as_hyphened or not match[2][0].islower() else whole

    return lambda prose: _BROKEN.sub(one, prose).replace(SOFT_HYPHEN, "-")
