"""The language of a question: deterministic, one of the configured ones.

Words, endings and diacritics that only one language has decide first, then the conversation so far, then langdetect
with the configured profiles only: short technical questions mislead detectors that know fifty languages (they said
Portuguese to "dog").
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from app.core.prompts import Language
from app.text.analysis import fold

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
# what may begin anywhere is bounded, or ends where it could begin again: else each beginning would be read to the end
_CODE = re.compile(r"```.*?```|`[^`]*`|https?://\S+|\S{0,40}[/@\\=<>{}]\S*|\S{1,40}[._]\S+", re.DOTALL)
_QUOTED = re.compile(r"„[^„“”\n]*[“”]|“[^“”\n]*”|«[^«»\n]*»|\"[^\"\n]*\"|(?<!\w)'[^'\n]+'(?!\w)")
_APOSTROPHE = re.compile("['’]")
_COMPOUND = re.compile(r"(?<![\w-])[^\W_]++(?:-[^\W_]++)++")
_SENTENCE = re.compile(r"[.!?:\n]{1,20}(?:\s|$)")
_CLAUSE = re.compile(r"[,;.!?:\n]+|\s[–—-]\s")
_ASKING = re.compile(r"(?<![^.!?\n])[^.!?\n]*+\?")
SEED = 0
_PUNCTUATION = string.punctuation + "„“”’…–—"
FEWEST_WORDS = 2  # on a single word the statistics are sure of anything
FEWEST_LETTERS = 12  # nor do two short names tell a language ("kubectl pods")
MOST_WORDS = 50  # more make the statistics slower, not surer
SHORTEST = 4  # letters: "gpu" and "s3" are of no language, and their rare letters would outvote the words
LEAST_INFLECTED = 5  # letters: below, an ending is most of a word, and names end as they like
ENOUGH = 2  # words: whoever writes so many of a language has pasted those of one that lends its words
MOST_CAPITALS = 0.7  # of the words: beyond, the capitals are those of a title or of shouting
READ = 1000  # characters at either end: the question is above a pasted log or below it


def without_stopwords(text: str, language: Language) -> str:
    """The words of a question that say what it is about; all of them when it has no others.

    Where few pages are in a language, an index counts its "how" and "the" as rare and telling words. An acronym isn't
    one of them: CI is no "či".
    """
    words = text.split()
    acronyms = set() if _is_title(words) else {word for word in words if _is_acronym(word.strip(_PUNCTUATION))}
    telling = [w for w in words if w in acronyms or fold(w).strip(_PUNCTUATION) not in language.stopwords]
    return " ".join(telling or words)


def is_smalltalk(text: str, language: Language) -> bool:
    """Whether the text greets, thanks or chats, and asks for nothing that a page could have.

    A clause with a question mark that only points to something ("and how?", "can you do it?") asks for what was talked
    of before.
    """
    if not any(map(str.isalnum, text)):
        return bool(text.strip())  # a thumb up
    if not _chats(_letters(text), language):
        return False
    asked = [clause for each in _ASKING.findall(text) for clause in map(_letters, _CLAUSE.split(each)) if clause]
    return all(clause & language.smalltalk and not clause & language.references for clause in asked)


class LanguageDetector:
    """Tells which of the configured languages a text is in."""

    def __init__(self, languages: Mapping[str, Language], default: str) -> None:
        self._languages = languages
        self._codes = tuple(languages)
        self._default = default
        # a word that two languages share tells nothing
        self._words = {
            code: language.words - frozenset().union(*(o.words for o in languages.values() if o is not language))
            for code, language in languages.items()
        }
        self._endings = {code: tuple(language.endings) for code, language in languages.items()}
        self._lending = frozenset(code for code, language in languages.items() if language.lends_words)
        self._with_nouns = frozenset(code for code, language in languages.items() if language.nouns_capitalised)
        self._factory = _profiles(self._codes) if len(self._codes) > 1 else None  # loaded before anybody waits

    def detect(self, text: str, prior: str = "") -> str:
        """The text's language; without a sign of any, `prior` (as the language so far), then what its letters suggest."""
        return self.shown(text) or prior or self.guessed(text)

    def guessed(self, text: str) -> str:
        """What the letters of a text suggest, else the default."""
        return self._statistical(_words(both_ends(text))) or self._default

    def shown(self, text: str) -> str:
        """The language that the text's words show; empty where none does ("gpu quota namespace")."""
        if len(self._codes) == 1:
            return self._codes[0]
        text = _COMPOUND.sub(self._compound, _CODE.sub(" ", both_ends(text)))
        own = _QUOTED.sub(" ", text)
        own = own if _words(own) else text  # all of it may be in quotation marks
        greeting = self._greeting(own)
        if (before := own.partition(": ")[0]) != own:  # behind a colon comes an error message, a name, a list
            head = self._winner(before, greeting)
            if head and head not in self._lending:
                return head
        return self._winner(own, greeting)

    def _compound(self, found: re.Match[str]) -> str:
        """Words with hyphens between them where all are of one language ("je-li"); else a name ("nvidia-smi"): nothing."""
        parts = [fold(part) for part in found[0].split("-")]
        return found[0] if any(all(self._is_of(code, part) for part in parts) for code in self._codes) else " "

    def _winner(self, text: str, greeting: str) -> str:
        votes = self._votes(text)
        if greeting:
            votes[greeting] += 1
        if enough := [code for code in votes if code not in self._lending and votes[code] >= ENOUGH]:
            votes = {code: votes[code] for code in enough}
        best = max(votes, key=lambda code: votes[code])
        return best if votes[best] and list(votes.values()).count(votes[best]) == 1 else ""

    def _votes(self, text: str) -> dict[str, int]:
        votes = dict.fromkeys(self._codes, 0)
        name = frozenset[str]()  # the languages of the name that we are in: its further words may be small
        for i, (word, named) in enumerate(_with_names(text)):
            folded = _APOSTROPHE.sub("", fold(word))
            of = frozenset(code for code in self._codes if self._is_of(code, folded))
            spelled = frozenset(code for code in self._codes if self._is_spelled_as(code, word))
            name = spelled if named else name & (of | spelled)
            if named or name:  # which may be a noun
                nouns = frozenset[str]() if _is_acronym(word) else self._with_nouns
                of, spelled = of & nouns, spelled & nouns
            # an error message may follow the first word, but no question begins with one of its words by chance
            first = 2 if i == 0 and len(word) >= LEAST_INFLECTED else 1
            for code in of | spelled:
                votes[code] += (first if folded in self._words[code] else code in of) + (code in spelled)
        return votes

    def _greeting(self, text: str) -> str:
        """The only language in which a clause of the text is small talk."""
        for clause in map(_letters, _CLAUSE.split(text)):
            codes = [code for code, language in self._languages.items() if _chats(clause, language)]
            if len(codes) == 1:
                return codes[0]
        return ""

    def _is_spelled_as(self, code: str, word: str) -> bool:
        """Whether the word has letters that this language has and English hasn't."""
        if word.isascii():
            return False
        return self._languages[code].letters.issuperset(letter for letter in word.lower() if not letter.isascii())

    def _is_of(self, code: str, folded: str) -> bool:
        return folded in self._words[code] or (len(folded) >= LEAST_INFLECTED and folded.endswith(self._endings[code]))

    def _statistical(self, words: list[str]) -> str:
        words = [word for word in words if len(word) >= SHORTEST][:MOST_WORDS]
        if self._factory is None or len(words) < FEWEST_WORDS or sum(map(len, words)) < FEWEST_LETTERS:
            return ""
        return likeliest(self._factory, fold(" ".join(words)))[0]


def both_ends(text: str) -> str:
    """As much of a text as tells what is asked and in what language: of a long one beginning and end."""
    return text if len(text) <= 2 * READ else f"{text[:READ]}\n{text[-READ:]}"


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(_CODE.sub(" ", text)) if not any(map(str.isdigit, word))]


def _letters(text: str) -> set[str]:
    return {fold(word) for word in re.findall(r"[^\W\d_]+", text)}


def _chats(words: set[str], language: Language) -> bool:
    return bool(words & language.smalltalk) and words <= language.smalltalk | language.stopwords


def _is_acronym(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word.isupper()


def _is_title(words: Sequence[str]) -> bool:
    """Whether most words behind the first have a capital, so that none of them says anything."""
    return sum(word[:1].isupper() for word in words[1:]) > MOST_CAPITALS * (len(words) - 1)


def _with_names(text: str) -> Iterator[tuple[str, bool]]:
    """Each word, and whether it is written as a name: with a capital that isn't owed to the beginning of a sentence."""
    title = _is_title(_words(text))
    for sentence in _SENTENCE.split(text):
        for i, word in enumerate(_words(sentence)):
            yield word, not title and word[:1].isupper() and (i > 0 or _is_acronym(word))


def likeliest(statistics: Any, text: str) -> tuple[str, float]:
    """The language of a text by `letter_statistics`, and its probability of 0..1; empty where no letters tell any."""
    from langdetect.lang_detect_exception import LangDetectException

    detector = statistics.create()
    try:
        detector.append(text)
        best = detector.get_probabilities()[0]
    except (LangDetectException, IndexError):  # nothing in the text that any profile knows
        return "", 0.0
    return str(best.lang), float(best.prob)


def letter_statistics(profiles: Iterable[str]) -> Any:
    """Langdetect's factory of detectors that know these profiles; the same text always gets the same language."""
    from langdetect import DetectorFactory

    factory = DetectorFactory()
    factory.seed = SEED
    factory.load_json_profile(list(profiles))
    return factory


def profiles_of(codes: Iterable[str]) -> list[str]:
    """Langdetect's profiles, as JSON, of those languages that it has one of."""
    from langdetect import PROFILES_DIRECTORY

    files = (Path(PROFILES_DIRECTORY, code) for code in codes)
    return [file.read_text(encoding="utf-8") for file in files if file.is_file()]


@cache
def has_profile(code: str) -> bool:
    """Whether langdetect knows the language."""
    return bool(profiles_of([code]))


@cache
def _profiles(codes: tuple[str, ...]) -> Any:
    """The letter statistics of these languages; None where one has none, as the others would be found in its texts."""
    profiles = profiles_of(codes)
    return letter_statistics(map(_folded_profile, profiles)) if len(profiles) == len(codes) else None


def _folded_profile(text: str) -> str:
    """The profile of a language as if it were written without diacritics, as hurried people do."""
    profile = json.loads(text)
    counts: Counter[str] = Counter()
    for letters, count in profile["freq"].items():
        counts[fold(letters)] += count
    return json.dumps({**profile, "freq": counts})
