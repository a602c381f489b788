"""The frame around a documentation page: head, navigation, language switch; no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from types import MappingProxyType
from urllib.parse import quote

from app.api.sitepages import HOME, DocPage


@dataclass(frozen=True, slots=True)
class Labels:
    """The words of the frame in one language."""

    language: str
    skip: str
    pages: str
    languages: str
    markdown: str
    updated: str
    missing: str
    missing_text: str


LABELS: Mapping[str, Labels] = MappingProxyType(
    {
        "en": Labels(
            language="English",
            skip="Skip to the text",
            pages="Pages",
            languages="Languages",
            markdown="This page as Markdown",
            updated="Updated",
            missing="No such page",
            missing_text="There is no page at this address. The pages that exist are listed in the navigation.",
        ),
        "cs": Labels(
            language="Čeština",
            skip="Přejít k obsahu",
            pages="Stránky",
            languages="Jazyky",
            markdown="Tato stránka v Markdownu",
            updated="Aktualizováno",
            missing="Stránka neexistuje",
            missing_text="Na této adrese žádná stránka není. Seznam existujících stránek najdete v navigaci.",
        ),
    }
)
PagesByName = Mapping[tuple[str, str], DocPage]


def link(page: DocPage) -> str:
    """The page's path below /docs/, ready for a URL."""
    return quote(page.path)


def counterparts(page: DocPage, pages: PagesByName) -> dict[str, DocPage]:
    """The same page in each language that has it, its own included."""
    return {language: found for (language, name), found in pages.items() if name == page.name}


def page_html(page: DocPage, pages: PagesByName, base: str) -> str:
    """A whole HTML document; `base` is the absolute address of /docs/."""
    labels = LABELS.get(page.language, LABELS["en"])
    date = page.modified.date().isoformat()
    others = counterparts(page, pages)
    head = [
        f'<link rel="canonical" href="{escape(base + link(page))}">',
        *(
            f'<link rel="alternate" hreflang="{language}" href="{escape(base + link(other))}">'
            for language, other in others.items()
            if len(others) > 1
        ),
        f'<link rel="alternate" type="text/markdown" href="{escape(base + quote(f"{page.language}/{page.name}.md"))}">',
    ]
    if page.description:
        head.append(f'<meta name="description" content="{escape(page.description)}">')
    footer = (
        f'<p>{labels.updated} <time datetime="{date}">{date}</time></p>\n'
        f'<p><a href="{quote(page.name)}.md" rel="alternate">{labels.markdown}</a></p>'
    )
    return _document(_Frame(page.language, page.title, head, page.html, footer, page), pages)


def missing_html(language: str, pages: PagesByName, root: str) -> str:
    """What a reader sees where there is no page; `root` is the path of /docs/."""
    labels = LABELS.get(language, LABELS["en"])
    text = f"<h1>{labels.missing}</h1>\n<p>{labels.missing_text}</p>\n"
    frame = _Frame(language, labels.missing, ['<meta name="robots" content="noindex">'], text, root=root)
    return _document(frame, pages)


@dataclass(frozen=True, slots=True)
class _Frame:
    language: str
    title: str
    head: Sequence[str]
    article: str
    footer: str = ""
    page: DocPage | None = None
    root: str = "../"


def _document(frame: _Frame, pages: PagesByName) -> str:
    labels = LABELS.get(frame.language, LABELS["en"])
    home = pages.get((frame.language, HOME))
    site = home.title if home else "Docs"
    return _template().substitute(
        language=frame.language,
        title=escape(frame.title if frame.title == site else f"{frame.title} · {site}"),
        site=escape(site),
        home=escape(f"{frame.root}{frame.language}/"),
        style=escape(f"{frame.root}style.css"),
        head="\n".join(frame.head),
        skip=labels.skip,
        pages_label=labels.pages,
        languages_label=labels.languages,
        pages="\n".join(_entry(frame, page) for page in pages.values() if _in_navigation(page, frame)),
        switch="\n".join(_switch(frame, pages)),
        article=frame.article,
        footer=frame.footer,
    )


def _entry(frame: _Frame, page: DocPage) -> str:
    mark = ' aria-current="page"' if page is frame.page else ""
    return f'<li><a href="{escape(frame.root + link(page))}"{mark}>{escape(page.title)}</a></li>'


def _in_navigation(page: DocPage, frame: _Frame) -> bool:
    return page.language == frame.language and (page.listed or page == frame.page)


def _switch(frame: _Frame, pages: PagesByName) -> list[str]:
    """Links to this page in each language, or to the language's home where it isn't translated."""
    others = counterparts(frame.page, pages) if frame.page else {}
    entries = []
    for code in dict.fromkeys(code for code, _ in pages):
        target = others.get(code) or pages.get((code, HOME))
        name = LABELS[code].language if code in LABELS else code
        mark = ' aria-current="true"' if code == frame.language else ""
        if target:
            href = escape(frame.root + link(target))
            entries.append(f'<a href="{href}" lang="{code}" hreflang="{code}"{mark}>{name}</a>')
    return entries


@cache
def _template() -> Template:
    return Template(files("app.api").joinpath("static", "page.html").read_text(encoding="utf-8"))
