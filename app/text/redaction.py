"""Removes from a question what may belong to a person: addresses, keys, and numbers of phones, people, cards and accounts.

What is removed leaves its kind: `[e-mail]`, `[key]`, `[number]`. Rather too much is removed than too little: the rest only has
to say what was asked about.
"""

import re
from collections.abc import Iterable
from functools import cache

from app.core.language import Vocabulary
from app.core.log_message import masked
from app.text.analysis import normalized

_INVISIBLE = re.compile(r"[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")
_DASH = re.compile(r"[\u2010-\u2015\u2212]")
_BRACKETED = r"\s?[(\[{<]\s?[\w@.]{1,8}\s?[)\]}>]\s?"
_EMAIL = re.compile(
    rf"(?:mailto:)?(?<![\w.+%'-])(?!git@)[\w.+%'-]{{1,64}}(?:@|%40|&#(?:64|x40);|{_BRACKETED})[\w-]{{1,63}}"
    rf"(?:(?:\.|{_BRACKETED})[\w-]{{1,63}}){{0,5}}(?:\.|{_BRACKETED})[^\W\d_]{{2,24}}(?![\w])",
    re.IGNORECASE,
)
"""Also as "jan (at) example (dot) org", in any language. A name of a top-level domain has no digits, a version has."""
_AT = re.compile(r"@|%40|&#(?:64|x40);|[(\[{<]\s?[\w@.]{1,8}\s?[)\]}>]", re.IGNORECASE)
_BLOCK = re.compile(r"-----BEGIN [A-Z ]{1,40}-----.*?(?:-----END [A-Z ]{1,40}-----|\Z)", re.DOTALL)
_JWT = re.compile(r"\beyJ[\w-]{5,}\.[\w-]*(?:\.[\w-]*){0,3}")
# the beginnings that services give their keys, so that they are found in texts
_PREFIXED = re.compile(
    r"\b(?:sk[-_]|[pr]k_|gh[oprsu]_|github_pat_|gl(?:pat|dt|rt)-|xox[abeprs]-|xapp-|hf_|hv[bs]\.|dop_v1_|pypi-|npm_|shp(?:at|ss)_"
    r"|sq0\w{3}-|ya29\.|AIza|A[KS]IA|AGE-SECRET-KEY-|whsec_|gsk_|r8_|nvapi-|da_|lin_api_|figd_)[\w-]{12,}"
    r"|\b(?:dapi|key-)[0-9a-f]{12,}|\bSG\.[\w-]{10,}\.[\w-]{10,}|\b\d{8,10}:[A-Za-z0-9_-]{35}(?![\w-])"
)
_HOOK = re.compile(
    r"\b(hooks\.slack\.com/\w{1,20}/|discord(?:app)?\.com/api/webhooks/|[\w-]{1,60}\.webhook\.office\.com/\w{1,20}/|api\.telegram\.org/bot)"
    r"[^\s\"'<>]{6,}",
    re.IGNORECASE,
)
# 40 letters of base64, as the secret keys of AWS: they have digits, capitals and small letters, which no path of a page has
_BASE64 = re.compile(
    r"(?<![\w/+.-])(?=[A-Za-z+/]{0,39}\d)(?=[a-z0-9+/]{0,39}[A-Z])(?=[A-Z0-9+/]{0,39}[a-z])[A-Za-z0-9+/]{40}=?(?![\w/+.-])"
)
_HEADER = re.compile(
    r"\b(authorization\s*+:\s*+|(?:x-)?(?:api|auth)[-_](?:key|token)\s*+:\s*+|bearer\s++|basic\s++)"
    r"(?:(?:bearer|basic|token)\s++)?(?=\S{6,})[^\s\"'<>]++",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"((?:\bsig|key|token|secret|passw(?:or)?d?|passphrase|pwd|credential)[\w.-]{0,20}[\"']?\s?[=:]\s?[\"']?)([^\s\"'&,;<>]{3,})",
    re.IGNORECASE,
)
# options of commands: curl -u name:password, mysql -ppassword, sshpass -p password, --password password
_USER = re.compile(r"(?<!\S)((?:-u|--user|--proxy-user)[ =]{0,2}[\"']?[^\s:\"']{1,64}:)[^\s\"']{3,}")
_OPTION = re.compile(
    r"(?<!\S)(--?(?:password|passwd|passphrase|pass|token|secret|api-?key)[ =][\"']?)(?![-$<{\[])[^\s\"']{3,}",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"\b((?:(?:mysql(?:dump|admin)?|mariadb)\b[^|;\n]{0,200}?\s-p|(?:sshpass|(?:docker|podman|registry) login)\b[^|;\n]{0,200}?\s-p ?))"
    r"(?![-$<{\[])[^\s\"']{3,}",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<![\w/:.-])([\w.-]{2,32}:)(?!\d{1,5}@|//)[^\s@/:\"']{3,64}(?=@[\w-])")
_LONG = re.compile(r"(?<![\w/.+-])(?=[A-Za-z_+-]*+\d)(?=[0-9_+-]*+[A-Za-z])[A-Za-z0-9_+-]{20,}+={0,2}(?![\w/])")
"""Letters and digits without an end: no word and no name of a package has both in 20 characters."""
_UUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?\b")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?!\.?\d)(?:/\d{1,2})?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d)?(?!\d)|\d{1,2}\. ?\d{1,2}\. ?\d{4}(?!\d)")
_DECIMAL = re.compile(r"\d{1,3}\.\d+")
_NUMBER = re.compile(r"(?<![\w.])(?:\+|00)?\(?\d(?:[ .()/-]{0,3}\d){6,30}(?![\w])")
LONGEST = 2_000
"""Characters that are read; what follows is left out, because texts that long are no questions."""
LONG_NUMBER = 9
"""Digits: numbers of people, cards, accounts and phones have at least as many."""
WITH_PREFIX = 7
"""Digits of a phone number behind + or 00."""


def redacted(text: str, words: Vocabulary | None = None) -> str:
    """The text, in compatible characters, without addresses, keys and long numbers; `words` are those for passwords and for @."""
    text = _shown(text[: LONGEST + 1])
    if len(text) > LONGEST:
        text = text[:LONGEST].rpartition(" ")[0]  # half a key isn't found
    text = _LOGIN.sub(r"\1[key]", _HOOK.sub(r"\1[key]", masked(text)))
    if _AT.search(text):  # most texts have none, and the pattern for all of it is slow
        text = _EMAIL.sub("[e-mail]", text)
    if words:
        unmistakable = words.at.difference(*words.function_words.values())
        text = _spoken(words.at, unmistakable, words.dot).sub("[e-mail]", text)
    for pattern in (_BLOCK, _JWT, _PREFIXED, _UUID, _BASE64):
        text = pattern.sub("[key]", text)
    for pattern in (_HEADER, _USER, _OPTION, _COMMAND):
        text = pattern.sub(r"\1[key]", text)
    text = _NAMED.sub(_named, text)
    if words:
        text = _told(words.secrets).sub(_after_word, text)
    text = _IBAN.sub("[number]", _LONG.sub("[key]", text))
    return _NUMBER.sub(_number, text)


def _shown(text: str) -> str:
    """The text as it looks: one form of each letter, dash and space, and nothing invisible between them."""
    if text.isascii():
        return text
    return _DASH.sub("-", _INVISIBLE.sub("", normalized("NFKC", text)))


def _named(match: re.Match[str]) -> str:
    """A reference to a value that is elsewhere is none."""
    elsewhere = match[2].startswith(("[", "$", "{", "<", "env:", "file:"))
    return match[0] if elsewhere else f"{match[1]}[key]"


def _alternatives(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True)) or "(?!)"


@cache
def _spoken(at: frozenset[str], unmistakable: frozenset[str], dot: frozenset[str]) -> re.Pattern[str]:
    """An address in words: "jan zavináč example tečka cz". A word that is also an ordinary one needs another for each dot."""
    part = r"[\w-]{1,63}"
    begin = rf"(?<!\w){part}(?:\.{part}){{0,3}}\s{{1,2}}"
    dots = rf"(?:\s{{1,2}}(?:{_alternatives(dot)})\s{{1,2}}{part}){{1,4}}"
    mixed = rf"(?:(?:\s{{1,2}}(?:{_alternatives(dot)})\s{{1,2}}|\.){part}){{1,4}}"
    return re.compile(
        rf"{begin}(?:(?:{_alternatives(at)})\s{{1,2}}{part}{dots}|(?:{_alternatives(unmistakable)})\s{{1,2}}{part}{mixed})\b",
        re.IGNORECASE,
    )


@cache
def _told(words: frozenset[str]) -> re.Pattern[str]:
    listed = _alternatives(words)
    return re.compile(
        rf"(\b(?:{listed})\b(?:\s?[:=]\s?[\"'„“]?|\s[\"„“]))([^\s,;\"'<>“”„]{{3,}})"
        rf"|(\b(?:{listed})\b\W{{1,4}}(?:[^\W\d_]{{1,8}}[\s:=]{{1,3}}){{0,3}})([^\s,;\"'<>“”„]{{4,}})",
        re.IGNORECASE,
    )


def _after_word(match: re.Match[str]) -> str:
    """Masks what follows a word for a password behind a colon or in quotation marks; else if it looks like no word."""
    before, value = match[1] or match[3], (match[2] or match[4]).rstrip(".?!:)")
    looks = match[1] or re.search(r"\d|[^\w.-]|[a-z][A-Z]", value)
    if not looks or not value or value.startswith("["):
        return match[0]
    return f"{before}[key]{(match[2] or match[4])[len(value) :]}"


def _number(match: re.Match[str]) -> str:
    digits = sum(map(str.isdigit, match[0]))
    if any(harmless.fullmatch(match[0].strip()) for harmless in (_ADDRESS, _DATE, _DECIMAL)):
        return match[0]
    prefixed = match[0].startswith(("+", "00"))
    return "[number]" if digits >= (WITH_PREFIX if prefixed else LONG_NUMBER) else match[0]
