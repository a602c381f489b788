"""Hostile Markdown against the rewriter: what readers' clients make of what is left, by several parsers.

    python -m bench.markdown_fuzz 1000000 --seed 1
    python -m bench.markdown_fuzz 50000 --marked DIR      # also by marked, from DIR/node_modules (npm install marked)

A finding is a link, picture or tag to where none may lead, or a link that has more than the address of a page. Prints the findings and how many there were; exits with 1 when
there is one. Each text is also fed in random pieces and has to come out the same.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator

from lxml import html
from markdown_it import MarkdownIt

from app.citing.citations import Citations
from app.citing.links import Addresses
from app.citing.placement import OwnList, Placement
from app.citing.rewrite import Rewriter
from app.text.segments import Line, Segmenter

KNOWN = "See https://known.cz/a and https://known.cz/p.png, https://cdn.other.cz/q.png. mailto:help@known.cz"
HOSTS = {"", "known.cz", "cdn.other.cz", "localhost", "example.com"}
SHOWN = {"known.cz"}
EVIL = [
    "https://evil.io/x", "http://evil.io", "//evil.io/x", "/\\evil.io/x", "\\\\evil.io", "&#104;ttps://evil.io", "ht\ttps://evil.io",
    "javascript:alert(1)", "&#106;avascript:alert(1)", "java\nscript:alert(1)", "JaVaScRiPt&colon;alert(1)", "data:text/html,x", "vbscript:x",
    "www.evil.io/x", "WWW.evil.io", "ftp://evil.io", "https:evil.io", "https:/evil.io", "https:\\\\evil.io", "https://known.cz@evil.io/",
    "https://known.cz\\@evil.io", 'https://known.cz"@evil.io/', "https://known.cz.evil.io/a", "https://evil.io/" + "p" * 2100, "<https://evil.io/a b>",
    "&#x2f;/evil.io", "\\//evil.io", "\x01https://evil.io", "https&#58;//evil.io", "mailto:a@evil.io", "file:///etc", "https://evil.io/a_(b)", "//evil。io",
    "https://{x@evil.io", 'https://"@evil.io/', "//{x>@evil.io", "https://`", "https://|",
    "https://known.cz/a#secret", "https://known.cz/a?secret", "HTTPS://known.cz/A#Secret", "https://known.cz/a&#35;secret", "https://known.cz/a%23secret",
]  # fmt: skip
GOOD = [
    "https://known.cz/a",
    "https://known.cz/p.png",
    "https://cdn.other.cz/q.png",
    "http://localhost/p.png",
    "http://example.com/p.png",
    "x",
]
TITLES = ['"t"', "'t'", "(t)", '"' + "t" * 90 + '"', '"<img src=//evil.io>"', "'a\nb'", '"t\\""', '"[a](//evil.io)"']
BLOCKS = [
    "\n", "\n\n", "\r\n", "\r", "\n> ", "\n> > ", "\n- ", "\n1. ", "\n2) ", "\n  ", "\n    ", "\n\t", "\n   - ", "\n\n    ", "\n\n\t", "\n# ", "\n---\n", "\n===\n",
    "\n```\n", "\n~~~\n", "\n````\n", "\n   ```\n", "\n> ```\n", "\n- ```\n", "\n1. ```sh\n", "\n```~\n", "\n```\t\n", "\n  ~~~", "\n>\t", "\n-\t", "\n\n> - ",
    "\n| a | b |\n|---|---|\n| ", "\n|-|-|\n", "\n---|---\n", " | ", "\\|", "\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x00", "\u00a0", "\u3000", "\n\u00a0\n", "\ufeff", "\u200b",
    "\n* * *\n", "\n+ ", "\n<br>\n", "\n<div>\n", "\n</div>\n", "\n<!-- ", " -->\n", "\n<script>\n", "\n</script>\n", "\n<?", "?>", "\n<![CDATA[", "]]>", "\n<pre>\n", "\n<details>\n",
    "\n[^1]: ", "\n[x]: ", "\n[x]:\n", "\n> [x]: ", "\n- [x]: ", "\n[k]: ", "\n[1]: ", "\n[x\n]: ", "\n[\\x]: ",
    "\n- a\n  ```\n  ", "\n1. a\n\n   ```sh\n   ", "\n10. a\n    ~~~\n    ", "\n   ", "\n  ```\n", "\n    ```\n    ",
]  # fmt: skip
SIGNS = [
    *"[]()!`<>\\*_~&#|\"':/$=", "![", "](", "]:", "`", "``", "```", "**", "__", "~~", "\\[", "\\`", "\\\\", "\\<", "\\!", " ", "  \n", "word", "word ", "č", "a[1]", "[1]", "[2][1]",
    "[9]", "[1](", "【1】", "【9】", "[ ] ", "&amp;", "&lt;", "&#60;", "&lt", "&#91;", "$x$", "$$", "$`$", "(", ")", "http", "https:", "//", "www.", "h", "evil.io", "1. ", "0",
    "<img src=", "<img\nsrc='", "<a href='", "</a>", "<b>", "<br>", "<br/>", "<kbd>", "<sub ", "<x y>", "<iframe src=", " onerror=alert(1)>", "'>", '">', "<svg/onload=alert(1)>",
    "<details type='x'>", "<file id='", "<source_id>", "<style>@import '//evil.io'</style>", "<https:", "<//", "[x]", "![x]", "[x][]", "![y][x]", "[k]", "![k]", "@", "a@evil.io",
    ". Next ", "? A ", ", and ", ". [1] ", "This is a sentence, or what looks like one. ",
]  # fmt: skip
ALLOWED = re.compile(r"</?(?:b|br|code|del|em|i|ins|kbd|mark|s|small|strong|sub|sup|u) ?/?>", re.IGNORECASE)
MADE = {"html", "body", "p", "div", "span", *["b", "br", "code", "del", "em", "i", "ins", "kbd", "mark", "s", "small", "strong", "sub", "sup", "u"], *["ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "pre", "blockquote"], *["table", "thead", "tbody", "tr", "th", "td", "a", "img"]}  # fmt: skip
_SUSPECT = re.compile(
    rf"<(?!/?(?:{'|'.join(MADE - {'a', 'img'})})>|hr>|br>|ol start=\"\d+\">)"
)  # a tag that makes a look worthwhile
ATTRIBUTES = {"href", "src", "alt", "title", "class", "start", "style"}


PAGES = tuple(f"https://known.cz/{i}" for i in range(1, 4))
ADDRESSES = Addresses([KNOWN], ["https://known.cz/"])


def texts(chance: random.Random) -> Iterator[str]:
    """Fragments in a random order, some of them put together as an attacker would."""
    while True:
        parts = []
        for _ in range(chance.randrange(2, 14)):
            kind = chance.random()
            target = chance.choice(EVIL if chance.random() < 0.75 else GOOD)
            if kind < 0.3:
                parts.append(chance.choice(BLOCKS))
            elif kind < 0.62:
                parts.append(chance.choice(SIGNS))
            elif kind < 0.7:
                parts.append(target)
            else:
                parts.append(construct(chance, target))
        yield "".join(parts)


def construct(chance: random.Random, target: str) -> str:
    """A link, picture, definition or tag to the target."""
    words = chance.choice(
        [
            "x",
            "",
            "1",
            "2",
            "w `",
            "` w",
            "a\nb",
            "[y]",
            "<b>",
            "![y](//evil.io/z)",
            "[y](x)",
            "x" * 90,
            "*x",
            "\\]",
            "a](b",
            "a | b",
        ]
    )
    space = chance.choice(["", "", "", " ", "\n", "\t", "  "])
    title = chance.choice(["", "", "", " " + chance.choice(TITLES), "\n" + chance.choice(TITLES)])
    return chance.choice(
        [
            f"![{words}]({space}{target}{title})", f"[{words}]({space}{target}{title})", f"![{words}](<{target}>{title})", f"[![{words}]({target})]({target})",
            f"![{words}][x]", f"\n\n[x]:{space}{target}{title}\n", f"\n[{words}]: {target}\n", f"<{target}>", f"<img src={target}>", f'<img alt="x" src="{target}">',
            f"<a href='{target}'>x</a>", f"<iframe src={target}></iframe>", f"<img\n  src={target}\n>", f"`![x]({target})`", f"``![x]({target})`", f"\n    ![x]({target})\n",
            f"\n> ```\n![x]({target})\n", f"\n- ```\n  ![x]({target})\n", f"\n- ```\n![x]({target})\n```\n", f"![{words}\n\n]({target})", f"| ![x]({target}) | `a | {target}` |", f"<svg><image href={target}>",
        ]
    )  # fmt: skip


def rewritten(pieces: list[str], *, slow: bool = False) -> str:
    """What readers get of a text in pieces; if its model is slow, also the clauses that are there."""
    citations = Citations(PAGES)
    line = Line(OwnList(frozenset({"sources"})), Placement(citations), Rewriter(ADDRESSES, citations))
    return "".join(shown(pieces, line, slow=slow))


def shown(pieces: Iterable[str], line: Line, *, slow: bool = False) -> Iterator[str]:
    """What readers get by each piece, and by the end."""
    segmenter = Segmenter()
    for piece in pieces:
        yield line.feed([*segmenter.feed(piece), *(segmenter.clause() if slow else ())])
    yield line.feed(segmenter.rest(), ends=True)


def pieces_of(text: str, chance: random.Random) -> list[str]:
    """The text, cut anywhere."""
    cuts = sorted(chance.choices(range(len(text) + 1), k=chance.randrange(0, 12)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def host(address: str) -> str | None:
    """The host that a browser asks, empty for the client's own; None for an address that runs something."""
    plain = re.sub(r"[\t\n\r]", "", address.strip("".join(map(chr, range(33))))).replace("\\", "/")
    scheme = re.match(r"([a-z][a-z\d+.-]*):", plain, re.IGNORECASE)
    if scheme and scheme[1].lower() not in {"http", "https", "ftp", "ftps"}:
        return "" if scheme[1].lower() == "mailto" else None
    rest = plain[scheme.end() :] if scheme else plain
    if not scheme and not rest.startswith("//"):
        return ""
    return re.split(r"[/?#]", rest.lstrip("/"), maxsplit=1)[0].rpartition("@")[2].partition(":")[0].lower()


def carries(address: str) -> bool:
    """True if an address of the pages says what none of them has there."""
    return host(address) == "known.cz" and "secret" in address.lower()


class Clients:
    """Three readers' clients."""

    def __init__(self) -> None:
        chat = MarkdownIt("gfm-like", {"html": False})
        page = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
        hub = MarkdownIt("gfm-like", {"html": True})
        self._clients = {"chat": chat, "html": page, "hub": hub}
        for client in self._clients.values():
            client.validateLink = lambda _: True

    def findings(self, text: str) -> list[str]:
        """What leads where nothing may lead."""
        found = []
        for name, client in self._clients.items():
            if name == "hub" and "<" not in text:
                continue  # as in the chat
            written = client.render(text)
            if name == "hub":
                written = re.sub(
                    r"<(?=/?(?:title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)\b)", "&lt;", written
                )
            found += [f"{name}: {one}" for one in in_html(written)]
        return found


def in_html(written: str) -> Iterator[str]:
    """Links, pictures and tags of a page that mustn't be there."""
    if not _SUSPECT.search(written):
        return
    for element in html.document_fromstring(f"<div>{written}</div>").iter():
        if not isinstance(element.tag, str):
            yield f"comment {element.text}"
            continue
        if element.tag not in MADE or set(element.attrib) - ATTRIBUTES:
            yield f"tag {html.tostring(element)[:120]!r}"
        if "href" in element.attrib:
            yield from in_link(element.attrib["href"], (element.text or "").lower())
        if "src" in element.attrib and host(element.attrib["src"]) not in SHOWN:
            yield f"picture {element.attrib['src'][:80]}"


def in_link(address: str, bare: str) -> Iterator[str]:
    """What is wrong with a link; `bare` are its words in small letters."""
    guessed = address.startswith("http://") and "://" not in bare and bare[:2] != "//" and not bare.startswith("www.")
    if guessed and "." in bare:
        return  # a guess: evil.io without any scheme
    if host(address) not in HOSTS:
        yield f"link {address[:80]}"
    elif carries(address):
        yield f"carries {address[:80]}"


MARKED = """
import { marked } from 'marked'; import { createInterface } from 'node:readline';
const katex = { name: 'inlineKatex', level: 'inline', start: s => s.indexOf('$'), tokenizer(s) { const m = s.match(/^\\$+([^$\\n]+?)\\$+/); if (m) return { type: 'inlineKatex', raw: m[0] } } };
marked.use({ extensions: process.argv[2] === 'katex' ? [katex] : [], gfm: true, breaks: true });
for await (const line of createInterface({ input: process.stdin })) {
  const found = []; const tokens = marked.lexer(JSON.parse(line));
  marked.walkTokens(tokens, t => {
    if (t.type === 'html') found.push(['html', t.raw]);
    if (t.type === 'link' || t.type === 'image') { let u; try { u = new URL(t.href, 'http://chat.local/'); found.push([t.type, u.protocol, u.hostname, t.href, t.raw]) } catch { } } });
  console.log(JSON.stringify(found)); }
"""


def by_marked(outputs: list[str], directory: str, variant: str) -> list[list[str]]:
    """The same as marked reads the texts, and a browser its addresses."""
    asked = "".join(f"{json.dumps(text)}\n" for text in outputs)
    command = ["node", "--input-type=module", "-e", MARKED, "--", variant]
    said = subprocess.run(command, cwd=directory, input=asked, capture_output=True, text=True, check=True).stdout
    return [list(marked_findings(json.loads(line))) for line in said.splitlines()]


def marked_findings(tokens: list[list[str]]) -> Iterator[str]:
    """Those of one text."""
    for kind, *rest in tokens:
        if kind == "html":
            if not ALLOWED.fullmatch(rest[0].strip()):
                yield f"marked: html {rest[0][:80]!r}"
            continue
        protocol, name, href, raw = rest
        allowed = {"known.cz"} if kind == "image" else (HOSTS | {"chat.local"})
        if (protocol == "mailto:" and kind == "link") or not href:
            continue
        if protocol not in {"http:", "https:", "ftp:"} or name not in allowed:
            yield f"marked: {kind} {href[:80]!r} {raw[:80]!r}"
        elif carries(href):
            yield f"marked: carries {href[:80]!r} {raw[:80]!r}"


def arguments() -> argparse.Namespace:
    """What is asked for."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("count", type=int)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--marked", default="", help="directory with node_modules/marked")
    asked.add_argument("--seconds", type=float, default=float("inf"), help="ends by then, with fewer texts")
    asked.add_argument("--show", type=int, default=10)
    return asked.parse_args()


def asked_texts(given: argparse.Namespace, chance: random.Random) -> Iterator[tuple[int, str]]:
    """Numbered texts, as many as are asked for or as there is time for."""
    began = time.monotonic()
    for number, text in zip(range(1, given.count + 1), texts(chance), strict=False):
        if time.monotonic() - began > given.seconds:
            break
        yield number, text


def main() -> int:
    """Runs it."""
    given = arguments()
    chance, clients, began = random.Random(given.seed), Clients(), time.monotonic()
    found = cut = count = 0
    asked_marked: list[tuple[str, str]] = []
    longest = 0.0
    for count, text in asked_texts(given, chance):
        started = time.perf_counter()
        output = rewritten([text])
        longest = max(longest, time.perf_counter() - started)
        if count % 4 == 1:
            pieces = pieces_of(text, chance)
            if rewritten(pieces) != output:
                cut += 1
                report("PIECES", cut, given.show, pieces, output, rewritten(pieces))
        slow = rewritten(pieces_of(text, chance), slow=True) if count % 4 == 2 else output
        if findings := [*clients.findings(output), *(clients.findings(slow) if slow != output else ())]:
            found += 1
            report("FOUND", found, given.show, findings, text, output, slow)
        if given.marked:
            asked_marked.append((text, output))
    for variant in ("plain", "katex") if given.marked else ():
        results = by_marked([output for _, output in asked_marked], given.marked, variant)
        others = [(one, *pair) for one, pair in zip(results, asked_marked, strict=True) if one]
        for number, other in enumerate(others, start=1):
            report(f"MARKED {variant}", number, given.show, *other)
        sys.stdout.write(f"marked, {variant}: {len(others)} of {len(asked_marked)} texts\n")
        found += len(others)
    sys.stdout.write(
        f"{count} texts, {found} with a finding, {cut} that depend on their pieces, the longest took "
        f"{longest * 1000:.0f} ms, all {time.monotonic() - began:.0f} s\n"
    )
    return bool(found or cut)


def report(name: str, number: int, most: int, *what: object) -> None:
    """Some of what was found."""
    if number <= most:
        sys.stdout.write("\n  ".join([name, *map(repr, what)]) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
