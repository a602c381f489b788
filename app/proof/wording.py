"""The words by which answers are judged: which of them say something, and what a clause denies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from app.core.language import Language
from app.proof.reading import KEPT, clauses_of, folded, stem_of

MOST_WORDS = 50_000  # that are kept
SHORTEST = 4  # letters of a word that says something
LONGEST = 5  # letters of a stem in clauses, which tell forms of a word apart less than whole passages
SHORTEST_DENIED = 3  # of a word that can be denied
LONGEST_OTHER = 4  # letters of words that only look denied, as the Czech "nebo"
SCOPE = 3  # words behind a denial that it can deny
DENYING = ("n't", "n’t")


class Wording:
    """The words of all languages of a service; made once.

    `plain` say nothing of their own: function words, and what answers are made of. `numbers` are small ones in words, of which
    `digits` makes digits.
    """

    def __init__(self, languages: Mapping[str, Language]) -> None:
        self.languages = languages
        parts = ((known.traits.stopwords, known.replies.plain, known.questions.asking) for known in languages.values())
        self.plain = frozenset[str]().union(*(words for part in parts for words in part))
        self.telling = lru_cache(MOST_WORDS)(self._telling)
        self.digits = lru_cache(MOST_WORDS)(self._digits)
        self.denials = {code: Denials(known, self.plain) for code, known in languages.items()}
        self.numbers: dict[str, re.Pattern[str]] = {}
        for known in languages.values():
            for number, words in (known.dates.get("numbers", {}) | known.dates.get("large_numbers", {})).items():
                before = f"{self.numbers[number].pattern}|" if number in self.numbers else ""
                self.numbers[number] = re.compile(rf"{before}\b(?:{words})\b")

    def _digits(self, word: str) -> str:
        """The digits of a small number in words; any other word itself, and `one`, which may be no number."""
        small = folded(word)
        several = ((number, pattern) for number, pattern in self.numbers.items() if number != "1")
        return next((number for number, pattern in several if pattern.fullmatch(small)), word)

    def _telling(self, word: str) -> str:
        """The stem of a word that says something; "" for others."""
        if word.isupper():
            return stem_of(word)
        small = folded(word)
        tells = len(small) >= SHORTEST and small not in self.plain and not small.endswith(DENYING)
        return stem_of(small) if tells else ""


@dataclass(frozen=True, slots=True)
class Polarity:
    """What a clause says and denies, as stems; a denied word has that of the word itself.

    `said` are words that say something, `words` all but function words. `heads` are denied words and the next ones behind
    words that deny, `firm` only these, `denied` also a few words more, `only` those behind "only". A clause contradicts only one of
    the same `limits`, a `fragment` ("but not in ...") only one of the same words, and a `conditional` one ("if ...") none.
    """

    said: AbstractSet[str]
    words: AbstractSet[str]
    heads: AbstractSet[str]
    firm: AbstractSet[str]
    denied: AbstractSet[str]
    only: AbstractSet[str]
    limits: AbstractSet[str]
    fragment: bool
    conditional: bool


class Denials:
    """What is denied in a language. Results are kept, because the same words and passages come again and again."""

    def __init__(self, language: Language, plain: frozenset[str]) -> None:
        self._plain, self._stopwords, self._and_or = plain, language.traits.stopwords, language.shared.and_or
        self._negations, self._limiting = language.replies.negations, language.replies.limiting
        self._conditional = language.replies.conditional
        self._only = frozenset(map(folded, language.replies.only))
        self._little = self._negations | self._limiting | self._only
        self._opposites, self._joining = language.replies.opposites, language.replies.contrast | self._and_or
        self._prefix = next((word[:-1] for word in self._negations if word.endswith("-")), "")
        self._superlative = language.replies.superlative
        self._name = lru_cache(MOST_WORDS)(self._named)
        self.kept = lru_cache(KEPT)(self.clauses)
        self.nothing = self._of(())

    def clauses(self, text: str) -> tuple[tuple[Polarity, Sequence[Polarity]], ...]:
        """The clauses of a text, each with all those of its sentence."""
        sentences = (
            [self._of(clause) for clause in clauses if clause]
            for clauses in clauses_of(text, self._and_or, self._conditional)
        )
        return tuple((one, clauses) for clauses in sentences for one in clauses)

    def _of(self, words: Sequence[str]) -> Polarity:
        """What a clause of these words says and denies."""
        own = [(word, name) for word in words if (name := self._name(word)) and word not in self._little]
        at, double = 0, False
        heads, firm, denied, only = set[str](), set[str](), set[str](), set[str]()
        for word in words:
            if self._denies(word):
                double = bool(own[at:]) and own[at][0] in self._opposites  # "not disabled"
                next_one = {name for _, name in own[at : at + 1] or own[at - 1 :][: word is words[-1]]}
                firm |= next_one
                if not double:
                    heads |= next_one
                    telling = islice((i for i in range(at, len(own)) if self._says(own[i][0])), SCOPE)
                    denied |= {name for _, name in own[at : max(telling, default=-1) + 1]}
            elif word in self._only:
                only |= {name for _, name in own[at : at + 1]}
            elif self._name(word) and word not in self._little:
                at += 1
                if self._base(word) != word and not double:
                    heads.add(self._name(word))
                double = False
        first = next((at for at, word in enumerate(words) if word not in self._joining), len(words))
        # "but not in ..." says what else is denied, not of what
        fragment = first + 1 < len(words) and self._denies(words[first]) and not self._name(words[first + 1])
        said, limits = {name for word, name in own if self._says(word)}, self._limiting & set(words)
        conditional = not self._conditional.isdisjoint(words)
        return Polarity(
            said, {name for _, name in own}, heads, firm, denied | heads, only, limits, fragment, conditional
        )

    def _denies(self, word: str) -> bool:
        """True if the word denies what follows it."""
        own = word in self._negations or word.endswith(DENYING)
        return own or (self._is_prefixed(word) and not self._name(word))

    def _base(self, word: str) -> str:
        """The word that a word denies, else the word itself."""
        return word.removeprefix(self._prefix) if self._is_prefixed(word) else self._opposites.get(word, word)

    def _named(self, word: str) -> str:
        """The stem of a word that can be denied; also of one that says little."""
        bare = self._base(word)
        known = bare in self._stopwords or bare.endswith(DENYING) or len(bare) < SHORTEST_DENIED
        return "" if known else stem_of(bare)[:LONGEST]

    def _says(self, word: str) -> bool:
        return self._base(word) not in self._plain

    def _is_prefixed(self, word: str) -> bool:
        longer = bool(self._prefix) and word.startswith(self._prefix) and len(word) > LONGEST_OTHER
        only_looks_so = bool(self._superlative) and word.startswith(self._superlative)
        return longer and not only_looks_so and word not in self._plain and word not in self._negations
