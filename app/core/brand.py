"""Whose documentation it is: the name, icon, colour and welcome of a site, and its colour as readers can see it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

LARGEST = 48_000
"""Bytes of an icon."""
COLOR = re.compile(r"#(?:[0-9a-fA-F]{3}){1,2}")
READABLE = 4.5
"""The least contrast of text (WCAG 2, level AA)."""
TINT = 0.13  # of the colour below its own text, as of the numbers of citations
GREY = 0.15  # the most that the parts of a grey differ
LIGHT, DARK = "#f5f6f8", "#20252e"  # what texts in the colour stand on in the front end, where the contrast is least
INK = "#10131a"  # text on the colour, on a dark page

Rgb = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Brand:
    """What a site shows of itself; empty texts for what isn't known. `icon` is an image in base64."""

    name: str = ""
    color: str = ""
    icon: str = ""
    welcome: str = ""


def image_type(data: bytes) -> str:
    """The media type of an image that browsers show and that isn't too large; empty for anything else."""
    if len(data) > LARGEST:
        return ""
    signs = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"\0\0\1\0": "x-icon"}
    kind = next((kind for sign, kind in signs.items() if data.startswith(sign)), "")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "webp"
    if not kind and re.match(rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml|<!--|<!DOCTYPE svg|<svg)", data) and b"<svg" in data:
        kind = "svg+xml"
    return kind and f"image/{kind}"


def is_grey(color: str) -> bool:
    """True for white, black and what is between: sites name them for the bars of browsers, not as their colour."""
    return max(parts := _parts(color)) - min(parts) < GREY


def style(color: str) -> str:
    """A style sheet for the page and the widget with the colour, darker or lighter where it couldn't be read."""
    if not COLOR.fullmatch(color):
        return ""
    light = next(one for one in _towards(color, "#000000") if _is_readable(one, LIGHT))
    dark = next(one for one in _towards(color, "#ffffff") if _is_readable(one, DARK) and _contrast(one, INK) > READABLE)
    return f":root,:host{{--da-accent:light-dark({light},{dark})}}"


def _towards(color: str, end: str) -> Iterator[str]:
    return (_mixed(color, end, step / 40) for step in range(41))


def _is_readable(color: str, background: str) -> bool:
    return _contrast(color, _mixed(background, color, TINT)) >= READABLE


def _contrast(one: str, other: str) -> float:
    dark, light = sorted(map(_luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(color: str) -> float:
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in _parts(color))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _mixed(color: str, other: str, share: float) -> str:
    mixed = (a + (b - a) * share for a, b in zip(_parts(color), _parts(other), strict=True))
    return "#" + "".join(f"{round(part * 255):02x}" for part in mixed)


def _parts(color: str) -> Rgb:
    digits = color[1:] if len(color) == 7 else "".join(digit * 2 for digit in color[1:])
    red, green, blue = (int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))
    return red, green, blue
