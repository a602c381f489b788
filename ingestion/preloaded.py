"""What the process that workers are forked from imports, so that each of them has it from its start."""

import gc
from contextlib import suppress
from importlib import import_module

from app.core.errors import SettingsError

gc.disable()  # modules don't become garbage; a worker looks for that of its pages
for name in ("boilerplate.compare", "html.page", "language", "markdown.page", "reader"):
    import_module(f"ingestion.convert.{name}")
for name in ("crawl.sitemap", "split.parsers", "split.splitters"):
    import_module(f"ingestion.{name}")
with suppress(SettingsError):  # of a plugin; the first page that is converted meets it again
    import_module("ingestion.convert").converters()
