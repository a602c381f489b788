"""Addresses in answers: ours written safely, and those of the passages told from a model's own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from html import unescape
from urllib.parse import quote, unquote

from app.core.prompts import Language
from app.core.types import Hit

RELATED_PAGES = 3
_CHARACTERS = r"[^\s<>\"'`|\\^{}\[\]\u2018-\u201f«»]{1,2000}"
ADDRESS = re.compile(rf"(?:https?://|(?<![^\W_])(?:ftps?://|www\.)){_CHARACTERS}", re.IGNORECASE)
_ALL = re.compile(rf"(?=({ADDRESS.pattern}|mailto:{_CHARACTERS}))", re.IGNORECASE)
_NEXT = re.compile(r"[,;(](?=(?:https?|ftps?)://)", re.IGNORECASE)
_PARENTHESIS = re.compile(r"[()]")
_TRAILING = ".,;:!?*_…"
_PLACEHOLDER = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|(?:[\w-]+\.)*example\.(?:com|org|net)|\$\w+)(?::\d*)?(?=[/?#]|\Z)(?!.*://)",
    re.IGNORECASE,
)
_HOST = re.compile(r"https?://([\w.-]+)(?::\d+)?(?=[/?#]|\Z)", re.IGNORECASE)


class Addresses:
    """Those that texts have, and stand-ins such as localhost. Pictures are shown from the hosts of `pages` alone."""

    def __init__(self, texts: Iterable[str], pages: Iterable[str] = ()) -> None:
        self._texts, self._pages = tuple(texts), tuple(pages)

    @cached_property
    def _known(self) -> frozenset[str]:  # most answers have no address to look up
        return frozenset(_plain(address_in(found)) for text in self._texts for found in _ALL.findall(text))

    def __contains__(self, address: str) -> bool:
        """Whether a reader may be led there."""
        return self._knows(address) or bool(_PLACEHOLDER.match(address))

    def _knows(self, address: str) -> bool:
        plain = _plain(address)
        whole = [plain, f"https://{plain}", f"http://{plain}"] if plain.startswith("www.") else [plain]
        return any(one in self._known for one in whole)

    def shows(self, address: str) -> bool:
        """Whether a reader's client may load a picture from there."""
        return host_of(address) in {host_of(page) for page in self._pages} - {""} and self._knows(address)


def host_of(address: str) -> str:
    """The host of a web address in small letters; empty where a browser might read another one."""
    found = _HOST.match(address)
    return found[1].lower() if found else ""


def address_in(run: str) -> str:
    """The address without what a sentence or a list puts behind it: signs, a parenthesis that closes, another one."""
    if following := _NEXT.search(run):
        run = run[: following.start()]
    depth = 0
    for found in _PARENTHESIS.finditer(run):
        depth += 1 if found[0] == "(" else -1
        if depth < 0:
            run = run[: found.start()]
            break
    return run.rstrip(_TRAILING)


def _plain(address: str) -> str:
    """For comparing: as it is read, without fragment and last slash."""
    read = unicodedata.normalize("NFC", unquote(unescape(address)))
    return read.partition("#")[0].rstrip("/").casefold()


def markdown_link(name: str, url: str) -> str:
    """A Markdown link that neither the name's signs nor the address' can break."""
    return f"[{escaped(name)}]({quote(url, safe=_SAFE)})"


def escaped(name: str) -> str:
    """Plain text as Markdown on one line that shows it as it is."""
    return _SIGN.sub(r"\\\g<0>", " ".join(name.split()))


def untagged(name: str) -> str:
    """Plain text in which nobody finds a tag of HTML: its angle brackets are single quotation marks then."""
    return _TAG.sub(lambda found: found[0].translate(_ANGLES), name)


def related_pages(hits: Iterable[Hit]) -> list[Hit]:
    """The first hit of each of the first three pages."""
    pages: dict[str, Hit] = {}
    for hit in hits:
        pages.setdefault(hit.chunk.url, hit)
    return list(pages.values())[:RELATED_PAGES]


def related_list(hits: Iterable[Hit], language: Language) -> str:
    """Up to three pages below a heading that promises no more than that they may help; empty without any."""
    lines = [f"- {markdown_link(hit.chunk.title or hit.chunk.url, hit.chunk.url)}" for hit in related_pages(hits)]
    return f"\n\n{language.related}\n\n" + "\n".join(lines) if lines else ""


_SIGN = re.compile(
    r"[\\`\[\]<|*]|&(?=#|\w+;)|!(?=\[)|_(?=\W|\Z)|(?<!\w)_|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.", re.IGNORECASE
)
_ANGLES = {ord("<"): 0x2039, ord(">"): 0x203A}
_TAG = re.compile(r"<(?=[a-z/!?])[^<>]*>?", re.IGNORECASE)
_SAFE = "%/:=&?~#+!$,;'@*"  # what Markdown and a browser take as it is; brackets and spaces are encoded
