"""Pages of HTML whose main content a test names, and the Markdown of it."""

from __future__ import annotations

from ingestion.convert import SourceText, convert

URL = "https://docs.example.org/guide/"


def markdown(body: str, root: str = "main") -> str:
    """The Markdown in one line, of a page with a title and this body in the element `root`."""
    page = f"<html><body><{root}><h1>T</h1>{body}</{root}></body></html>"
    return " ".join(convert(SourceText(URL, page)).markdown.removeprefix("# T\n").split())
