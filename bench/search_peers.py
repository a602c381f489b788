"""The search as you type beside that of Material for MkDocs, on the same sites: `python -m bench.search_peers MKDOCS CORPUS`.

MKDOCS is a program of a virtual environment with the package mkdocs-material, CORPUS the benchmark's directory of pages. Material
builds three sites of ours and of theirs; its search is typed into in Chromium. Ours indexes these built sites over HTTP. A query
counts if the first page, or one of the first three, is the right one, which was written down before either was asked.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from playwright.sync_api import Page, sync_playwright

PORT, SERVICE = 8861, "http://127.0.0.1:8862"
SITES: Mapping[str, Sequence[tuple[str, str]]] = {
    "docs": (
        ("open webui", "clients"), ("nginx", "proxies"), ("backup", "backup"), ("promethe", "monitoring"),
        ("rate limit", "security"), ("kuber", "kubernetes"), ("opensaerch", "opensearch"), ("delete index", "indexing"),
        ("DOCS_PORT", "settings"), ("slack bot", "chats"),
    ),
    "vue-guide": (
        ("slots", "components__slots"), ("computed", "essentials__computed"), ("v-model", "components__v-model"),
        ("teleport modal", "built-ins__teleport"), ("lifecyle hooks", "essentials__lifecycle"),
        ("keep ali", "built-ins__keep-alive"), ("validate props", "components__props"),
        ("ref in template", "essentials__template-refs"), ("hydration mismatch", "scaling-up__ssr"),
        ("lazy loading component", "components__async"),
    ),
    "kube": (
        ("vpn", "other__vpn"), ("gpu", "resources"), ("quota", "quotas"), ("postgres", "operators__postgres"),
        ("jupyter", "jupyterhub"), ("request project", "reqproj"), ("rstduio", "rstudio"),
        ("nextflow pipeline", "nextflow"), ("persistent volume", "pvc"), ("grafana", "pmon__pmon"),
    ),
}  # fmt: skip
"""The queries of each site, with the right page: names, beginnings of words, words of the text, and misspelt ones."""


def build(mkdocs: Path, pages: Sequence[Path], name: str, directory: Path) -> Path:
    """The site of these pages as Material builds it."""
    source = directory / "docs"
    source.mkdir(parents=True)
    for page in pages:
        shutil.copy(page, source / page.name.removeprefix(f"{name}__"))
    (source / "index.md").write_text(f"# {name}\n", encoding="utf-8")
    config = {
        "site_name": name, "site_url": f"http://127.0.0.1:{PORT}/", "theme": {"name": "material"}, "plugins": ["search"],
        "markdown_extensions": ["attr_list", "tables", "pymdownx.superfences"],
    }  # fmt: skip
    (directory / "mkdocs.yml").write_text(json.dumps(config), encoding="utf-8")
    subprocess.run([mkdocs, "build", "-q", "-f", directory / "mkdocs.yml"], check=True, stderr=subprocess.DEVNULL)
    return directory / "site"


@contextmanager
def running(command: Sequence[str | Path], ready: str, **environment: str) -> Iterator[None]:
    """A program while the context lasts, once the address answers."""
    process = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while True:
            try:
                if httpx.get(ready).is_success:
                    break
            except httpx.TransportError:
                if process.poll() is not None:
                    sys.exit(f"{command[0]} ended before {ready} answered.")
            time.sleep(0.2)
        yield
    finally:
        process.terminate()
        process.wait()


def of_material(page: Page, query: str) -> list[str]:
    """The pages that Material's search shows, in its order."""
    page.goto(f"http://127.0.0.1:{PORT}/")
    field = page.locator("[data-md-component=search-query]")
    field.click()
    field.press_sequentially(query, delay=20)
    page.wait_for_timeout(1500)  # it has no sign that says it has finished
    links = page.locator(".md-search-result__item > a").evaluate_all("all => all.map(one => one.href)")
    return list(dict.fromkeys(map(name_of, links)))


def of_ours(query: str) -> list[str]:
    """The pages that the search of ours shows, in its order."""
    given = {"q": query, "as_you_type": "true", "limit": "20"}
    found = httpx.get(f"{SERVICE}/v1/search", params=given).raise_for_status().json()
    return list(dict.fromkeys(name_of(row["url"]) for row in found["data"]))


def name_of(address: str) -> str:
    """The name of the page's file."""
    return urlsplit(address).path.strip("/")


def main() -> None:
    """Print a table with each site's queries whose right page is first, and among the first three, for both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mkdocs", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--show", action="store_true", help="also print each query with the first three pages of both")
    options = parser.parse_args()
    own = sorted(Path("docs/en").glob("*.md"))
    print("| site | queries | first: Material | ours | in three: Material | ours |\n|---|---|---|---|---|---|")
    for name, queries in SITES.items():
        pages = own if name == "docs" else sorted(options.corpus.glob(f"{name}__*.md"))
        with tempfile.TemporaryDirectory() as directory:
            site = build(
                options.mkdocs, [page for page in pages if page.name != "index.md"], name, Path(directory) / name
            )
            found = compared(site, Path(directory) / "store", [query for query, _ in queries])
        ranks = [[pages.index(right) if right in pages else 99 for pages in found[query]] for query, right in queries]
        counts = [sum(rank[i] < most for rank in ranks) for most in (1, 3) for i in (0, 1)]
        print(f"| {name} | {len(queries)} |", " | ".join(map(str, counts)), "|", flush=True)
        if options.show:
            for query, right in queries:
                print(f"    {query} -> {right}: {found[query][0][:3]} | {found[query][1][:3]}")


def compared(site: Path, store: Path, queries: Sequence[str]) -> dict[str, tuple[list[str], list[str]]]:
    """The pages that Material's search and ours show for each query."""
    settings = {"DOCS_STORE": str(store), "DOCS_LANGUAGES": "en", "DOCS_PORT": SERVICE.rpartition(":")[2]}
    home, command = f"http://127.0.0.1:{PORT}/", [sys.executable, "-m", "docs_assistant.cli"]
    server = [sys.executable, "-m", "http.server", str(PORT), "--bind", "127.0.0.1", "-d", site]
    with running(server, home):
        ingest = [*command, "ingest", f"{home}sitemap.xml"]
        subprocess.run(ingest, env=os.environ | settings, check=True, capture_output=True)
        with running([*command, "serve"], f"{SERVICE}/health/ready", **settings), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = browser.new_page()
            return {query: (of_material(page, query), of_ours(query)) for query in queries}


if __name__ == "__main__":
    main()
