"""Parts of Markdown: code and prose, sentences; and Markdown as plain text, for a model, a line or a title."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, lru_cache
from html import unescape
from typing import TYPE_CHECKING
from unicodedata import normalize
from urllib.parse import unquote, urlsplit

from app.core.language import vocabulary

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")
"""The mark of an item, also of one to tick off."""
FENCE = re.compile(r"`{3,}|~{3,}")
"""Signs that may begin or end a block of code."""
_ANY_FENCE = re.compile(r"^[ \t]*(?:>[ \t]?|(?:[-*+]|\d+[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})")
_PLACEHOLDER = re.compile("\x00(\\d{1,6})\x00")
_TICKS = re.compile(r"`+|\n[ \t]*+(?=\n)")


def blocks(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces that join back to it: (True, fenced code with its fences) or (False, prose)."""
    if "```" not in text and "~~~" not in text:  # most texts
        if text:
            yield False, text
        return
    fence, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        # most lines have no fence, and searching for one is the faster test
        if not fence and ("```" in line or "~~~" in line) and (match := _ANY_FENCE.match(line.rstrip("\r\n"))):
            if lines:
                yield False, "".join(lines)
            fence, lines = match[1], [line]
        elif fence and closes(line, fence):
            yield True, "".join([*lines, line])
            fence, lines = "", []
        else:
            lines.append(line)
    if lines:
        yield bool(fence), "".join(lines)


def closes(line: str, fence: str) -> bool:
    """True if the line closes a block of code that this fence has opened."""
    signs = line.strip(" \t>\r\n")
    return len(signs) >= len(fence) and not signs.strip(fence[0])


def code_lines(block: str) -> list[str]:
    """The lines of a fenced block, without those of its fences."""
    first, *lines = block.splitlines()
    fence = _ANY_FENCE.match(first)
    closed = fence and lines and closes(lines[-1], fence[1])
    return lines[:-1] if closed else lines


def is_heading(line: str) -> bool:
    """True for a line that begins with up to six number signs and a blank."""
    name = line.lstrip("#")
    return 0 < len(line) - len(name) <= 6 and name[:1].isspace()


def unmarked(line: str) -> str:
    """The line without the marks of a quotation, an item and a heading."""
    while bare := line.lstrip(" \t>"):
        mark = ITEM.match(bare)
        line = bare[mark.end() :] if mark else bare.lstrip("#").lstrip() if is_heading(bare) else bare
        if line == bare:
            return line
    return ""


def fenced(code: str, language: str = "") -> str:
    """The code as a fenced block, whose fence is longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}{language}\n{code}\n{fence}"


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to the prose between fenced blocks."""
    return "".join(piece if code else change(piece) for code, piece in blocks(text))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to all but fenced blocks and code spans."""
    return outside_fences(text, lambda prose: outside_spans(prose, change))


def code_spans(prose: str) -> Iterator[tuple[int, int]]:
    """The start and end of each code span; it ends at the next run of as many backticks in the paragraph."""
    if "`" not in prose:
        return
    runs = list[tuple[int, int, bool]]()
    for match in _TICKS.finditer(prose):
        start = match.start()
        if prose[start] == "`":
            runs.append((start, match.end(), prose[start - 1 : start] != "\\"))
        else:
            yield from _paired(runs)
            runs.clear()
    yield from _paired(runs)


def _paired(runs: list[tuple[int, int, bool]]) -> Iterator[tuple[int, int]]:
    waiting: defaultdict[int, list[int]] = defaultdict(list)  # later runs by length, the next one last
    for number in range(len(runs) - 1, -1, -1):
        waiting[runs[number][1] - runs[number][0]].append(number)
    number = 0
    while number < len(runs):
        start, end, opens = runs[number]
        same = waiting[end - start]
        while same and same[-1] <= number:
            same.pop()
        if opens and same:
            number = same[-1]
            yield start, runs[number][1]
        number += 1


def outside_spans(prose: str, change: Callable[[str], str]) -> str:
    """Replaces code spans with placeholders, so that `change` sees constructs around them as a whole."""
    if "`" not in prose:
        return change(prose)
    spans: list[str] = []
    parts, at = list[str](), 0
    for start, end in code_spans(prose):
        parts.append(f"{prose[at:start]}\x00{len(spans)}\x00")
        spans.append(prose[start:end])
        at = end
    parts.append(prose[at:])
    changed = change(apart := "".join(parts))
    if changed == apart:
        return prose
    return _PLACEHOLDER.sub(lambda match: spans[int(match[1])] if int(match[1]) < len(spans) else match[0], changed)


# a stop, closing marks, space, then the start of a sentence: a word, a bullet or a link
_END = re.compile(r"""[.!?…]["'”’“»)\]*_`]{0,3}\s+(?=["'“„«(\[*_`]{0,3}(?P<first>\w)|[-*+]\s|!?\[)""")
_STOP = re.compile(r"(?<=[.!?])\s+")
_LAST_WORD = re.compile(r"(?<![\w.])([\w.]+)\.$")


def sentences(text: str, abbreviations: Collection[str] | None = None) -> list[str]:
    """The text in sentences, in order, each with the white space after it: they join back to the text.

    The abbreviations are in lower case, without their last stop; the default is those of the shipped languages.
    """
    abbreviations = vocabulary().abbreviations if abbreviations is None else abbreviations
    texts, start = list[str](), 0
    for match in _END.finditer(text):
        if _is_end(text[max(start, match.start() - 40) : match.start() + 1], match["first"] or "", abbreviations):
            texts.append(text[start : match.end()])
            start = match.end()
    return [*texts, text[start:]] if start < len(text) else texts


def informal_sentences(text: str, abbreviations: Collection[str]) -> list[str]:
    """The sentences without the white space between them; they can begin with lower case, as people type."""
    texts, start = list[str](), 0
    for gap in _STOP.finditer(text):
        if _last_word(text[max(start, gap.start() - 40) : gap.start()]) not in abbreviations:
            texts.append(text[start : gap.start()])
            start = gap.end()
    return [*texts, text[start:]]


def _is_end(before: str, following: str, abbreviations: Collection[str]) -> bool:
    if following.islower():
        return False
    last = _last_word(before)
    if not last:
        return True
    if last.isdigit():  # "3. listopadu", "1. First": an ordinal or a list item, unless a sentence surely begins
        return following.isupper() and len(last) > 2
    return last not in abbreviations and not (len(last) == 1 and last.isalpha())


def _last_word(text: str) -> str:
    """The word before the stop at the end of the text, in lower case; empty if there is no such stop."""
    word = _LAST_WORD.search(text)
    return word[1].rpartition("\n")[2].lower().strip(".") if word else ""


CUT = "…"


def cut_short(text: str, longest: int) -> str:
    """The text; of a longer one whole words up to so many characters, without a code span that would stay open."""
    if len(text) <= longest:
        return text
    begun = text[:longest].rsplit(maxsplit=1)[0]
    if begun.count("`") % 2:
        begun = begun.rpartition("`")[0]
    return f"{begun.rstrip(' (')} {CUT}"


_FENCE_LINE = re.compile(
    r"(?P<fence>[^`~\n]*+(?:`{3,}+|~{3,}+))[ \t]*+\{?(?:code(?:-block)?\})?[ \t]*+\.?(?P<language>[A-Za-z][\w+#.-]*+)?[^\n]*+"
)
_IMAGE = re.compile(r"!\[([^\[\]\n]*+)\](?:\((?:[^()\n]|\([^()\n]*+\))*+\)|\[[^\[\]\n]*+\])")
_LINK = re.compile(
    r"(?<!\])\[([^\[\]\n]*+(?:\[[^\[\]\n]*+\][^\[\]\n]*+){0,3}+)\]"
    r"(?:\((?:<[^<>\n]*+>|(?:[^()\s]|\([^()\s]*+\))*+)(?:\s++(?:\"[^\"\n]*+\"|'[^'\n]*+'))?[ \t]*+\)|\[[^\[\]\n]*+\](?!\()"
    # written wrongly, and known for an address all the same
    r"|\(\(?(?:https?://|mailto:)(?:[^()\n]|\n(?!\n)|\([^()\n]*+\))*+\))"
)
_DEFINITION = re.compile(r"(?m)^ {0,3}\[[^\[\]\n^]++\]:[ \t]++\S.*+\n?")
_ANCHOR = re.compile(r"(?m)(?:(?<![ \t])[ \t]++)?(?:\{#[^{}\s]++\}|(?<=[ \t])\[#[^\[\]\s]++\])[ \t]*+$")
_ESCAPED = re.compile(r"\\([<&])")
_TAG = re.compile(r"(?<!\\)<(/?)([A-Za-z][\w.:-]*+)((?:[^<>\"']|\"[^\"\n]*+\"|'[^'\n]*+')*+)>")
_CLOSING = re.compile(r"(?<!\\)</([A-Za-z][\w.:-]*+)")
_LONG = 200  # characters of a run without spaces from which on it may be encoded data, as the pattern says
_ENCODED = re.compile(r"data:[\w.+-]++/[\w.+-]++[;,][^\s()<>\"']*+|(?<![\w%+/=-])[\w%+/=-]{200,}+")
_ENCODED_IN_CODE = re.compile(r"(?<![\w%+/=-])[\w%+/=-]{500,}+")
_CHANGED = ("[", "<", "\\", "{#", "data:", "```", "~~~")
"""Of these, a text must have one, or a very long word, for `plain` to change it."""

_SHOWN = 40  # characters of encoded data: what it begins with may tell what it is
_HTML_NAMES = """
a abbr address article aside audio b big blockquote body br button canvas caption center cite code col
colgroup dd del details dfn dialog div dl dt em embed fieldset figcaption figure font footer form h1 h2 h3 h4
h5 h6 head header hr html i iframe img input ins kbd label legend li link main map mark menu meta nav noscript
object ol optgroup option p param picture pre q s samp script section select small source span strike strong
style sub summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul var
video wbr path
"""
_HTML = frozenset(_HTML_NAMES.split())


def plain(markdown: str) -> str:
    """The Markdown with the words of links and images, the language of code, and the text between tags; all else stays.

    An address that is itself what readers see stays, and so does what only looks like a tag, such as `<name>`.
    """
    if not any(map(markdown.__contains__, _CHANGED)) and _longest(markdown) < _LONG:  # most lines
        return markdown
    return "".join(_code(piece) if code else outside_spans(piece, _prose) for code, piece in blocks(markdown))


def _code(block: str) -> str:
    opening, end, rest = block.partition("\n")
    if found := _FENCE_LINE.match(opening):
        opening = found["fence"] + (found["language"] or "")
    return f"{opening}{end}{_ENCODED_IN_CODE.sub(_begun, rest) if _longest(rest) >= 500 else rest}"


def _prose(text: str) -> str:
    if "[" in text:
        text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text)) if "](" in text or "][" in text else text
        text = _DEFINITION.sub("", text) if "]:" in text else text
    text = _ANCHOR.sub("", text) if "{#" in text or "[#" in text else text
    if "<" in text:
        closed = frozenset(_CLOSING.findall(text))
        text = _TAG.sub(lambda found: _untagged(found, closed), text)
    if "\\" in text:
        text = _ESCAPED.sub(r"\1", text)
    return _ENCODED.sub(_begun, text) if "data:" in text or _longest(text) >= _LONG else text


def _longest(text: str) -> int:
    """The length of the longest run without spaces, at most: looking for encoded data takes many times as long."""
    return max(map(len, text.split()), default=0) if len(text) >= _LONG else len(text)


def _untagged(found: re.Match[str], closed: frozenset[str]) -> str:
    """Returns what stays of a tag. A name without attributes in angle brackets is a placeholder, unless it is closed."""
    name, rest = found[2], found[3].strip()
    if name.casefold() not in _HTML:
        component = "=" in rest or rest == "/" if rest else name in closed
        return "" if component else found[0]
    if name.casefold() == "br":
        before = found.string[max(found.start() - 1, 0) : found.start()]
        return "" if before in "| \n" else " " if before in ".,;:!?" else "; "
    if name in {"sup", "sub"} and not found[1] and not rest:
        return "^" if name == "sup" else "_"
    return ""


def _begun(found: re.Match[str]) -> str:
    return "" if found[0].startswith("data:") else f"{found[0][:_SHOWN]}…"


KEPT = 2000  # texts, about 2 KB each

_TEXTS = frozenset(("text", "code_inline", "fence", "code_block", "html_inline"))
_BREAKS = frozenset(("softbreak", "hardbreak"))
_JOINTS = {"tr_open": " • ", "th_open": " – ", "td_open": " – ", "tr_close": " "}


@lru_cache(maxsize=KEPT)
def readable(markdown: str) -> str:
    """The text without any markup, blocks separated by spaces, rows of tables by bullets, and their cells by dashes; without
    headings, which breadcrumbs show.
    """
    text, joint, heading = "", " ", False
    for token in _parser().parse(plain(markdown)):
        heading = token.type == "heading_open" or (heading and token.type != "heading_close")
        joint = _JOINTS[token.type] if token.type in _JOINTS and joint != _JOINTS["tr_open"] else joint
        if not heading and (words := "".join(_words([token]))):
            text, joint = f"{text}{joint}{words}", " "
    return normalize("NFC", " ".join(text.split()).removeprefix(_JOINTS["tr_open"].lstrip()))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True, "maxNesting": 20}).enable(["table", "strikethrough"])


def _words(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in _BREAKS:
            yield " "
        elif token.type in _TEXTS:
            yield token.content
        else:
            yield from _words(token.children or ())


LONGEST = 300  # characters that are read
_MARKED = re.compile(r"[<&\\`*\[{!\x00-\x1f\u00ad\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
_CODE = re.compile(r"(`{1,3})(?!`)([^`]{1,200}?)\1(?!`)")
_HIDDEN = re.compile(
    r"<!--.{0,200}?-->|(?<!\\)<(style|script)\b[^<>]{0,200}>.{0,300}?</\1\s{0,5}>", re.IGNORECASE | re.DOTALL
)
_FORMATS = "a|abbr|b|big|br|code|del|div|em|font|h[1-6]|i|img|ins|kbd|mark|p|s|small|span|strike|strong|style|sub|sup|svg|tt|u|wbr"
_BADGE = re.compile(r"(?<!\\)<sup\b[^<>]{1,100}>[^<>]{0,60}</sup>", re.IGNORECASE)
_TITLE_TAG = re.compile(rf"(?<!\\)</?(?:{_FORMATS})(?:[\s/][^<>]{{0,300}})?>", re.IGNORECASE)
_COMPONENT = re.compile(
    r"(?<!\\)<(?:[A-Z][\w.]*|[a-z]\w*-[\w-]+)(?:\s[^<>]{0,300}|\s?/)>|(?<!\\)</(?:[A-Z][\w.]*|[a-z]\w*-[\w-]+)>"
)
_TITLE_IMAGE = re.compile(r"!\[([^\[\]]{0,200})\]\([^()]{0,300}\)")
_TITLE_LINK = re.compile(r"\[([^\[\]]{1,200})\](?:\([^()]{0,300}\)|\[[^\[\]]{0,100}\])")
_BOLD = re.compile(r"(\*{1,3})(?=[^\s*])([^*]{1,200})(?<=[^\s*])\1(?!\*)")
_ID = re.compile(r"\s{0,9}\{[#.:][^{}]{0,100}\}$")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
"""A sign with a backslash before it, which is plain text."""
_KEPT = "\x00{}\x00"
_SAYS_NOTHING = frozenset(
    ("index", "_index", "home", "readme", "document", "untitled", "undefined", "null", "none", "title", "default")
)
_ENDINGS = re.compile(r"\.(?:html?|mdx?|php|aspx?|rst|txt)$", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2}(?:-[a-z]{2})?", re.IGNORECASE)


def unnumbered(title: str) -> str:
    """The title of "6.3.4. Networks"; any other as it is."""
    number, _, rest = title.partition(" ")
    return rest if rest and "." in number and number.replace(".", "").isdecimal() else title


@lru_cache(maxsize=4000)
def plain_title(title: str) -> str:
    """The title without tags, comments, Markdown, entities and invisible signs; tags that it shows as text stay."""
    if not _MARKED.search(title):
        return " ".join(title.split())
    code: list[str] = []

    def kept(found: re.Match[str]) -> str:
        code.append(found[2])
        return _KEPT.format(len(code) - 1)

    text = _INVISIBLE.sub("", title[:LONGEST].replace("\x00", ""))
    text = _CODE.sub(kept, text)
    text = _BADGE.sub(" ", _HIDDEN.sub(" ", text))
    text = _COMPONENT.sub(" ", _TITLE_TAG.sub(" ", text))
    text = _TITLE_LINK.sub(r"\1", _TITLE_IMAGE.sub(r"\1", text))
    text = _ID.sub("", _BOLD.sub(r"\2", text).rstrip())
    text = unescape(ESCAPE.sub(r"\1", text))
    text = _PLACEHOLDER.sub(lambda found: code[int(found[1])], text)
    return " ".join(_INVISIBLE.sub("", text).split())


@lru_cache(maxsize=4000)
def named(title: str, url: str, headings: tuple[str, ...] = ()) -> str:
    """The plain title; if it says nothing (`index`, the site's name as in its host), the first heading that does, else
    the words of the address.
    """
    host = {_letters(part) for part in (urlsplit(url).hostname or "").split(".")}
    for one in (title, *headings):
        plain = plain_title(one)
        if _says_something(plain) and (_letters(plain) not in host or breadcrumb(url).endswith(plain)):
            return plain
    return breadcrumb(url) or plain_title(title)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _says_something(title: str) -> bool:
    name = _ENDINGS.sub("", title).casefold()
    return any(sign.isalnum() for sign in name) and name not in _SAYS_NOTHING


def breadcrumb(url: str) -> str:
    """The parts of the address's path in words: `Guide > Limits`. Empty for a start page."""
    parts = [_ENDINGS.sub("", unquote(part)) for part in urlsplit(url).path.split("/")]
    said = [part for part in parts if _says_something(part) and not _LANGUAGE.fullmatch(part)]
    words = [" ".join(part.replace("-", " ").replace("_", " ").split()) for part in said]
    return " > ".join(f"{word[:1].upper()}{word[1:]}" for word in words if word)
