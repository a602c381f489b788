"""Counts what is left of template syntax outside code in the pages of directories of Markdown, per 1,000 pages.

python -m bench.leftovers ../some-project/docs ../another/content
"""

from __future__ import annotations

import re
import sys
from collections import Counter

from app.text.fences import blocks, code_spans
from ingestion.convert import ConversionError, SourceText, convert
from ingestion.crawl.directory import list_files, read_file
from ingestion.sources import Source

URL = "https://docs.example.org/"
PROSE = {
    "MyST target": re.compile(r"(?m)^[ \t]*\([^()\n]+\)=[ \t]*$"),
    "MyST break": re.compile(r"(?m)^\+\+\+"),
    "{{ }}": re.compile(r"\{\{(?![<%])[^{}\n]*\}\}"),
    "{{< >}} {{% %}}": re.compile(r"\{\{[<%]"),
    "{% %}": re.compile(r"\{%[^%\n]*%\}"),
    ":::": re.compile(r"(?m)^[ \t>]*:{3,}"),
    "!!! ??? ===": re.compile(r"(?m)^[ \t]*(?:!!!|\?\?\?\+?|===[!+]?)[ ]+[\w\"]"),
    "///": re.compile(r"(?m)^[ \t]*/{3,}(?:[ \t]|$)"),
    "--8<--": re.compile(r"-{1,}8<-{1,}"),
    "<<< include": re.compile(r"(?m)^[ \t]*<<<|<!--[ \t]*@include|^\{\*[^*\n]+\*\}"),
    "import, export": re.compile(r"(?m)^(?:import[ \t][^\n]*['\"];?$|export[ \t]+(?:const|default|function))"),
    "component": re.compile(r"</?[A-Z][A-Za-z.]*[a-z][\w.]*(?=[\s/>])"),
    "custom element": re.compile(r"</?[a-z]+(?:-[a-z]+)+(?=[\s/>])"),
    "script, style": re.compile(r"</?(?:script|style|template)\b"),
    "attribute list": re.compile(r"\{:?[ ]*(?:[#.][\w-]+|[\w-]+=\"?[^{}\n]*\"?)[^{}\n]*\}(?!`)"),
    "icon": re.compile(r"(?<![\w`:]):(?:material|octicons|fontawesome|simple)-[a-z0-9-]+:"),
    "[TOC]": re.compile(r"(?mi)^[ \t]*(?:\[TOC\]|\[\[toc\]\])[ \t]*$"),
    "JSX": re.compile(r"\{/\*|\b(?:className|onClick)=|=\{"),
}
CODE = {"MyST directive": re.compile(r"[ \t>]*(?:`{3,}|~{3,})[ \t]*\{[a-z]")}
_ROLE = re.compile(r"\{[A-Za-z][\w:.+-]*\}$")
_SPAN = re.compile(r"(?<!`)(`+)(?!`)[^`\n]*(?:\n[^`\n]+)?\1(?!`)")
_ANCHOR = re.compile(r"(?m)^(#{1,6} .*?)[ ]\{#[^{}\s]+\}$")


def leftovers(markdown: str) -> Counter[str]:
    """How many there are of each class."""
    found: Counter[str] = Counter()
    for code, piece in blocks(markdown):
        if code:
            found.update(name for name, sign in CODE.items() if sign.match(piece))
            continue
        found["MyST role"] += sum(_ROLE.search(piece[:start]) is not None for start, _ in code_spans(piece))
        plain = _SPAN.sub("`", _ANCHOR.sub(r"\1", piece))
        for name, sign in PROSE.items():
            found[name] += len(sign.findall(plain))
    return found


def main(*directories: str) -> None:
    """Print a row for each directory; with `-v` also what was found where."""
    verbose = directories[:1] == ("-v",)
    for directory in directories[verbose:]:
        total: Counter[str] = Counter()
        pages = 0
        for entry in list_files(Source(url=URL, directory=directory), ("en",)).entries:
            fetched = read_file(entry, "", 10_000_000)
            try:
                made = convert(SourceText(entry.url, fetched.body.decode(errors="replace"), fetched.media_type))
            except ConversionError:
                continue
            found = leftovers(made.markdown)
            pages += 1
            total += found
            if verbose and found.total():
                print("   ", entry.url.removeprefix(URL), dict(+found))
        told = ", ".join(f"{name} {count * 1000 // pages}" for name, count in total.most_common() if count)
        print(f"{directory}: {pages} pages, {total.total() * 1000 // max(pages, 1)} per 1,000: {told}")


if __name__ == "__main__":
    main(*sys.argv[1:])
