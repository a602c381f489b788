"""An llms-full.txt -> its pages. Generators mark where a page begins in different ways, and some not at all."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from app.text.fences import blocks, code_lines, outside_code, outside_fences
from ingestion.crawl.link_base import link_base
from ingestion.urls import host, joined, public_url, stem

_ADDRESS = r"<?(?P<url>(?:https?://|/)[^\s<>()]++)>?"
_KEY = r"(?:\*\*)?(?:(?:Source|Page)[ ]URL|URL|Source|Canonical|Link)(?:\*\*)?:(?:\*\*)?[ \t]*+"
_FRONT = r"^-{3,}+[ \t]*+\n(?P<front>(?:[A-Za-z_][\w-]*+:.*+\n(?:(?:[ \t]++|- )\S.*+\n)*+)++)-{3,}+[ \t]*+$"
_TAG = r"^[ \t]*+<(?:page|doc|document)\b(?P<attributes>[^<>\n]*+)>"
_TAGGED = re.compile(r"\s*+<(?:project|docs|documents|page|doc|document)\b")
_GLUED = re.compile(
    r"(?:(?<=>)|^)<(?:page|doc|document)\b[^<>\n]*+>|</(?:page|doc|document)>(?=[ \t]*+(?:<|$))", re.MULTILINE
)
_CLOSED = re.compile(r"(?:\A|\n)[ \t]*+</(?:page|doc|document)>")
_MARKS: Mapping[str, re.Pattern[str]] = {
    "tag": re.compile(_TAG, re.MULTILINE),
    "front": re.compile(_FRONT, re.MULTILINE),
    "headed": re.compile(rf"(?im)^#[ \t]++(?P<title>\S.*+)\n\n?{_KEY}{_ADDRESS}[ \t]*+$"),
    "headed 2": re.compile(rf"(?im)^##[ \t]++(?P<title>\S.*+)\n\n?{_KEY}(?=<?https?:){_ADDRESS}[ \t]*+$"),
    "address": re.compile(rf"(?m)^#{{1,3}}[ \t]++(?=<?https?:){_ADDRESS}[ \t]*+$"),
    "line": re.compile(rf"(?im)^{_KEY}(?=<?https?:){_ADDRESS}[ \t]*+$"),
    "comment": re.compile(rf"(?im)^<!--[ \t]*+(?:{_KEY})?{_ADDRESS}[ \t]*+-->[ \t]*+$"),
    "linked": re.compile(rf"(?m)^#[ \t]++(?P<title>\S.*)(?<=[ \t])\({_ADDRESS}\)[ \t]*+$"),
    "linked 2": re.compile(rf"(?m)^##[ \t]++(?P<title>\S.*)(?<=[ \t])\((?=https?:){_ADDRESS}\)[ \t]*+$"),
    "link": re.compile(rf"(?m)^#{{1,2}}[ \t]++\[(?P<title>[^\[\]\n]++)\]\({_ADDRESS}\)[ \t]*+$"),
}
"""How a page of such a file begins, the surest first: one way is used for the whole file, because pages may hold the others."""

_HEADINGS: Sequence[re.Pattern[str]] = (
    re.compile(r"(?m)^(?:#[ \t]++(?P<title>\S.*+)|(?P<setext>\S.*+)\n=++[ \t]*+)$"),
    re.compile(r"(?m)^##[ \t]++(?P<title>\S.*+)$"),
)
"""How pages begin where no address is written; some generators put them one level lower."""

_URL = re.compile(r"""(?im)^(?:url|source|source_url|canonical|canonical_url|link|permalink):[ \t]*+["']?([^\s"']++)""")
_TITLE = re.compile(r"(?im)^title:(.++)$")
_ATTRIBUTE = re.compile(r"""(?<![\w-])([\w-]++)=(?:"([^"]*+)"|'([^']*+)')""")
_TAG_LINE = re.compile(r"[ \t]*+(?:</?(?:page|doc|docs|document|project|optional)\b[^<>\n]*+>[ \t]*+)?+")
_SEPARATOR = re.compile(r"[ \t]*+(?:-{3,}+|\*{3,}+|_{3,}+|={3,}+)[ \t]*+")
_RELATIVE = re.compile(
    r"(?<!!)\[([^\[\]\n]*+)\]\((?![a-z][a-z0-9+.-]*+:|/)[^()\s]*+(?:[ \t]++\"[^\"\n]*+\")?\)", re.IGNORECASE
)
_SELF_LINK = re.compile(r"(?m)(?<=\n)\n\[[^\[\]\n]*+\]\(#[^()\s]++\)[ \t]*+\n")
_SOURCES = "/_sources/"
"""Where Sphinx puts the sources of its pages."""


@dataclass(frozen=True, slots=True)
class Section:
    """A page in such a file. `address` is empty if none is known; `base` is where its relative links start."""

    title: str
    text: str
    address: str = ""
    base: str = ""


@dataclass(frozen=True, slots=True)
class FullText:
    """The pages of a file, in its order; `whole` is False when its end is missing."""

    sections: tuple[Section, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """What else is known of the site: its `llms.txt`, and the addresses of its pages as its sitemap writes them."""

    index: str = ""
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Mark:
    start: int
    end: int
    title: str
    url: str
    front: str = ""


def parse_full_text(text: str, url: str, hosts: Sequence[str], known: Known) -> FullText:
    """The pages of the file at `url`. Pages may be on its host, on `hosts`, or on the host that most of them name."""
    text = re.sub(r"\r\n?", "\n", text.lstrip("\ufeff")).replace("\x00", "")
    if _TAGGED.match(text):  # llms_txt2ctx writes no lines between its tags
        text = _GLUED.sub(lambda tag: f"\n{tag[0]}\n", text)
    titles = _titles(known.index, url)
    marks, closed = _marks(text, url, hosts)
    sections = _cut(text, marks) if marks else _by_headings(text.removeprefix(_preamble(known.index)), titles)
    spelled = {stem(address): address for address in known.addresses}
    made = [_addressed(section, url, spelled) for section in _with_titles(list(sections), titles)]
    stems = {stem(section.address) for section in made} | set(spelled)
    whole = closed and not _open_fence(text)
    kept = made if whole else made[:-1]
    return FullText(
        tuple(replace(one, base=link_base(one.text, _bases(one), stems)) for one in kept if one.text), whole
    )


def _marks(text: str, url: str, hosts: Sequence[str]) -> tuple[list[_Mark], bool]:
    """Where pages begin, and whether the last one is closed where the file closes them."""
    found: dict[str, list[_Mark]] = defaultdict(list)
    for at, prose in _prose(text):
        for kind, pattern in _MARKS.items():
            found[kind] += [_mark(match, at) for match in pattern.finditer(prose)]
    for kind, marks in found.items():
        if kind in ("tag", "front"):
            named = [mark for mark in marks if mark.url or mark.title]
            found[kind] = [mark for mark in named if mark.url] or named
        found[kind] = _of_site(found[kind], url, hosts)
    kinds = [marks for kind in _MARKS if (marks := found[kind])]
    marks = next((marks for marks in kinds if len(marks) > 1), kinds[0] if kinds else [])
    unclosed = marks is found["tag"] and bool(marks) and _CLOSED.search(text, marks[-1].end) is None
    return marks, not unclosed


def _mark(match: re.Match[str], at: int) -> _Mark:
    groups = match.groupdict()
    title, url, front = groups.get("title") or "", groups.get("url") or "", groups.get("front") or ""
    if front:
        named, titled = _URL.search(front), _TITLE.search(front)
        title, url = titled[1].strip(" \t\"'") if titled else "", named[1] if named else ""
    if attributes := groups.get("attributes"):
        given = {name.lower(): double or single for name, double, single in _ATTRIBUTE.findall(attributes)}
        title, url = given.get("title", ""), given.get("url") or given.get("href") or given.get("source") or ""
    return _Mark(at + match.start(), at + match.end(), title.strip(), url, front)


def _of_site(marks: list[_Mark], url: str, hosts: Sequence[str]) -> list[_Mark]:
    """Those that lead to pages of the site, or have a title only: a page may name its own sources the same way."""
    named = Counter(host(joined(url, mark.url)) for mark in marks if mark.url)
    usual = (host(url), *hosts, *(name for name, _ in named.most_common(1)))
    return [
        mark
        for mark in marks
        if not mark.url or any(fnmatchcase(host(joined(url, mark.url)), pattern) for pattern in usual)
    ]


def _prose(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for code, piece in blocks(text):
        if not code:
            yield at, piece
        at += len(piece)


def _cut(text: str, marks: Sequence[_Mark]) -> Iterator[Section]:
    ends = [mark.start for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        body = _trimmed(text[mark.end : end])
        if mark.front:
            body = f"---\n{mark.front}---\n\n{body}"
        elif mark.title and not re.match(r"# |[^\n]+\n=+[ \t]*$", body, re.MULTILINE):
            body = f"# {mark.title}\n\n{body}"
        yield Section(mark.title, body, mark.url)


def _trimmed(body: str) -> str:
    """The body without the lines that separate pages."""
    for closed in list(_CLOSED.finditer(body))[-1:]:
        body = body[: closed.start()]
    lines = body.split("\n")
    first, last = 0, len(lines)
    while first < last and _TAG_LINE.fullmatch(lines[first]):
        first += 1
    while last > first and (_TAG_LINE.fullmatch(lines[last - 1]) or _SEPARATOR.fullmatch(lines[last - 1])):
        last -= 1
    return "\n".join(lines[first:last]).rstrip()


def _by_headings(text: str, titles: Mapping[str, Sequence[str]]) -> list[Section]:
    """The pages of a file without addresses: by the headings of that level which has more titles of known pages."""
    found: list[list[tuple[int, str]]] = [[], []]
    for at, prose in _prose(text):
        for level, pattern in enumerate(_HEADINGS):
            found[level] += [
                (at + match.start(), match["title"] or match.groupdict().get("setext") or "")
                for match in pattern.finditer(prose)
            ]
    known = [sum(_words(title) in titles for _, title in headings) for headings in found]
    level = int(known[1] > known[0])
    headings = found[level]
    ends = [*(start for start, _ in headings[1:]), len(text)][: len(headings)]
    sections = [
        Section(title.rstrip("#").rstrip(), _trimmed(text[start:end]))
        for (start, title), end in zip(headings, ends, strict=True)
    ]
    filled = [one for one in sections if "\n" in one.text and not re.fullmatch(r".*\n=+", one.text)]
    return [replace(one, text=_raised(one.text)) for one in filled] if level else filled


def _raised(text: str) -> str:
    return "".join(piece if code else re.sub(r"(?m)^##", "#", piece) for code, piece in blocks(text))


def _with_titles(sections: Sequence[Section], titles: Mapping[str, Sequence[str]]) -> Iterator[Section]:
    """The sections with the addresses that `llms.txt` gives for their titles, in its order where pages have the same title."""
    words = [_words(section.title or _first_line(section.text)) for section in sections]
    count, used = Counter(words), Counter[str]()
    for section, title in zip(sections, words, strict=True):
        named = titles.get(title, ())
        used[title] += 1
        found = named[used[title] - 1] if len(named) == count[title] else ""
        yield replace(section, address=section.address or found)


def _addressed(section: Section, url: str, spelled: Mapping[str, str]) -> Section:
    """The section with its address for readers, as the sitemap writes it; `base` is the address as the file writes it."""
    written = joined(url, section.address) if section.address else ""
    folder, mark, name = written.partition(_SOURCES)
    if mark and name.endswith(".txt"):
        written = f"{folder}/{name.removesuffix('.txt').removesuffix('.rst').removesuffix('.md')}.html"
    address = public_url(written) if written else ""
    if not address:  # nobody knows where its relative links lead
        text = outside_fences(section.text, lambda prose: _SELF_LINK.sub("", prose))
        return replace(section, text=outside_code(text, lambda prose: _RELATIVE.sub(r"\1", prose)))
    return replace(section, address=spelled.get(stem(address), address), base=written)


def _bases(section: Section) -> tuple[str, ...]:
    """As the file writes the address, as the sitemap does, as a folder and as a file."""
    page = section.address.rstrip("/")
    return (section.base, section.address, f"{page}/", page) if page else ()


def _titles(index: str, url: str) -> Mapping[str, Sequence[str]]:
    """The addresses of the pages in `llms.txt`, by the words of their titles."""
    found: dict[str, list[str]] = defaultdict(list)
    for title, target in re.findall(r"\[([^\[\]\n]+)\]\(<?([^()<>\s]+)", index):
        if (address := joined(url, target)) not in found[_words(title)]:
            found[_words(title)].append(address)
    return found


def _preamble(index: str) -> str:
    """What `llms.txt` says before its lists: some generators begin the other file with it."""
    return re.split(r"(?m)^## ", index.replace("\r\n", "\n"), maxsplit=1)[0].rstrip() if index else ""


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _first_line(text: str) -> str:
    return next((line.lstrip("# ") for line in text.splitlines() if line.startswith("# ")), "")


def _open_fence(text: str) -> bool:
    code, piece = False, ""
    for code, piece in blocks(text):  # noqa: B007  # the last one
        pass
    return code and len(code_lines(piece)) == len(piece.splitlines()) - 1
