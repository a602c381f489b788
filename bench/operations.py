"""Questions on operations over two OpenAPI documents: `python -m bench.operations`. The right operation's section must come first.

The documents are GitHub's (1,223 operations) and Swagger's petstore; there is no language model. GitHub's questions are on every
61st operation, in other words than its summary, and were written before any search.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from app.api.search_rows import rows_of
from app.assistants.assembly import opened
from app.core.settings import Settings
from app.core.turn import Message, Request
from app.index import open_store
from app.models import open_embedder
from bench.generators import run
from eval.commands.options import NO_MODEL
from ingestion.run import ingest
from ingestion.sources import Source
from tests.frontend.sites import CACHE
from tests.ingestion.local_site import local_site

PACKAGE = "@octokit/openapi@23.0.2"
MOST_BYTES = 50_000_000
PETSTORE = Path("tests/ingestion/files/petstore.yaml")

GITHUB_QUESTIONS = {
    "How do I fetch the grades of a classroom assignment?": "GET/assignments/{assignment_id}/grades",
    "Which request changes an existing gist?": "PATCH/gists/{gist_id}",
    "all custom images that an organization has for hosted runners": "GET/orgs/{org}/actions/hosted-runners/images/custom",
    "remove a self-hosted runner from an organization": "DELETE/orgs/{org}/actions/runners/{runner_id}",
    "How can I read one campaign of an organization?": "GET/orgs/{org}/campaigns/{campaign_number}",
    "show all Dependabot alerts of an organization": "GET/orgs/{org}/dependabot/alerts",
    "stop the codespace of a member of an organization": "POST/orgs/{org}/members/{username}/codespaces/{codespace_name}/stop",
    "define several custom properties of an organization at once": "PATCH/orgs/{org}/properties/schema",
    "How do I read the details of a single repository?": "GET/repos/{owner}/{repo}",
    "approve a custom deployment protection rule of a workflow run": "POST/repos/{owner}/{repo}/actions/runs/{run_id}/deployment_protection_rule",
    "stop requiring reviews of pull requests for a protected branch": "DELETE/repos/{owner}/{repo}/branches/{branch}/protection/required_pull_request_reviews",
    "Which mistakes are in a CODEOWNERS file?": "GET/repos/{owner}/{repo}/codeowners/errors",
    "trigger a repository dispatch event": "POST/repos/{owner}/{repo}/dispatches",
    "Who are the authors of the commits of an import?": "GET/repos/{owner}/{repo}/import/authors",
    "Which suggestions does an issue have?": "GET/repos/{owner}/{repo}/issues/{issue_number}/suggestions",
    "merge a pull request without waiting for it": "PUT/repos/{owner}/{repo}/pulls/{pull_number}/merge-async",
    "How do I get one stack of pull requests?": "GET/repos/{owner}/{repo}/stacks/{stack_number}",
    "start a new codespace for the signed-in user": "POST/user/codespaces",
    "bring back a deleted package of the authenticated user": "POST/user/packages/{package_type}/{package_name}/restore",
    "Which packages does a user have?": "GET/users/{username}/packages",
}  # fmt: skip
PETSTORE_QUESTIONS = {
    "change an existing pet": "PUT/pet",
    "How do I add a new pet to the store?": "POST/pet",
    "all pets with a certain status": "GET/pet/findByStatus",
    "search for pets by their tags": "GET/pet/findByTags",
    "How do I fetch one pet by its id?": "GET/pet/{petId}",
    "remove a pet": "DELETE/pet/{petId}",
    "How can I upload a photo of a pet?": "POST/pet/{petId}/uploadImage",
    "How many pets of each status are in the inventory?": "GET/store/inventory",
    "order a pet": "POST/store/order",
    "cancel a purchase order": "DELETE/store/order/{orderId}",
    "create several users from a list": "POST/user/createWithList",
    "log in with a user name and a password": "GET/user/login",
}


def github() -> Path:
    """GitHub's document, installed once."""
    folder = CACHE / "bench-openapi"
    found = folder / "node_modules/@octokit/openapi/generated/api.github.com.json"
    if not found.exists():
        folder.mkdir(parents=True, exist_ok=True)
        run(["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--loglevel=error", PACKAGE], CACHE)
    return found


async def index(document: Path, folder: Path) -> None:
    """Index the document into the folder, with addresses that tell method and path of an operation."""
    settings = Settings.load(None, store=str(folder), embedding_model="local:static", crawl_max_bytes=MOST_BYTES)
    body = await asyncio.to_thread(document.read_bytes)
    store, embedder = open_store(settings), open_embedder(settings)
    try:
        with local_site() as site:
            site.put(f"/{document.name}", body, "application/octet-stream")
            source = Source(url=f"{site.url}/docs/", openapi=f"{site.url}/{document.name}", anchors="scalar")
            await ingest([source], store=store, embedder=embedder, settings=settings)
    finally:
        await store.close()
        await embedder.close()


async def found_operations(folder: Path, questions: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """The anchors of the sections that a search finds for each question, best first."""
    settings = Settings.load(None, store=str(folder), embedding_model="local:static", **NO_MODEL)
    found: dict[str, list[str]] = {}
    async with opened(settings) as assistants:
        for question in questions:
            turn = await assistants.get("").search(Request((Message("user", question),), id="bench"))
            found[question] = [unquote(row["url"].partition("#")[2]) for row in rows_of(turn)]
    return found


def main() -> int:
    """Print the questions that another operation comes first for, and how many there aren't."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    for document, questions in ((github(), GITHUB_QUESTIONS), (PETSTORE, PETSTORE_QUESTIONS)):
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(index(document, Path(folder)))
            found = asyncio.run(found_operations(Path(folder), questions))
        first = 0
        for question, anchors in found.items():
            places = [anchor.endswith(f"/{questions[question]}") for anchor in anchors]
            first += places[:1] == [True]
            if places[:1] != [True]:
                place = places.index(True) + 1 if True in places else "-"
                print(f"{question} {questions[question]}: place {place}, first is {anchors[:1]}")
        print(f"{document.name}: first {first} of {len(questions)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
