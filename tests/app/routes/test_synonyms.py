"""Synonyms of a site: a question in other words than the pages have is refused without them, and answered with them."""

import logging
from pathlib import Path

import pytest

from app.core.errors import SettingsError
from app.core.prompts import load_prompts
from tests.app.routes.indexed import Indexed, indexed
from tests.app.routes.scripted import CHAT, chat, client_of

PAGES = {
    "network": "# Wireless network\n\nThe wireless network of the building needs an account of the university.",
    "cs-sit": "# Bezdrátová síť\n\nBezdrátová síť budovy potřebuje univerzitní účet.",
}
REFUSED = tuple(load_prompts(("cs", "en")).render(code, "nothing_found") for code in ("cs", "en"))


async def answer(service: Indexed, question: str) -> str:
    async with client_of(service.app) as client:
        reply = await client.post(CHAT, json=chat(question))
        return str(reply.json()["choices"][0]["message"]["content"])


async def test_a_question_in_the_words_of_readers_is_answered_with_the_synonyms_alone(tmp_path: Path) -> None:
    """The file is read again when it changes, so that no restart and no new index is needed; a wrong one changes nothing."""
    (file := tmp_path / "synonyms.toml").write_text('"Kafka" = ["limits"]')
    async with indexed(tmp_path, with_model=False, more=PAGES, prompts=str(tmp_path), min_evidence=0.32) as service:
        assert (await answer(service, "How do I join the wifi?")).startswith(REFUSED)
        file.write_text('"wifi" = ["WLAN", "wireless network"]\n"wifina" = ["bezdrátová síť"]')
        english, czech = [
            await answer(service, text) for text in ("How do I join the wifi?", "Jak se dostanu na wifinu?")
        ]
        assert "needs an account of the university" in english
        assert "potřebuje univerzitní účet" in czech
        assert (await answer(service, "How do I bake bread?")).startswith(REFUSED)


async def test_a_file_that_becomes_wrong_is_logged_and_the_synonyms_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (file := tmp_path / "synonyms.toml").write_text('"wifi" = ["wireless"]')
    async with indexed(tmp_path, with_model=False, more=PAGES, prompts=str(tmp_path), min_evidence=0.32) as service:
        file.write_text('"wifi" = 5  # by mistake')
        with caplog.at_level(logging.ERROR):
            assert "needs an account" in await answer(service, "wifi account")
            assert "needs an account" in await answer(service, "wifi account")
    assert [record.message for record in caplog.records] == [
        f"{file}: 'wifi' needs a list of words, such as [\"wireless\"]. What was read before stays in use."
    ]


async def test_a_file_that_is_wrong_at_first_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "synonyms.toml").write_bytes(b'"wifi" = ["\xff"]')
    with pytest.raises(SettingsError, match=r"synonyms\.toml can't be read: it isn't written in UTF-8"):
        async with indexed(tmp_path, with_model=False, prompts=str(tmp_path)):
            pass
