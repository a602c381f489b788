"""The frame of every page: head, style for light and dark, and the small pieces that pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def page(title: str, lead: str, sections: Iterable[str]) -> str:
    """A whole document."""
    style = (files("eval.page") / "style.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title><style>{style}</style></head>'
        f'<body><header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header><main>'
        + "\n".join(section for section in sections if section)
        + "</main></body></html>\n"
    )


def section(title: str, body: str, note: str = "") -> str:
    """A part with its heading and a line that says how to read it; empty without a body."""
    if not body:
        return ""
    told = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{told}{body}</section>"


def tiles(figures: Iterable[tuple[str, str, str]]) -> str:
    """The main figures: name, value, what stands beside it."""
    cells = "".join(
        f'<div class="tile"><span class="name">{escape(name)}</span><span class="value">{escape(value)}</span>'
        f'<span class="beside">{escape(beside)}</span></div>'
        for name, value, beside in figures
    )
    return f'<div class="tiles">{cells}</div>'


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, words: bool = False) -> str:
    """A table; the first column is text, the others figures unless they are `words`."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    kind = ' class="words"' if words else ""
    return f'<div class="wide"><table{kind}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
