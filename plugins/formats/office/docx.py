"""A DOCX file -> HTML, by mammoth; code is found by the fonts of styles and runs, headings by outline levels too."""

import io
import re
from collections.abc import Iterator
from typing import Any

import lxml.html
from lxml import etree

from ingestion.convert.files import is_code_style, is_monospace
from ingestion.convert.html.dom import drop
from ingestion.errors import ConversionError
from plugins.formats.office.package import Package

INSTALL = "needs mammoth, which isn't installed: pip install '.[files]' in a checkout"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_CODE_BLOCK, _CODE = "docs-assistant-code-block", "docs-assistant-code"
_STYLES = (
    f"p.{_CODE_BLOCK} => pre:separator('\\n')",
    f"r.{_CODE} => code",
    "p[style-name='Title'] => h1.title:fresh",
    "p[style-name='title'] => h1.title:fresh",
    "p[style-name^='toc '] => !",
    "p[style-name^='TOC '] => !",
)
_SAFE_ID = re.compile(r"[A-Za-z][\w-]*")
_DEEPEST = 5


def docx_html(package: Package) -> str:
    """The HTML of the file's text. Raises `ConversionError` if it can't be read."""
    try:
        import mammoth
    except ImportError as error:
        raise ConversionError(f"{package.url} is a DOCX file: it {INSTALL}") from error
    styles = package.xml("word/styles.xml")
    rules = [*_STYLES, *(_rules(styles) if styles is not None else ())]
    result = mammoth.convert_to_html(
        io.BytesIO(package.body),
        style_map="\n".join(rules),
        include_embedded_style_map=False,
        external_file_access=False,
        convert_image=lambda _: [],
        ignore_empty_paragraphs=False,
        transform_document=mammoth.transforms.paragraph(_marked),
    )
    return _tidy(result.value)


def _rules(styles: etree._Element) -> Iterator[str]:
    """The rules for the file's own styles: code by font or name, headings by outline level."""
    by_id = {style.get(f"{_W}styleId", ""): style for style in styles.iter(f"{_W}style")}
    for identifier, style in by_id.items():
        kind = style.get(f"{_W}type")
        if not _SAFE_ID.fullmatch(identifier) or kind not in ("paragraph", "character"):
            continue
        if _is_code(identifier, by_id):
            yield f"p.{identifier} => pre:separator('\\n')" if kind == "paragraph" else f"r.{identifier} => code"
        elif kind == "paragraph" and (level := style.find(f"{_W}pPr/{_W}outlineLvl")) is not None:
            number = level.get(f"{_W}val", "9")
            if number.isdecimal() and int(number) <= _DEEPEST:
                yield f"p.{identifier} => h{int(number) + 1}:fresh"


def _is_code(identifier: str, by_id: dict[str, etree._Element]) -> bool:
    """True when the style, one that it is based on or linked with has a font of code, or the name of a style for it."""
    waiting, seen = [identifier], set[str]()
    while waiting:
        style = by_id.get(waiting.pop())
        if style is None or style.get(f"{_W}styleId", "") in seen:
            continue
        seen.add(style.get(f"{_W}styleId", ""))
        name = style.find(f"{_W}name")
        fonts = style.find(f"{_W}rPr/{_W}rFonts")
        if is_monospace((fonts.get(f"{_W}ascii") or "") if fonts is not None else ""):
            return True
        if name is not None and is_code_style(name.get(f"{_W}val") or ""):
            return True
        others = (style.find(f"{_W}{tag}") for tag in ("basedOn", "link"))
        waiting += [other.get(f"{_W}val", "") for other in others if other is not None]
    return False


def _marked(paragraph: Any) -> Any:
    """The paragraph of mammoth's document with styles of ours where its runs are in a font of code."""
    runs = [child for child in paragraph.children if hasattr(child, "font") and _text(child).strip()]
    if not runs or not any(is_monospace(run.font or "") for run in runs):
        return paragraph
    if all(is_monospace(run.font or "") for run in runs) and len(runs) == len(paragraph.children):
        return paragraph.copy(style_id=_CODE_BLOCK, style_name=None)
    return paragraph.copy(
        children=[
            child.copy(style_id=_CODE, style_name=None) if child in runs and is_monospace(child.font or "") else child
            for child in paragraph.children
        ]
    )


def _text(element: Any) -> str:
    return getattr(element, "value", "") + "".join(_text(child) for child in getattr(element, "children", ()))


def _tidy(made: str) -> str:
    """The HTML without ids and links within the file, which lead nowhere."""
    root = lxml.html.fragment_fromstring(made, create_parent="div")
    for element in list(root.iter()):
        element.attrib.pop("id", None)
        if element.tag != "a":
            continue
        if element.get("href", "").startswith("#") and element.text == "↑":
            drop(element)  # from a note back to the text
        elif not element.get("href") or element.get("href").startswith("#"):
            element.drop_tag()
    return "".join(lxml.html.tostring(child, encoding="unicode") for child in root)
