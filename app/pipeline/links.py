"""Links in answers: ours written safely, and a model's own taken out where no passage has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote

_URL = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]+", re.IGNORECASE)
_LINK = re.compile(
    r"(!?)\[([^\]\n]*)\]\(\s*<?(https?://[^\s)>]*)>?(?:\s+\"[^\"\n]*\")?\s*\)|<(https?://[^\s<>]*)>|" + _URL.pattern,
    re.IGNORECASE,
)
# what may become one of the above with more text: an open link, or an address that may go on
_OPEN = re.compile(
    r"(?:!?\[[^\]\n]{0,300}(?:\](?:\([^)\n]{0,2000})?)?|<?h(?:t(?:t(?:ps?(?::/{0,2})?)?)?)?|<?https?://[^\s<>\"'`|\\^{}\[\]]*|<|!)\Z",
    re.IGNORECASE,
)
_TRAILING = ".,;:!?*_…"
_PLACEHOLDER = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|\[::1\]|[\w.-]*\bexample\.(?:com|org|net))(?=[:/?#]|\Z)", re.IGNORECASE
)


class LinkFilter:
    """Lets through addresses of the passages, and stand-ins such as localhost; of other links it keeps the words."""

    def __init__(self, passages: Iterable[str]) -> None:
        self._known = {_plain(url) for text in passages if "://" in text for url in _URL.findall(text)}
        self._held = ""

    def feed(self, text: str) -> str:
        """The text that is certain by now."""
        text = self._held + text
        self._held = ""
        addressed = "://" in text  # few pieces are: spares the others two of three searches
        ends = (link.end() for link in _LINK.finditer(text) if link[3]) if addressed else ()
        whole = max(ends, default=0)  # its ) ends it
        if opened := _OPEN.search(text, whole):
            self._held = text[opened.start() :]
            text = text[: opened.start()]
        return _LINK.sub(self._judge, text) if addressed else text

    def rest(self) -> str:
        """What was still held back, at the end."""
        held, self._held = self._held, ""
        return _LINK.sub(self._judge, held)

    def _judge(self, match: re.Match[str]) -> str:
        url = match[3] or match[4] or match[0]
        words = _LINK.sub(self._judge, match[2]) if match[2] and "://" in match[2] else match[2]
        if _plain(url) in self._known or _PLACEHOLDER.match(url):
            return match[0].replace(match[2], words, 1) if match[2] else match[0]
        if match[3]:
            return words  # of the link they stay
        return "" if match[4] else match[0][len(match[0].rstrip(_TRAILING + ")")) :]


def _plain(url: str) -> str:
    """The address without what a sentence puts behind it, without fragment and last slash, for comparing."""
    return url.rstrip(_TRAILING + ")").partition("#")[0].rstrip("/").casefold()


def markdown_link(name: str, url: str) -> str:
    """A Markdown link that neither the name's brackets nor the address' can break."""
    return f"[{_BRACKET.sub(_ESCAPED, name)}]({quote(url, safe=_SAFE)})"


_BRACKET, _ESCAPED = re.compile(r"([\\\[\]])"), r"\\\1"
_SAFE = "%/:=&?~#+!$,;'@*"  # what Markdown and a browser take as it is; brackets and spaces are encoded
