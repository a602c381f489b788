"""The language of a page: what it declares, unless its text is clearly in another language. Contradictions are reported."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from app.core.language import Vocabulary, vocabulary
from app.text.analysis import fold
from app.text.blocks import blocks
from app.text.letters import all_letters, profile_codes
from ingestion.crawl.language_tags import address_languages, is_tag, primary_language

MIN_WORDS = 40
"""Words that decide between configured languages against a declaration, whatever some parts of the text say."""

FEWEST_WORDS = 10
"""Words that decide against a declaration if no part of the text speaks against it."""

FEWEST_COMPARED = 8
"""Words that decide between two languages that a page declares."""

FEWEST_OF_SCRIPT = 4
"""Words that tell the language of a text that isn't in Latin letters."""

FEWEST_DIFFERENT = 4
"""Different words of a text that shows a language: one word again and again shows none."""

SURE = 0.95
SAMPLE = 250
"""Characters of each third of a long text that are examined: a foreign preface alone decides nothing."""

FEWEST_FUNCTION_WORDS = 0.15
"""The least share of function words in a text of the language."""

OBVIOUS = 0.25
"""The share of function words that decides without letters, which are slower, if no other language has a third of it."""

FOREIGN_LETTERS = 0.2
"""In a text with this share of letters of another script, Latin words are taken for names."""

_OWN_LETTERS = {"ja": re.compile("[\u3040-\u30ff]"), "ko": re.compile("[\u1100-\u11ff\uac00-\ud7a3]")}
"""Without any of these, Chinese characters are Chinese."""

_MARKUP = (
    re.compile(r"`[^`\n]*`"),
    re.compile(r"(?m)^[ \t]*\|.*$"),  # tables
    re.compile(r"!?\[([^\[\]]*+)\]\([^\[)]*+\)"),
    re.compile(r"<[^<>]*+>|https?://\S+|\{#[^{}]*+\}"),
)
_NAME = re.compile(r"(?a:(?<![\w.$:@~+-])[\w.$:@~+-]*+[/\\$@][\w./\\$:@~+-]*+)|(?<!\w)\w++(?:::\w*+)++")
"""A path, a mail address, a name with its namespace: no words of a language."""

_WORD_WITH_SIGN = re.compile(r"(?<!\S)[^\s/\\$@:]*+[/\\$@:]\S*+")
"""What such a name is in: looking for names in all other words takes twice as long."""

_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_OTHER_LETTER = re.compile(r"[^\W\d_A-Za-z\u00aa-\u02ff\u1e00-\u1eff]")
# of scripts without spaces, two letters are a word: Thai, Lao, Khmer, kana, Han
_WORD = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{2}|[^\W\d_]{2,}")

DEFAULT = "the default"


@dataclass(frozen=True, slots=True)
class PageLanguage:
    """The language of a page. `note` is for the report: a contradiction between the text and what is declared."""

    code: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Languages:
    """The configured languages, the default among them, and the `words` of these and of the shipped ones."""

    configured: Sequence[str]
    default: str
    words: Vocabulary = field(default_factory=vocabulary)

    @property
    def known(self) -> tuple[str, ...]:
        """The codes of all languages that a text can be in."""
        return tuple(dict.fromkeys((*self.configured, *self.words.codes, *profile_codes())))


def page_language(markdown: str, url: str, declared: Mapping[str, str], languages: Languages) -> PageLanguage:
    """The language of a page, which needn't be a configured one.

    Declarations in order: metadata of a document, front matter, the address, then `declared`. The text decides between
    them, and against all of them if it is clear.
    """
    declarations = _declarations(url, declared, languages)
    place, expected = declarations[0]
    code = _decided(prose(markdown), [code for _, code in declarations], languages, declared=place != DEFAULT)
    differs = code != expected and place != DEFAULT
    return PageLanguage(code, f"the text is {code}, {place} says {expected}" if differs else "")


def _decided(text: str, candidates: Sequence[str], languages: Languages, *, declared: bool) -> str:
    expected = candidates[0]
    plain = _plainly(text, languages)
    if plain == expected or (plain in languages.configured and not declared):
        return plain
    detected = detect(text, languages.known, languages.words, FEWEST_WORDS, languages.configured) or plain
    if not detected:
        return _likeliest(text, candidates) if len(set(candidates)) > 1 else expected
    if detected in candidates:
        return detected
    own, other = (code in languages.configured for code in (expected, detected))
    if own and other and _has_words(text, MIN_WORDS):
        return detected
    return detected if (own or other) and _is_throughout(text, detected, languages) else expected


def prose(markdown: str) -> str:
    """The words of a page without code, tables, links' addresses and markup."""
    text = "".join(piece for code, piece in blocks(markdown) if not code)
    for pattern in _MARKUP:
        text = pattern.sub(r"\1" if pattern.groups else " ", text)
    return _WORD_WITH_SIGN.sub(lambda found: _NAME.sub(" ", found[0]), text)


def detect(
    text: str,
    languages: Iterable[str],
    words: Vocabulary | None = None,
    least: int = MIN_WORDS,
    configured: Sequence[str] = (),
) -> str:
    """The language of a text of at least this many words when it is clear among these, else nothing.

    With `configured`, the likeliest other language if the text is clearly in none of these.
    """
    text = _own_script(text)
    if not _has_words(text, min(least, FEWEST_OF_SCRIPT) if _OTHER_LETTER.search(text) else least):
        return ""
    words = words or vocabulary()
    codes, sample = tuple(sorted(set(languages))), _sample(text)
    if by_words := _without_statistics(sample, codes, words):
        return by_words
    likely = _probabilities(sample, codes)
    others = frozenset(likely) - frozenset(configured) if configured else frozenset[str]()
    for close in (*((code,) for code in likely), *words.close, others):
        if sum(likely.get(code, 0.0) for code in close) >= SURE:
            return max(sorted(close), key=lambda code: likely.get(code, 0.0))
    return ""


def _probabilities(text: str, codes: Iterable[str]) -> Mapping[str, float]:
    """By language, the probability of a text by its letters. Chinese is one language in two scripts."""
    wanted = frozenset(codes)
    profiles = [
        code
        for code in profile_codes()
        if {code, code.partition("-")[0]} & wanted and (code not in _OWN_LETTERS or _OWN_LETTERS[code].search(text))
    ]
    likely: dict[str, float] = {}
    for profile, probability in all_letters().probabilities(text, profiles).items():
        code = profile.partition("-")[0]
        likely[code] = likely.get(code, 0.0) + probability
    return likely


def _likeliest(text: str, candidates: Sequence[str]) -> str:
    """The candidate that the letters of the text are most like; the first if they are like none."""
    if not _has_words(text, FEWEST_COMPARED):
        return candidates[0]
    likely = _probabilities(_sample(_own_script(text)), profile_codes())
    return max(candidates, key=lambda code: likely.get(code, 0.0))


def _plainly(text: str, languages: Languages) -> str:
    """The language, of those configured or shipped, that both words and letters of a text show; comparing all is slower."""
    text, words = _own_script(text), languages.words
    if not _has_words(text, FEWEST_OF_SCRIPT):
        return ""
    shares = _shares(_sample(text), words)
    if (obvious := _obvious(shares, words)) and _has_words(text, FEWEST_WORDS):
        return obvious
    detected = detect(text, {*languages.configured, *words.codes}, words, FEWEST_WORDS)
    like = {detected}.union(*(close for close in words.close if detected in close))
    return detected if any(shares.get(code, 0.0) >= FEWEST_FUNCTION_WORDS for code in like) else ""


def _obvious(shares: Mapping[str, float], words: Vocabulary) -> str:
    """The language that nearly all of the function words are of; empty if there is none, or others are close to it."""
    best = max(shares, key=lambda code: shares[code])
    alone = all(3 * share <= shares[best] for code, share in shares.items() if code != best)
    is_close = any(best in close for close in words.close)
    return best if shares[best] >= OBVIOUS and alone and not is_close else ""


def _is_throughout(text: str, language: str, languages: Languages) -> bool:
    """True if no part of the text speaks against the language: an untranslated half, or a list of names, proves nothing."""
    text = _own_script(text)
    if len({word.lower() for word in _WORD.findall(text)}) < FEWEST_DIFFERENT:
        return False
    like = {language}.union(*(close for close in languages.words.close if language in close))
    if language not in languages.configured:
        shares = _shares(_sample(text), languages.words)
        if any(shares.get(code, 0.0) >= FEWEST_FUNCTION_WORDS for code in languages.configured if code not in like):
            return False
        like |= frozenset(languages.known).difference(languages.configured)
    parts = _parts(text) if len(text) > 3 * SAMPLE else (text[: len(text) // 2], text[len(text) // 2 :])
    probabilities = [_probabilities(part, languages.known) for part in parts]
    return all(max(likely, key=lambda code: likely[code]) in like for likely in probabilities if likely)


def _own_script(text: str) -> str:
    """The text without Latin words if it is written in another script."""
    foreign = 0 if text.isascii() else len(_OTHER_LETTER.findall(text))
    if not foreign or foreign < FOREIGN_LETTERS * sum(map(str.isalpha, text)):
        return _OTHER_LETTER.sub(" ", text) if foreign else text
    return _LATIN.sub(" ", text)


def _has_words(text: str, least: int) -> bool:
    return sum(1 for _ in islice(_WORD.finditer(text), least)) == least


def _without_statistics(text: str, codes: Sequence[str], words: Vocabulary) -> str:
    """The language by function words, among those that langdetect doesn't know; empty for other languages."""
    unknown = [code for code in codes if code in words.function_words and code not in profile_codes()]
    if not unknown:
        return ""
    shares = {code: share for code, share in _shares(text, words).items() if code in codes}
    best = max(shares, key=lambda code: shares[code])
    return best if best in unknown and shares[best] >= FEWEST_FUNCTION_WORDS else ""


def _shares(text: str, words: Vocabulary) -> Mapping[str, float]:
    written = [fold(word) for word in _WORD.findall(text)]
    return {
        code: sum(word in own for word in written) / max(1, len(written)) for code, own in words.function_words.items()
    }


def _sample(text: str) -> str:
    """The beginning of the text, of its second and of its last third, each up to the end of a word."""
    return text if len(text) <= 3 * SAMPLE else " ".join(_parts(text))


def _parts(text: str) -> list[str]:
    starts = (0, len(text) // 3, len(text) - SAMPLE)
    pieces = [text[start : start + SAMPLE] for start in starts]
    return [piece.partition(" ")[2] or piece for piece in pieces]


def _declarations(url: str, declared: Mapping[str, str], languages: Languages) -> list[tuple[str, str]]:
    """(place, language) of all declarations, at least the default.

    A language that isn't configured, and that only the address names, comes after all others: its folder may mean
    something else.
    """
    places = dict(declared)
    surest = [(place, places.pop(place, "")) for place in ("metadata", "front matter")]
    stated = [
        (place, primary_language(tag, languages.words)) for place, tag in (*surest, *places.items()) if is_tag(tag)
    ]
    certain = {*languages.configured, *(code for _, code in stated)}
    named = address_languages(url, languages.words)
    first = [declaration for declaration in stated if declaration[0] in dict(surest)]
    ordered = [*first, *(("the address", code) for code in named if code in certain)]
    ordered += [declaration for declaration in stated if declaration not in first]
    return [
        *(ordered or [(DEFAULT, languages.default)]),
        *(("the address", code) for code in named if code not in certain),
    ]


def read_profiles() -> None:
    """Read the letters of all languages, which takes .2 s."""
    all_letters()
