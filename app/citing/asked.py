"""What is asked, as stems and as tokens with their weights: by these, sections are chosen, quoted and marked."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from app.core.language import Language
from app.core.turn import Turn
from app.text.analysis import analyse, beginnings
from app.text.language import own_words, what_is_asked
from app.text.synonyms import reworded
from app.text.units import rarity

CARRIED = 0.3
"""The weight of what is carried over from an earlier question, relative to the new one: it says what the new one is about."""


def asked_stems(turn: Turn) -> frozenset[str]:
    """The stems of the question, the question with synonyms, the refined question and all keywords."""
    keywords = (*turn.keywords.values(), *turn.more_keywords.values())
    refined = (turn.refined.text,) if turn.refined else ()
    return beginnings(" ".join((turn.asked.in_context, *reworded(turn.asked), *refined, *keywords)))


def asked_tokens(turn: Turn, language: Language) -> list[str]:
    """The tokens of the question, also with synonyms, of the refined question and all keywords; none of a question about all the documentation."""
    if turn.overview:
        return []
    texts = {language.code: [turn.asked.in_context, *reworded(turn.asked)]}
    if turn.refined:
        texts[language.code].append(turn.refined.text)
    for code, text in (*turn.keywords.items(), *turn.more_keywords.items()):
        texts.setdefault(code, []).append(text)
    asked = (analyse(what_is_asked(" ".join(own), language), code) for code, own in texts.items())
    return list(dict.fromkeys(token for tokens in asked for token in tokens))


class Weights(dict[str, float]):
    """The weight of each token that is asked for. Those of a question that points back to another one are `carried`, if its own words
    say something new: they tell what it is about, and not what it asks.
    """

    def __init__(self, weights: Mapping[str, float], carried: AbstractSet[str] = frozenset()) -> None:
        super().__init__(weights)
        self.carried = carried

    @property
    def own(self) -> Weights:
        """The weights without those of carried tokens; all of them if there are no others."""
        new = {token: weight for token, weight in self.items() if token not in self.carried}
        return Weights(new) if self.carried and new else self


async def weights_of(turn: Turn, language: Language) -> Weights:
    """The rarity in the index of each token that is asked for, of carried ones a part of it. Where the question has synonyms, no page needs
    its words that no page has.
    """
    tokens, generation, carried = asked_tokens(turn, language), turn.generation, _carried(turn, language)
    rare = dict.fromkeys(tokens, 1.0)
    if generation is not None:  # steps can run without an index
        counts = await generation.frequencies(tokens)
        if turn.asked.synonyms:
            tokens = [token for token in tokens if counts.get(token)] or tokens
        rare = {token: rarity(counts.get(token, 0), generation.info.chunks) for token in tokens}
    return Weights({token: weight * (CARRIED if token in carried else 1) for token, weight in rare.items()}, carried)


def _carried(turn: Turn, language: Language) -> frozenset[str]:
    """The tokens that say least of what is asked: those of the earlier question alone, or of one that only asks for more of the same."""
    if not turn.asked.referred:
        return frozenset()
    texts = turn.asked.referred, turn.asked.text
    earlier, own = (frozenset(analyse(what_is_asked(text, language), language.code)) for text in texts)
    return earlier - own if own_words(turn.asked.text, language) else own - earlier
