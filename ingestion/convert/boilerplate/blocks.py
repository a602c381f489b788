"""The blocks of a page's content as readers see them, and which of them go because most pages of the site repeat them."""

import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from lxml.etree import strip_elements
from lxml.html import HtmlElement

from app.core.generation import RepeatedBlock
from ingestion.convert.html.dom import HEADINGS, drop

_BLOCKS = frozenset(
    "address article aside blockquote center dd details div dl dt fieldset figure footer h1 h2 h3 h4 h5 h6 header hgroup hr li main ol p pre section table ul".split()  # noqa: SIM905  # a list of them would take as many lines
)
_WHOLE = frozenset(["a", "dl", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul"])
"""Elements that are one block, whatever they hold."""

_UNSEEN = frozenset(["button", "embed", "form", "hr", "input", "link", "meta", "nav", "object", "select", "svg"])
"""Tags that are content of no page."""

_MOSTLY = 0.8
"""The least share of links in the text of a block of links."""

_ADDRESS = re.compile(r"(?<!\S)(?:https?://|/)\S++")
_NOTE_WORDS = 8
"""From so many words on, a text is the same whatever address is in it: `GET /volumes` is not a note with an address."""

_NO_WORD = re.compile(r"[\W_]+")
TITLE = "h1"
"""The value of `under` for blocks that follow the heading of the page."""

_LONGEST = 160
_DEEPEST = 200
"""Elements inside of each other, beyond which all is one block."""

_WRAPPED, _FEW = 3, 8
"""Blocks at most in an element that is there for its heading, and words of each of the others, such as a link to it."""


@dataclass(slots=True)
class Leaf:
    """One block. `path` has the tags from the content's root to it, `text` its beginning, `key` stands for path and text.

    `under` is the heading above it in the same element; empty in elements beside the one with the headings. A heading is
    `own` if readers can link to it, as they can to those that authors wrote. A block of `links` has hardly any other text.
    """

    path: str
    text: str
    key: str
    words: int
    under: str = ""
    heading: str = ""
    own: bool = False
    code: bool = False
    links: bool = False

    @property
    def is_title(self) -> bool:
        """True for the heading of the page."""
        return self.heading == "h1"

    @property
    def is_section(self) -> bool:
        """True for a heading of the page's own text."""
        return self.is_title or self.own


@dataclass(frozen=True, slots=True)
class Found:
    """A block on its page: an element, or the text inside of one (`text`) or behind it (`tail`), beside other blocks."""

    element: HtmlElement
    leaf: Leaf
    part: str = ""

    def drop(self) -> None:
        """Take it from the page."""
        if self.part:
            setattr(self.element, self.part, None)
        else:
            drop(self.element)


def leaves(root: HtmlElement) -> list[Found]:
    """The blocks of a page in whose headings their anchors are noted (`data-anchor`)."""
    strip_elements(root, "script", "style", "noscript", "template", with_tail=False)
    title = next(root.iter("h1"), None)
    walk = _Walk(" ".join(title.text_content().split()) if title is not None else "")
    walk.over(root, "", "")
    return walk.found


@dataclass(slots=True)
class _Walk:
    title: str
    found: list[Found] = field(default_factory=list)

    def over(self, element: HtmlElement, path: str, under: str, depth: int = 0) -> None:
        self._add_text(element, "text", path, under)
        for child in element:
            tag = child.tag
            if tag not in _UNSEEN and child.get("role") != "navigation":
                before = len(self.found)
                if tag in _WHOLE or depth == _DEEPEST or not _holds_blocks(child):
                    self._add(child, f"{path}/{tag}", under)
                else:
                    self.over(child, f"{path}/{tag}", under, depth + 1)
                under = _part([block.leaf for block in self.found[before : before + _WRAPPED + 1]]) or under
            self._add_text(child, "tail", path, under)

    def _add(self, element: HtmlElement, path: str, under: str) -> None:
        text = " ".join(element.text_content().split())
        if not text:
            image = next(element.iter("img"), None)
            if image is None:
                return
            text = f"![{image.get('src')}]"
        leaf = Leaf(path, text[:_LONGEST], _key(path, text), text.count(" ") + 1, under)
        leaf.heading = str(element.tag) if element.tag in HEADINGS else ""
        leaf.own = bool(leaf.heading) and "data-anchor" in element.attrib
        leaf.code = element.tag == "pre" or (len(element) > 0 and next(element.iter("pre"), None) is not None)
        if not leaf.heading and not leaf.code:
            leaf.links = _is_of_links(element, text.removesuffix(self.title))  # where breadcrumbs end
        self.found.append(Found(element, leaf))

    def _add_text(self, element: HtmlElement, part: str, path: str, under: str) -> None:
        text = getattr(element, part)
        if text and not text.isspace() and re.search(r"\w", text):
            said, place = " ".join(text.split()), f"{path}/text()"
            leaf = Leaf(place, said[:_LONGEST], _key(place, said), said.count(" ") + 1, under)
            self.found.append(Found(element, leaf, part))


def _part(inside: list[Leaf]) -> str:
    """The heading of these blocks of one element, if hardly anything is beside it: then it is that of what follows."""
    heading = next((leaf for leaf in inside if leaf.heading and leaf.is_section), None)
    if heading is None or len(inside) > _WRAPPED or any(leaf.words > _FEW for leaf in inside if leaf is not heading):
        return ""
    return TITLE if heading.is_title else heading.text


def _holds_blocks(element: HtmlElement) -> bool:
    # most elements show it in their first child, which is much faster than a search
    return len(element) > 0 and (element[0].tag in _BLOCKS or next(element.iterdescendants(*_BLOCKS), None) is not None)


def _key(path: str, text: str) -> str:
    if text.count(" ") >= _NOTE_WORDS:
        text = _ADDRESS.sub("/", text)
    return hashlib.sha256(f"{path}\n{text}".encode("utf-8", "replace")).hexdigest()[:16]


def _is_of_links(element: HtmlElement, text: str) -> bool:
    links = [link.text_content() for link in element.iter("a") if link.get("href")]
    return bool(links) and _letters("".join(links)) >= _MOSTLY * _letters(text)


def _letters(text: str) -> int:
    return len(_NO_WORD.sub("", text))


LABEL = 3
"""Words of a label such as "Parameters", which belongs to the block after it."""

_ASIDE = 0.3
"""The largest share of a page's words beside the element with its headings."""


Test = Callable[[Leaf], bool]


def around(page: Sequence[Leaf], is_repeated: Test) -> dict[int, str]:
    """The numbers of the repeated blocks around the page's own text with their places, which are the same on other pages.

    The links of a page that has nothing else below its heading are its own text.
    """
    passed = _passable(page, is_repeated)
    begin = next((number for number, leaf in enumerate(page) if leaf.is_title), -1) + 1
    end = next((number for number in range(begin, len(page)) if not passed(page[number])), len(page))
    last = next((number for number in range(len(page) - 1, end - 1, -1) if not passed(page[number])), end - 1)
    label = end - 1 if begin < end < len(page) and _is_label(page[end - 1], page[end]) else -1
    regions = ("above", range(begin)), ("before", range(begin, end)), ("after", range(last + 1, len(page)))
    return {
        number: f"{region} {page[number].path}"
        for region, numbers in regions
        for number in numbers
        if number != label
        and is_repeated(page[number])
        and (region != "before" or end < len(page) or not page[number].links)
    }


def _passable(page: Sequence[Leaf], is_repeated: Test) -> Test:
    """Returns a test for blocks before the page's own text: also those beside the element with the headings."""
    aside = sum(leaf.words for leaf in page if not leaf.under and not leaf.heading)
    beside = aside <= _ASIDE * sum(leaf.words for leaf in page)

    def test(leaf: Leaf) -> bool:
        if leaf.is_section:
            return False
        return is_repeated(leaf) or (beside and not leaf.under and not leaf.heading)

    return test


def _is_label(leaf: Leaf, following: Leaf) -> bool:
    same = leaf.path.rpartition("/")[0] == following.path.rpartition("/")[0]
    return same and leaf.words <= LABEL and not following.is_section


def remove_repeated(root: HtmlElement, known: Sequence[RepeatedBlock], kept: Collection[HtmlElement] = ()) -> None:
    """Drop the `known` blocks from around the page's own text, except those that are `kept`. Headings have their `data-anchor`."""
    if not known:
        return
    texts, places = (frozenset(block.key for block in known if block.kind == kind) for kind in ("text", "links"))
    paths = {place.partition(" ")[2] for place in places}
    blocks = leaves(root)
    page = [block.leaf for block in blocks]
    for number, place in around(page, lambda leaf: leaf.key in texts or (leaf.links and leaf.path in paths)).items():
        if (page[number].key in texts or place in places) and blocks[number].element not in kept:
            blocks[number].drop()
