"""Main content of an HTML page, made fit for conversion: no navigation, real code blocks, known anchors."""

import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from urllib.parse import quote, urljoin

from lxml.html import HtmlElement
from lxml.html.builder import E

from app.core.generation import RepeatedBlock
from ingestion.convert.api_reference.generators import write_api_reference
from ingestion.convert.boilerplate.blocks import remove_repeated
from ingestion.convert.html.blocks import rebuild_code, write_cells, write_definitions, write_tables
from ingestion.convert.html.boxes import label_admonitions, label_tabs
from ingestion.convert.html.dom import (
    HEADINGS,
    append_text,
    bold_paragraph,
    class_names,
    drop,
    has_class,
    mark_text,
    select,
    text_of,
    write_powers,
)
from ingestion.convert.html.hidden import OPENERS, drop_hidden

_ROOTS = (
    "//article[{md-content__inner}]",  # mkdocs-material
    "//*[{vp-doc}]",  # VitePress
    "//*[{theme-doc-markdown}]",  # Docusaurus
    "//*[{sl-markdown-content}]",  # Starlight
    "//div[{contents} and ../div[{header}]]",  # Doxygen
    "//div[@id='main' and .//h4[{name}]]",  # JSDoc
    "//div[{col-content}]",  # TypeDoc
    "//div[@itemprop='articleBody']",  # Sphinx, Read the Docs theme
    "//article[@role='main']",  # Sphinx, furo
    "//*[@role='main']//article",
    "//*[@role='main']",
    "//main//article",
    "//article",
    "//main",
    "//body",
)
_UNREAD = (
    "//*[{sr-only} or {visually-hidden} or {visuallyhidden} or {screen-reader-text} or {screen-reader-only} or {a11y-hidden}]",
    "//template|//clipboard-copy|//*[{clipboard-copy-txt}]|//*[@role][@role='tooltip' or @role='status']",
    "//*[{twoslash-popup-container} or {twoslash-floating} or {v-popper__popper} or {twoslash-meta-line} or {twoslash-tag-line}]",
    "//*[{twoslash-completion-list} or {twoslash-completion-container} or {twoslash-popup-info} or {twoslash-popup-code}]",
    "//*[{twoslash-error-box} or {twoslash-custom-box} or {twoslash-static-container} or {meta-line} or {error-behind}]",
    (
        "//*[contains(@class, 'copy') or contains(@class, 'copied') or contains(@class, 'tooltip') or @aria-live]"
        "[../text()[normalize-space()] or ../*[normalize-space() and not(contains(@class, 'cop'))]]"  # beside code or a title
        "[ancestor::pre or ../pre or ../*/pre or ../*/*/pre or parent::h1 or parent::h2 or parent::h3 or parent::h4]"
        "[not(self::code or self::pre or self::td or .//code or .//pre) and string-length(normalize-space()) < 30]"
    ),
)
"""What stands in text and code, but only a screen reader, a pointer or a button that copies gets it."""

_DROPPED = (
    "//script|//style|//noscript|//button|//svg|//nav|//input|//select|//object|//embed",
    "//textarea|//datalist|//canvas|//progress|//meter|//noembed",
    "//*[{linenos} or {linenodiv} or {lineno} or {line-numbers-wrapper}]",
    "//*[{footnote-backref} or {fn-backref} or {backrefs}]|//img[starts-with(@src, 'data:')]",
    "//*[{md-content__button} or {md-source-file} or {md-feedback} or {md-tags}]",
    "//*[{theme-edit-this-page} or {pagination-nav} or {theme-doc-breadcrumbs} or {theme-doc-toc-mobile}]",
    "//*[{edit-this-page} or {edit-link} or {prev-next} or {breadcrumbs} or {wy-breadcrumbs} or {viewcode-link}]",
    "//*[{cookie-banner} or {cookie-consent} or {toc} or {table-of-contents} or {contents-local}]|//*[@id='toc']",
    "//span[{lang} and following-sibling::pre]|//div[{toolbar} and preceding-sibling::pre]",
    "//*[@role][contains(' navigation search contentinfo menu menubar toolbar dialog alertdialog ', concat(' ', @role, ' '))]",
    "//*[{navheader} or {navfooter} or {NAVHEADER} or {NAVFOOTER} or {navigation} or {online-navigation} or {nav-panel} or {navbar} or {pager}]",
    "//*[{topNav} or {bottomNav} or {subNav} or {skip-link}]|//table[starts-with(@summary, 'Navigation ')]",
    (
        "//*[self::p or self::div][a/@accesskey or a/@rel='next' or a/@rel='prev'][not(*[self::p or self::div or self::h2])]"
        "[count(a) > 1 or string-length(normalize-space()) < 60]"
    ),
    "//*[{input_prompt} or {output_prompt} or {jp-InputPrompt} or {jp-OutputPrompt} or {zeroclipboard-container}]",
    "//*[{nbinput} or {nboutput} or {input} or {output} or {output_area} or {cell}]/*[{prompt}]",
)
_TITLES = (
    "//*[{admonition-title}]",
    "//*[{topic-title} or {sidebar-title}]|//p[{rubric}]",  # Sphinx
    "//div[{title} and (parent::*[contains(@class, 'block')] or ../parent::*[{sidebarblock} or {exampleblock}])]",  # Asciidoctor
    "//p[{hx:font-medium}]",  # Hextra
)
_MARK = re.compile(r"[#¶§🔗⚓∞☍↩↵↑⇧⬆^\ufe0f\ue000-\uf8ff]*")  # also those of icon fonts
_DEMO = re.compile(r"(?:^|[\s_-])(?:demo|card|playground|live-?example)s?(?=[\s_-]|$)", re.IGNORECASE)
_FURNITURE = frozenset({
    "aside", "button", "footer", "header", "nav", "noscript", "script", "select", "style", "svg", "template", "textarea",
    "title", "banner", "contentinfo", "dialog", "navigation", "search",
})  # fmt: skip
"""Elements, and roles, whose text isn't the page's own."""

_WHOLE = frozenset({"p", "pre", "table", "dl", *HEADINGS})
"""Elements whose text is counted with that of its links."""

_FIELDS = "//input[not(@type='hidden')]|//select|//textarea|//button"
_IN_LINE = frozenset({"b", "em", "small", "span", "strong", "sup"})
_WORDS_A_FIELD = 5
"""Words for each field or button that a form has at least, if it is text with fields in it."""

_TEXT_BLOCKS = "/../*[self::p or self::pre or self::ul or self::ol or self::dl or self::table or self::h2 or self::h3 or self::section]"


def find_root(page: HtmlElement) -> HtmlElement:
    """The element that holds the page's own text: the first of the usual ones with at least half of it."""
    present, lengths = class_names(page), _lengths(page)
    for path in _ROOTS:
        beside: defaultdict[HtmlElement, list[HtmlElement]] = defaultdict(list)
        for root in select(page, path, present):
            beside[root.getparent() if path.endswith("article") else root].append(root)
        held = {sum(lengths.get(root, 0) for root in roots): roots for roots in reversed(beside.values())}
        if held and 2 * max(held) >= lengths[page] and any(map(text_of, held[max(held)])):
            return _together(held[max(held)])
    return page


def _lengths(page: HtmlElement) -> dict[HtmlElement, int]:
    """Of each element, its letters outside of navigation and fields, and of links that aren't in a paragraph and hold none."""
    lengths, waiting = dict[HtmlElement, int](), [page]
    while waiting:
        one = waiting.pop()
        if one.tag in _WHOLE:
            lengths[one] = len(one.text_content())
        elif _is_own(one):
            lengths[one] = sum(len(text.strip()) for text in (one.text, *(child.tail for child in one)) if text)
            waiting += one
    for one in reversed(lengths):  # parts before the whole
        if one is not page:
            lengths[one.getparent()] += lengths[one]
    return lengths


def _is_own(element: HtmlElement) -> bool:
    if element.tag in _FURNITURE or element.get("role") in _FURNITURE or element.get("hidden") is not None:
        return False
    return element.tag != "a" or any(child.tag in _WHOLE or child.tag == "div" for child in element)


def _together(roots: list[HtmlElement]) -> HtmlElement:
    """The root; of several articles beside each other, an element that holds them all."""
    if len(roots) == 1:
        return roots[0]
    whole = E.div()
    roots[0].addprevious(whole)
    whole.extend(roots)
    return whole


def clean_root(
    root: HtmlElement, base: str, repeated: Sequence[RepeatedBlock] = (), kept: Collection[HtmlElement] = ()
) -> None:
    """Change `root` in place until only content is left, and what is `kept`; relative links start from `base`.

    Blocks that are `repeated` on most pages of the site are no content.
    """
    for heading in select(root, "//*[@role='heading'][@aria-level > 0 and @aria-level < 7]"):
        heading.tag = f"h{heading.get('aria-level').strip()[:1]}"
    note_anchors(root)  # first: the ids may sit on what is dropped
    drop_hidden(root, kept)
    remove_repeated(root, repeated, kept)
    present = class_names(root)
    label_tabs(root, present)
    label_admonitions(root, present)
    _keep_openers(root)
    _drop_all(root, _UNREAD, present, kept)
    rebuild_code(root, present)
    write_api_reference(root, present)
    write_task_marks(root)
    write_powers(root)
    _unlink_notes(root, base)
    _open_forms(root, kept)
    _drop_all(root, _DROPPED, present, kept)
    _drop_marks(root, base)
    _drop_second_title(root)
    _flatten_demos(root)
    if root.tag in ("body", "html", "main"):
        _drop_landmarks(root, kept)
    for path in _TITLES:
        for element in select(root, path, present):
            bold_paragraph(element)
    write_definitions(root, present)
    write_tables(root)
    write_cells(root)
    write_anchors(root)
    _absolute_links(root, base)
    mark_text(root)


def _drop_all(root: HtmlElement, paths: Sequence[str], present: frozenset[str], kept: Collection[HtmlElement]) -> None:
    for element in select(root, "|".join(paths), present):
        if element not in kept:
            drop(element)


def write_task_marks(root: HtmlElement) -> None:
    """Write `[x]` or `[ ]` where an item of a task list has a checkbox, or an icon that shows one (Asciidoctor)."""
    for box in select(
        root, "//input[@type='checkbox'][ancestor::li]|//i[{fa-check-square-o} or {fa-square-o}][ancestor::li]"
    ):
        done = "checked" in box.attrib or has_class(box, "fa-check-square-o")
        mark, tail = f"[{'x' if done else ' '}] ", (box.tail or "").lstrip()
        box.tail = mark + tail
        if next(box.iterancestors("li")).text_content().lstrip().startswith(mark):
            drop(box)
        else:
            box.tail = tail


def note_anchors(root: HtmlElement) -> None:
    """Note on each heading the id that a link to it needs."""
    first: dict[HtmlElement, HtmlElement | None] = {}
    for heading in root.iter(*HEADINGS):
        if identifier := heading.get("id") or _inner_id(heading) or _section_id(heading, first):
            heading.set("data-anchor", identifier)


def write_anchors(root: HtmlElement) -> None:
    """Append ` {#id}` to each heading with a known id, and unwrap links around headings' text."""
    for heading in root.iter(*HEADINGS):
        for line_break in select(heading, "//br|/span[{name}]"):  # the name on the home page of VitePress
            line_break.tail = f" {line_break.tail or ''}"
            if line_break.tag == "br":
                drop(line_break)
        identifier = heading.get("data-anchor")
        for link in list(heading.iter("a")):
            link.drop_tag()
        if not identifier or not text_of(heading):
            continue
        identifier = re.sub(r"[\s<>{}\[\]`\"\\]", lambda found: quote(found[0]), identifier)
        append_text(heading, f" {{#{identifier}}}")


def _inner_id(heading: HtmlElement) -> str:
    for element in heading.iter("a", "span"):
        if identifier := element.get("id") or (element.get("name") if element.tag == "a" else None):
            return str(identifier)
    return ""


def _section_id(heading: HtmlElement, first: dict[HtmlElement, HtmlElement | None]) -> str:
    """Sphinx puts the id on the section; it is the heading's own only when it is the section's `first` one."""
    section = heading.getparent()
    if section is None or not (section.tag == "section" or (section.tag == "div" and has_class(section, "section"))):
        return ""
    if section not in first:
        first[section] = next(iter(section.iter(*HEADINGS)), None)
    return str(section.get("id") or "") if first[section] is heading else ""


def _unlink_notes(root: HtmlElement, base: str) -> None:
    """Make ` [2]` of the link at the mark of a footnote, and of all around it that holds nothing else."""
    for link in list(root.iter("a")):
        mark = text_of(link).strip("[]()")
        if mark.isdecimal() and _place(link, base) and next(link.iterancestors(*HEADINGS, "pre"), None) is None:
            whole = link
            while whole.getparent().tag in _IN_LINE and text_of(whole.getparent()).strip("[]()") == mark:
                whole = whole.getparent()
            whole.clear(keep_tail=True)
            whole.text = f" [{mark}]"
            whole.drop_tag()


def _place(link: HtmlElement, base: str) -> str:
    """The place in the page itself that the link leads to."""
    page, _, target = (link.get("href") or "").partition("#")
    return target if page in ("", base, base.rpartition("/")[2]) else ""


def _drop_marks(root: HtmlElement, base: str) -> None:
    """Drop links without text, links to a place of the page itself with nothing but a mark such as # or ¶, and those beside
    a heading's text.
    """
    for link in list(root.iter("a")):
        text, target = text_of(link), _place(link, base)
        if not text or (target and _MARK.fullmatch(text)):
            if next(link.iter("img", "picture", "video", "iframe"), None) is None:
                drop(link)
        elif target and _is_beside(link, text, target):
            drop(link)


def _drop_second_title(root: HtmlElement) -> None:
    """Drop a heading that no link leads to, if one with the same text follows, as where pages are made for printing, too."""
    titles = list(root.iter("h1"))
    for number, title in enumerate(titles[:-1]):
        if not title.get("data-anchor") and text_of(title) in (text_of(other) for other in titles[number + 1 :]):
            drop(title)


def _flatten_demos(root: HtmlElement) -> None:
    """Make bold lines of headings in demos and cards that no link leads to: the text after these isn't theirs.

    What holds the page's first heading is the page itself, whatever it is called.
    """
    first = next(root.iter(*HEADINGS), None)
    page = set(first.iterancestors()) if first is not None else set()
    inside = set[HtmlElement]()
    for element in list(root.iter("*")):
        if element.getparent() in inside or (element not in page and _DEMO.search(element.get("class") or "")):
            inside.add(element)
    for heading in [element for element in inside if element.tag in HEADINGS]:
        if not heading.get("data-anchor"):
            bold_paragraph(heading)


def _is_beside(link: HtmlElement, text: str, target: str) -> bool:
    """True for a link to the heading that it is in, if the heading's text is beside it."""
    heading = next((heading for heading in link.iterancestors(*HEADINGS) if heading.get("data-anchor") == target), None)
    return heading is not None and re.search(r"\w", text_of(heading).replace(text, "", 1)) is not None


def _keep_openers(root: HtmlElement) -> None:
    """Keep the text of a button that is a heading or a term, or opens a panel; other buttons in headings are no text."""
    for holder in root.iter(*HEADINGS, "dt", "summary"):
        buttons = [button for button in holder.iter("button") if text_of(button)]
        if buttons and text_of(holder) == " ".join(map(text_of, buttons)):
            max(buttons, key=lambda button: len(text_of(button))).drop_tag()
    buttons = select(root, "//button[not(ancestor::nav or ancestor::pre)]")
    panels = (
        {panel.get("id"): panel for panel in select(root, "//*[@id][not(ancestor-or-self::nav)]")} if buttons else {}
    )
    for button in buttons:
        opened = [panels.get((button.get(name) or "").lstrip("#")) for name in OPENERS]
        opened += [button.getnext()] if button.get("aria-expanded") else []
        names = f"{button.get('class')} {button.getparent().get('class')}".lower()
        if "accordion" in names or "faq" in names or any(map(_is_panel, opened)):
            bold_paragraph(button)


def _open_forms(root: HtmlElement, kept: Collection[HtmlElement]) -> None:
    """Take the form away around text, as around the whole page or steps with fields, and drop one that is only filled in."""
    for form in list(root.iter("form")):
        fields = select(form, _FIELDS)
        words = len(form.text_content().split())
        words -= sum(len(part.text_content().split()) for part in (*fields, *form.iter("label", "script", "style")))
        if words > _WORDS_A_FIELD * len(fields) or select(form, "//h1|//ol|//pre"):
            form.tag = "div"
        elif form not in kept:
            drop(form)


def _drop_landmarks(root: HtmlElement, kept: Collection[HtmlElement]) -> None:
    """Drop headers, footers and asides of the site; those with the title stay, and those in the flow of the text."""
    for element in list(root.iter("header", "footer", "aside")):
        if element is not root and element not in kept and not _is_in_text(element):
            drop(element)


def _is_in_text(landmark: HtmlElement) -> bool:
    """True for the title, and within the text by HTML's own rule for landmarks; an aside is also by text."""
    if next(landmark.iter("h1"), None) is not None:
        return True
    if _is_menu(landmark) or "©" in landmark.text_content():
        return False
    around = ("article", "section", "blockquote", "figure", "details", "li", "td")
    if next(landmark.iterancestors(*around, *(() if landmark.tag == "aside" else ("main", "aside"))), None) is not None:
        return True
    return landmark.tag == "aside" and bool(select(landmark, _TEXT_BLOCKS))


def _is_menu(element: HtmlElement) -> bool:
    """True for what holds more links than other text, apart from its headings, or nothing."""
    titles = list(element.iter(*HEADINGS))
    links = [link for link in element.iter("a") if next(link.iterancestors(*HEADINGS), None) is None]
    whole, titled, linked = (sum(len(text_of(part)) for part in parts) for parts in ([element], titles, links))
    return 2 * linked >= whole - titled and not (titled and not linked)


def _is_panel(element: HtmlElement | None) -> bool:
    return element is not None and (not _is_menu(element) or next(element.iter("p"), None) is not None)


def _absolute_links(root: HtmlElement, base: str) -> None:
    for name, tags in (("href", ("a", "area")), ("src", ("img", "video", "audio", "source", "iframe"))):
        for element in root.iter(*tags):
            target = (element.get(name) or "").strip()
            if not target:
                continue
            if target.lower().startswith(("javascript:", "data:")):
                element.attrib.pop(name)
                continue
            try:
                element.set(name, urljoin(base, target))
            except ValueError:  # not a valid address
                element.attrib.pop(name)
