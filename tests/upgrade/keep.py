"""Keeps what an installation of this version has on its disk: `python -m tests.upgrade.keep` writes `VERSION.tar.xz` beside this file.

Run it once for each release, before its tag. `test_upgrade.py` starts every later version on each kept archive.
"""

import shutil
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

import httpx

from deploy.release import version_of
from tests.end_to_end.program import finished, service

HERE = Path(__file__).parent
HANDBOOK = HERE.parent / "frontend/handbook"
SITE = "https://docs.example.org/"
ADMIN = {"authorization": "Bearer an-admin-key-of-tests"}
ANSWERED, REFUSED, CURATED = "How do I create a volume?", "Who won the match?", "What does a licence cost?"
PRICE = "It is **free** for schools."
COMMENT, REASON = "The command has another name now.", "That was the name before May."
KEPT = ("data", "keys.toml")
"""What an operator backs up: the index with its generations, curated answers and runs, the database of conversations, the keys."""


def settings(folder: Path) -> Mapping[str, str]:
    """Of the installation in this folder; the embedder is the package's own, whose vectors an index must agree with."""
    sources = f'[[source]]\nurl = "{SITE}"\ncollection = "handbook"\ndirectory = "handbook"\n'
    (folder / "sources.toml").write_text(sources, "utf-8")
    steps = (
        '["detect", "carry_over", "first_search", "retrieve", "relevance", "overview", "curated", "synthesize", "cite"]'
    )
    (folder / "assistants.toml").write_text(f'[[assistant]]\nid = "docs-assistant"\nsteps = {steps}\n', "utf-8")
    return {
        "DOCS_EMBEDDING_MODEL": "",
        "DOCS_ADMIN_KEYS": "an-admin-key-of-tests",
        "DOCS_KEYS": "keys.toml",
        "DOCS_RETENTION_DAYS": "36500",  # an archive stays for years
        "DOCS_ASSISTANTS": "assistants.toml",
    }


def fill(folder: Path) -> None:
    """Index twice, ask, rate, write an answer, make a key."""
    shutil.copytree(HANDBOOK, folder / "handbook")
    given = settings(folder)
    (folder / "keys.toml").write_text("", "utf-8")
    (folder / "keys.toml").chmod(0o600)
    for run in range(2):
        page = folder / "handbook/en/backups.md"
        page.write_text(f"{page.read_text('utf-8')}\n\nRun {run}.\n", "utf-8")
        done = finished(folder, "ingest", "sources.toml", **given)
        assert done.returncode == 0, done.stderr
    with (
        service(folder, "serve", **given) as running,
        httpx.Client(base_url=running.url, headers=ADMIN, timeout=60) as client,
    ):
        entry = {"questions": [CURATED], "language": "en", "page": f"{SITE}en/limits", "answer": PRICE}
        posted(client, "admin/curated/try", {"entries": [entry]})
        posted(client, "admin/curated", {"version": 0, "entries": [entry]})
        ids = {question: posted(client, "chat/completions", chat(question))["id"] for question in (ANSWERED, REFUSED)}
        posted(client, f"answers/{ids[ANSWERED]}/feedback", {"rating": "down", "comment": COMMENT})
        posted(client, f"admin/verdicts/{ids[ANSWERED]}", {"verdict": "wrong", "reason": REASON})
        made = posted(client, "admin/keys", {"name": "kept", "role": "reader"})["key"]
    (folder / "data/key.txt").write_text(made, "utf-8")


def chat(question: str) -> dict[str, object]:
    """The request of a question."""
    return {"model": "docs-assistant", "messages": [{"role": "user", "content": question}]}


def posted(client: httpx.Client, path: str, body: object) -> dict[str, object]:
    """The answer to a request that must succeed."""
    response = client.post(f"/v1/{path}", json=body)
    assert response.is_success, response.text
    found: dict[str, object] = response.json()
    return found


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """The entry without its owner."""
    return entry.replace(uid=0, gid=0, uname="", gname="", deep=False)


def main() -> int:
    """Keep it."""
    to = HERE / f"{version_of(HERE.parents[1])}.tar.xz"
    with tempfile.TemporaryDirectory() as temporary:
        fill(Path(temporary))
        with tarfile.open(to, "w:xz") as archive:
            for name in KEPT:
                archive.add(Path(temporary, name), name, filter=anonymous)
    print(f"{to.name}: {to.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
