"""Whether the roles of deploy/opensearch/ are enough, and whether they need each of their actions.

    python -m bench.opensearch_roles https://127.0.0.1:9200 --ca ca.pem --cert admin.pem --key admin.key

Needs an OpenSearch with the security plugin, TLS and the users of deploy/opensearch/internal_users.yml, and its passwords in
the environment. The certificate is that of an administrator (plugins.security.authcz.admin_dn), who may change roles. Writes
two generations of a small index as docs-ingester, reads them as docs-reader, then leaves out each action of each role in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import sys
from collections.abc import Callable, Coroutine
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import yaml

from app.core.errors import StoreError
from app.core.types import LexicalText, Query
from app.index.opensearch.address import Layout
from app.index.opensearch.store import OpenSearchStore
from app.index.opensearch.vector_store import VectorStoreGeneration
from app.index.run_history import add_run
from tests.app.index.opensearch.rows import RECIPE, SITE, publish, put

ROLES = Path(__file__).parents[1] / "deploy/opensearch/roles.yml"
Job = Callable[[OpenSearchStore], Coroutine[Any, Any, None]]
QUERY = Query((LexicalText("en", "one three"),), vector=[1.0, 2.0, 3.0, 4.0])


def opened(url: str, ca: str, user: str) -> OpenSearchStore:
    """The store as this user, with replicas set in its address."""
    password = os.environ[f"OPENSEARCH_{user.removeprefix('docs-').upper()}_PASSWORD"]
    return OpenSearchStore(url, index="docs", ca=ca, auth=(user, password), layout=Layout(replicas=0))


async def write(store: OpenSearchStore) -> None:
    """Two runs, a page put twice in a run, a removed page, a failed run, a rollback and a rebuild."""
    await publish(store, "one", "two")
    await (await store.live()).chunks_of([f"{SITE}/0"])  # as a run does
    async with await store.draft(RECIPE) as draft:
        await put(draft, "/0", "one", title="Another title")
        await put(draft, "/0", "one, rewritten")
        await put(draft, "/0", "one, again")
        await draft.remove(f"{SITE}/1")
        await draft.publish()
    await add_run(store, "done", 1.0)
    await publish(store, "three")
    await store.rollback()
    async with await store.draft(replace(RECIPE, splitter="other"), rebuild=True):
        pass  # a run that ends without publishing deletes its indices
    async with await store.draft(replace(RECIPE, splitter="other")) as draft:
        await put(draft, "/0", "three")
        await draft.publish()


async def read(store: OpenSearchStore) -> None:
    """All that a service asks for, and the retriever for LlamaIndex."""
    for generation in (OpenSearchStore.generation_class, VectorStoreGeneration):
        store.generation_class = generation
        store._pinned = None  # noqa: SLF001
        live = await store.live()
        found = await live.search(QUERY)
        assert found.lexical, "nothing was found"
        assert found.vector, "nothing was found"
        await live.fetch([hit.id for hit in found.vector])
        await live.vectors([hit.id for hit in found.vector])
        await live.pages()
        await live.vocabulary()
        await live.language_centres()
        await live.chunks_of([hit.url for hit in found.vector])
    await store.generations()
    await store.runs()


async def refusal(job: Job, store: OpenSearchStore) -> str:
    """The first line of the error of the job; empty if it worked."""
    try:
        await job(store)
    except (StoreError, AssertionError) as error:
        return str(error) or type(error).__name__
    finally:
        await store.close()
    return ""


class Administrator:
    """Changes roles with the certificate of an administrator, and deletes the index."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        context = ssl.create_default_context(cafile=arguments.ca)
        context.load_cert_chain(arguments.cert, arguments.key)
        self._http = httpx.Client(base_url=arguments.url, verify=context, timeout=30)

    def set_role(self, name: str, role: dict[str, Any]) -> None:
        """Replace the role."""
        self._http.put(f"/_plugins/_security/api/roles/{name}", json=role).raise_for_status()

    def empty(self) -> None:
        """Delete everything that a run made."""
        for index in self._http.get("/docs-*/_alias").json():
            self._http.delete(f"/{index}")
        self._http.delete("/_search/pipeline/docs-hybrid")


def without(role: dict[str, Any], action: str) -> dict[str, Any]:
    """The role without this action."""
    less = deepcopy(role)
    for actions in (less["cluster_permissions"], less["index_permissions"][0]["allowed_actions"]):
        if action in actions:
            actions.remove(action)
    return less


async def main(arguments: argparse.Namespace) -> int:
    """Returns the exit code."""
    roles = {name: role for name, role in yaml.safe_load(ROLES.read_text("utf-8")).items() if name != "_meta"}
    admin = Administrator(arguments)

    async def attempt(job: Job, user: str, what: str) -> str:
        error = await refusal(job, opened(arguments.url, arguments.ca, user))
        print(f"| {user} | {what} | {error[:150] or 'works'} |", flush=True)
        return error

    admin.empty()
    for name, role in roles.items():
        admin.set_role(name, role)
    faults = [await attempt(write, "docs-ingester", "writes"), await attempt(read, "docs-reader", "reads")]
    if "403" not in await attempt(write, "docs-reader", "writes"):
        faults.append("the reader may write")
    for name, user, job in (("docs_reader", "docs-reader", read), ("docs_ingester", "docs-ingester", write)):
        role = roles[name]
        for action in role["cluster_permissions"] + role["index_permissions"][0]["allowed_actions"]:
            if job is write:
                admin.empty()
            admin.set_role(name, without(role, action))
            await attempt(job, user, f"without {action}")
        admin.set_role(name, role)
    admin.empty()
    return 1 if any(faults) else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    for option in ("--ca", "--cert", "--key"):
        parser.add_argument(option, required=True)
    sys.exit(asyncio.run(main(parser.parse_args())))
