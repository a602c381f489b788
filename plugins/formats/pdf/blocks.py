"""Lines of a PDF file -> HTML of headings, paragraphs, lists, code and tables."""

import html
import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from plugins.formats.pdf.characters import SOFT_HYPHEN, Line, PageLines, Rule, Run
from plugins.formats.pdf.headings import Headed, Heading

FEWEST_ROWS = 3
SAME_RULE = 3.0
"""Points by which places may differ that are meant to be one."""


def place_in_rows(page: PageLines) -> None:
    """Note on each line the ruled table, by its number on the page, and the row that it is in."""
    for number, (left, right, heights) in enumerate(_grids(page.rules)):
        inside = [
            line
            for line in page.lines
            if heights[0] - SAME_RULE < line.y < heights[-1]
            and left - SAME_RULE < line.x0
            and line.x1 < right + SAME_RULE
        ]
        rows = [bisect(heights, line.y) for line in inside]
        several = {row for line, row in zip(inside, rows, strict=True) if len(line.cells) > 1}
        if len(several) >= FEWEST_ROWS and len(several) >= len(set(rows)) / 2:
            for line, row in zip(inside, rows, strict=True):
                line.row = number, -row


def _grids(rules: Iterable[Rule]) -> list[tuple[float, float, list[float]]]:
    """(left, right, places of the lines from the bottom up) of lines of one width below each other; shorter ones
    between them end beside a cell of several rows, which are then read as one.
    """
    grids: list[tuple[float, float, list[float]]] = []
    for rule in _whole(rules):
        left, right, heights = grids[-1] if grids else (0.0, 0.0, [])
        if abs(left - rule.x0) < SAME_RULE and abs(right - rule.x1) < SAME_RULE:
            heights.append(rule.y)
        elif not left - SAME_RULE < rule.x0 < rule.x1 < right + SAME_RULE:
            grids.append((rule.x0, rule.x1, [rule.y]))
    return [grid for grid in grids if len(grid[2]) > FEWEST_ROWS]


def _whole(rules: Iterable[Rule]) -> list[Rule]:
    """The lines from the bottom up, those drawn in parts as one."""
    whole: list[Rule] = []
    for rule in sorted(rules):
        if whole and rule.y - whole[-1].y < SAME_RULE:
            last = whole.pop()
            whole.append(Rule(last.y, min(last.x0, rule.x0), max(last.x1, rule.x1)))
        else:
            whole.append(rule)
    return whole


APART = 6.0
"""Points between the beginnings of two columns."""

SAME = 1.5
_SPACE = Run(" ", 0, 0, mono=False, bold=False)
Row = list[list[Run]]


def table(lines: Sequence[Line], inline: Callable[[Sequence[Run]], str]) -> Iterator[str]:
    """The lines as a table; without rules between its rows, two columns are terms with what they mean, and those lines
    that begin in a later column go on with the row above. Paragraphs when no two lines have a column in common.
    """
    columns = _columns(lines)
    if len(columns) < 2:
        for line in lines:
            yield f"<p>{inline([run for cell in line.cells for run in (*cell, _SPACE)])}</p>"
        return
    rows = [[inline(cell) for cell in row] for row in _rows(lines, columns)]
    if len(columns) == 2 and lines[0].row is None:
        yield "<dl>" + "".join(f"<dt>{term}</dt><dd>{meaning}</dd>" for term, meaning in rows) + "</dl>"
    else:
        yield "<table>" + _row(rows[0], "th") + "".join(_row(row, "td") for row in rows[1:]) + "</table>"


def _rows(lines: Sequence[Line], columns: Sequence[float]) -> list[Row]:
    rows: list[Row] = []
    last: tuple[int, int] | None = None
    for line in lines:
        begins = line.row != last if line.row else _column(columns, line.x0) == 0
        if not rows or begins:
            rows.append([[] for _ in columns])
        last = line.row
        for cell in line.cells:
            column = _column(columns, cell[0].x0)
            for run in cell:
                if any(abs(run.x0 - start) < SAME for start in columns):  # a narrow gap
                    column = _column(columns, run.x0)
                rows[-1][column].append(run)
            rows[-1][column].append(_SPACE)
    return rows


def _row(cells: Sequence[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def _columns(lines: Sequence[Line]) -> list[float]:
    """Returns the starts of columns: the places at which cells of several lines do."""
    starts = sorted(cell[0].x0 for line in lines for cell in line.cells)
    groups: list[list[float]] = []
    for x in starts:
        if groups and x - groups[-1][0] < APART:
            groups[-1].append(x)
        else:
            groups.append([x])
    return [group[0] for group in groups if len(group) > 1]


def _column(columns: Sequence[float], x: float) -> int:
    return max((at for at, start in enumerate(columns) if start <= x + APART), default=0)


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
    parts = [f'<h1 id="page={first}">{html.escape(title)}</h1>']
    joined = _joiner(document)
    for is_heading, items in groupby(document.items, lambda item: isinstance(item, Heading)):
        if is_heading:
            parts += [_heading(item) for item in items if isinstance(item, Heading) and item.text != title]
        else:
            lines = [item for item in items if isinstance(item, Line) and item.text != title]
            text_lines = _without_contents(lines, document.body)
            if lines and not text_lines and parts[-1].startswith("<h") and len(parts) > 1:
                parts.pop()  # "Contents"
            parts += _blocks(text_lines, joined)
    return "\n".join(parts)


def _heading(heading: Heading) -> str:
    text = heading.text.replace(f"{SOFT_HYPHEN} ", "").replace(SOFT_HYPHEN, "")
    return f'<h{heading.level} id="page={heading.page}">{html.escape(text)}</h{heading.level}>'


def _without_contents(lines: Sequence[Line], body: float) -> list[Line]:
    """The lines without those of a table of contents or an index, whose words lead to a page number, and marks of notes."""
    led = [bool(_LEADERS.search(line.text.rstrip("0123456789ivxlcIVXLC, "))) for line in lines]
    text_lines = []
    for at, line in enumerate(lines):
        numbered = len(line.cells) > 1 and _NUMBER_ONLY.fullmatch(line.text.rpartition(" ")[2])
        if (
            not led[at]
            and not (numbered and any(led[max(0, at - 2) : at + 3]))
            and not (line.size < SMALL * body and _NUMBER_ONLY.fullmatch(line.text))
        ):
            text_lines.append(line)
    return text_lines


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
        grid = first.page, first.row[0]
        return _while(lines, at, lambda _, line: line.row is not None and (line.page, line.row[0]) == grid), "table"
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
            before = runs[-1].text if runs else " "
            goes_on_in_address = before.endswith(_IN_ADDRESS) and "://" in before.rpartition(" ")[2]
            if not before.endswith((" ", SOFT_HYPHEN)) and not goes_on_in_address:
                runs.append(Run(" ", 0, 0, mono=runs[-1].mono and cell[0].mono, bold=False))
            runs += cell
    return _inline(runs, joined)


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
    margin = min(line.x0 for line in lines)
    widths = [(len(run.text), (run.x1 - run.x0) / len(run.text)) for line in lines for run in line.cells[0] if run.text]
    width = max(widths)[1] or 1.0
    written_lines: list[str] = []
    for at, line in enumerate(lines):
        before = lines[at - 1] if at else None
        if before is not None and before.page == line.page and before.y - line.y > 1.7 * line.size:
            written_lines.append("")
        written_lines.append(" " * round((line.x0 - margin) / width) + _code_line(line, width))
    return "\n".join(written_lines)


def _code_line(line: Line, width: float) -> str:
    text, end = "", line.x0
    for run in (run for cell in line.cells for run in cell if run.text.strip()):
        gap = min(int((run.x0 - end) / width + 0.3), MOST_SPACES) - (len(text) - len(text.rstrip()))
        text += " " * gap + run.text.rstrip() + " " * run.text.endswith(" ")
        end = run.x1
    return text.rstrip().replace(SOFT_HYPHEN, "-")


def _joiner(document: Headed) -> Callable[[str], str]:
    """Returns a function that joins the parts of hyphenated words as the document writes them elsewhere."""
    text = " ".join(item.text for item in document.items)
    words = set(re.findall(r"[\w]+(?:-\w+)*", text.casefold()))

    def one(match: re.Match[str]) -> str:
        whole, hyphened = match[1] + match[2], f"{match[1]}-{match[2]}"
        as_hyphened = hyphened.casefold() in words and whole.casefold() not in words
        return hyphened if as_hyphened or not match[2][0].islower() else whole

    return lambda prose: _BROKEN.sub(one, prose).replace(SOFT_HYPHEN, "-")
