"""Settings: read from the environment and files, mistakes named, secrets kept."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.core.errors import SettingsError
from app.core.settings import FILE_KEYS, Settings
from app.core.settings_file import FILE


def test_lists_and_json_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are separated by commas or spaces; JSON settings are JSON."""
    monkeypatch.setenv("DOCS_LANGUAGES", "en, cs sk")
    monkeypatch.setenv("DOCS_SITES", "https://a.example/sitemap.xml https://b.example")
    monkeypatch.setenv("DOCS_API_KEYS", "k1,k2")
    monkeypatch.setenv("DOCS_VECTOR_WEIGHT", '{"cs": 0.1, "*": 0.5}')
    settings = Settings.load()
    assert settings.languages == ("en", "cs", "sk")
    assert settings.sites == ("https://a.example/sitemap.xml", "https://b.example")
    assert [key.get_secret_value() for key in settings.api_keys] == ["k1", "k2"]
    assert (settings.vector_share("cs", "e"), settings.vector_share("en", "e")) == (0.1, 0.5)


def test_vectors_of_a_model_weigh_as_much_as_words_but_less_where_these_have_keywords() -> None:
    settings = Settings.load(None)
    e5 = "local:multilingual-e5-small prefix='passage: '"
    assert settings.vector_share("cs", "wordllama-256") == settings.vector_share("cs", e5, keywords=True) == 0.2
    assert settings.vector_share("cs", e5) == 0.5


def test_the_command_line_wins_over_the_environment_dotenv_and_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each source overrides those after it, whole values at a time; without an env_file, no file is read."""
    (tmp_path / FILE).write_text(
        "[server]\nport = 8100\n[retrieval]\ntop_k = 9\nper_page = 3\nvector_weight = { cs = 0.1 }"
    )
    (tmp_path / ".env").write_text("DOCS_PORT=8101\nDOCS_TOP_K=7\n")
    monkeypatch.setenv("DOCS_PORT", "8102")
    found = Settings.load()
    assert (found.port, found.top_k, found.per_page, found.vector_weight) == (8102, 7, 3, {"cs": 0.1})
    monkeypatch.setenv("DOCS_VECTOR_WEIGHT", '{"*": 0.5}')
    assert (Settings.load(port=8103).port, Settings.load().vector_weight) == (8103, {"*": 0.5})
    assert Settings.load(None).per_page == 2


def test_every_setting_can_be_written_in_the_file(tmp_path: Path) -> None:
    """Under a key of its own, with the values that TOML has: lists, tables, numbers. Secrets are read as such."""
    assert len(set(FILE_KEYS.values())) == len(FILE_KEYS) == len(Settings.model_fields)
    (tmp_path / FILE).write_text(
        '[llm]\nurl = "http://m/v1"\nkey = "k"\nextra_body = { seed = 1 }\ntimeout = 5\n'
        '[answers]\nlanguages = ["en", "sk"]\n[server]\napi_keys = ["a", "b"]\nport = 81\n[log]\njson = true\n'
        '[index]\nstore = "x/"\nstore_timeout = 3\n[crawl]\nallow = "a.example b.example"\n'
    )
    found = Settings.load()
    assert (found.llm_url, found.llm_key.get_secret_value(), found.llm_timeout) == ("http://m/v1", "k", 5)
    assert (found.llm_extra_body, found.languages, found.port) == ({"seed": 1}, ("en", "sk"), 81)
    assert [key.get_secret_value() for key in found.api_keys] == ["a", "b"]
    assert (found.log_json, found.store, found.store_timeout) == (True, "x/", 3)
    assert found.crawl_allow == ("a.example", "b.example")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[llm]\nmodle = "m"', "docs-assistant.toml: there is no setting llm.modle. Did you mean llm.model?"),
        ("[server]\ntop_k = 3", "no setting server.top_k. Did you mean retrieval.top_k?"),
        ("llm_url = 1", "no setting llm_url. Did you mean llm.url?"),
        ('DOCS_API_KEY = "k"', "no setting DOCS_API_KEY. Did you mean server.api_keys?"),
        ("[sever]\nport = 1", "no setting sever.port. Did you mean server.port?"),
        ("[qqq]\nzzz = 1", "no setting qqq.zzz. The tables are index, crawl, "),
        ("[server]\nport = 70000", "docs-assistant.toml: server.port has value 70000: .*less than or equal to 65535"),
        ("[server]\napi_keys = []", "docs-assistant.toml: server.api_keys: there is no key in it"),
        ("[retrieval]\nvector_weight = { cs = 'x' }", "docs-assistant.toml: retrieval.vector_weight.cs. has value 'x'"),
        ("[server\nport = 1", "docs-assistant.toml can't be read: .*line 1"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_nearest_setting(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(SettingsError, match=says):
        Settings.load()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DOCS_PORT", "eight", "DOCS_PORT has value 'eight'"),
        ("DOCS_PORT", "70000", "less than or equal to 65535"),
        ("DOCS_FUSION", "best", "'weighted' or 'rrf'"),
        ("DOCS_VECTOR_WEIGHT", "{cs: 1}", "DOCS_VECTOR_WEIGHT isn't valid JSON"),
        ("DOCS_TOP_K", "0", "DOCS_TOP_K has value '0'"),
        ("DOCS_API_KEYS", "", "DOCS_API_KEYS: there is no key in it"),
        ("DOCS_ADMIN_KEYS", " , ,", "DOCS_ADMIN_KEYS: there is no key in it"),
    ],
)
def test_an_invalid_setting_is_named_with_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=says):
        Settings.load()


def test_secrets_are_in_no_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither an error about a setting that holds them nor the printed object shows a key."""
    monkeypatch.setenv("DOCS_LLM_KEY", "sk-verysecret")
    monkeypatch.setenv("DOCS_API_KEYS", "sk-verysecret")
    assert "verysecret" not in repr(Settings.load())
    monkeypatch.setenv("DOCS_LLM_EXTRA_BODY", '["sk-verysecret"]')
    (tmp_path / FILE).write_text('[embedding]\nkey = ["sk-verysecret"]\nargs = "sk-verysecret"')
    with pytest.raises(SettingsError) as error:
        Settings.load()
    for name in ("DOCS_LLM_EXTRA_BODY", "embedding.key", "embedding.args"):
        assert name in str(error.value)
    assert "verysecret" not in str(error.value)


def test_settings_cannot_be_changed_on_the_way() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings.load().port = 1
