"""What no reader of a page can see, by its attributes and by what its own styles declare, and what readers can open."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from lxml.html import HtmlElement
from tinycss2.color4 import parse_color

from ingestion.convert.html.dom import drop, select
from ingestion.convert.html.styles import Cascade, Declared, Rule, awaits_script, rules_of

SHOWN_ON_DEMAND = re.compile(
    r"(?:^|[\s_-])tabs?(?![a-z])|tab-?(?:pane|panel|content)|panel|collaps|accordion|toggle|spoiler|expand|dyncontent",
    re.IGNORECASE,
)
"""Names of what is hidden until readers open it."""

OPENERS = ("aria-controls", "data-target", "data-bs-target", "popovertarget", "commandfor")
_CONTROLS = "//*[" + " or ".join(f"@{name}" for name in OPENERS) + "]"
_STYLES = "//style[not(ancestor::noscript or ancestor::template)]"
_GONE = {"display": ("none", False)}
_BUILT_IN = (
    Rule("[hidden]:not([hidden='until-found' i])", _GONE, built_in=True),
    Rule("[inert]", {"display": ("none", True)}, built_in=True),
    Rule("dialog:not([open])", _GONE, built_in=True),
    Rule("[popover]", _GONE, built_in=True),
)
"""What browsers hide unless the page's styles show it; what is inert stays on the screen, but out of reach."""

_FAR = 900  # pixels to the left of the page or above it
_FAR_RIGHT = 3000
_MOST_CHECKS = 20_000  # of rules that may show what is hidden
_FAINT = 0.05
_TINY = 1  # pixel of width or height
_SMALLEST = 2  # pixels of a letter that can be seen
_UNITS = {
    "": 1, "px": 1, "em": 16, "rem": 16, "ex": 8, "ch": 8, "pt": 4 / 3, "pc": 16, "in": 96, "cm": 38, "mm": 3.8, "q": 1,
    "vw": 10, "vh": 10, "vmin": 10, "vmax": 10, "dvh": 10, "svh": 10,
}  # fmt: skip
_NUMBER = re.compile(r"(?:calc\(\s*+)?+([-+]?+(?:\d++(?:\.\d*+)?+|\.\d++)(?:e[-+]?+\d++)?+)\s*+([a-z]++|%)?+\s*+\)?")
_MOVES = re.compile(r"translate(?:x|y|3d)?\(([^()]*)\)")
_SHRUNK = re.compile(r"scale(?:x|y|3d)?+\(\s*+(?:0++(?:\.0*+)?+|\.0++)%?+\s*+[,)]|matrix\((?:\s*+0\s*+,){4}")
_RECT = re.compile(r"rect\(([^()]*)\)")
_SHAPE = re.compile(r"(inset|circle|ellipse|polygon|rect|xywh)\(([^()]*)\)")
_FADED = re.compile(r"opacity\(\s*+(?:0++(?:\.0*+)?+|\.0++)%?+\s*+\)")
_COLOUR = re.compile(r"#[0-9a-f]{3,8}\b|(?:rgb|hsl|hwb|lab|lch|oklab|oklch)a?\([^()]*\)|[a-z]{3,}")

Values = Mapping[str, str]
Unseen = frozenset[HtmlElement]
"""What of a hidden element is seen all the same."""


def _pixels(value: str, percent: float = 10) -> float | None:
    """The length in pixels of a usual screen; None for what is no number. A hundredth of the whole has `percent` pixels."""
    found = _NUMBER.fullmatch(value.strip())
    if found is None:
        return None
    factor = percent if found[2] == "%" else _UNITS.get(found[2] or "")
    return None if factor is None else float(found[1]) * factor


def _is_far(values: Values) -> bool:
    names = ["margin-left", "margin-top"]
    if values.get("position", "static") not in ("static", "initial"):
        names += ["left", "right", "top", "bottom"]
    distances = [_pixels(values.get(name, "")) or 0 for name in names]
    return any(distance <= -_FAR for distance in distances) or any(far >= _FAR_RIGHT for far in distances[2:])


def _is_moved(values: Values) -> bool:
    if "animation" in values:
        return False
    transform = values.get("transform", "")
    moves = [*re.split(r"[,\s]+", ",".join(_MOVES.findall(transform))), *values.get("translate", "").split()]
    far = any(abs(_pixels(move, percent=1) or 0) >= _FAR for move in moves)
    return far or _SHRUNK.search(transform) is not None or _pixels(values.get("scale", ""), percent=0.01) == 0


def _is_faint(values: Values) -> bool:
    if _FADED.search(values.get("filter", "")) is not None:
        return True
    opacity = _pixels(values.get("opacity", ""), percent=0.01)
    # what a script or an animation fades in is usually moved, too
    return opacity is not None and opacity <= _FAINT and "animation" not in values and "transform" not in values


def _is_clipped(values: Values) -> bool:
    if values.get("position") in ("absolute", "fixed") and (rect := _RECT.search(values.get("clip", ""))):
        sides = [_pixels(side) for side in re.split(r"[,\s]+", rect[1].strip())]
        top, right, bottom, left = [*sides, None, None, None, None][:4]
        if _is_empty(top or 0, bottom) or _is_empty(left or 0, right):
            return True
    shape = _SHAPE.search(values.get("clip-path", ""))
    return shape is not None and _is_nothing(shape[1], shape[2])


def _is_empty(start: float, end: float | None) -> bool:
    return end is not None and end - start <= _TINY


def _is_nothing(shape: str, text: str) -> bool:
    """True for a shape without area."""
    numbers = [_pixels(number, percent=1) for number in re.split(r"[,\s]+", text.partition(" at ")[0].strip())]
    known = [number for number in numbers if number is not None]
    if shape == "inset":
        top, right, bottom, left = _four(text)
        return top + bottom >= 100 or left + right >= 100  # of hundred
    if shape in ("circle", "ellipse"):
        return bool(known) and min(known) == 0
    if shape == "polygon":
        return bool(known) and (len(set(known[::2])) == 1 or len(set(known[1::2])) == 1)
    return False


def _four(text: str) -> tuple[float, float, float, float]:
    sides = [_pixels(side, percent=1) if side.endswith("%") else 0.0 for side in text.partition(" round ")[0].split()]
    whole = [side or 0.0 for side in sides] or [0.0]
    top = whole[0]
    right = whole[1] if len(whole) > 1 else top
    bottom = whole[2] if len(whole) > 2 else top
    left = whole[3] if len(whole) > 3 else right
    return top, right, bottom, left


def _is_tiny(values: Values) -> bool:
    if not {"hidden", "clip"} & set(values.get("overflow", "").split()) or "text-overflow" in values:
        return False
    if "%" in values.get("padding", "") + values.get("padding-bottom", "") + values.get("padding-top", ""):
        return False  # the frame of a video
    if (_pixels(values.get("min-height", "")) or 0) > _TINY:
        return False
    sizes = (_pixels(values.get(name, "")) for name in ("width", "height", "max-width", "max-height"))
    return any(size is not None and size <= _TINY for size in sizes)


def _is_colourless(values: Values) -> bool:
    """True for transparent letters, unless the background fills them, and for letters in the colour of the background."""
    colour = _colour(values.get("-webkit-text-fill-color") or values.get("color", ""))
    if colour is None or values.get("background-clip") == "text":
        return False
    if colour[3] <= _FAINT:
        return True
    background = _colour(values.get("background-color", ""))
    plain = "url(" not in values.get("background-color", "") and "gradient" not in values.get("background-color", "")
    return plain and background is not None and background == colour


def _colour(value: str) -> tuple[float, ...] | None:
    for written in _COLOUR.findall(value):
        colour = parse_color(written)
        if colour is not None and colour != "currentcolor":
            try:
                return tuple(round(part, 2) for part in (*colour.to("srgb").coordinates, colour.alpha))
            except (NotImplementedError, TypeError, ValueError):
                return None
    return None


def _has_small_letters(values: Values) -> bool:
    size = _pixels(values.get("font-size", ""), percent=0.16)
    return size is not None and size < _SMALLEST


@dataclass(frozen=True, slots=True)
class Way:
    """A way to hide an element by the values of these properties; descendants that declare `inherited` anew may be seen."""

    hides: Callable[[Values], bool]
    properties: frozenset[str]
    inherited: tuple[str, ...] = ()


def _way(hides: Callable[[Values], bool], properties: str, inherited: str = "") -> Way:
    return Way(hides, frozenset(properties.split()), tuple(inherited.split()))


_WAYS = (
    _way(lambda values: values.get("display") == "none", "display"),
    _way(lambda values: values.get("content-visibility") == "hidden", "content-visibility"),
    _way(_is_faint, "opacity filter animation transform"),
    _way(_is_far, "position left right top bottom margin-left margin-top"),
    _way(_is_moved, "transform translate scale animation"),
    _way(_is_clipped, "clip clip-path position"),
    _way(
        _is_tiny,
        "overflow width height max-width max-height min-height padding padding-top padding-bottom text-overflow",
    ),
    _way(lambda values: values.get("visibility") in ("hidden", "collapse"), "visibility", "visibility"),
    _way(_has_small_letters, "font-size", "font-size"),
    _way(lambda values: abs(_pixels(values.get("text-indent", "")) or 0) >= _FAR, "text-indent", "text-indent"),
    _way(
        _is_colourless,
        "color -webkit-text-fill-color background-color background-clip",
        "color -webkit-text-fill-color",
    ),
)
_SET_ELSEWHERE = {"position": "absolute", "overflow": "hidden"}  # another rule may say so


def _hiding(values: Values) -> list[Way]:
    return [way for way in _WAYS if not way.properties.isdisjoint(values) and way.hides(values)]


def _suspected(declared: Declared) -> frozenset[str]:
    """The properties that matter where this is declared; none where it can't hide anything."""
    values = {**_SET_ELSEWHERE, **{name: value for name, (value, _) in declared.items()}}
    for name in ("animation", "transform") if "opacity" in declared else ():
        values.pop(name, None)
    return frozenset().union(*(way.properties for way in _hiding(values)))


def _sheets(page: HtmlElement) -> Iterable[tuple[str, str]]:
    for element in select(page, _STYLES):
        if (element.get("type") or "text/css").strip().lower() == "text/css":
            yield element.text_content(), element.get("media") or ""


class _Look:
    """What of a page is hidden, each element with the ways that hide it, and where hidden text comes into sight again."""

    def __init__(self, page: HtmlElement, rules: Iterable[Rule]) -> None:
        self.cascade = Cascade(page, [*_BUILT_IN, *(rule for rule in rules if not awaits_script(rule))])
        self.hidden: dict[HtmlElement, list[Way]] = {}
        self.seen_again: dict[str, set[HtmlElement]] = {}
        self.values: Mapping[HtmlElement, Values] = {}
        self._named: dict[str, list[int]] = {}
        self._checks = _MOST_CHECKS
        suspects, properties = self._suspects()
        if not suspects:
            return
        for number, rule in enumerate(self.cascade.rules):
            if not rule.declared.keys().isdisjoint(properties):
                for name in rule.names:
                    self._named.setdefault(name, []).append(number)
        self.values = self.cascade.values(properties)
        for element, own in self.values.items():
            self._judge(element, own, element in suspects)

    def _judge(self, element: HtmlElement, own: Values, suspected: bool) -> None:
        ways = _hiding(own)
        if ways and suspected:
            self.hidden[element] = ways
        hiding = {name for way in ways for name in way.inherited}
        for name in own.keys() - hiding:
            relative = name == "font-size" and own[name].endswith(("em", "%")) and not own[name].endswith("rem")
            if own[name] not in ("inherit", "unset") and not relative:
                self.seen_again.setdefault(name, set()).add(element)

    def _suspects(self) -> tuple[set[HtmlElement], set[str]]:
        suspects, properties = set[HtmlElement](), set[str]()
        for number, rule in enumerate(self.cascade.rules):
            if rule.certain and (needed := _suspected(rule.declared)) and (found := self.cascade.found(number)):
                suspects.update(found)
                properties |= needed
        known: dict[int, frozenset[str]] = {}  # many elements have the same style
        for element, declared in self.cascade.inline():
            if id(declared) not in known:
                known[id(declared)] = _suspected(declared)
            if needed := known[id(declared)]:
                suspects.add(element)
                properties |= needed
        return suspects, properties

    def seen_in(self, element: HtmlElement) -> Unseen:
        """The descendants of a hidden element that declare to be seen, as a child of what has `visibility: hidden` may."""
        again: set[HtmlElement] | None = None
        for way in self.hidden[element]:
            shown = {one for name in way.inherited for one in self.seen_again.get(name, ())}
            again = shown if again is None else again & shown
        return (
            frozenset(one for one in element.iterdescendants() if one in again and one not in self.hidden)
            if again
            else frozenset()
        )

    def shows_on_demand(self, element: HtmlElement) -> bool:
        """True when a rule that doesn't hold now would show what has this element's id or one of its classes."""
        own = [*(f".{name}" for name in (element.get("class") or "").split()), f"#{element.get('id') or ''}"]
        for number in {number: None for name in own for number in self._named.get(name, ())}:
            rule = self.cascade.rules[number]
            self._checks -= 1
            if self._checks < 0:
                return False
            if not (rule.certain and element in self.cascade.found(number)):
                declared = {name: value for name, (value, _) in rule.declared.items()}
                if not _hiding({**self.values[element], **declared}):
                    return True
        return False


def unseen(root: HtmlElement, rules: Iterable[Rule], kept: Collection[HtmlElement] = ()) -> dict[HtmlElement, Unseen]:
    """Elements below `root` that no reader can see or open by the attributes of the page and these `rules`."""
    page = root.getroottree().getroot()
    look = _Look(page, rules)
    inside = set(root.iterdescendants()) if look.hidden else set()
    hidden = [element for element in look.hidden if element in inside and element not in kept]
    if not hidden:
        return {}
    opened = {(element.get(name) or "").lstrip("#") for element in select(page, _CONTROLS) for name in OPENERS}
    closed = [one for one in hidden if not _can_be_opened(one, opened) and not look.shows_on_demand(one)]
    return {element: look.seen_in(element) for element in closed}


def drop_hidden(root: HtmlElement, kept: Collection[HtmlElement] = ()) -> None:
    """Drop what no reader can see: nobody checks it, and it may be meant to instruct machines.

    What readers can open stays (panels of tabs, accordions, details), and so does a page that its script shows.
    """
    hidden = unseen(root, rules_of(_sheets(root.getroottree().getroot())), kept)
    half = len(root.text_content()) / 2 if hidden else 0
    for element, seen in hidden.items():
        if len(element.text_content()) <= half:
            _drop(element, seen)


def _drop(element: HtmlElement, seen: Unseen) -> None:
    """Drop the element, but for what of it is seen."""
    if not seen:
        drop(element)
        return
    above = {ancestor for one in seen for ancestor in one.iterancestors()}
    waiting = [element]
    while waiting:
        one = waiting.pop()
        one.text = None
        for child in list(one):
            child.tail = None
            if child in seen:
                continue
            if child in above:
                waiting.append(child)
            else:
                child.drop_tree()


def _can_be_opened(element: HtmlElement, opened: Collection[str]) -> bool:
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    return (
        element.get("role") == "tabpanel"
        or element.get("id") in opened
        or SHOWN_ON_DEMAND.search(names) is not None
        or next(element.iterancestors("details"), None) is not None
    )
