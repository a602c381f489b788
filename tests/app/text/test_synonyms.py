"""Synonyms of a site: which phrases of a question have some, its wordings with them, and what is wrong in their file."""

import pytest

from app.core.errors import SettingsError
from app.text.synonyms import parse_synonyms, said_in, wordings

SYNONYMS = parse_synonyms(
    """
"wifi" = ["wireless", "WLAN"]
"wi-fi" = ["wireless"]
"graphics card" = ["GPU"]
"card" = ["badge"]
"notebook" = ["laptop"]
""",
    "synonyms.toml",
)


def test_phrases_are_replaced_by_their_synonyms_in_turn():
    for text, language, expected in (
        ("Does the wifi work?", "en", ["Does the wireless work?", "Does the WLAN work?"]),
        ("WI-FI, please", "en", ["wireless, please"]),
        ("Graphics cards in a notebook", "en", ["GPU in a laptop"]),  # the longer phrase, in any form of its words
        ("notebooky", "cs", ["laptop"]),
        ("wifi card", "en", ["wireless badge", "WLAN badge"]),
        ("Where is the printer?", "en", []),
        ("", "en", []),
    ):
        assert wordings(text, language, SYNONYMS) == expected, text


def test_only_what_a_question_says_goes_with_it():
    assert said_in("the wifi of the wifi", "en", SYNONYMS) == (("wifi", ("wireless", "WLAN")),)
    assert said_in("printer", "en", SYNONYMS) == ()


WRONG = {
    '"wifi" = "wireless"': "'wifi' needs a list of words",
    '"wifi" = []': "'wifi' needs a list of words",
    '"wifi" = [1]': "'wifi' needs a list of words",
    '[wifi]\na = ["b"]': "'wifi' needs a list of words",
    '"wifi" = ["Wifi"]': "'wifi': 'Wifi' is the same",
    '"wifi" = ["--"]': "'wifi': '--' is no word",
    '"?" = ["wireless"]': "'?' is no word",
    '"WiFi" = ["a"]\n"wifi" = ["b"]': "'wifi' is the same as 'WiFi'",
    "wifi": "isn't valid TOML",
}


def test_a_wrong_file_says_what_is_wrong_in_it():
    for text, problem in WRONG.items():
        with pytest.raises(SettingsError) as refused:
            parse_synonyms(text, "own.toml")
        assert str(refused.value).startswith("own.toml"), text
        assert problem in str(refused.value), text
