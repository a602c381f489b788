"""The page at `/` in a real Chromium, on loopback: `python -m bench.page`.

Starts a service without an index or model, and opens the page 15 times with an empty cache and 15 times again. Prints the milliseconds
until the document is parsed, and until the field for a question is there and painted, and the kilobytes that were transferred; for
comparison on a busy machine, also those of a page without anything.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.end_to_end.program import service
from tests.end_to_end.test_browser import NAMES, QUIET

LOADS = 15
# two frames after the field is in the document, it is on the screen
READY = """() => new Promise(done => {
  const look = () => document.querySelector('textarea, [role=search] input') || location.pathname.includes('/health') ? requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())))
    : requestAnimationFrame(look);
  look();
})"""
PARSED = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
FILES = "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].reduce((sum, one) => sum + one.transferSize, 0)"


def load(context: BrowserContext, url: str) -> tuple[float, float, float]:
    """Milliseconds until it was parsed and ready, and kilobytes."""
    page = context.new_page()
    page.goto(url, wait_until="commit")
    ready = page.evaluate(READY)
    page.wait_for_load_state("networkidle")
    found = page.evaluate(PARSED), ready, page.evaluate(FILES) / 1000
    page.close()
    return found


def measured(browser: Browser, url: str) -> None:
    """Print a row for first loads and one for later ones."""
    kept = browser.new_context()
    load(kept, url)  # the browser itself starts
    first, later, empty = [], [], []
    for _ in range(LOADS):
        fresh = browser.new_context()
        first.append(load(fresh, url))
        later.append(load(kept, url))
        empty.append(load(kept, f"{url}health/live"))
        fresh.close()
    print(
        "| load | parsed (ms) | ready (ms, median) | ready (ms, worst) | transferred (kB) |\n|---|---:|---:|---:|---:|"
    )
    for name, loads in (("first", first), ("later", later), ("an empty page", empty)):
        parsed, ready, kilobytes = zip(*loads, strict=True)
        middle = [statistics.median(values) for values in (parsed, ready, kilobytes)]
        print(f"| {name} | {middle[0]:.0f} | {middle[1]:.0f} | {max(ready):.0f} | {middle[2]:.1f} |")


def main() -> None:
    """Measure the page."""
    program = next(found for name in NAMES if (found := shutil.which(name)))
    arguments = [one for one in QUIET if one != "--headless"]
    with (
        tempfile.TemporaryDirectory() as folder,
        service(Path(folder), "serve") as running,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=program, args=arguments) as browser,
    ):
        measured(browser, f"{running.url}/")


if __name__ == "__main__":
    main()
