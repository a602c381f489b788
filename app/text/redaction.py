"""Removes from a question what may belong to a person: addresses, keys, and numbers of phones, people, cards and accounts.

What is removed leaves its kind: `[e-mail]`, `[key]`, `[number]`. Rather too much is removed than too little: the rest only has
to say what was asked about.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import cache

from app.core.masking import masked

_EMAIL = re.compile(
    r"(?:mailto:)?[\w.+%'-]{1,64}(?:@|\s?[(\[{]\s?\w{2,8}\s?[)\]}]\s?)[\w-]{1,63}"
    r"(?:(?:\.|\s?[(\[{]\s?\w{2,8}\s?[)\]}]\s?)[\w-]{1,63}){1,6}",
    re.IGNORECASE,
)
"""Also as "jan (at) example (dot) org", in any language."""
_AT = re.compile(r"@|[(\[{]\s?\w{2,8}\s?[)\]}]")
_BLOCK = re.compile(r"-----BEGIN [A-Z ]{1,40}-----.*?(?:-----END [A-Z ]{1,40}-----|\Z)", re.DOTALL)
_JWT = re.compile(r"\beyJ[\w-]{5,}\.[\w-]*(?:\.[\w-]*){0,3}")
# the beginnings that services give their keys, so that they are found in texts
_PREFIXED = re.compile(
    r"\b(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|github_pat|glpat|gldt|xox[abprse]|hf|hvs|dop_v1|pypi|npm|shpat|sq0\w{3}|ya29|AIza|AKIA|ASIA)"
    r"[-_.]?[\w-]{12,}"
)
_HEADER = re.compile(
    r"\b(authorization\s*+:\s*+|bearer\s++|basic\s++)(?=\S{6,})(?:(?:bearer|basic)\s++)?[^\s\"'<>]++", re.IGNORECASE
)
_NAMED = re.compile(
    r"((?:key|token|secret|passw(?:or)?d?|passphrase|pwd|credential)[\w.-]{0,20}[\"']?\s?[=:]\s?[\"']?)([^\s\"'&,;<>]{3,})",
    re.IGNORECASE,
)
_LONG = re.compile(r"(?<![\w/.-])(?=[\w+=-]*\d)(?=[\w+=-]*[A-Za-z])[A-Za-z0-9_+=-]{20,}(?![\w/])")
"""Letters and digits without an end: no word and no name of a package has both in 20 characters."""
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)(?:/\d{1,2})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d)?(?!\d)|\d{1,2}\. ?\d{1,2}\. ?\d{4}(?!\d)")
_NUMBER = re.compile(r"(?<![\w.])(?:\+|00)?\(?\d(?:[ \u00a0./()-]{0,2}\d){6,30}(?![\w])")
LONGEST = 2_000
"""Characters that are read; what follows is left out, because texts that long are no questions."""
LONG_NUMBER = 9
"""Digits: numbers of people, cards, accounts and phones have at least as many."""
WITH_PREFIX = 7
"""Digits of a phone number behind + or 00."""


def redacted(text: str, secrets: AbstractSet[str] = frozenset()) -> str:
    """The text without addresses, keys and long numbers. `secrets` are the words for a password, of all languages."""
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition(" ")[0]  # half a key isn't found
    text = masked(text)
    if _AT.search(text):  # most texts have none, and the pattern for all of it is slow
        text = _EMAIL.sub("[e-mail]", text)
    for pattern in (_BLOCK, _JWT, _PREFIXED, _UUID):
        text = pattern.sub("[key]", text)
    text = _HEADER.sub(r"\1[key]", text)
    text = _NAMED.sub(_named, text)
    if secrets:
        text = _told(frozenset(secrets)).sub(_after_word, text)
    text = _LONG.sub("[key]", text)
    text = _IBAN.sub("[number]", text)
    return _NUMBER.sub(_number, text)


def _named(found: re.Match[str]) -> str:
    """A reference to a value that is elsewhere is none."""
    return found[0] if found[2].startswith(("[", "$", "{", "<", "env:", "file:")) else f"{found[1]}[key]"


@cache
def _told(words: frozenset[str]) -> re.Pattern[str]:
    listed = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    return re.compile(
        rf"(\b(?:{listed})\b\W{{1,4}}(?:[^\W\d_]{{2,8}}[\s:=]{{1,3}}){{0,2}})([^\s,;\"'<>]{{4,}})", re.IGNORECASE
    )


def _after_word(found: re.Match[str]) -> str:
    """What follows a word for a password is one if it has a digit or a sign, or capitals inside: words have none."""
    value = found[2].rstrip(".?!:)")
    looks = re.search(r"\d|[^\w.-]|[a-z][A-Z]", value) and not value.startswith("[")
    return f"{found[1]}[key]{found[2][len(value) :]}" if looks else found[0]


def _number(found: re.Match[str]) -> str:
    digits = sum(map(str.isdigit, found[0]))
    if _ADDRESS.fullmatch(found[0]) or _DATE.fullmatch(found[0].strip()):
        return found[0]
    prefixed = found[0].startswith(("+", "00"))
    return "[number]" if digits >= (WITH_PREFIX if prefixed else LONG_NUMBER) else found[0]
