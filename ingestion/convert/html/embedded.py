"""What a page holds in a form of its own becomes plain elements: shadow roots, frames, code in scripts, late pictures and formulas."""

from textwrap import dedent

import lxml.html
from lxml.html import HtmlElement
from lxml.html.builder import BODY, E

from ingestion.convert.html.dom import BACKSLASH, class_names, drop, drop_all, replace, select, texts_outside_code

_SHADOW_ROOTS = "//template[@shadowrootmode or @shadowroot]"
_CODE_SCRIPTS = (
    "//script[@type='syntaxhighlighter' or contains(@class, 'brush:')]"  # Confluence
    "|//script[starts-with(@type, 'text/') and not(contains(@type, 'script')) and contains(@class, 'lang')]"  # Prism
)
_CODE_ELEMENTS = (
    "//*[contains(name(), '-')][@language or contains(name(), 'code')][not(.//pre or .//*[contains(name(), 'code-')])]"
)
_LATE = ("data-src", "data-lazy-src", "data-original", "data-srcset")
_DRAWN = (
    "//*[{MathJax} or {MathJax_Preview} or {MathJax_Display} or {MathJax_SVG} or {MathJax_SVG_Display} or {MathJax_CHTML}]"
    "[following-sibling::script[starts-with(@type, 'math/')]]"
)
_FORMULAS = (
    "//math|//script[starts-with(@type, 'math/tex')]"
    "|//*[{math} or {arithmatex}]|//img[{tex} or {latex} or {mwe-math-fallback-image-inline}]"
)
_CONTAINERS = frozenset({"katex", "katex-display", "katex-mathml", "mwe-math-element", "MathJax", "MathJax_Display"})
_TEX = "@alttext|@data-latex|.//annotation[@encoding='application/x-tex']/text()"
_DELIMITERS = (("\\(", "\\)", "$"), ("\\[", "\\]", "$$"), ("$$", "$$", "$$"), ("$", "$", "$"))
_FORMS = {
    "msub": "{}_{}", "msup": "{}^{}", "msubsup": "{}_{}^{}", "munder": "{}_{} ", "mover": "{}^{} ",
    "munderover": "{}_{}^{} ", "mfrac": "{}/{}",
}  # fmt: skip
_JOINED = {
    "mtr": ("", ", ", ""), "mtable": ("[", "; ", "]"), "mfenced": ("(", ", ", ")"), "msqrt": (" sqrt(", "", ")"),
    "mroot": (" root(", ", ", ")"),
}  # fmt: skip
_RENDERERS = "//script[contains(@src, 'athjax') or contains(@src, 'athJax') or contains(@src, 'katex')]"
_RELATIONS = frozenset("=≠<>≤≥≈≡∈→⇒")
_BLOCKS = frozenset({"body", "main", "article", "section", "div", "li", "dd", "blockquote", "form"})


def write_embedded(page: HtmlElement) -> None:
    """Put plain elements in the place of what only a browser or a script would show."""
    present = class_names(page)
    for number, root in enumerate(select(page, _SHADOW_ROOTS)):
        _open_shadow_root(root, f"shadow-root-{number}")
    for frames in select(page, "//frameset[not(ancestor::frameset)]"):
        _open_frames(frames)
    for script in select(page, _CODE_SCRIPTS):
        script.tag, script.text = "pre", (script.text or "").strip().removeprefix("<![CDATA[").removesuffix("]]>")
    for element in select(page, _CODE_ELEMENTS):
        _write_code_element(element)
    for picture in list(page.iter("img")):
        _load(picture)
    drop_all(page, _DRAWN, present)
    for formula in select(page, _FORMULAS, present):
        _write_formula(formula)
    for element, part in texts_outside_code(page) if select(page, _RENDERERS) else ():
        setattr(element, part, _with_dollars(getattr(element, part) or ""))


def _with_dollars(text: str) -> str:
    """The text with formulas as Markdown has them, where they stand between the delimiters of MathJax."""
    for begin, end, mark in _DELIMITERS[:2]:
        text, *pieces = text.split(begin)
        for piece in pieces:
            formula, closed, behind = piece.partition(end)
            text += f"{mark}{_tex_text(formula)}{mark}{behind}" if closed else begin + piece
    return text


def _open_shadow_root(root: HtmlElement, name: str) -> None:
    """Show the root in its host, whose own content stands where its slots are; its styles hide only what it holds."""
    host = root.getparent()
    for part in [one for one in root.iter("slot", "style") if next(one.iterancestors("template")) is root]:
        if part.tag == "style":
            part.text = f".{name}{{{part.text or ''}}}"
            continue
        given = [one for one in host if one is not root and (one.get("slot") or "") == (part.get("name") or "")]
        text = "" if part.get("name") else (root.tail or "")
        if given or text.strip():
            for fallback in list(part):
                drop(fallback)
            part.text, root.tail = text, None if text else root.tail
            part.extend(given)
        part.tag = "div"
    root.tag = "div"
    root.set("class", name)


def _open_frames(frames: HtmlElement) -> None:
    """Show what readers without frames get, and links to the frames."""
    body, parser = BODY(), lxml.html.HTMLParser(remove_comments=True, remove_pis=True)
    for without in select(frames, "//noframes"):  # its markup is text to the parser
        body.append(lxml.html.fragment_fromstring(without.text_content(), create_parent="div", parser=parser))
    for frame in select(frames, "//frame[@src]"):
        body.append(E.p(E.a(frame.get("title") or frame.get("name") or frame.get("src"), href=frame.get("src"))))
    replace(frames, body)


def _write_code_element(element: HtmlElement) -> None:
    template = element.find("template")
    if template is None:
        text = element.text_content()
    else:  # markup that is shown as it is
        text = (template.text or "") + "".join(lxml.html.tostring(one, encoding="unicode") for one in template)
    if element.get("language") or "\n" in text.strip():
        code = E.pre(dedent(text.rstrip()).strip("\n"))
        code.set("data-language", element.get("language") or element.get("lang") or "")
        replace(element, code)


def _load(picture: HtmlElement) -> None:
    """Give a picture that a script loads later its address; without any, its description is text."""
    source = picture.get("src") or ""
    is_empty = not source or source.startswith("data:")
    named = (picture.get(name) or "" for name in (_LATE + ("srcset",) * is_empty))
    if late := next((one for one in named if one.strip()), "").split():
        picture.set("src", late[0].rstrip(","))
    elif is_empty and (not source or "lazy" in (picture.get("class") or "")):
        replace(picture, E.span(picture.get("alt") or ""))


def _write_formula(formula: HtmlElement) -> None:
    """Write the TeX that the page has, or else MathML in letters, in the place of all that draws the formula."""
    text, mark = _tex(formula), "$"
    for begin, end, delimiter in _DELIMITERS:
        if text.startswith(begin) and text.endswith(end) and len(text) > len(begin + end):
            text, mark = text[len(begin) : -len(end)], delimiter
            break
    else:
        if formula.tag != "math" and (not text or formula.tag not in ("script", "img")):
            return  # set in letters of the page, or in a picture that nothing describes
    around = [one for one in formula.iterancestors() if one.tag.startswith("mjx-") or _CONTAINERS & _classes(one)]
    drawn = [formula, *around]
    is_block = mark == "$$" or any(
        one.get("display") in ("block", "true") or "display" in f"{one.get('type')} {one.get('class')}" for one in drawn
    )
    mark = "$$" if is_block else "$"
    text = f"{mark}{_tex_text(text)}{mark}" if text else _linear(formula)
    parent = drawn[-1].getparent()
    replace(drawn[-1], (E.p if is_block and parent is not None and parent.tag in _BLOCKS else E.span)(text))


def _tex_text(tex: str) -> str:
    return " ".join(tex.replace("<", "< ").replace("\\", BACKSLASH).split())


def _classes(element: HtmlElement) -> frozenset[str]:
    return frozenset((element.get("class") or "").split())


def _tex(formula: HtmlElement) -> str:
    if formula.tag == "math":
        text = next(iter(formula.xpath(_TEX)), "")
    elif formula.tag == "img":
        text = formula.get("alt") or ""
    else:
        drop_all(formula, "//*[{eqno}]")
        text = formula.text_content().replace("% <![CDATA[", "").replace("%]]>", "")  # kramdown
    text = text.strip()
    return text[len("{\\displaystyle") : -1].strip() if text.startswith("{\\displaystyle") else text


def _linear(math: HtmlElement) -> str:
    """The formula in a line: `w_n`, `sqrt(x)`, `[a, b; c, d]`."""
    told: dict[HtmlElement, str] = {}
    for one in reversed(list(math.iter("*"))):  # parts before the whole
        parts = [told[part] for part in one if not part.tag.startswith("annotation")]
        text = (one.text or "").strip()
        if one.tag in _JOINED:
            begin, between, end = _JOINED[one.tag]
            told[one] = f"{one.get('open', begin)}{between.join(parts)}{one.get('close', end)}"
        elif one.tag in _FORMS and len(parts) == _FORMS[one.tag].count("{}"):
            told[one] = _FORMS[one.tag].format(*map(_grouped, parts))
        else:
            told[one] = "".join(parts) if parts else f" {text} " if text in _RELATIONS else text
    return " ".join(told[math].split())


def _grouped(part: str) -> str:
    part = part.strip()
    return part if part.isalnum() or len(part) < 2 else f"({part})"
