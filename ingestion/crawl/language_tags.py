"""Language tags as sites write them, in attributes and in addresses."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from urllib.parse import unquote, urlsplit

from app.core.language import Vocabulary, vocabulary
from app.text.letters import profile_codes

_ALIASES = {"nb": "no", "nn": "no", "iw": "he", "fil": "tl", "cn": "zh", "jp": "ja", "kr": "ko", "ua": "uk"}
"""Other codes of a language: more exact or older ones, and those of countries that folders are named after."""

_WITHOUT_PROFILE = "az be bs eu ga gl hy is ka kk km lo mn ms my sr uz"
"""Codes of languages that have documentation, and that langdetect doesn't know."""

_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]+)*")
_SUFFIX = re.compile(r"[._]([a-z]{2,3}(?:[-_][a-z0-9]{2,4})?)(?:\.[a-z]+)?$")
_FOLDER = re.compile(r"[a-z]{2,3}(?:[-_][a-z0-9]{2,4})?")


def primary_language(tag: str, words: Vocabulary | None = None) -> str:
    """The primary part of a language tag in lower case; an alias such as cz becomes cs."""
    primary = re.split(r"[-_]", tag.strip().lower())[0]
    return (words or vocabulary()).aliases.get(primary) or _ALIASES.get(primary, primary)


def is_tag(text: str) -> bool:
    """True if the text has the form of a language tag."""
    return bool(_TAG.fullmatch(text.strip()))


def address_languages(url: str, words: Vocabulary) -> list[str]:
    """The languages that an address may name: by suffix (`a.cs.md`), folder (`/cs/`) and host (`cs.example.org`), in this order.

    A folder can mean something else: `/ml/` is machine learning as often as Malayalam.
    """
    parts = urlsplit(url)
    path = unquote(parts.path).lower()
    suffix = _SUFFIX.search(path)
    named = [suffix[1] if suffix else "", *path.split("/")[:-1]]
    host = (parts.hostname or "").split(".")
    named += host[:1] if len(host) > 2 else []
    known = _known_codes(words.codes, tuple(words.aliases))
    tags = [tag for tag in named if _FOLDER.fullmatch(tag) and re.split("[-_]", tag)[0] in known]
    return list(dict.fromkeys(primary_language(tag, words) for tag in tags))


def language_by_counterpart(url: str, listed: Collection[str], words: Vocabulary) -> Mapping[str, str]:
    """The language of the address' folder if the site lists the same address in another language, or without the folder."""
    for named, others in _by_folder(url, words.codes, words):
        if any(other in listed for other in others):
            return {"the addresses of its counterparts": named}
    return {}


def counterparts(url: str, codes: Sequence[str], words: Vocabulary) -> Iterator[str]:
    """The same address in these languages, as far as a folder tells the language, and without the folder."""
    for _, others in _by_folder(url, codes, words):
        yield from others


def _by_folder(url: str, codes: Sequence[str], words: Vocabulary) -> Iterator[tuple[str, list[str]]]:
    """The language that each folder of the address may name, and the addresses of counterparts."""
    folders = url.split("/")
    for at, tag in enumerate(folders[3:-1], 3):
        if named := address_languages(f"https://x/{tag}/", words):
            before, rest = folders[:at], folders[at + 1 :]
            others = ["/".join((*before, *rest)), *("/".join((*before, code, *rest)) for code in codes)]
            yield named[0], [other for other in others if other != url]


@cache
def _known_codes(codes: tuple[str, ...], aliases: tuple[str, ...]) -> frozenset[str]:
    profiles = (code.partition("-")[0] for code in profile_codes())
    return frozenset((*codes, *aliases, *profiles, *_ALIASES, *_WITHOUT_PROFILE.split()))
