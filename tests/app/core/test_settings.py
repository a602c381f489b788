"""Settings: read from the environment, wrong ones named, secrets kept."""

import dataclasses
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.core.errors import SettingsError
from app.core.settings import Settings


def test_lists_and_json_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words may be parted by commas or spaces; JSON settings are JSON."""
    monkeypatch.setenv("DOCS_LANGUAGES", "en, cs sk")
    monkeypatch.setenv("DOCS_SITES", "https://a.example/sitemap.xml https://b.example")
    monkeypatch.setenv("DOCS_API_KEYS", "k1,k2")
    monkeypatch.setenv("DOCS_VECTOR_WEIGHT", '{"cs": 0.1, "*": 0.5}')
    settings = Settings.load()
    assert settings.languages == ("en", "cs", "sk")
    assert settings.sites == ("https://a.example/sitemap.xml", "https://b.example")
    assert [key.get_secret_value() for key in settings.api_keys] == ["k1", "k2"]
    assert (settings.vector_share("cs"), settings.vector_share("en")) == (0.1, 0.5)


def test_the_environment_wins_over_the_env_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A .env file is read; what is set outside counts more; values given in code count most."""
    (tmp_path / ".env").write_text("DOCS_PORT=8101\nDOCS_TOP_K=7\n")
    monkeypatch.setenv("DOCS_PORT", "8102")
    assert (Settings.load().port, Settings.load().top_k, Settings.load(port=8103).port) == (8102, 7, 8103)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DOCS_PORT", "eight", "DOCS_PORT has value 'eight'"),
        ("DOCS_PORT", "70000", "less than or equal to 65535"),
        ("DOCS_FUSION", "best", "'weighted' or 'rrf'"),
        ("DOCS_VECTOR_WEIGHT", "{cs: 1}", "vector_weight"),
        ("DOCS_TOP_K", "0", "DOCS_TOP_K has value '0'"),
        ("DOCS_API_KEYS", "", "DOCS_API_KEYS has value '': .* no key in it"),
        ("DOCS_API_KEYS", " , ,", "DOCS_API_KEYS .* no key in it"),
        ("DOCS_ADMIN_KEYS", "", "DOCS_ADMIN_KEYS .* no key in it"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    """The message can be acted on without reading code."""
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=says):
        Settings.load()


def test_secrets_are_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither an error about another setting nor the printed object shows a key."""
    monkeypatch.setenv("DOCS_LLM_KEY", "sk-verysecret")
    monkeypatch.setenv("DOCS_API_KEYS", "sk-verysecret")
    assert "verysecret" not in repr(Settings.load())
    monkeypatch.setenv("DOCS_LLM_EXTRA_BODY", '["sk-verysecret"]')
    monkeypatch.setenv("DOCS_STORE_TIMEOUT", "-1")
    with pytest.raises(SettingsError) as error:
        Settings.load()
    assert "DOCS_STORE_TIMEOUT" in str(error.value)


def test_settings_cannot_be_changed_on_the_way() -> None:
    """One object, passed on, the same everywhere."""
    with pytest.raises((ValidationError, dataclasses.FrozenInstanceError)):
        Settings.load().port = 1
