"""What is asked, as stems and as tokens with their weights: by these, sections are chosen, quoted and marked."""

from __future__ import annotations

from app.core.language import Language
from app.core.turn import Turn
from app.text.analysis import analyse, beginnings
from app.text.language import what_is_asked
from app.text.synonyms import reworded
from app.text.units import rarity


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


async def weights_of(turn: Turn, language: Language) -> dict[str, float]:
    """The rarity in the index of each token that is asked for. Where the question has synonyms, no page needs its words that no page has."""
    tokens, generation = asked_tokens(turn, language), turn.generation
    if generation is None:  # steps can run without an index
        return dict.fromkeys(tokens, 1.0)
    counts = await generation.frequencies(tokens)
    if turn.asked.synonyms:
        tokens = [token for token in tokens if counts.get(token)] or tokens
    return {token: rarity(counts.get(token, 0), generation.info.chunks) for token in tokens}
