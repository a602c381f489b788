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
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from app.core.analysis import fold
from app.core.prompts import Language

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_CODE = re.compile(r"```.*?```|`[^`]*`|https?://\S+|\S*[/@\\=<>{}]\S*|\S+[._]\S+", re.DOTALL)
_APOSTROPHE = re.compile("['’]")
SEED = 0
_PUNCTUATION = string.punctuation + "„“”’…–—"
FEWEST_WORDS = 2  # on a single word the statistics are sure of anything
SHORTEST = 4  # letters: "gpu" and "s3" are of no language, and their rare letters would outvote the words
LEAST_INFLECTED = 5  # letters: below, an ending is most of a word, and names end as they like


def without_stopwords(text: str, language: Language) -> str:
    """The words of a question that say what it is about; all of them when it has no others.

    Where few pages are in a language, an index counts its "how" and "the" as rare and telling words.
    """
    words = text.split()
    telling = [word for word in words if fold(word).strip(_PUNCTUATION) not in language.stopwords]
    return " ".join(telling or words)


def is_smalltalk(text: str, language: Language) -> bool:
    """Whether the text greets, thanks or chats, and asks for nothing that a page could have."""
    words = {fold(word) for word in re.findall(r"[^\W\d_]+", text)}
    return bool(words & language.smalltalk) and words <= language.smalltalk | language.words


class LanguageDetector:
    """Tells which of the configured languages a text is in."""

    def __init__(self, languages: Mapping[str, Language], default: str) -> None:
        self._codes = tuple(languages)
        self._default = default
        # a word that two languages share tells nothing
        self._words = {
            code: language.words - frozenset().union(*(o.words for o in languages.values() if o is not language))
            for code, language in languages.items()
        }
        self._endings = {code: tuple(language.endings) for code, language in languages.items()}

    def detect(self, text: str, prior: str = "") -> str:
        """The text's language; without a sign of any, `prior` (as the language so far), then what its letters suggest."""
        shown = self.shown(text) or prior
        return shown or self._statistical([word for word in _words(text) if len(word) >= SHORTEST]) or self._default

    def shown(self, text: str) -> str:
        """The language that the text's words show; empty where none does ("gpu quota namespace")."""
        votes = self._votes(_words(text))
        best = max(votes, key=lambda code: votes[code])
        return best if votes[best] and list(votes.values()).count(votes[best]) == 1 else ""

    def _votes(self, words: list[str]) -> dict[str, int]:
        folded = [_APOSTROPHE.sub("", fold(word)) for word in words]
        votes = {code: sum(self._is_of(code, word) for word in folded) for code in self._codes}
        if "en" in votes:  # letters with diacritics speak against English as strongly as a word speaks for
            accented = sum(not word.isascii() for word in words)
            for code in votes:
                if code != "en":
                    votes[code] += accented
        return votes

    def _is_of(self, code: str, word: str) -> bool:
        return word in self._words[code] or (len(word) >= LEAST_INFLECTED and word.endswith(self._endings[code]))

    def _statistical(self, words: list[str]) -> str:
        if len(self._codes) == 1 or len(words) < FEWEST_WORDS:
            return ""
        from langdetect.lang_detect_exception import LangDetectException

        detector = self._factory.create()
        try:
            detector.append(fold(" ".join(words)))
            best = detector.get_probabilities()[0]
        except (LangDetectException, IndexError):  # nothing in the text that any profile knows
            return ""
        return str(best.lang)

    @cached_property
    def _factory(self) -> Any:
        from langdetect import PROFILES_DIRECTORY, DetectorFactory

        factory = DetectorFactory()
        factory.seed = SEED
        known = [code for code in self._codes if Path(PROFILES_DIRECTORY, code).is_file()]
        factory.load_json_profile([_folded_profile(code) for code in known])
        return factory


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(_CODE.sub(" ", text)) if not any(map(str.isdigit, word))]


def _folded_profile(code: str) -> str:
    """Letter statistics (langdetect's) of a language as if it were written without diacritics, as hurried people do."""
    from langdetect import PROFILES_DIRECTORY

    profile = json.loads(Path(PROFILES_DIRECTORY, code).read_text(encoding="utf-8"))
    counts: Counter[str] = Counter()
    for letters, count in profile["freq"].items():
        counts[fold(letters)] += count
    return json.dumps({**profile, "freq": counts})
