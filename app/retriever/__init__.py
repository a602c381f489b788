"""LlamaIndex classes over an index or a running service: a retriever and a query engine, and the configured embedder.

Imported by programs that use LlamaIndex, not by the service; imports app.api, app.assistants and app.index.
"""

from app.index.opensearch.vector_store import open_vector_store
from app.retriever.retriever import DocsAssistantQueryEngine, DocsAssistantRetriever, open_embedding

__all__ = ["DocsAssistantQueryEngine", "DocsAssistantRetriever", "open_embedding", "open_vector_store"]
