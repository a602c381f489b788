"""What a reply of a helper call is worth: whether a question needs rewriting, whether a reply rewrites it, and which keywords it has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

from app.core.language import Language
from app.core.prompts import Prompts
from app.core.turn import Turn
from app.pipeline.calls import LONGEST_ANSWER
from app.pipeline.conversation import MOST_REFERRING
from app.proof.check import CITATION
from app.text.analysis import SHORTEST_STEM, fold, folded, root, roots, words
from app.text.blocks import informal_sentences
from app.text.language import parse, without_stopwords

SOME = 0.25  # share of the words that say something, which keywords have at least; of a good model's, one reply in 20 hasn't
MOST = 0.5  # share of the words that say something, which a rewrite has more of
LONGEST_QUESTION = 600  # characters
TOKENS_OF_REWRITE = 50  # beside a token for each character of the question, as some languages need
TOKENS_OF_KEYWORDS = 60  # of a language
MOST_KEYWORDS = 10  # of a language
LONGEST_KEYWORD = 4  # words; more are a sentence


def needs_rewriting(turn: Turn, prompts: Prompts) -> bool:
    """True if the question refers to an earlier one, or has hardly more than keywords; any other says what it asks."""
    return (
        bool(turn.asked.referred)
        or len(_telling(turn.asked.text, prompts.language(turn.asked.language))) <= MOST_REFERRING
    )


def tokens_of_rewrite(turn: Turn) -> int:
    """How many tokens a rewrite may have: a model that needs more is answering."""
    return min(LONGEST_ANSWER, TOKENS_OF_REWRITE + len(turn.asked.text))


def fault_of_rewrite(rewrite: str, turn: Turn, prompts: Prompts) -> str:
    """What a rewrite of the question does that no rewrite does; empty if it is a rewrite.

    A rewrite asks. It has the names and numbers of the question and most of its words, and most of its own words are from the question
    or the conversation: weak models answer the question, or ask another one. To a question that stands alone, it adds no word of the
    conversation.
    """
    question, language = turn.asked.text, prompts.language(turn.asked.language)
    if not rewrite:
        return "is empty"
    if len(rewrite) > max(LONGEST_QUESTION, 2 * len(question)):
        return "is too long"
    if not _asks(rewrite, language):
        return "states something"
    small = fold(rewrite)
    if missing := next((name for name in _names(question) if fold(name) not in small), ""):
        return f"lacks {missing}"
    return _fault_of_words(rewrite, turn, language)


def _fault_of_words(rewrite: str, turn: Turn, language: Language) -> str:
    asked, said = (_substance(text, language) for text in (turn.asked.text, rewrite))
    if _shared(asked, said) < MOST * len(asked):
        return "asks something else"
    own, before = roots(turn.asked.text), roots(" ".join(message.content for message in turn.request.messages[:-1]))
    if _shared(said, own | before) < MOST * len(said):
        return "adds too much"
    added = [word for word in said if not _shared([word], own)]
    return "" if turn.asked.referred or not _shared(added, before) else "brings an earlier subject"


def new_in(text: str, question: str, language: Language) -> Literal["nothing", "again", "new"]:
    """Whether a text has words beside citations, and any that the question hasn't: weak models cite and say nothing, or ask again."""
    written = words(CITATION.sub("", f"{text}]"))  # the last citation may be half written
    said = {root(word) for word in written if folded(word) not in language.traits.stopwords}
    if _shared(said, roots(question)) < len(said):
        return "new"
    return "again" if written else "nothing"


def keywords_in(reply: str, codes: Sequence[str]) -> dict[str, str]:
    """The keywords of a reply by language, from lines like `code: a, b, c`; empty if it has sentences in their place."""
    return {
        code: text
        for code, line in parse(reply, codes, len(reply)).items()
        if len(informal_sentences(line, ())) == 1 and (text := listed(line.replace(";", ",").split(",")))
    }


def listed(items: Iterable[str]) -> str:
    """At most `MOST_KEYWORDS` different keywords in one line; empty if most of the items are too long to be any."""
    unlike = {fold(item): item for item in map(str.strip, items) if any(map(str.isalnum, item))}
    short = [item for item in unlike.values() if len(item.split()) <= LONGEST_KEYWORD]
    return ", ".join(short[:MOST_KEYWORDS]) if len(short) > MOST * len(unlike) else ""


def speak_of(keywords: Mapping[str, str], question: str, language: Language) -> bool:
    """True if keywords have some of what the question asks, or none is in its language. What others find says nothing of the question."""
    if language.code not in keywords:
        return True
    asked = _substance(question, language)
    return _shared(asked, roots(" ".join(keywords.values()))) >= SOME * len(asked)


def _names(text: str) -> list[str]:
    """What is written as no word of a language is: numbers, commands, options, files and names with capitals inside."""
    return [word for word in (word.strip("?!.,;:()\"'`„“") for word in text.split()) if not _is_word(word)]


def _is_word(text: str) -> bool:
    parts = filter(None, text.replace("’", "-").replace("'", "-").split("-"))
    plain = all(part.isalpha() and (part.isupper() or part[1:] == part[1:].lower()) for part in parts)
    return plain and not text.startswith("-")


def _telling(text: str, language: Language) -> list[str]:
    return without_stopwords(text, language).split()


def _substance(text: str, language: Language) -> frozenset[str]:
    """The roots of the words of a text that say something."""
    return roots(" ".join(_telling(text, language)))


def _shared(some: Collection[str], others: Collection[str]) -> int:
    """How many of some roots begin as one of the others, or the other way round: "omez" and "omeze" are of one word."""
    long = [other for other in others if len(other) >= SHORTEST_STEM]
    return sum(
        one in others
        or (len(one) >= SHORTEST_STEM and any(one.startswith(other) or other.startswith(one) for other in long))
        for one in some
    )


def _asks(text: str, language: Language) -> bool:
    first = words(fold(text))[:1]
    return "?" in text or not language.questions.question_words.isdisjoint(first)
