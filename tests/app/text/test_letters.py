"""Letters tell languages apart, the same way for questions, answers and pages."""

import pytest

from app.core.prompts import load_prompts
from app.text.language import LanguageDetector
from app.text.letters import Letters, all_letters, profile_codes

TEXTS = {
    "cs": "Svazek připojíte příkazem, který najdete v přehledu.",
    "sk": "Zväzok pripojíte príkazom, ktorý nájdete v prehľade.",
    "en": "You attach a volume with the command that is shown in the overview.",
    "uk": "Том підключається командою, яка наведена в огляді.",
    "ne": "यो सेवा सबै प्रयोगकर्ताहरूका लागि उपलब्ध छ र यसलाई सजिलै चलाउन सकिन्छ।",
    "ja": "このコマンドでボリュームを接続します。",
    "zh": "您可以使用概览中显示的命令来挂载卷。",
}


def likeliest(text: str) -> str:
    likely = all_letters().probabilities(text, profile_codes())
    return max(likely, key=lambda code: likely[code])


@pytest.mark.parametrize("code", TEXTS)
def test_a_sentence_is_told_among_all_languages(code: str) -> None:
    assert likeliest(TEXTS[code]).partition("-")[0] == code
    assert all_letters().odds(TEXTS[code], [one for one in profile_codes() if one.partition("-")[0] == code]) > 10


def test_odds_are_the_same_each_time_and_the_other_way_round_negative() -> None:
    pair = Letters(("cs", "en"))
    odds = pair.odds(TEXTS["cs"], ("cs",))
    assert odds > 50
    assert pair.odds(TEXTS["cs"], ("en",)) == -odds
    assert {Letters(("cs", "en")).odds(TEXTS["cs"], ("cs",)) for _ in range(3)} == {odds}


def test_what_no_profile_knows_has_no_odds() -> None:
    assert all_letters().odds("", ("cs",)) == 0
    assert all_letters().odds("512 ???", ("cs",)) == 0
    assert all_letters().probabilities("512 ???", profile_codes()) == {}
    assert all_letters().odds(TEXTS["cs"], ("tlh",)) == 0
    assert all_letters().odds(TEXTS["cs"], profile_codes()) == 0
    assert Letters(("cs", "tlh")).codes == ("cs",)


def test_a_text_of_two_languages_leaves_a_doubt_however_long_it_is() -> None:
    half = f"{TEXTS['cs']} {TEXTS['sk']} " * 20
    assert max(all_letters().probabilities(half, ("cs", "sk")).values()) < 0.95
    assert max(all_letters().probabilities(TEXTS["cs"] * 20, ("cs", "sk")).values()) > 0.99


def test_letters_without_diacritics_are_told_by_folded_profiles() -> None:
    folded = "svazek pripojite prikazem, ktery najdete v prehledu"
    assert Letters(("cs", "en"), folded=True).odds(folded, ("cs",)) > 50
    assert Letters(("cs", "en"), folded=True).odds(TEXTS["cs"], ("cs",)) > 50


def test_one_word_shows_the_language_of_a_question_if_its_letters_are_sure() -> None:
    """Two words and twelve letters were needed; names in few letters still show none."""
    detector = LanguageDetector(load_prompts(("cs", "en")).languages, "en")
    czech = LanguageDetector(load_prompts(("cs", "en")).languages, "cs")
    assert [detector.detect(word) for word in ("zalohovani", "kvota", "uloziste")] == ["cs"] * 3
    assert [czech.detect(word) for word in ("singularity", "permissions", "scheduling")] == ["en"] * 3
    assert [one.detect("gpu mig") for one in (detector, czech)] == ["en", "cs"]
