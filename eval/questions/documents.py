"""Finds the indexed page of a question set's document: compares file paths and addresses by path segments."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote, urlsplit

from eval.files import EvaluationError

_SUFFIX = re.compile(r"\.(?:mdx?|html?)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewriting of documents: replaces what `pattern` matches with `replacement`, which may refer to its groups."""

    pattern: re.Pattern[str]
    replacement: str


def parse_rules(texts: Iterable[str]) -> tuple[Rule, ...]:
    """Rules from texts of the form REGEX=REPL, split at the last "=". Raises `EvaluationError`."""
    rules = []
    for text in texts:
        regex, equals, replacement = text.rpartition("=")  # the last one: a lookahead contains "=" too
        if not equals or not regex:
            raise EvaluationError(f"--doc-map '{text}': it must be REGEX=REPL, for example '^en/docs/=/'.")
        try:
            pattern = re.compile(regex)
            # compiles the replacement too, so that a wrong group is an error now
            re.compile(f"{regex}|").sub(replacement, "")
        except (re.error, IndexError) as error:
            raise EvaluationError(f"--doc-map '{text}': {error}.") from error
        rules.append(Rule(pattern, replacement))
    return tuple(rules)


@dataclass(frozen=True, slots=True)
class _Target:
    """Target that a page's address must match: the `whole` path or only its end; an empty `host` allows any."""

    segments: tuple[str, ...]
    whole: bool
    host: str = ""


class Documents:
    """The pages of an index, found by the documents of a question set.

    A document fits a page whose path ends with the document's path, compared segment by segment, decoded, without the
    suffixes .md, .mdx, .html and without a last "index". A document that starts with "/" must be the whole path; an
    address must also have the same host. The first rule that matches a document rewrites it before that.
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
        """True if the page at this address is the document."""
        target = self._target(doc)
        host, segments = _address(url)
        if target.host and target.host != host:
            return False
        if target.whole or not target.segments:  # an empty end would match every page
            return segments == target.segments
        return segments[-len(target.segments) :] == target.segments

    def label(self, url: str, docs: Iterable[str]) -> str:
        """The first of the documents that fits the page, otherwise its address: the label of the page in a ranking."""
        return next((doc for doc in docs if self.fits(doc, url)), url)

    def _target(self, doc: str) -> _Target:
        if doc not in self._targets:
            self._targets[doc] = self._read(doc)
        return self._targets[doc]

    def _read(self, doc: str) -> _Target:
        tried = (rule.pattern.subn(rule.replacement, doc) for rule in self._rules)
        doc = next((rewritten for rewritten, times in tried if times), doc)
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
