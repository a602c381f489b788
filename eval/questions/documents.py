"""Which indexed page a question set's document is: file paths and addresses matched by path segments."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote, urlsplit

from eval.errors import EvaluationError

_SUFFIX = re.compile(r"\.(?:mdx?|html?)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewriting of documents: what `pattern` matches becomes `replacement`, which may refer to its groups."""

    pattern: re.Pattern[str]
    replacement: str


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Rules from texts of the form REGEX=REPL, divided at the last "=". Raises `EvaluationError`."""
    rules = []
    for text in texts:
        regex, equals, replacement = text.rpartition("=")  # the last one: a lookahead has a "=" of its own
        if not equals or not regex:
            raise EvaluationError(f"--doc-map '{text}': it must be REGEX=REPL, as '^en/docs/=/'.")
        try:
            pattern = re.compile(regex)
            # compiles the replacement too: a wrong group is found now, not at the first document it fits
            re.compile(f"{regex}|").sub(replacement, "")
        except (re.error, IndexError) as error:
            raise EvaluationError(f"--doc-map '{text}': {error}.") from error
        rules.append(Rule(pattern, replacement))
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class _Target:
    """What a page's address must be: `whole` path or only its end; `host` is empty where any will do."""

    segments: tuple[str, ...]
    whole: bool
    host: str = ""


class Documents:
    """The pages of an index, found by the documents that a question set names.

    A document fits a page whose path ends with the document's path, compared segment by segment,
    decoded, without the suffixes .md, .mdx, .html and without a last "index". A document that starts
    with "/" must be the whole path, one that is an address must have the same host too. The first rule
    that matches a document rewrites it beforehand.
    """

    def __init__(self, urls: Iterable[str], rules: Sequence[Rule] = ()) -> None:
        self._rules = tuple(rules)
        self._by_end: dict[str, list[str]] = defaultdict(list)
        for url in urls:
            self._by_end[_end(_segments(unquote(urlsplit(url).path)))].append(url)
        self._targets: dict[str, _Target] = {}

    def pages(self, doc: str) -> tuple[str, ...]:
        """Addresses of the indexed pages that the document fits."""
        return tuple(url for url in self._by_end.get(_end(self._target(doc).segments), ()) if self.fits(doc, url))

    def fits(self, doc: str, url: str) -> bool:
        """True when the page at this address is the document."""
        target = self._target(doc)
        host, segments = _address(url)
        if target.host and target.host != host:
            return False
        if target.whole or not target.segments:  # an empty end would fit every page
            return segments == target.segments
        return segments[-len(target.segments) :] == target.segments

    def label(self, url: str, docs: Iterable[str]) -> str:
        """The first of the documents that the page is, else its address: what a ranking of pages is made of."""
        return next((doc for doc in docs if self.fits(doc, url)), url)

    def _target(self, doc: str) -> _Target:
        if doc not in self._targets:
            self._targets[doc] = _read_target(self._rewritten(doc))
        return self._targets[doc]

    def _rewritten(self, doc: str) -> str:
        for rule in self._rules:
            rewritten, times = rule.pattern.subn(rule.replacement, doc)
            if times:
                return rewritten
        return doc


def _read_target(doc: str) -> _Target:
    if "://" in doc:
        host, segments = _address(doc)
        return _Target(segments, whole=True, host=host)
    return _Target(_segments(doc), whole=doc.startswith("/"))


@cache
def _address(url: str) -> tuple[str, tuple[str, ...]]:
    parts = urlsplit(url)
    return parts.netloc.lower(), _segments(unquote(parts.path))


def _segments(path: str) -> tuple[str, ...]:
    segments = [part for part in unicodedata.normalize("NFC", path).split("/") if part]
    if segments:
        segments[-1] = _SUFFIX.sub("", segments[-1])
        if segments[-1] == "index":
            segments.pop()
    return tuple(segments)


def _end(segments: tuple[str, ...]) -> str:
    return segments[-1] if segments else ""
