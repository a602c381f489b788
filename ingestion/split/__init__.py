"""Pages -> chunks, cut by a LlamaIndex `NodeParser`: one of `parsers.py`, or a class from outside.

Called by `publish` and `run`; imports `convert` and `crawl`.
"""

from ingestion.split.splitters import VERSIONS as SPLITTERS
from ingestion.split.splitters import Splitter, open_splitter

__all__ = ["SPLITTERS", "Splitter", "open_splitter"]
