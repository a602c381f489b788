"""What the names of fonts and styles in documents say of their text."""

from __future__ import annotations

import re

_MONO = re.compile(
    r"mono|courier|consolas|typewriter|menlo|terminal|lucida ?sans ?type|(?:cm|sf|lm|ec|tx)(?:sl|it|b)?tt|(?:fira|source) ?code",
    re.IGNORECASE,
)
_CODE = re.compile(r"\b(?:source|preformatted|html code|code|verbatim|listing|computer)\b", re.IGNORECASE)
_BOLD = re.compile(r"bold|black|heavy|demi|-medi|(?:cm|sf)bx", re.IGNORECASE)


def is_monospace(font: str) -> bool:
    """True for a font of letters with the same width, as code is written in."""
    return _MONO.search(font) is not None


def is_bold(font: str) -> bool:
    """True for the bold cut of a font."""
    return _BOLD.search(font) is not None


def is_code_style(style: str) -> bool:
    """True for the name of a style for code, as office programs and converters name them."""
    return _CODE.search(style.replace("_20_", " ").replace("_", " ")) is not None
