"""LlamaIndex classes over an index or a running service: `DocsAssistantRetriever` and `DocsAssistantQueryEngine`.

Imported by programs that use LlamaIndex, not by the service; imports app.api, app.assistants and app.index.
"""

from app.retriever.query_engine import DocsAssistantQueryEngine
from app.retriever.retriever import DocsAssistantRetriever

__all__ = ["DocsAssistantQueryEngine", "DocsAssistantRetriever"]
