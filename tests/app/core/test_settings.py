"""Settings: read from the environment and files, mistakes named, secrets kept."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from app.core.errors import SettingsError
from app.core.settings import FILE_KEYS, Settings, Tuning
from app.core.settings_sources import FILE


def test_lists_and_json_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are separated by commas or spaces; JSON settings are JSON."""
    monkeypatch.setenv("DOCS_LANGUAGES", "en, cs sk")
    monkeypatch.setenv("DOCS_SITES", "https://a.example/sitemap.xml https://b.example")
    monkeypatch.setenv("DOCS_API_KEYS", "first-key-of-tests,second-key-of-tests")
    monkeypatch.setenv("DOCS_TUNING__VECTOR_WEIGHT", '{"cs": 0.1, "*": 0.5}')
    settings = Settings.load()
    assert settings.languages == ("en", "cs", "sk")
    assert settings.sites == ("https://a.example/sitemap.xml", "https://b.example")
    assert [key.get_secret_value() for key in settings.api_keys] == ["first-key-of-tests", "second-key-of-tests"]
    assert (settings.vector_share("cs"), settings.vector_share("en")) == (0.1, 0.5)


def test_vectors_of_a_model_weigh_as_much_as_words_but_less_where_these_have_keywords() -> None:
    settings = Settings.load(None)
    assert settings.vector_share("cs", keywords=True) == 0.2
    assert settings.vector_share("cs") == 0.6


def test_the_command_line_wins_over_the_environment_dotenv_and_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each source overrides those after it, whole values at a time; without an env_file, no file is read."""
    (tmp_path / FILE).write_text(
        "[server]\nport = 8100\n[retrieval]\ntop_k = 9\n[tuning]\nper_page = 3\nvector_weight = { cs = 0.1 }"
    )
    (tmp_path / ".env").write_text("DOCS_PORT=8101\nDOCS_TOP_K=7\n")
    monkeypatch.setenv("DOCS_PORT", "8102")
    found = Settings.load()
    assert (found.port, found.top_k, found.tuning.per_page, found.tuning.vector_weight) == (8102, 7, 3, {"cs": 0.1})
    monkeypatch.setenv("DOCS_TUNING__VECTOR_WEIGHT", '{"*": 0.5}')
    assert (Settings.load(port=8103).port, Settings.load().tuning.vector_weight) == (8103, {"*": 0.5})
    assert Settings.load(None).tuning.per_page == 2


def test_every_setting_can_be_written_in_the_file(tmp_path: Path) -> None:
    """Under a key of its own, with the values that TOML has: lists, tables, numbers. Secrets are read as such."""
    assert len(set(FILE_KEYS.values())) == len(FILE_KEYS) == len(Settings.model_fields) - 1 + len(Tuning.model_fields)
    assert len(Settings.model_fields) - 1 <= 60
    (tmp_path / FILE).write_text(
        '[llm]\nurl = "http://m/v1"\nkey = "k"\nextra_body = { seed = 1 }\ntimeout = 5\n'
        '[answers]\nlanguages = ["en", "sk"]\n[server]\napi_keys = ["first-key-of-tests", "second-key-of-tests"]\nport = 81\n[log]\njson = true\n'
        '[index]\nstore = "x/"\n[crawl]\nallow = "a.example b.example"\n[tuning]\nstore_timeout = 3\n'
    )
    found = Settings.load()
    assert (found.llm_url, found.llm_key.get_secret_value(), found.llm_timeout) == ("http://m/v1", "k", 5)
    assert (found.llm_extra_body, found.languages, found.port) == ({"seed": 1}, ("en", "sk"), 81)
    assert [key.get_secret_value() for key in found.api_keys] == ["first-key-of-tests", "second-key-of-tests"]
    assert (found.log_json, found.store, found.tuning.store_timeout) == (True, "x/", 3)
    assert found.crawl_allow == ("a.example", "b.example")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[llm]\nmodle = "m"', "docs-assistant.toml: there is no setting llm.modle. Did you mean llm.model?"),
        ("[server]\ntop_k = 3", "no setting server.top_k. Did you mean retrieval.top_k?"),
        ("llm_url = 1", "no setting llm_url. Did you mean llm.url?"),
        ('DOCS_API_KEY = "k"', "no setting DOCS_API_KEY. Did you mean server.api_keys?"),
        ("[sever]\nport = 1", "no setting sever.port. Did you mean server.port?"),
        ("[retrieval]\nper_page = 3", "no setting retrieval.per_page. Did you mean tuning.per_page?"),
        ("[embedding]\nbatch = 3", "no setting embedding.batch. Did you mean tuning.embedding_batch?"),
        ("[tuning]\ntop_k = 3", "no setting tuning.top_k. Did you mean retrieval.top_k?"),
        ("[tuning]\nper_page = 0", "tuning.per_page has value 0: it must be a whole number, at least 1."),
        ("[qqq]\nzzz = 1", "no setting qqq.zzz. The tables are index, crawl, "),
        ("[server]\nport = 70000", "server.port has value 70000: it must be a whole number from 1 to 65535."),
        ("[server]\napi_keys = []", "docs-assistant.toml: server.api_keys is empty: write a value, or remove"),
        ("[tuning]\nvector_weight = { cs = 'x' }", "docs-assistant.toml: tuning.vector_weight.cs. has value 'x'"),
        ("[server\nport = 1", "docs-assistant.toml isn't valid TOML: .*line 1"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_nearest_setting(tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(SettingsError, match=says):
        Settings.load()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("DOCS_TUNING__FUSION", "best", "it must be weighted, fixed or rrf"),
        (
            "DOCS_TUNING__VECTOR_WEIGHT",
            "{cs: 1}",
            "WEIGHT has value .{cs: 1}.: it must be a JSON object .* isn't valid JSON",
        ),
        ("DOCS_API_KEYS", "", "DOCS_API_KEYS is empty: write a value, or remove"),
        ("DOCS_ADMIN_KEYS", " , ,", "DOCS_ADMIN_KEYS is empty: write a value, or remove"),
        ("DOCS_API_KEYS", '""', "DOCS_API_KEYS: write the keys without quotation marks"),
        ("DOCS_API_KEYS", "'a-key-in-quotation-marks'", "DOCS_API_KEYS: write the keys without quotation marks"),
        ("DOCS_API_KEYS", "k", "DOCS_API_KEYS: a key must have at least 16 characters"),
        ("DOCS_ADMIN_KEYS", "a-key-of-sixteen, fifteen-letters", "ADMIN_KEYS: a key must have at least 16 characters"),
        ("DOCS_KEYS", "", "DOCS_KEYS is empty: write a value, or remove"),
        ("DOCS_KEYS", " ", "DOCS_KEYS is empty: write a value, or remove"),
        ("DOCS_TRUSTED_PROXIES", "proxy.example", "'proxy.example' is no address: write the IP addresses or networks"),
        ("DOCS_TRUSTED_PROXIES", "*", r"'\*' is no address"),
        ("DOCS_TRUSTED_PROXIES", "10.0.0.1, 0.0.0.0/0", "'0.0.0.0/0' trusts everybody"),
        ("DOCS_TRUSTED_PROXIES", "::/0", "'::/0' trusts everybody"),
        ("DOCS_TRUSTED_PROXIES", "10.0.0.1:8080", "'10.0.0.1:8080' is no address"),
        ("DOCS_ALLOWED_HOSTS", "https://x.org/", "'https://x.org/' is no host name: write names without scheme"),
        ("DOCS_ALLOWED_HOSTS", "x.org:8000", "'x.org:8000' is no host name"),
        ("DOCS_ALLOWED_HOSTS", '"x.org"', "is no host name"),
        ("DOCS_ORIGINS", "https://*.org", r"'https://\*.org' allows all sites below org"),
        ("DOCS_ORIGINS", "https://*", "is no origin"),
    ],
)
def test_an_invalid_setting_is_named_with_its_value(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=says):
        Settings.load()


def problems(**env: str) -> str:
    """What is wrong with these settings in the environment; empty if nothing is."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in env.items():
            patch.setenv(name, value)
        try:
            Settings.load()
        except SettingsError as error:
            return str(error)
    return ""


def test_an_unknown_name_is_an_error_with_the_nearest_one(tmp_path: Path) -> None:
    """In the environment and in .env, where other tools' names are allowed, and so are those of our tests."""
    assert problems(DOCS_API_KEY="k") == "there is no setting DOCS_API_KEY. Did you mean DOCS_API_KEYS?"
    assert "DOCS_LLM_MODLE. Did you mean DOCS_LLM_MODEL?" in problems(DOCS_LLM_MODLE="m")
    assert problems(DOCS_PER_PAGE="3") == "there is no setting DOCS_PER_PAGE. Did you mean DOCS_TUNING__PER_PAGE?"
    assert "DOCS_TUNING__PORT. Did you mean DOCS_PORT?" in problems(DOCS_TUNING__PORT="3")
    assert "DOCS_QQQ. Remove it" in problems(DOCS_QQQ="")
    assert problems(DOCS_TEST_OPENSEARCH="x", OPENAI_API_KEY="x") == ""
    (tmp_path / ".env").write_text("OPENAI_API_KEY=x\nexport DOCS_TOP_K=7\nDOCS_TEST_ONNX=1 # comment\n")
    assert (Settings.load().top_k, problems()) == (7, "")
    (tmp_path / ".env").write_text("# x\nDOCS_SITE=https://a.example\ndocs_port=1\n", encoding="utf-8-sig")
    assert problems().splitlines()[1:] == [
        "  .env, line 2: there is no setting DOCS_SITE. Did you mean DOCS_SITES?",
        "  .env, line 3: there is no setting docs_port. Did you mean DOCS_PORT?",
    ]


def test_variables_of_kubernetes_services_are_no_settings() -> None:
    """A Service named docs or docs-assistant puts them into each container, also as a DOCS_PORT that is no port."""
    services = {
        "DOCS_PORT": "tcp://10.0.0.7:80", "DOCS_SERVICE_HOST": "10.0.0.7", "DOCS_SERVICE_PORT": "80",
        "DOCS_SERVICE_PORT_HTTP": "80", "DOCS_PORT_80_TCP": "tcp://10.0.0.7:80", "DOCS_PORT_80_TCP_ADDR": "10.0.0.7",
        "DOCS_ASSISTANT_PORT": "tcp://10.0.0.8:8000", "DOCS_ASSISTANT_SERVICE_HOST": "10.0.0.8",
        "DOCS_ASSISTANT_PORT_8000_TCP_PROTO": "tcp",
    }  # fmt: skip
    assert problems(**services) == ""
    assert "DOCS_SERVICE_HOTS" in problems(**services, DOCS_SERVICE_HOTS="x")
    assert "there is no setting DOCS_SERVICE_HOST" in problems(DOCS_SERVICE_HOST="10.0.0.7", DOCS_PORT="80")


def test_what_dotenv_would_skip_is_an_error(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DOCS_PORT=1\nDOCS_PORT=2\nDOCS TOP K=3\nDOCS_HOST\n")
    assert problems().splitlines() == [
        "3 settings are wrong:",
        "  .env, line 2: DOCS_PORT is already in line 1. Keep one of them.",
        "  .env, line 3 isn't a setting: write NAME=value.",
        "  .env, line 4: DOCS_HOST has no value: write DOCS_HOST=value.",
    ]
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").mkdir()
    assert problems() == ".env can't be read: Is a directory."
    (tmp_path / ".env/pyvenv.cfg").touch()
    assert problems() == ""


def test_every_wrong_value_is_named_in_words_and_all_at_once() -> None:
    """Each kind of constraint that a setting has: no sentence is one of pydantic's."""
    said = {
        "DOCS_PORT": ("abc", "has value 'abc': it must be a whole number from 1 to 65535."),
        "DOCS_GENERATIONS": ("0", "has value '0': it must be a whole number, at least 1."),
        "DOCS_MAX_LOST": ("", "is empty: it must be a whole number from 0 to 100."),
        "DOCS_LLM_TIMEOUT": ("0", "has value '0': it must be a number above 0."),
        "DOCS_TUNING__RUN_HOURS": ("inf", "has value 'inf': it must be a number, at least 0."),
        "DOCS_TUNING__EXACT": ("ture", "has value 'ture': it must be true or false."),
        "DOCS_LOG_LEVEL": ("warn", "has value 'warn': it must be debug, info, warning or error."),
        "DOCS_SPLITTER": ("words", "has value 'words': it must be markdown, semantic, fixed, page, or a LlamaIndex"),
        "DOCS_LLM_URL": ("llm:8000/v1", "has value 'llm:8000/v1': it must be a web address that begins with http://"),
        "DOCS_EMBEDDING_URL": ('"http://e/v1"', "it must be a web address that begins with http://"),
        "DOCS_LLM_ARGS": ("{a: 1}", ": it must be a JSON object such as"),
        "DOCS_EMBEDDING_ARGS": ("[]", ": it must be a JSON object such as"),
        "DOCS_TUNING__VECTOR_WEIGHT": ('{"cs": 20}', "[cs] has value 20: it must be a number from 0 to 1."),
        "DOCS_TUNING__KEY_SOURCES": ('{"2": "event"}', "[2] has value 'event': it must be events, links or both."),
        "DOCS_HOST": ("", "is empty: write a value, or remove the setting."),
        "DOCS_STORE": (" ", "is empty: write a value, or remove the setting."),
        "DOCS_LANGUAGES": (",", "is empty: write a value, or remove the setting."),
    }
    found = problems(**{name: value for name, (value, _) in said.items()})
    for name, (_, words) in said.items():
        (line,) = (line for line in found.splitlines() if line.startswith((f"  {name} ", f"  {name}:", f"  {name}[")))
        assert words in line, name
    assert found.startswith(f"{len(said)} settings are wrong:\n")
    assert not re.search(r"Input should|valid (integer|number|boolean)|pydantic", found)


def test_a_model_or_key_without_its_address_is_an_error() -> None:
    """Nothing would use it, so answers would be extractive without a word. An empty address turns the model off."""
    assert problems(DOCS_LLM_MODEL="m").startswith("DOCS_LLM_MODEL is set, but DOCS_LLM_URL isn't: set the address")
    assert "DOCS_RERANK_KEY is set, but DOCS_RERANK_URL isn't" in problems(DOCS_RERANK_KEY="k")
    assert problems(DOCS_LLM_MODEL="m", DOCS_LLM_KEY="k", DOCS_LLM_URL="") == ""
    assert problems(DOCS_RERANK_MODEL="local:m", DOCS_EMBEDDING_MODEL="local:m") == ""
    assert problems(DOCS_LLM_CLASS="m:C", DOCS_LLM_MODEL="m") == ""


def test_a_secret_may_be_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """NAME_FILE has its path, and key_file in the file of settings. Every mistake with it is an error."""
    monkeypatch.setenv("DOCS_LLM_URL", "http://llm.example/v1")
    (tmp_path / "key").write_text("sk-1\n")
    (tmp_path / "keys").write_text("first-key-of-tests\nsecond-key-of-tests\n")
    (tmp_path / "none").write_text("\n")
    (tmp_path / FILE).write_text('[llm]\nkey_file = "key"\n[server]\napi_keys_file = "keys"\n')
    loaded, origins = Settings.load_with_origins()
    assert loaded.llm_key.get_secret_value() == "sk-1"
    assert [key.get_secret_value() for key in loaded.api_keys] == ["first-key-of-tests", "second-key-of-tests"]
    assert (origins["llm_key"].place, origins["llm_key"].name) == ("key", "llm.key_file")
    assert Settings.load(llm_key="own").llm_key.get_secret_value() == "own"
    both = f"DOCS_LLM_KEY and {FILE}: llm.key_file both set the same secret: keep one of them."
    assert problems(DOCS_LLM_KEY="k") == both
    (tmp_path / FILE).unlink()
    for path, says in (
        ("gone", "the file gone can't be read: No such file or directory."),
        ("none", "the file none is empty."),
        (str(tmp_path), "can't be read: Is a directory."),
        ("", "is empty: write the path of a file, or remove the setting."),
    ):
        assert says in problems(DOCS_LLM_KEY_FILE=path)
    assert "Did you mean DOCS_PORT?" in problems(DOCS_PORT_FILE="key")


def test_secrets_are_in_no_message(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither an error about a setting that holds them nor the printed object shows a key."""
    monkeypatch.setenv("DOCS_LLM_URL", "http://llm.example/v1")
    monkeypatch.setenv("DOCS_LLM_KEY", "sk-verysecret")
    monkeypatch.setenv("DOCS_API_KEYS", "sk-verysecret-key")
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
