"""The keys of the file over HTTP: listed, made, limited and revoked, while people edit the file by hand."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from tomllib import loads

import httpx
import pytest
from pydantic import TypeAdapter

from app.core.settings import Settings
from app.routes.admin.keys import KeyList, _rewrite
from docs_assistant.cli import main
from tests.app.http.test_keys import entry, hashed, key
from tests.app.routes.scripted import refused, scripted, serving

SIGN_IN = """
[sign_in]  # the provider
issuer = "https://login.example.org"
client_id = "docs"
client_secret = "a-secret-of-the-client"
"""
FILE = f"""# Keys of the handbook. Ask Olga before you change one.

# the website, since May
{entry("web", "widget", origins='["https://docs.example.org"]').rstrip()}
rate = "60/minute"  # agreed with marketing
concurrency = 3
note = "[[key]]"

# operators
{entry("ops", "admin").rstrip()}
# ops leaves in June

{entry("bot")}{SIGN_IN}"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of keys with comments, which only its owner may read."""
    path = tmp_path / "keys.toml"
    path.write_text(FILE, "utf-8")
    path.chmod(0o640)
    return path


def served(**settings: str) -> Iterator[httpx.Client]:
    with serving(scripted(**settings)) as base, httpx.Client(base_url=base, timeout=60) as made:
        yield made


@pytest.fixture
def client(file: Path) -> Iterator[httpx.Client]:
    """A client of a service with this file and no key in its settings, with the key of `ops`."""
    for made in served(keys=str(file)):
        made.headers.update(key("ops"))
        yield made


def rows(client: httpx.Client) -> dict[str, dict]:
    listed = client.get("/v1/admin/keys")
    TypeAdapter(KeyList).validate_json(listed.content, extra="forbid")
    return {row["name"]: row for row in listed.json()["data"]}


def post(client: httpx.Client, path: str, name: str, **more: object) -> httpx.Response:
    version = rows(client).get(name, {}).get("version", "")
    return client.post(f"/v1/admin/keys/{path}", json={"name": name, "version": version, **more})


def test_a_key_is_made_limited_and_revoked_and_comments_stay(client: httpx.Client, file: Path, caplog):
    caplog.set_level("INFO", "app.http")
    before = rows(client)
    assert (list(before), before["web"]["origins"]) == (["web", "ops", "bot"], ["https://docs.example.org"])
    assert "sha256" not in str(before)
    body = {"name": "ci", "role": "reader", "concurrency": 2, "expires": "2030-01-31", "note": 'for the "build"'}
    made = client.post("/v1/admin/keys", json=body).json()["key"]
    assert file.read_text("utf-8").startswith(FILE)
    assert loads(file.read_text("utf-8"))["key"][-1]["hash"] == hashed(made)
    listed = rows(client)["ci"]
    assert (listed["expires"], listed["note"], bool(listed["made"])) == ("2030-01-31", body["note"], True)
    assert made not in client.get("/v1/admin/keys").text
    bearer = {"authorization": f"Bearer {made}"}
    assert client.get("/v1/models", headers=bearer).status_code == 200

    assert post(client, "limits", "web", rate="90/minute", concurrency=0).status_code == 200
    assert post(client, "limits", "bot", rate="", concurrency=7).status_code == 200
    text = file.read_text("utf-8")
    assert 'rate = "90/minute"  # agreed with marketing' in text
    changed = FILE.replace("60/minute", "90/minute").replace("concurrency = 3\n", "")
    assert text.startswith(changed.partition(SIGN_IN)[0].rstrip() + "\nconcurrency = 7\n" + SIGN_IN)

    assert client.get("/v1/models", headers=key("bot")).status_code == 200
    for name in ("bot", "ci"):
        assert post(client, "revoke", name).status_code == 200
    assert client.get("/v1/models", headers=key("bot")).status_code == 401
    assert client.get("/v1/models", headers=bearer).status_code == 401
    assert file.read_text("utf-8").rstrip() == changed.replace(f"\n{entry('bot')}", "").rstrip()
    assert (file.stat().st_mode & 0o777, [one.name for one in file.parent.iterdir()]) == (0o640, ["keys.toml"])
    said = [record.getMessage() for record in caplog.records if record.getMessage().startswith("key ")]
    assert [line.partition(" name=")[0] for line in said] == [
        "key made",
        "key limited",
        "key limited",
        *["key revoked"] * 2,
    ]
    assert all("by='key ops from 127.0.0.1'" in line for line in said)
    assert made not in "".join(said)


def test_nobody_locks_operators_out_and_wrong_input_changes_nothing(client: httpx.Client, file: Path):
    assert refused(post(client, "revoke", "ops")) == (409, "key_needed")
    assert refused(post(client, "revoke", "nobody")) == (404, "key_not_found")
    for wrong in (
        {"name": "bad name"},
        {"name": 'x"\nrole = "admin'},
        {"role": "owner"},
        {"role": "widget"},  # which needs origins
        {"rate": "often"},
        {"concurrency": -1},
        {"expires": "2030-02-31"},
        {"assistants": ["nothing"]},
        {"hash": hashed("mine")},
    ):
        assert client.post("/v1/admin/keys", json={"name": "x", "role": "reader", **wrong}).status_code == 400, wrong
    assert refused(client.post("/v1/admin/keys", json={"name": "WEB", "role": "reader"})) == (409, "key_file_refused")
    assert post(client, "limits", "web", rate="often", concurrency=1).status_code == 400
    for path in ("", "/limits", "/revoke"):
        assert client.post(f"/v1/admin/keys{path}", json={"name": "x"}, headers=key("bot")).status_code == 401
    assert file.read_text("utf-8") == FILE


def test_the_last_admin_key_stays_also_if_two_admins_revoke_each_other(client: httpx.Client, file: Path):
    other = client.post("/v1/admin/keys", json={"name": "second", "role": "admin"}).json()["key"]
    second = {"authorization": f"Bearer {other}"}
    version = {name: row["version"] for name, row in rows(client).items()}
    answers = []

    def revoke(name: str, headers: dict[str, str]) -> None:
        body = {"name": name, "version": version[name]}
        answers.append(httpx.post(f"{client.base_url}/v1/admin/keys/revoke", json=body, headers=headers).status_code)

    both = [threading.Thread(target=revoke, args=one) for one in (("second", key("ops")), ("ops", second))]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert sorted(answers) in ([200, 401], [200, 409])
    assert [one["role"] for one in loads(file.read_text("utf-8"))["key"]].count("admin") == 1


def test_many_changes_at_once_lose_nothing_and_an_old_view_is_refused(client: httpx.Client, file: Path):
    def make(number: int) -> None:
        body = {"name": f"key{number}", "role": "reader"}
        made = httpx.post(f"{client.base_url}/v1/admin/keys", json=body, headers=key("ops"), timeout=60)
        assert made.status_code == 200, made.text

    threads = [threading.Thread(target=make, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {f"key{number}" for number in range(12)} < set(rows(client))
    seen = {"name": "bot", "version": rows(client)["bot"]["version"]}
    assert post(client, "limits", "bot", rate="5/second", concurrency=0).status_code == 200
    for path, more in (("limits", {"rate": "", "concurrency": 1}), ("revoke", {})):
        assert refused(client.post(f"/v1/admin/keys/{path}", json={**seen, **more})) == (409, "version_outdated")
    assert rows(client)["bot"]["rate"] == "5/second"


def test_what_an_editor_saves_meanwhile_stays(file: Path):
    def changed(text: str, keys: list) -> tuple[str, list]:
        file.write_text(f"{FILE}# saved in between\n", "utf-8")
        return text, keys

    with pytest.raises(Exception, match="changed meanwhile"):
        _rewrite(Settings.load(None, keys=str(file)), changed)
    assert file.read_text("utf-8").endswith("# saved in between\n")


def test_a_file_that_cant_be_changed_is_named(client: httpx.Client, file: Path, monkeypatch):
    version = rows(client)["bot"]["version"]
    revoke = {"name": "bot", "version": version}

    def says(text: str) -> None:
        answer = client.post("/v1/admin/keys/revoke", json=revoke)
        assert refused(answer) == (409, "key_file_refused")
        assert text in answer.json()["error"]["message"]
        assert [one.name for one in file.parent.iterdir()] in (["keys.toml"], [])

    with monkeypatch.context() as patched:
        patched.setattr(os, "fchown", lambda *_: (_ for _ in ()).throw(PermissionError(1, "Operation not permitted")))
        says(f"DOCS_KEYS={file} can't be changed: [Errno 1] Operation not permitted")
    file.write_text(FILE.replace('[[key]]\nname = "bot"', "[[ 'key' ]]\nname = \"bot\""), "utf-8")
    says("Change it by hand")
    file.write_text(f"{FILE}oops", "utf-8")
    says("isn't valid TOML")
    assert refused(client.get("/v1/admin/keys")) == (409, "key_file_refused")
    file.unlink()
    says("No such file")


def test_keys_of_the_settings_are_listed_only_and_without_a_file_the_setting_is_named():
    for client in served(api_keys="reader-key-of-tests", admin_keys="admin-key-of-tests"):
        client.headers["authorization"] = "Bearer admin-key-of-tests"
        assert [(row["name"], row["role"], row["version"]) for row in rows(client).values()] == [
            ("1", "reader", ""),
            ("admin1", "admin", ""),
        ]
        assert "of-tests" not in client.get("/v1/admin/keys").text
        answer = client.post("/v1/admin/keys", json={"name": "x", "role": "reader"})
        assert refused(answer) == (409, "key_file_refused")
        assert "set DOCS_KEYS" in answer.json()["error"]["message"]


def test_the_command_and_a_link_to_the_file(file: Path, tmp_path: Path, monkeypatch):
    """The command may remove the last admin key, and everything else of the file stays; so does the link."""
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    monkeypatch.setenv("DOCS_KEYS", str(link))
    assert [main(["key", "revoke", name]) for name in ("bot", "ops")] == [0, 0]
    assert link.is_symlink()
    left = FILE.replace(entry("bot"), "").replace(entry("ops", "admin").rstrip() + "\n", "")
    assert [line for line in file.read_text("utf-8").split("\n") if line] == [line for line in left.split("\n") if line]
