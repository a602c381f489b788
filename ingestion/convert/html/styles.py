"""What a page's own styles declare for its elements, weighed as browsers do; style sheets in other files aren't read."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice
from typing import Any

import tinycss2
from cssselect import HTMLTranslator, SelectorError, parse
from lxml.etree import XPath, XPathError
from lxml.html import HtmlElement

MOST_CHARACTERS = 150_000
"""Characters of style elements that are read of a page, and as many of style attributes; what follows doesn't count."""

MOST_SELECTORS = 2_000
"""Selectors that are read of a page."""

MOST_STEPS = 10_000_000
"""Steps from element to element that finding the selectors' elements may take on a page, about half a second."""

_STEPS_AN_ELEMENT = 20
_LONGEST_SELECTOR = _LONGEST_VALUE = 300
_DEEPEST = 5  # rules within rules
_ALWAYS = re.compile(r"(?:only\s+)?(?:screen|all)|not\s+(?:print|speech)|")
_NEVER = re.compile(r"\s*+(?:only\s++)?(?:print|speech|aural|braille|embossed|tty|tv|projection|handheld)\b")
_AWAITS_SCRIPT = re.compile(r"\bno-?js\b|cloak", re.IGNORECASE)  # scripts take these off as soon as they run
_NAMES = re.compile(r"([.#])((?:[\w-]|[^\x00-\x7f]|\\.)+)")
_COMBINATORS = re.compile(r"\s*[>+~]\s*|\s+")
_IN_BRACKETS = re.compile(r"\[[^\[\]]*+\]|\([^()]*+\)")
_SIBLINGS = re.compile(r"[~]|-child|-of-type")
_VARIABLE = re.compile(r"var\(\s*(--[\w-]+)\s*(?:,([^()]*))?\)")
_KEYWORDS = {
    "display": re.compile(
        r"(?:none|contents|block|inline|flow|flow-root|flex|grid|list-item|table|ruby|run-in|inherit|initial|unset|revert"
        r"|(?:inline|table|ruby|revert|-webkit|-moz|-ms)-[a-z-]+)(?: [a-z-]+)*"
    ),
    "visibility": re.compile(r"visible|hidden|collapse|inherit|initial|unset|revert|revert-layer"),
}
_OTHER_NAMES = {
    "-webkit-background-clip": "background-clip", "-webkit-clip-path": "clip-path", "-webkit-transform": "transform",
    "animation-name": "animation", "block-size": "height", "inline-size": "width", "inset-block-start": "top",
    "inset-inline-start": "left", "margin-block-start": "margin-top", "margin-inline-start": "margin-left",
    "max-block-size": "max-height", "max-inline-size": "max-width", "overflow-x": "overflow", "overflow-y": "overflow",
}  # fmt: skip
_SIDES = ("top", "right", "bottom", "left")

Declared = Mapping[str, tuple[str, bool]]
"""Of each property, its value in lower case, and whether it is `!important`."""

_Weight = tuple[str, tuple[Any, ...], str]  # property, weight, value
_Weighed = dict[HtmlElement, dict[str, tuple[tuple[Any, ...], str]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A selector with what it declares; one that isn't `certain` holds for some screens or states only."""

    selector: str
    declared: Declared
    certain: bool = True
    built_in: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The classes (`.name`) and ids (`#name`) that the element itself must have, whatever its state is."""
        last = re.split(r"[\s>+~]+", re.sub(r"\([^()]*\)", "", self.selector).strip())[-1]
        return frozenset(mark + re.sub(r"\\(.)", r"\1", name) for mark, name in _NAMES.findall(last))


def declared_in(css: str | Iterable[Any]) -> Declared:
    """What the text of a style attribute, or the block of a rule, declares; shorthands are taken apart."""
    return _declared(tinycss2.parse_blocks_contents(css, skip_comments=True, skip_whitespace=True))


def _declared(nodes: Iterable[Any]) -> Declared:
    declared: dict[str, tuple[str, bool]] = {}
    for node in nodes:
        if node.type != "declaration":
            continue
        value = tinycss2.serialize([token for token in node.value if token.type != "comment"]).strip().lower()
        if len(value) > _LONGEST_VALUE:
            continue
        for name, part in _longhands(node.lower_name, value):
            before = declared.get(name)
            valid = name not in _KEYWORDS or "var(" in part or _KEYWORDS[name].fullmatch(part) is not None
            if valid and not (before and before[1] and not node.important):
                declared[name] = part, node.important
    return declared


def _longhands(name: str, value: str) -> Iterator[tuple[str, str]]:
    """The properties that a declaration sets, as far as they can hide something."""
    parts = value.split() or [""]
    if name in ("inset", "margin"):
        sides = dict(zip(_SIDES, parts * 4 if len(parts) == 1 else [*parts, *parts[-2:] * 2], strict=False))
        yield from (((name + "-" if name == "margin" else "") + side, part) for side, part in sides.items())
    elif name == "font":
        sizes = (part.partition("/")[0] for part in parts if re.match(r"0(?!\d)|[\d.]+[a-z%]", part))
        yield "font-size", next(sizes, "medium")
    elif name == "background":
        yield "background-color", value
        yield "background-clip", "text" if "text" in parts else "border-box"
    else:
        yield _OTHER_NAMES.get(name, name), value


def rules_of(sheets: Iterable[tuple[str, str]]) -> list[Rule]:
    """The rules of style sheets, each with the media that it is for, as far as `MOST_CHARACTERS` and `MOST_SELECTORS` go."""
    left, found = MOST_CHARACTERS, list[Iterator[Rule]]()
    for css, media in sheets:
        certain = _certain(media)
        if certain is not None and left > 0:
            nodes = tinycss2.parse_stylesheet(css[:left], skip_comments=True, skip_whitespace=True)
            found.append(_rules(nodes, [], certain, _DEEPEST))
        left -= len(css)
    rules = list(islice(chain.from_iterable(found), MOST_SELECTORS))
    return _without_variables(rules)


def _certain(media: str) -> bool | None:
    """True for media that each reader of a screen has, None for those that none has."""
    queries = [query.strip().lower() for query in media.split(",")]
    if any(_ALWAYS.fullmatch(query) for query in queries):
        return True
    return None if all(_NEVER.match(query) for query in queries) else False


def _rules(nodes: Iterable[Any], parents: list[str], certain: bool, depth: int) -> Iterator[Rule]:
    for node in nodes:
        if node.type == "at-rule" and node.content is not None and depth:
            yield from _conditional(node, parents, certain, depth)
        elif node.type == "qualified-rule" and depth:
            selectors = [one for one in _selectors(node.prelude, parents) if len(one) <= _LONGEST_SELECTOR]
            content = tinycss2.parse_blocks_contents(node.content, skip_comments=True, skip_whitespace=True)
            if declared := _declared(content):
                yield from (Rule(one, declared, certain) for one in selectors)
            yield from _rules((one for one in content if one.type != "declaration"), selectors, certain, depth - 1)


def _conditional(node: Any, parents: list[str], certain: bool, depth: int) -> Iterator[Rule]:
    name, holds = node.lower_at_keyword, True if node.lower_at_keyword in ("layer", "supports") else None
    if name == "container":
        holds = False
    elif name == "media":
        holds = _certain(tinycss2.serialize(node.prelude))
    if holds is None:
        return
    if not parents:
        nodes = tinycss2.parse_rule_list(node.content, skip_comments=True, skip_whitespace=True)
    else:
        nodes = tinycss2.parse_blocks_contents(node.content, skip_comments=True, skip_whitespace=True)
        if declared := _declared(nodes):
            yield from (Rule(parent, declared, certain and holds) for parent in parents)
        nodes = [one for one in nodes if one.type != "declaration"]
    yield from _rules(nodes, parents, certain and holds, depth - 1)


def _selectors(prelude: Iterable[Any], parents: list[str]) -> Iterator[str]:
    parts: list[list[Any]] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            parts.append([])
        elif token.type != "comment":
            parts[-1].append(token)
    for part in parts:
        written = tinycss2.serialize(part).strip()
        if not parents:
            yield written
        for parent in parents:
            yield written.replace("&", parent) if "&" in written else f"{parent} {written}"


def _without_variables(rules: list[Rule]) -> list[Rule]:
    """The rules with the values of custom properties in place of their names."""
    known = {
        name: value
        for rule in rules
        if rule.certain
        for name, (value, _) in rule.declared.items()
        if name.startswith("--")
    }

    def resolved(value: str) -> str:
        return _VARIABLE.sub(lambda found: known.get(found[1], (found[2] or "").strip()), value)[:_LONGEST_VALUE]

    return [
        Rule(
            rule.selector,
            {name: (resolved(value), mark) for name, (value, mark) in rule.declared.items()},
            rule.certain,
        )
        if any("var(" in value for value, _ in rule.declared.values())
        else rule
        for rule in rules
    ]


@lru_cache(maxsize=1024)  # pages of a site have the same styles
def _compiled(selector: str) -> tuple[XPath, tuple[int, ...]]:
    """What finds the selector's elements, and its specificity; raises `ValueError` for parts that are drawn by the style only."""
    (parsed,) = parse(selector)
    if parsed.pseudo_element is not None:
        raise ValueError(f"{selector} has a pseudo-element")
    return XPath(HTMLTranslator().selector_to_xpath(parsed)), parsed.specificity()


@dataclass(slots=True)
class Cascade:
    """Finds the elements of rules on a page, and weighs what rules and style attributes declare for an element."""

    page: HtmlElement
    rules: list[Rule]
    _found: dict[str, Collection[HtmlElement]] = field(default_factory=dict)
    _inline: dict[str, Declared] = field(default_factory=dict)
    _weight: dict[str, tuple[int, ...]] = field(default_factory=dict)
    _styled: list[HtmlElement] = field(default_factory=list)
    _names: Counter[str] = field(default_factory=Counter)
    _elements: int = 0
    _deep: int = 0
    _flat: int = 0
    _left: int = MOST_STEPS
    _characters: int = MOST_CHARACTERS

    def __post_init__(self) -> None:
        """Count what a search for a selector takes: elements, their depths, and pairs of siblings."""
        names, depths = Counter[str](), {self.page: 1}
        for element in self.page.iter("*"):
            parent = element.getparent()
            depths[element] = depth = depths.get(parent, 0) + 1
            self._elements += 1
            self._deep += depth
            self._flat += len(element) ** 2
            if element.get("style"):
                self._styled.append(element)
            names.update("." + name for name in set((element.get("class") or "").split()))
            names["#" + (element.get("id") or "")] += 1
        self._names = names

    def found(self, number: int) -> Collection[HtmlElement]:
        """The elements of the rule with this number; none if it can't be read, or the page's steps are used up."""
        selector = self.rules[number].selector
        if selector not in self._found:
            self._found[selector] = self._search(selector)
        return self._found[selector]

    def _search(self, selector: str) -> Collection[HtmlElement]:
        parts = _COMBINATORS.split(_IN_BRACKETS.sub("", selector).strip())
        counts = [
            min((self._names[mark + name] for mark, name in _NAMES.findall(part)), default=self._elements)
            for part in parts
        ]
        if "(" not in selector and "\\" not in selector and 0 in counts:
            return ()
        around = sum(counts[:-1]) if "(" not in selector else self._elements * len(parts)
        self._left -= _STEPS_AN_ELEMENT * self._elements + around * self._deep // 50
        self._left -= self._flat * len(_SIBLINGS.findall(selector))
        if self._left < 0:
            return ()
        try:
            path, self._weight[selector] = _compiled(selector)
            return dict.fromkeys(path(self.page))
        except (SelectorError, XPathError, ValueError, RecursionError):
            return ()

    def inline(self) -> Iterator[tuple[HtmlElement, Declared]]:
        """Elements with style attributes, and what these declare."""
        for element in self._styled:
            style = element.get("style")
            if style not in self._inline:
                self._characters -= len(style)
                self._inline[style] = declared_in(style) if self._characters > 0 else {}
            yield element, self._inline[style]

    def values(self, properties: Collection[str]) -> dict[HtmlElement, dict[str, str]]:
        """Of each element for which these properties are declared, their values."""
        weighed: _Weighed = {}
        for number, rule in enumerate(self.rules):
            if rule.certain and not rule.declared.keys().isdisjoint(properties):
                found = self.found(number)
                self._left -= _STEPS_AN_ELEMENT * len(found)
                if found and self._left > 0:
                    _weigh(
                        weighed,
                        found,
                        _wanted(
                            rule.declared, properties, (not rule.built_in, False, self._weight[rule.selector], number)
                        ),
                    )
        for element, declared in self.inline():
            _weigh(weighed, [element], _wanted(declared, properties, (True, True, (), 0)))
        return {element: {name: value for name, (_, value) in values.items()} for element, values in weighed.items()}


def _wanted(declared: Declared, properties: Collection[str], weight: tuple[Any, ...]) -> list[_Weight]:
    return [(name, (declared[name][1], *weight), declared[name][0]) for name in declared.keys() & properties]


def _weigh(weighed: _Weighed, elements: Iterable[HtmlElement], wanted: Iterable[_Weight]) -> None:
    """Note for the elements what weighs at least as much as what is known of them."""
    for element in elements:
        values = weighed.setdefault(element, {})
        for name, weight, value in wanted:
            if name not in values or weight >= values[name][0]:
                values[name] = weight, value


def awaits_script(rule: Rule) -> bool:
    """True for a rule that holds only until the page's scripts run."""
    return _AWAITS_SCRIPT.search(rule.selector) is not None
