"""Sections that support an answer, are quoted in place of one, or offered when there is none, and why a link leads there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter

from app.citing.asked import Weights, asked_stems, weights_of
from app.citing.citations import BRACKET, Citations, inner
from app.citing.links import escaped, markdown_link, page_title, untagged
from app.core.fitted import fitted
from app.core.language import Language
from app.core.turn import Link, Proof, Source, Text, Turn
from app.core.types import Chunk, Hit, Legs, Section
from app.text.analysis import analyse, beginnings, fold, words
from app.text.blocks import CUT, cut_short, unnumbered
from app.text.language import what_is_asked, without_stopwords, words_outside_code
from app.text.reading import Block
from app.text.units import Unit, blocks_of, first_command, line_of, shortened, units_of

FEWEST_WORDS = 2  # single words are often headings


@lru_cache(maxsize=2000)  # the passages of a question have 24,000 characters, so this is a few megabytes
def read_section(text: str) -> tuple[str, frozenset[str]]:
    """The text of a section folded, and its stems. Kept, because answers cite the same sections again and again."""
    return fold(text), beginnings(text)


def best_section(chunk: Chunk, wanted: Iterable[str]) -> Section | None:
    """The section with most of the wanted stems in heading and text; on a tie the one with most in its heading, then the
    first one.
    """
    if len(chunk.sections) < 2:
        return chunk.sections[0] if chunk.sections else None
    stems_wanted = set(wanted)
    matches = [
        (len(read_section(f"{heading} {text}")[1] & stems_wanted), len(read_section(heading)[1] & stems_wanted))
        for heading, text in section_texts(chunk)
    ]
    return chunk.sections[matches.index(max(matches))]


def section_texts(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """The heading of each section and its text in the chunk."""
    ends = [*(section.offset for section in chunk.sections[1:]), len(chunk.text)]
    for section, end in zip(chunk.sections, ends, strict=True):
        yield " ".join(section.path[-1:]), chunk.text[section.offset : end]


def section_text(chunk: Chunk, section: Section | None) -> str:
    """The text of this section in the chunk, all of it without a section."""
    if section is None:
        return chunk.text
    later = [other.offset for other in chunk.sections if other.offset > section.offset]
    return chunk.text[section.offset : min(later, default=len(chunk.text))]


def section_reason(chunk: Chunk, wanted: Iterable[str]) -> str:
    """Why a link leads to the `best_section`, with the words of the question that it has."""
    if (section := best_section(chunk, wanted)) is None:
        return "the passage lies in no section"
    text, asked = f"{' '.join(section.path[-1:])} {section_text(chunk, section)}", set(wanted)
    had = dict.fromkeys(word for word in words(text) if not asked.isdisjoint(beginnings(word)))
    chosen = (
        "the passage's only section"
        if len(chunk.sections) == 1
        else "the passage's section with most words of the question"
    )
    return f"{chosen}: {', '.join([*had][:SHOWN])}" if had else chosen


def headed_first(hits: Sequence[Hit], question: str, language: Language) -> tuple[Hit, ...]:
    """The hits; first those with a heading or title that is the question word for word, then those that repeat it but for
    function words, then those with one that has all of its other words.

    A question that repeats a heading or a suggested question asks for that section.
    """
    asked = words(fold(question))
    wanted = beginnings(without_stopwords(question, language))

    def place(hit: Hit) -> int:
        headings = {hit.chunk.title, *(section.path[-1] for section in hit.chunk.sections if section.path)}
        read = [(heading, *_read_heading(heading)) for heading in headings]
        if len(asked) >= FEWEST_WORDS and any(own == asked for _, own, _ in read):
            return 0
        if len(wanted) < FEWEST_WORDS:
            return 3
        near = [heading for heading, _, own in read if own >= wanted]  # few match, and the next check takes time
        if any(beginnings(without_stopwords(heading, language)) == wanted for heading in near):
            return 1
        return 2 if near else 3

    return tuple(sorted(hits, key=place))


@lru_cache(maxsize=2000)  # many questions find the same pages
def _read_heading(text: str) -> tuple[list[str], frozenset[str]]:
    return words(fold(text)), beginnings(text)


LONGEST = 500  # characters of a statement
FEWEST_STATED = 3  # fewer before a citation: what it proves comes behind it
EXACT = 2.0  # times the weight of a word: numbers and commands are copied, words are not
_EXACT = re.compile(
    r"\d{1,20}+(?:[.,:]\d{1,20}+){0,6}+|--?[a-z][\w-]{2,60}+|[^\W_]{1,40}+(?:[_./-][^\W_]{1,40}+){1,8}+"
)
_CODE_BELOW = re.compile(
    r"[ \t.:)*_]{0,9}\n{1,3}[ \t]{0,12}(`{3,20}|~{3,20})[^\n]{0,80}\n(.{0,500}?)\n[ \t]{0,12}\1", re.DOTALL
)
_BEHIND = re.compile(r"[^.!?\n\[【]{0,300}")
_BETWEEN = " \t\n,;.()"  # citations of one statement


@dataclass(frozen=True, slots=True)
class Place:
    """The section that a source leads to, and the number of statements that it holds; 0 if it was chosen by the
    question. `sentence` is what was quoted of it, and why it was chosen.
    """

    passage: int
    section: Section | None
    held: int = 0
    sentence: str = ""


def places(turn: Turn, citations: Citations, answer: str) -> list[tuple[int, list[Place]]]:
    """For each listed page its number and a place in each of its cited passages, the one with most statements first."""
    said = list(statements(answer, citations)) or [(answer[:LONGEST], range(1, len(citations.pages) + 1))]
    wanted = asked_stems(turn)
    return [(number, _of_page(turn, passages, said, wanted)) for number, passages in citations.listed()]


def statements(answer: str, citations: Citations) -> Iterator[tuple[str, Sequence[int]]]:
    """Yields what the answer says before each citation, with the passages that it cites."""
    at, statement = 0, ""
    for match in BRACKET.finditer(answer):
        passages = citations.numbers(inner(match[0]))
        if not passages:
            continue
        between, at = answer[at : match.start()], match.end()
        if not statement or between.strip(_BETWEEN):
            statement = between[-LONGEST:]
            if _is_label(statement) and answer[at : at + 10].lstrip(" \t").startswith((":", "\n")):
                statement += _until_cited(answer, at, citations)
            elif len(beginnings(statement)) < FEWEST_STATED and (behind := _BEHIND.match(answer, at)):
                statement += behind[0]
            if code := _CODE_BELOW.match(answer, at):
                statement += f" {code[2]}"
        yield statement, passages


def _is_label(statement: str) -> bool:
    """True when the statement ends with a bold label instead of a sentence: what the citation proves comes behind it."""
    end = statement.rstrip()
    return end.endswith(("**", "__")) and not end.rstrip("*_").endswith((".", "!"))


def _until_cited(answer: str, start: int, citations: Citations) -> str:
    end = min(start + LONGEST, len(answer))
    ends = (match.start() for match in BRACKET.finditer(answer, start, end) if citations.numbers(inner(match[0])))
    return answer[start : next(ends, end)]


def _of_page(
    turn: Turn, passages: Sequence[int], said: Sequence[tuple[str, Sequence[int]]], wanted: AbstractSet[str]
) -> list[Place]:
    chunks = {passage: turn.hits[passage - 1].chunk for passage in passages}
    options = [(passage, i) for passage, chunk in chunks.items() for i in range(max(len(chunk.sections), 1))]
    votes = Counter[tuple[int, int]]()
    if len(options) > 1:
        read = {
            p: [read_section(" ".join(part)) for part in section_texts(chunk)] or [("", frozenset[str]())]
            for p, chunk in chunks.items()
        }
        for statement, cited in said:
            among = [(p, i) for p, i in options if p in cited]
            if among and (best := _best(statement, [read[p][i] for p, i in among])) is not None:
                votes[among[best]] += 1
    ranked = [place for place, _ in votes.most_common()]
    places: dict[int, Place] = {}
    for passage, chunk in chunks.items():
        index = next((i for p, i in ranked if p == passage), None)
        if index is None or len(chunk.sections) < 2:
            places[passage] = Place(passage, best_section(chunk, wanted))
        else:
            places[passage] = Place(passage, chunk.sections[index], held=votes[passage, index])
    first = [passage for passage, _ in ranked]
    return [places[passage] for passage in dict.fromkeys([*first, *passages])]


def _best(statement: str, sections: Sequence[tuple[str, frozenset[str]]]) -> int | None:
    """The index of the section that holds most of the statement; None if none of them does."""
    exact, words = _stated(statement)
    holders = [(EXACT, [i for i, (text, _) in enumerate(sections) if _holds(text, mark)]) for mark in exact]
    holders += [(1.0, [i for i, (_, own) in enumerate(sections) if word in own]) for word in words]
    scores = [0.0] * len(sections)
    for weight, held in holders:
        for i in held:
            scores[i] += weight / len(held)
    best = max(range(len(sections)), key=lambda i: (scores[i], -i))
    return best if scores[best] else None


@lru_cache(maxsize=256)  # each page that an answer lists is asked for the same statements
def _stated(statement: str) -> tuple[Sequence[str], Sequence[str]]:
    """What a statement says exactly, and its other words, as stems."""
    folded = fold(statement)
    exact = list(dict.fromkeys(_EXACT.findall(folded)))
    return exact, sorted(word for word in beginnings(folded).difference(exact) if not word.isdecimal())


def _holds(text: str, mark: str) -> bool:
    if mark not in text:
        return False
    # 16 is not in 160
    return not mark[0].isdecimal() or re.search(rf"(?<![\d.]){re.escape(mark)}(?!\d)", text) is not None


SHOWN = 6  # words of a reason
_UNCITED = "linked as all passages are, since the answer cites none; "
_NO_ANCHOR = "; its anchor isn't known, so the link leads to its page"


def cited_links(turn: Turn, found: Iterable[tuple[Source, Sequence[Place]]], *, cited: bool) -> list[Link]:
    """The links to the sources: one for each cited passage of a page, the one that its link was made of first."""
    links, wanted = [], asked_stems(turn)
    for source, places in found:
        for place in places:
            hit = turn.hits[place.passage - 1]
            reason = "" if cited else _UNCITED
            if place.sentence:
                reason += f"the passage's section with the sentence that answers best: {place.sentence[:LONGEST]}"
            elif place.held:
                reason += f"the passage's section that holds most of what is cited, {place.held} of its statements"
            else:
                reason += section_reason(hit.chunk, wanted)
            if hit.found_in:
                reason += f"; found by the translation of its page in {hit.found_in}"
            if source.section and "#" not in source.url:
                reason += _NO_ANCHOR
            links.append(
                Link(source.number, place.passage, hit.chunk.id, source.url, source.section, reason, hit.score)
            )
    return links


def offered_links(hits: Iterable[Hit], reason: str) -> list[Link]:
    """The links to whole pages that an answer without sources offers, best hits first."""
    return [Link(None, None, hit.chunk.id, hit.chunk.url, "", reason, hit.score) for hit in hits]


LONGEST_QUOTE = 1200
"""Characters; a single sentence, row, item or code block that is longer stays whole."""
LONGEST_LINE = 150  # characters of a further section
FURTHER = 5  # sections with a line each
OF_UNIT = 0.1  # share of the unit in the score of a hit; the rest is of the ranking
OF_NEAREST = 0.2  # share of the weight of the question that the units of its nearest stretch get for its vector
FEWEST_NEAR = 3  # sections below a refusal that are near, however little
SAYS = 0.4  # share of the weight of the question that a marked unit has; few of those with less are the answer
NEARLY = 0.3  # share of the weight of the question that the unit of a near page has


@dataclass(frozen=True, slots=True)
class Found:
    """The best unit of a hit, with the number of the hit in the answer.

    Unless the unit itself `says` enough of what is `asked`, its section answers, and no sentence of it is marked.
    """

    number: int
    hit: Hit
    unit: Unit
    says: bool = True
    asked: Weights = field(default_factory=lambda: Weights({}), compare=False)

    @property
    def block(self) -> Block:
        """The block that has the unit."""
        return blocks_of(self.hit.chunk)[self.unit.block]

    @property
    def proof(self) -> Proof:
        """What the link of its source leads to."""
        return Proof(self.number, self.section, line_of(self.hit.chunk, self.unit) if self.says else "")

    @property
    def section(self) -> Section | None:
        """The section that has the unit."""
        return self.hit.chunk.sections[self.block.section] if self.hit.chunk.sections else None


async def page_of(turn: Turn, found: Sequence[Found]) -> tuple[Chunk, ...]:
    """The chunks of the page that is quoted."""
    if not found or turn.generation is None:
        return ()
    url = found[0].hit.chunk.url
    return tuple((await turn.generation.chunks_of([url])).get(url, ()))


def ranked(hits: Sequence[Hit], weights: Weights, language: Language) -> list[Found]:
    """The best unit of each hit, the best one first: by its heading, if that is what is asked in this language, else by its words, its
    vector and the rank of the hit.
    """
    whole = sum(weights.values())
    asked = {number: _headed(hit.chunk, weights, language) for number, hit in enumerate(hits, start=1)}

    def is_headed(found: Found) -> bool:
        return found.block.section in asked[found.number]

    def held(found: Found) -> float:
        near = OF_NEAREST * (found.unit.stretch == found.hit.stretch)
        return found.unit.score(weights) + whole * (near + is_headed(found))

    units = [
        max((Found(number, hit, unit) for unit in units_of(hit.chunk)), key=held)
        for number, hit in enumerate(hits, start=1)
        if units_of(hit.chunk)
    ]
    most = max((found.unit.score(weights) for found in units), default=0) or 1
    # a hit that a step moved forward counts as much as those behind it
    scores = [max(hit.score for hit in hits[number:]) for number in range(len(hits))]
    best = max(scores, default=0) or 1

    def order(found: Found) -> tuple[bool, float]:
        share = OF_UNIT * found.unit.score(weights) / most + (1 - OF_UNIT) * scores[found.number - 1] / best
        return is_headed(found), share

    return sorted((_judged(found, weights, whole) for found in units), key=order, reverse=True)


def _judged(found: Found, weights: Weights, whole: float) -> Found:
    weight = _weight(weights, found.unit.tokens)
    return replace(found, says=weight >= SAYS * whole, asked=weights)


def _headed(chunk: Chunk, weights: Weights, language: Language) -> set[int]:
    """The indices of the sections whose heading is what is asked, or the new words of a question that points back, and no more."""
    headings = [" ".join(section.path[-1:]) for section in chunk.sections]
    asked = weights.keys(), weights.own.keys()
    return {
        at
        for at, heading in enumerate(headings)
        if heading and set(analyse(what_is_asked(heading, language), language.code)) in asked
    }


def own_language(found: Sequence[Found], language: str) -> Sequence[Found]:
    """Those in this language if the best one is; else all: what is asked may stand in another language only."""
    leads = bool(found) and found[0].hit.chunk.language == language
    return [one for one in found if one.hit.chunk.language == language] if leads else found


def features_of(found: Sequence[Found], weights: Weights, legs: Legs) -> dict[str, float]:
    """The features of the first unit, each 0 to 1, by which `sure` decides.

    They are how far its page stands out from the next page (`gap`); the shares of what is asked that the `unit` has, the unit with
    what stands above it (`context`), and the title and headings (`heading`); whether its chunk is the `nearest` in meaning; and
    the inverse rank of its page by the nearest stretches (`near`). Of a question that points back, the shares are the smaller ones of all
    words and of its own. Without vectors, nothing speaks against the page.
    """
    first = found[0]
    of_asked = [(own, sum(own.values()) or 1.0) for own in (weights, weights.own)]
    chunk, unit, score = first.hit.chunk, first.unit, first.hit.score
    rival = max((other.hit.score for other in found if other.hit.chunk.url != chunk.url), default=0.0)
    pages = list(dict.fromkeys(one.url for one in legs.units or legs.vector)) or [chunk.url]
    nearest = {leg[0].id for leg in (legs.vector, legs.units) if leg} or {chunk.id}
    said = {
        "unit": unit.tokens,
        "context": unit.tokens | unit.context,
        "heading": frozenset(analyse(_heading(first), chunk.language)),
    }
    return {
        "gap": 1 - rival / score if score else 0.0,
        **{name: min(_weight(own, tokens) / whole for own, whole in of_asked) for name, tokens in said.items()},
        "nearest": float(chunk.id in nearest),
        "near": 1 / (1 + pages.index(chunk.url)) if chunk.url in pages else 0.0,
    }


def sure(features: Mapping[str, float]) -> bool:
    """True if the first unit is likely what is asked for, by the features that `features_of` gives."""
    return fitted("sure").decides(features)


def has_all(found: Found, subjects: Iterable[str]) -> bool:
    """True if the section with the unit has each of these words: what compares two of them says something of both."""
    chunk = found.hit.chunk
    own = frozenset(analyse(f"{_heading(found)} {section_text(chunk, found.section)}", chunk.language))
    return not any(own.isdisjoint(analyse(subject, chunk.language)) for subject in subjects)


def _weight(weights: Mapping[str, float], tokens: Iterable[str]) -> float:
    own = set(tokens)
    return sum([weight for token, weight in weights.items() if token in own])


def quotation(found: Found, page: Sequence[Chunk]) -> str:
    """The section with the unit, whole, or its beginning and the blocks around the unit that fit, with marks where it is cut.

    `page` has the chunks of the page, as a section may go on in the next one.
    """
    blocks, best = _section_blocks(found, page)
    groups = _groups(blocks)
    at = next(number for number, group in enumerate(groups) if best in group)
    following, opening = range(at + 1, min(at + 2, len(groups))), range(min(at, 1))
    steps = [n for n, group in enumerate(groups) if any(blocks[i].is_numbered for i in group)]
    around = (*range(at - 1, 0, -1), *range(1, at), *range(at + 1, len(groups)))
    sizes, room = dict[int, int](), LONGEST_QUOTE
    # an answer follows its question, and a section says first what to do; without what is above it, a sentence can be
    # about anything
    for number in dict.fromkeys((at, *following, *opening, *steps, *around)):
        own = {i: len(blocks[i].text) for i in groups[number]}
        longest = max(own, key=lambda i: own[i])
        left = (
            room - sum(own.values()) + own[longest]
        )  # of a list or table that doesn't fit, what introduces it says most
        if number == at or own[longest] <= left or (left > LONGEST_LINE and blocks[longest].kind in {"list", "table"}):
            own[longest] = min(own[longest], left)
            sizes |= own
            room -= sum(own.values())
    kept = sorted(sizes)
    while kept[-1] != best and _leads(blocks, kept[-1]):  # nothing follows that it could lead to
        kept.pop()
    texts = list[str]()
    for above, i in pairwise([-1, *kept]):
        texts += [CUT] * (i > above + 1)
        start = found.unit.start - found.block.start if i == best else 0
        is_cut = sizes[i] < len(blocks[i].text)
        texts.append(shortened(blocks[i], sizes[i], start) if is_cut else _labelled(blocks, i))
    texts += [CUT] * (kept[-1] + 1 < len(blocks))
    return "\n\n".join(texts).replace(f"{CUT}\n\n{CUT}", CUT)


def _section_blocks(found: Found, page: Sequence[Chunk]) -> tuple[list[Block], int]:
    """The blocks of the section that has the unit, also those in the chunks around, then those of the sections below it, under
    their headings; and the index of the one with the unit.
    """
    placed = [
        (block, chunk.id, chunk.sections[block.section] if chunk.sections else None)
        for chunk in (page if found.hit.chunk in page else [found.hit.chunk])
        for block in blocks_of(chunk)
    ]
    at = next(i for i, (block, id_, _) in enumerate(placed) if id_ == found.hit.chunk.id and block == found.block)
    own = _named(found.section)
    first = last = at
    while first > 0 and _named(placed[first - 1][2]) == own:
        first -= 1
    while last + 1 < len(placed) and _named(placed[last + 1][2]) == own:
        last += 1
    blocks, above = [block for block, *_ in placed[first : last + 1]], found.section
    for block, _, section in placed[last + 1 :]:
        if not section or not found.section or section.path[:-1][: len(found.section.path)] != found.section.path:
            break
        if _named(section) != _named(above):
            blocks.append(Block(f"**{section.path[-1]}**", "paragraph", 0, 0))
        blocks.append(block)
        above = section
    return blocks, at - first


def _named(section: Section | None) -> tuple[tuple[str, ...], str] | None:
    return (section.path, section.anchor) if section else None


def _groups(blocks: Sequence[Block]) -> list[range]:
    """The indexes of the blocks in groups that can't stand without each other: code and lists have an introduction."""
    ends = [i + 1 for i in range(len(blocks)) if i + 1 == len(blocks) or not _leads(blocks, i)]
    return [range(start, end) for start, end in pairwise([0, *ends])]


def _leads(blocks: Sequence[Block], at: int) -> bool:
    """True if the block introduces the next one."""
    block, following = blocks[at], blocks[at + 1].kind if at + 1 < len(blocks) else ""
    announces = block.kind == "list" and block.text.endswith(":")
    return block.leads or announces or (block.kind == "paragraph" and following in {"list", "table", "code"})


def _labelled(blocks: Sequence[Block], at: int) -> str:
    """The text of a block; the label of code in bold."""
    text = blocks[at].text
    code = at + 1 < len(blocks) and blocks[at + 1].kind == "code"
    return f"**{text}**" if blocks[at].is_label and code and not set(text) & set("*`_[<") else text


def extract(
    turn: Turn, found: Sequence[Found], page: Sequence[Chunk], intro: str, whole: str = "", also: str = ""
) -> list[Text]:
    """Quotes the section with the best unit under its heading, then has a line of each further section, best first.

    `page` has the chunks of the first one's page. The intro comes first, and stands alone if nothing was found. A section
    that is cut ends with a link to it, of the text `whole`; `also` stands above the further ones.
    """
    if not found:
        return [Text(intro, own=True)]
    first = found[0]
    said = [
        Text(f"{intro}\n\n*{escaped(_heading(first))}* [{first.number}]\n\n", own=True),
        Text(text := quotation(first, page), quoted=True, block=True, proof=first.proof),
    ]
    if whole and CUT in text:
        said.append(Text(f"\n\n{markdown_link(whole, first.hit.chunk.link_to(first.section))}", own=True))
    further = _different(found)[1 : len(found) if turn.overview else FURTHER + 1]
    for i, other in enumerate(further):
        gap = "\n" if i else f"\n\n{also}\n\n" if also else "\n\n"
        related = _related(other)
        said.append(Text(f"{gap}- {_link(other)} [{other.number}]{' – ' if related else ''}", own=True))
        if related:
            said.append(Text(line_of_unit(related), quoted=True, proof=related.proof))
    return said


async def nearest(turn: Turn, hits: Sequence[Hit], language: Language) -> list[Found]:
    """The best unit of each of up to five pages that have a word of the question in title, address or headings, or a good share of
    what is asked in the unit; where fewer than three have, the next ones in the ranking, unless the question has nothing to do with
    any page, such as one on the weather.
    """
    wanted = asked_stems(turn) - beginnings(" ".join(language.traits.stopwords))
    weights = await weights_of(turn, language)
    needed = NEARLY * sum(weights.values())
    pages: dict[str, Found] = {}
    in_order = ranked(hits, weights, language)
    for found in in_order:
        chunk = found.hit.chunk
        headings = " ".join(section.path[-1] for section in chunk.sections if section.path)
        if 0 < needed <= found.unit.score(weights) or not wanted.isdisjoint(beginnings(f"{chunk.context} {headings}")):
            pages.setdefault(chunk.url, found)
    if turn.evidence and turn.evidence.near:
        for found in in_order:
            if len(pages) >= FEWEST_NEAR:
                break
            pages.setdefault(found.hit.chunk.url, found)
    return list(pages.values())[:FURTHER]


def nearest_list(found: Sequence[Found], language: Language) -> str:
    """Markdown of the sections that are nearest to a question without an answer, each with its sentence if one says something of what is
    asked; empty without any.
    """
    related = ((one, _related(one)) for one in found)
    lines = [f"- {_link(one)}{f' – {line_of_unit(said)}' if said else ''}" for one, said in related]
    return f"\n\n{language.texts.related}\n\n" + "\n".join(lines) if lines else ""


def _different(found: Sequence[Found]) -> list[Found]:
    """The first unit of each section, each text once."""
    sections: dict[tuple[str, object], Found] = {}
    for one in found:
        sections.setdefault((one.hit.chunk.url, _named(one.section)), one)
    return list({line_of_unit(one): one for one in reversed(sections.values())}.values())[::-1]


def _heading(found: Found) -> str:
    """The title of the page and the headings above the unit, without a full stop, which ends a sentence."""
    path = found.section.path if found.section else ()
    return " › ".join(dict.fromkeys(name for name in (found.hit.chunk.title, *path) if name)).removesuffix(".")


def _link(found: Found) -> str:
    chunk, path = found.hit.chunk, found.section.path[-1:] if found.section else ()
    name = " – ".join(dict.fromkeys(map(unnumbered, (page_title(chunk), *map(untagged, path)))))
    return markdown_link(name or chunk.url, chunk.link_to(found.section))


def _related(found: Found) -> Found | None:
    """The unit if it is a sentence or an item, else that of its section which has most of what is asked; None if none has a word of it.
    Rows, code and parts of sentences say nothing on their own.
    """
    blocks = blocks_of(found.hit.chunk)
    options = [
        (unit == found.unit, _weight(found.asked, unit.tokens), unit)
        for unit in units_of(found.hit.chunk)
        if blocks[unit.block].section == found.block.section and blocks[unit.block].kind not in {"code", "table"}
    ]
    for _, weight, unit in sorted(options, key=itemgetter(0, 1), reverse=True):
        if (weight > 0 or not found.asked) and _reads_alone(line_of(found.hit.chunk, unit)):
            return replace(found, unit=unit, says=weight >= SAYS * sum(found.asked.values()))
    return None


def _reads_alone(line: str) -> bool:
    """True for a line of more words than figures and code whose brackets are all closed: it wasn't cut in a reference."""
    figures = sum(map(str.isdigit, line)) >= sum(map(str.isalpha, line))
    closed = all(line.count(opening) == line.count(end) for opening, end in ("()", "[]", "“”"))
    return not figures and closed and len(words_outside_code(line)) >= FEWEST_WORDS


def line_of_unit(found: Found) -> str:
    """The unit as a line; of code its first one that says something, which isn't prose."""
    if found.block.kind == "code" and (command := first_command(found.block)):
        return f"`{cut_short(command, LONGEST_LINE)}`"
    return cut_short(line_of(found.hit.chunk, found.unit), LONGEST_LINE)
