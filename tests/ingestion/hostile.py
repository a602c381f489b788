"""Pages made to break what reads them, each in any size."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

GZIP = {"Content-Encoding": "gzip"}
WORDS = "Words of a page that means no harm."
PAGE = f"# Title\n\n{WORDS}\n".encode()


@dataclass(frozen=True)
class Hostile:
    """A page as a site answers it."""

    name: str
    body: bytes
    media_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def _html(inner: str) -> bytes:
    return f"<html lang=en><body><main><h1>Title</h1><p>{WORDS}</p>{inner}</main></body></html>".encode()


def _front(lines: str) -> bytes:
    return f"---\n{lines}\n---\n# Title\n\n{WORDS}\n".encode()


def _noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


MARKDOWN: Mapping[str, Callable[[int], bytes]] = {
    "brackets in front matter": lambda n: _front("a: " + "[" * n),
    "braces in front matter": lambda n: _front("{a: " * (n // 4)),
    "dashes in front matter": lambda n: _front("a: b\n" + "-" * n + "x"),
    "merges in front matter": lambda n: _front(
        "a0: &a0 {k: v}\n" + "\n".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}" for i in range(1, min(n, 60)))
    ),
    "half a character": lambda n: _front('title: "\\ud800' + "x" * n + '"\ndate: "\\udfff"'),
    "year of another age": lambda n: _front(f"date: +{'9' * n}-01-01\nversion: 0x{'f' * n}"),
    "tags that never end": lambda n: PAGE + b"<a " * (n // 3),
    "comments that never end": lambda n: PAGE + b"<!--" * (n // 4),
    "tables that never end": lambda n: PAGE + b"\n<table>" * (n // 8),
    "ends of links": lambda n: PAGE + b"](" * (n // 2),
    "links in links": lambda n: PAGE + b"[x](" * (n // 4),
    "headings": lambda n: PAGE + b"# h\n" * (n // 4),
    "one heading": lambda n: b"# " + b"](" * (n // 2) + f"\n\n{WORDS}\n".encode(),
    "lists in lists": lambda n: b"- " * (n // 2) + WORDS.encode(),
    "quotes in quotes": lambda n: b"> " * (n // 2) + WORDS.encode(),
    "backticks": lambda n: b" ".join(b"`" * (i % 300) for i in range(n // 150)) + WORDS.encode(),
    "spaces in a heading": lambda n: b"# a" + b" " * n + b"b\n\n" + WORDS.encode(),
    "a wide table": lambda n: b"|a" * (n // 4) + b"|\n" + b"|-" * (n // 4) + b"|\n" + b"|x|\n" * (n // 8),
    "stars": lambda n: WORDS.encode() + b"*a_" * (n // 3),
}
MDX: Mapping[str, Callable[[int], bytes]] = {
    "components that never end": lambda n: WORDS.encode() + b"\n" + b"<A " * (n // 3),
    "open components": lambda n: WORDS.encode() + b"\n" + b"<A>\n" * (n // 4),
    "statements that never end": lambda n: WORDS.encode() + b"\n" + b"export const {\n" * (n // 15),
    "a long name": lambda n: WORDS.encode() + b"\n<" + b"A" * n + b"/>\n",
}
HTML: Mapping[str, Callable[[int], bytes]] = {
    "deep": lambda n: _html("<div>" * (n // 5)),
    "deep tables": lambda n: _html("<table><tr><td>" * (n // 15)),
    "deep lists": lambda n: _html("<ul><li>" * (n // 8)),
    "deep quotes": lambda n: _html("<blockquote>" * (n // 12)),
    "bold": lambda n: _html("<b>" * (n // 3)),
    "dropped": lambda n: _html("<button></button>x" * (n // 18)),
    "dates": lambda n: _html("<time datetime=2024-01-01>day</time> " * (n // 38)),
    "ids": lambda n: _html("<section>" + "<p>x</p>" * (n // 16) + "<h2>h</h2>" * (n // 20)),
    "cells": lambda n: _html("<table>" + "<tr><td>x</td></tr>" * (n // 19) + "</table>"),
    "attributes": lambda n: _html("<p " + " ".join(f"a{i}=b" for i in range(n // 200)) + ">"),
    "links in a list": lambda n: _html(
        "<ul>" + "".join(f'<li><a href="/p{i}">{i}</a></li>' for i in range(n // 32)) + "</ul>"
    ),
    "wide cells": lambda n: _html("<table><tr>" + "<td colspan=1000>x</td>" * (n // 23) + "</tr></table>"),
    "attributes of one element": lambda n: _html(f"<p {' '.join(f'a{i}=b' for i in range(n // 9))}>x</p>"),
    "attributes of many": lambda n: _html("".join(f"<p id=i{i} class=c{i}>{i}</p>" for i in range(n // 28))),
    "one word": lambda n: _html(f"<p>{'x' * n}</p>"),
    "entities": lambda n: _html("&#xD800;&#0;&bogus;" * (n // 19)),
    "NULs": lambda n: _html("\x00\x0b\x1b" * (n // 3)),
}
OTHER: Mapping[str, Callable[[int], Hostile]] = {
    "not a charset": lambda n: Hostile("", _html("x" * n), "text/html; charset=undefined"),
    "escapes for a charset": lambda n: Hostile("", _html("\\ud800" * (n // 6)), "text/html; charset=unicode_escape"),
    "noise": lambda n: Hostile("", _noise(n), "text/html"),
    "broken characters": lambda n: Hostile("", b"<main>" + b"\xff\xfe\xc3(" * (n // 4), "text/html"),
    "bomb": lambda n: Hostile("", gzip.compress(bytes(n * 200)), headers=GZIP),
    "bomb in a bomb": lambda n: Hostile(
        "", gzip.compress(gzip.compress(bytes(n * 200))), headers={"Content-Encoding": "gzip, gzip"}
    ),
    "deflated bomb": lambda n: Hostile("", zlib.compress(bytes(n * 200)), headers={"Content-Encoding": "deflate"}),
    "not packed": lambda n: Hostile("", b"x" * n, headers=GZIP),
    "entity bomb": lambda n: Hostile(
        "",
        b'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY a "lol">'
        + "".join(f'<!ENTITY a{i} "&a;&a;">' for i in range(n // 22)).encode()
        + b"]><html><body><p>&a1;</p></body></html>",
        "application/xhtml+xml",
    ),
    "dates of no calendar": lambda n: Hostile(
        "", _html("x" * (n % 1000)), headers={"Last-Modified": "+999999999999999", "ETag": '"\xe9"'}
    ),
}


def pages(sizes: tuple[int, ...]) -> list[Hostile]:
    """Each kind in each of these sizes, in bytes."""
    found: list[Hostile] = []
    for size in sizes:
        for kinds, media_type in ((MARKDOWN, "text/markdown"), (MDX, "text/mdx"), (HTML, "text/html")):
            found += [Hostile(name, make(size), media_type) for name, make in kinds.items()]
        for name, other in OTHER.items():
            made = other(size)
            found.append(Hostile(name, made.body, made.media_type, made.headers))
    return found


def bombs() -> list[Hostile]:
    """The pages that once held a run for minutes: 100,000 of a thing, and a word of 9 MB."""
    sizes = {
        "links in a list": 32,
        "wide cells": 23,
        "attributes of one element": 9,
        "attributes of many": 28,
        "one word": 90,
    }
    return [Hostile(name, HTML[name](100_000 * size), "text/html") for name, size in sizes.items()]
