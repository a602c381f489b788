"""Indexing as the benchmark wants it: serves its pages as a site, crawls that with `docs-assistant ingest`, prints one line.

index.py PAGES BENCH, where BENCH has the benchmark's serve_corpus.py.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PORT = 8831  # the same in each run: another address would be another site
STARTS_WITHIN = 10.0  # seconds
MISSING = {"skipped", "failed"}
INGEST = [sys.executable, "-m", "docs_assistant.cli", "ingest", "--json"]


@contextmanager
def site(pages: Path, bench: Path) -> Iterator[str]:
    """The pages as a web site while the context lasts; gives its sitemap's address."""
    server = subprocess.Popen([sys.executable, bench / "serve_corpus.py", pages, str(PORT)])
    try:
        sitemap = f"http://127.0.0.1:{PORT}/sitemap.xml"
        _wait(sitemap, server)
        yield sitemap
    finally:
        server.terminate()
        server.wait()


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while True:
        if server.poll() is not None:
            sys.exit(f"The site did not start (exit code {server.returncode}). Is port {PORT} taken?")
        try:
            urllib.request.urlopen(address, timeout=1).close()
        except OSError as error:
            if time.monotonic() > deadline:
                sys.exit(f"{address} does not answer: {error}")
            time.sleep(0.05)
        else:
            return


def result(report: str) -> str:
    """The benchmark's line for a report of `docs-assistant ingest --json`; ends the program where pages are missing.

    Four of the benchmark's pages say that they are English, but are Czech or Slovak, and aren't indexed for that reason.
    """
    told = json.loads(report)
    counts = told["counts"]
    if missing := [page for page in told["pages"] if page["outcome"] in MISSING and not page["other_language"]]:
        sys.exit(f"Not all pages are in the index: {counts}; {missing[0]['url']}: {missing[0]['reason']}")
    pages = counts["new"] + counts["changed"] + counts["unchanged"]
    return json.dumps({"pages": pages, "chunks": told["published"]["chunks"], "seconds": told["seconds"]})


def main() -> None:
    """Index and print the line."""
    pages, bench = map(Path, sys.argv[1:])
    with site(pages, bench) as sitemap:
        done = subprocess.run([*INGEST, sitemap], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"docs-assistant ingest ended with {done.returncode}: {done.stdout[-500:]}")
    print(result(done.stdout))


if __name__ == "__main__":
    main()
