"""Detects the language of a question, deterministically, among the configured ones.

Words, endings and diacritics that only one language has decide first, then the earlier conversation, then langdetect
with the profiles of the configured languages only: short technical questions mislead detectors of fifty languages, which
take "dog" for Portuguese.
"""

import re
import string
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from app.core.language import Language
from app.core.prompts import Prompts
from app.text.analysis import RUN, fold, spoken
from app.text.blocks import informal_sentences
from app.text.letters import LIKELY, Letters, profile_codes

# bounded, or ending where it could begin again, so that the time is linear
_CODE = re.compile(r"```.*?```|`[^`]*`|https?://\S+|\S{0,40}[/@\\=<>{}]\S*|\S{1,40}[._]\S+", re.DOTALL)
_CLAUSE = re.compile(r"[,;.!?:\n]+|\s[–—-]\s")
_ASKING = re.compile(r"(?<![^.!?\n])[^.!?\n]*+\?")
PUNCTUATION = string.punctuation + "„“”’…–—"
LEAST_INFLECTED = 5  # letters; in shorter words the ending is most of the word
ENOUGH = 2  # words; with so many, words of a language that lends words were pasted
MOST_CAPITALS = 0.7  # share of the words; with more, the text is a title or shouting
READ = 1000  # characters at either end; the question is before or after a pasted log


def without_stopwords(text: str, language: Language) -> str:
    """The question without its stopwords; the whole question if it has no other words.

    In a language with few pages, the index would take "how" and "the" for rare words. Acronyms stay: CI isn't "či".
    """
    return " ".join(_telling(text, language) or text.split())


def what_is_asked(text: str, language: Language) -> str:
    """The question without stopwords and words that only ask, such as "mean" and "setting"; they stay if there are no others."""
    telling = without_stopwords(text, language)
    return " ".join(_besides(language.questions.asking, telling.split())) or telling


def own_words(text: str, language: Language) -> str:
    """The words by which a question that points back says something new: `what_is_asked` without words that ask for more of the same;
    empty if there are no others.
    """
    return " ".join(_besides(language.questions.asking | language.questions.more, _telling(text, language)))


def _telling(text: str, language: Language) -> list[str]:
    words = text.split()
    acronyms = set() if _is_title(words) else {word for word in words if _is_acronym(word.strip(PUNCTUATION))}
    return [word for word in words if word in acronyms or _besides(language.traits.stopwords, [word])]


def _besides(left_out: Collection[str], words: Iterable[str]) -> list[str]:
    return [word for word in words if fold(word).strip(PUNCTUATION) not in left_out]


def subjects(text: str, language: Language) -> list[str]:
    """What a question joins, as "the difference between volumes and buckets" does: the telling words before and after "and", "or" or "vs". Empty
    if it joins nothing.
    """
    telling, parts = frozenset(what_is_asked(text, language).split()), list[list[str]]([[]])
    for word in text.split():
        if fold(word).strip(PUNCTUATION) in language.shared.and_or:
            parts.append([])
        elif word in telling:
            parts[-1].append(word.strip(PUNCTUATION))
    return [" ".join(part) for part in parts] if len(parts) > 1 and all(parts) else []


def is_smalltalk(text: str, language: Language) -> bool:
    """True if the text only greets, thanks or chats.

    A question that refers to something ("and how?", "can you do it?", "how it works") is no small talk.
    """
    if not any(map(str.isalnum, text)):
        return bool(text.strip())  # an emoji
    if not _chats(_letters(text), language):
        return False
    asked = [
        clause for question in _ASKING.findall(text) for clause in map(_letters, _CLAUSE.split(question)) if clause
    ]
    asked += [
        _letters(clause)
        for clause in _CLAUSE.split(text)
        if _letters((clause.split() or [""])[0]) & language.questions.question_words
    ]
    references = language.questions.references - language.questions.smalltalk
    return all(clause & language.questions.smalltalk and not clause & references for clause in asked)


def is_overview(text: str, language: Language) -> bool:
    """True if the text asks what the documentation as a whole is about, and about nothing in it."""
    words = _letters(text)
    return (
        bool(words & language.questions.whole)
        and words <= language.questions.whole | language.questions.covering | language.traits.stopwords
    )


class LanguageDetector:
    """Detects which of the configured languages a text is in."""

    def __init__(self, languages: Mapping[str, Language], default: str) -> None:
        self._languages = languages
        self._codes = tuple(languages)
        self._default = default
        # a word that two languages share tells nothing
        self._words = {
            code: language.traits.words
            - frozenset().union(*(o.traits.words for o in languages.values() if o is not language))
            for code, language in languages.items()
        }
        self._endings = {code: tuple(language.traits.endings) for code, language in languages.items()}
        self._lending = frozenset(code for code, language in languages.items() if language.traits.lends_words)
        self._with_nouns = frozenset(code for code, language in languages.items() if language.traits.nouns_capitalised)
        # loaded before the first question; without the profile of one language, others would match its texts
        known = len(self._codes) > 1 and {*self._codes}.issubset(profile_codes())
        self._letters = Letters(self._codes, folded=True) if known else None

    def detect(self, text: str, prior: str = "") -> str:
        """The language of the words; if none decides, `prior` (such as that of the conversation), else a guess."""
        return self.shown(text) or prior or self.guessed(text)

    def guessed(self, text: str) -> str:
        """The language that the letters are of; the default if they hardly speak against it."""
        words = " ".join(words_outside_code(both_ends(text)))
        if self._letters is None or self._letters.odds(words, (self._default,)) > -LIKELY:
            return self._default
        likely = self._letters.probabilities(words, self._codes)
        return max(likely, key=lambda code: likely[code])

    def shown(self, text: str) -> str:
        """The language that the words decide; empty if none does ("gpu quota namespace")."""
        if len(self._codes) == 1:
            return self._codes[0]
        text = RUN.sub(self._compound, _CODE.sub(" ", both_ends(text)))
        greeting = self._greeting(text)
        if (before := text.partition(": ")[0]) != text:  # an error message, a name or a list often follows a colon
            head = self._winner(before, greeting)
            if head and head not in self._lending:
                return head
        return self._winner(text, greeting)

    def _compound(self, found: re.Match[str]) -> str:
        """The word, or the compound if all its words are of one language ("je-li"); a blank for a name ("nvidia-smi")."""
        if "-" not in found[0]:
            return found[0]
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
        name = frozenset[str]()  # languages of the current name, whose next words can be lower case
        for word, named in _with_names(text):
            folded = fold(word).replace("'", "").replace("’", "")
            of = frozenset([code for code in self._codes if self._is_of(code, folded)])
            spelled = frozenset([code for code in self._codes if self._is_spelled_as(code, word)])
            name = spelled if named else name & (of | spelled)
            if named or name:  # it may be a noun
                nouns = frozenset[str]() if _is_acronym(word) else self._with_nouns
                of, spelled = of & nouns, spelled & nouns
            for code in of | spelled:
                votes[code] += (code in of) + (code in spelled)
        return votes

    def _greeting(self, text: str) -> str:
        """The language in which a clause is small talk; empty if there are none or several."""
        for clause in map(_letters, _CLAUSE.split(text)):
            codes = [code for code, language in self._languages.items() if _chats(clause, language)]
            if len(codes) == 1:
                return codes[0]
        return ""

    def _is_spelled_as(self, code: str, word: str) -> bool:
        """True if all non-ASCII letters of the word, at least one, are of this language."""
        if word.isascii():
            return False
        return self._languages[code].traits.letters.issuperset(
            letter for letter in word.lower() if not letter.isascii()
        )

    def _is_of(self, code: str, folded: str) -> bool:
        return folded in self._words[code] or (len(folded) >= LEAST_INFLECTED and folded.endswith(self._endings[code]))


def both_ends(text: str) -> str:
    """The text; of a long one, its beginning and end."""
    return text if len(text) <= 2 * READ else f"{text[:READ]}\n{text[-READ:]}"


def words_outside_code(text: str) -> list[str]:
    """The words of a text that are in its language: not those of code and addresses, nor with digits."""
    return spoken(_CODE.sub(" ", text))


def _letters(text: str) -> set[str]:
    return {fold(word) for word in spoken(text)}


def _chats(words: set[str], language: Language) -> bool:
    return (
        bool(words & language.questions.smalltalk) and words <= language.questions.smalltalk | language.traits.stopwords
    )


def _is_acronym(word: str) -> bool:
    return len(word) > 1 and word.isalpha() and word.isupper()


def _is_title(words: Sequence[str]) -> bool:
    """True if most words after the first have a capital, so that capitals mean nothing."""
    return sum([word[:1].isupper() for word in words[1:]]) > MOST_CAPITALS * (len(words) - 1)


def _with_names(text: str) -> Iterator[tuple[str, bool]]:
    """Each word, and whether it is written as a name: with a capital that isn't of a sentence start."""
    title = _is_title(words_outside_code(text))
    for sentence in [one for line in text.splitlines() for one in informal_sentences(line, ())]:
        for i, word in enumerate(words_outside_code(sentence)):
            yield word, not title and word[:1].isupper() and (i > 0 or _is_acronym(word))


def names_of(codes: Sequence[str], prompts: Prompts) -> str:
    """The languages as a prompt names them."""
    return ", ".join(f"{prompts.language(code).traits.name} ({code})" for code in codes)


def form_of(codes: Sequence[str], line: str = "…, …, …") -> str:
    """The lines that `parse` reads, as a prompt shows them."""
    return "\n".join(f"{code}: {line}" for code in codes)


def parse(answer: str, codes: Collection[str], longest: int) -> dict[str, str]:
    """The texts in lines like `code: a, b, c`, which models write with list marks, quotes, bold or JSON brackets."""
    texts: dict[str, str] = {}
    for line in answer.splitlines():
        match = re.match(r"\W*([a-z]{2,3})\W*[:=]\s*(.+)", line.strip())
        if match and match[1] in codes and match[1] not in texts:
            text = re.sub(r"[\[\]{}\"*]", " ", match[2]).strip(" ,;.…")
            if any(map(str.isalnum, text)):
                texts[match[1]] = text[:longest]
    return texts
