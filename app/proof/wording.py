"""The words by which answers are judged: which of them say something, and what a clause denies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

from app.core.language import Language
from app.proof.reading import KEPT, clauses_of, folded, stem_of, words_in

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


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a clause: `name` is the stem of what can be denied, without a prefix that denies, and of an opposite.

    It `counts` if it is neither a function word nor one that denies or limits, and `turns` if it changes what the clause states.
    """

    text: str
    name: str
    denies: bool
    counts: bool
    says: bool
    turns: bool


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
        self._word = lru_cache(MOST_WORDS)(self._read)
        self.kept = lru_cache(KEPT)(self.clauses)
        self.nothing = self._of(())

    def read(self, text: str) -> tuple[AbstractSet[str], bool]:
        """The names of the words of a text, and whether any of them changes what it states."""
        words = [self._word(folded(word)) for word in words_in(text)]
        return {word.name for word in words}, any(word.turns for word in words)

    def clauses(self, text: str) -> tuple[tuple[Polarity, Sequence[Polarity]], ...]:
        """The clauses of a text, each with all those of its sentence."""
        sentences = (
            [self._of(clause) for clause in clauses if clause]
            for clauses in clauses_of(text, self._and_or, self._conditional)
        )
        return tuple((one, clauses) for clauses in sentences for one in clauses)

    def _of(self, words: Sequence[str]) -> Polarity:
        """What a clause of these words says and denies."""
        read = [*map(self._word, words)]
        own = [word for word in read if word.counts]
        heads, firm, denied, only = set[str](), set[str](), set[str](), set[str]()
        at, double = 0, False
        for word in read if any(word.turns for word in read) else ():
            if word.denies:
                double = bool(own[at:]) and own[at].text in self._opposites  # "not disabled"
                next_one = {one.name for one in own[at : at + 1] or own[at - 1 :][: word is read[-1]]}
                firm |= next_one
                if not double:
                    heads |= next_one
                    telling = islice((i for i in range(at, len(own)) if own[i].says), SCOPE)
                    denied |= {one.name for one in own[at : max(telling, default=-1) + 1]}
            elif word.text in self._only:
                only |= {one.name for one in own[at : at + 1]}
            elif word.counts:
                at += 1
                if word.turns and not double:
                    heads.add(word.name)
                double = False
        first = next((at for at, word in enumerate(words) if word not in self._joining), len(words))
        # "but not in ..." says what else is denied, not of what
        fragment = first + 1 < len(words) and read[first].denies and not read[first + 1].name
        limits, conditional = self._limiting.intersection(words), not self._conditional.isdisjoint(words)
        said, names = {one.name for one in own if one.says}, {one.name for one in own}
        return Polarity(said, names, heads, firm, denied | heads, only, limits, fragment, conditional)

    def _read(self, text: str) -> _Word:
        prefixed = bool(self._prefix) and text.startswith(self._prefix) and len(text) > LONGEST_OTHER
        only_looks_so = bool(self._superlative) and text.startswith(self._superlative)
        prefixed = prefixed and not only_looks_so and text not in self._plain and text not in self._negations
        base = text.removeprefix(self._prefix) if prefixed else self._opposites.get(text, text)
        little = base in self._stopwords or base.endswith(DENYING) or len(base) < SHORTEST_DENIED
        name = "" if little else stem_of(base)[:LONGEST]
        denies = text in self._negations or text.endswith(DENYING) or (prefixed and not name)
        counts = bool(name) and text not in self._little
        return _Word(text, name, denies, counts, base not in self._plain, denies or base != text or text in self._only)
