"""Writes links safely, and distinguishes addresses of the passages from invented ones."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from html import unescape
from urllib.parse import quote, unquote

from app.core.types import Chunk
from app.text.titles import named, plain_title

_CHARACTERS = r"[^\s<>\"'`|\\^{}\[\]\u2018-\u201f«»]{1,2000}"
ADDRESS = re.compile(rf"(?:https?://|(?<![^\W_])(?:ftps?://|www\.)){_CHARACTERS}", re.IGNORECASE)
_ALL = re.compile(rf"(?=({ADDRESS.pattern}|mailto:{_CHARACTERS}))", re.IGNORECASE)
_NEXT = re.compile(r"[,;(](?=(?:https?|ftps?)://)", re.IGNORECASE)
_PARENTHESIS = re.compile(r"[()]")
_TRAILING = ".,;:!?*_…"
_PLACEHOLDER = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|(?:[\w-]+\.)*example\.(?:com|org|net)|\$\w+)(?::\d*)?(?=[/?#]|\Z)(?!.*(?://|www\.))",
    re.IGNORECASE,
)
_HOST = re.compile(r"https?://([\w.-]+)(?::\d+)?(?=[/?#]|\Z)", re.IGNORECASE)


class Addresses:
    """The addresses in texts, and placeholders such as localhost. Images may come from the hosts of `pages` only."""

    def __init__(self, texts: Iterable[str], pages: Iterable[str] = ()) -> None:
        self._texts, self._pages = tuple(texts), tuple(pages)

    @cached_property
    def _known(self) -> frozenset[str]:  # most answers have no addresses to check
        return frozenset(_plain(address_in(found)) for text in self._texts for found in _ALL.findall(text))

    def __contains__(self, address: str) -> bool:
        """Whether an answer may link to the address."""
        return self._knows(address) or bool(_PLACEHOLDER.match(address))

    def _knows(self, address: str) -> bool:
        plain = _plain(address)
        whole = [plain, f"https://{plain}", f"http://{plain}"] if plain.startswith("www.") else [plain]
        return any(one in self._known for one in whole)

    def shows(self, address: str) -> bool:
        """Whether clients may load an image from the address."""
        return host_of(address) in {host_of(page) for page in self._pages} - {""} and self._knows(address)


def host_of(address: str) -> str:
    """The host of a web address in lower case; empty if browsers could read another one."""
    found = _HOST.match(address)
    return found[1].lower() if found else ""


def address_in(run: str) -> str:
    """The address without what follows it in a sentence or list: punctuation, a closing parenthesis, another address."""
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
    """The address for comparisons: decoded, without fragment and last slash."""
    read = unicodedata.normalize("NFC", unquote(unescape(address)))
    return read.partition("#")[0].rstrip("/").casefold()


def markdown_link(name: str, url: str) -> str:
    """A Markdown link; no sign in the name or address can break it."""
    return f"[{escaped(name)}]({quote(url, safe=_SAFE)})"


def escaped(name: str) -> str:
    """Plain text as Markdown on one line, with all signs escaped."""
    return _SIGN.sub(r"\\\g<0>", " ".join(name.split()))


def untagged(name: str) -> str:
    """Plain text without HTML tags: their angle brackets become single quotation marks."""
    return _TAG.sub(lambda found: found[0].translate(_ANGLES), plain_title(name))


def page_title(chunk: Chunk) -> str:
    """The title of the page of a chunk, as plain text; the words of its address if the title says nothing."""
    tops = {section.path[0] for section in chunk.sections if section.path}
    return untagged(named(chunk.title, chunk.url, tuple(tops) if len(tops) == 1 else ()))


_SIGN = re.compile(
    r"[\\`\[\]<|*]|&(?=#|\w+;)|!(?=\[)|_(?=\W|\Z)|(?<!\w)_|(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.", re.IGNORECASE
)
_ANGLES = {ord("<"): 0x2039, ord(">"): 0x203A}
_TAG = re.compile(r"<(?=[a-z/!?])[^<>]*>?", re.IGNORECASE)
_SAFE = "%/:=&?~#+!$,;'@*"  # signs that Markdown and browsers don't change; brackets and spaces are encoded
