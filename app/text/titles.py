"""Titles and headings as plain text, and names for pages whose title says nothing."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape
from urllib.parse import unquote, urlsplit

LONGEST = 300  # characters that are read
_MARKED = re.compile(r"[<&\\`*\[{!\x00-\x1f\u00ad\u200b-\u200f\u2028-\u202e\u2060\ufeff]")
_INVISIBLE = re.compile(r"[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff]")
_CODE = re.compile(r"(`{1,3})(?!`)([^`]{1,200}?)\1(?!`)")
_HIDDEN = re.compile(
    r"<!--.{0,200}?-->|(?<!\\)<(style|script)\b[^<>]{0,200}>.{0,300}?</\1\s{0,5}>", re.IGNORECASE | re.DOTALL
)
_FORMATS = "a|abbr|b|big|br|code|del|div|em|font|h[1-6]|i|img|ins|kbd|mark|p|s|small|span|strike|strong|style|sub|sup|svg|tt|u|wbr"
_BADGE = re.compile(r"(?<!\\)<sup\b[^<>]{1,100}>[^<>]{0,60}</sup>", re.IGNORECASE)
_TAG = re.compile(rf"(?<!\\)</?(?:{_FORMATS})(?:[\s/][^<>]{{0,300}})?>", re.IGNORECASE)
_COMPONENT = re.compile(
    r"(?<!\\)<(?:[A-Z][\w.]*|[a-z]\w*-[\w-]+)(?:\s[^<>]{0,300}|\s?/)>|(?<!\\)</(?:[A-Z][\w.]*|[a-z]\w*-[\w-]+)>"
)
_IMAGE = re.compile(r"!\[([^\[\]]{0,200})\]\([^()]{0,300}\)")
_LINK = re.compile(r"\[([^\[\]]{1,200})\](?:\([^()]{0,300}\)|\[[^\[\]]{0,100}\])")
_BOLD = re.compile(r"(\*{1,3})(?=[^\s*])([^*]{1,200})(?<=[^\s*])\1(?!\*)")
_ID = re.compile(r"\s{0,9}\{[#.:][^{}]{0,100}\}$")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_KEPT = "\x00{}\x00"
_KEPT_AT = re.compile(r"\x00(\d+)\x00")
_SAYS_NOTHING = frozenset(
    ("index", "_index", "home", "readme", "document", "untitled", "undefined", "null", "none", "title", "default")
)
_ENDINGS = re.compile(r"\.(?:html?|mdx?|php|aspx?|rst|txt)$", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2}(?:-[a-z]{2})?", re.IGNORECASE)


@lru_cache(maxsize=4000)
def plain_title(title: str) -> str:
    """The title without tags, comments, Markdown, entities and invisible signs; tags that it shows as text stay."""
    if not _MARKED.search(title):
        return " ".join(title.split())
    code: list[str] = []

    def kept(found: re.Match[str]) -> str:
        code.append(found[2])
        return _KEPT.format(len(code) - 1)

    text = _INVISIBLE.sub("", title[:LONGEST].replace("\x00", ""))
    text = _CODE.sub(kept, text)
    text = _BADGE.sub(" ", _HIDDEN.sub(" ", text))
    text = _COMPONENT.sub(" ", _TAG.sub(" ", text))
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", text))
    text = _ID.sub("", _BOLD.sub(r"\2", text).rstrip())
    text = unescape(_ESCAPE.sub(r"\1", text))
    text = _KEPT_AT.sub(lambda found: code[int(found[1])], text)
    return " ".join(_INVISIBLE.sub("", text).split())


@lru_cache(maxsize=4000)
def named(title: str, url: str, headings: tuple[str, ...] = ()) -> str:
    """The plain title; if it says nothing (`index`, the site's name as in its host), the first heading that does, else
    the words of the address.
    """
    for one in (title, *headings):
        plain = plain_title(one)
        if _says_something(plain) and (_letters(plain) not in _host(url) or breadcrumb(url).endswith(plain)):
            return plain
    return breadcrumb(url) or plain_title(title)


def _host(url: str) -> set[str]:
    return {_letters(part) for part in (urlsplit(url).hostname or "").split(".")}


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _says_something(title: str) -> bool:
    name = _ENDINGS.sub("", title).casefold()
    return any(sign.isalnum() for sign in name) and name not in _SAYS_NOTHING


def breadcrumb(url: str) -> str:
    """The parts of the address's path in words: `Guide > Limits`. Empty for a start page."""
    parts = [_ENDINGS.sub("", unquote(part)) for part in urlsplit(url).path.split("/")]
    said = [part for part in parts if _says_something(part) and not _LANGUAGE.fullmatch(part)]
    words = [" ".join(re.split(r"[-_\s]+", part)).strip() for part in said]
    return " > ".join(f"{word[:1].upper()}{word[1:]}" for word in words if word)
