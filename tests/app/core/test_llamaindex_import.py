"""Parts of LlamaIndex are imported alone, and the whole of it afterwards is what it is without us."""

import subprocess
import sys

LATE = "import app.core.llamaindex_import\n"
PARTS = "".join(
    f"import llama_index.core.{name}\n"
    for name in (
        "schema",
        "llms.llm",
        "base.embeddings.base",
        "postprocessor.types",
        "node_parser.interface",
        "readers.base",
        "base.base_retriever",
        "base.base_query_engine",
    )
)
WHOLE = """
import llama_index.core
from llama_index.core import *
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.indices import SummaryIndex
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.node_parser import SentenceSplitter
for package in (llama_index.core, llama_index.core.indices, llama_index.core.postprocessor):
    assert all(hasattr(package, name) for name in package.__all__), package
    assert type(package).__name__ == "module" and type(package.__loader__).__name__ == "SourceFileLoader"
assert llama_index.core.VectorStoreIndex is VectorStoreIndex
assert llama_index.core.__version__ != "0.0.0"
"""
OURS = """
from app.models.openai import Endpoint
from app.models.openai_embedder import OpenAIEmbedder
OpenAIEmbedder(Endpoint("http://localhost/v1", timeout=1), "e")
"""
LISTENED = """
from llama_index.core import Settings
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
Settings.callback_manager = CallbackManager([handler := LlamaDebugHandler()])
from app.models.openai import Endpoint
from app.models.openai_embedder import OpenAIEmbedder
embedder = OpenAIEmbedder(Endpoint("http://localhost/v1", timeout=1), "e")
assert embedder.callback_manager.handlers == [handler]
"""
INTEGRATIONS = """
from llama_index.llms.openai_like import OpenAILike
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.vector_stores.opensearch import OpensearchVectorStore
"""


ONCE = f"""{LATE}{PARTS}
from concurrent.futures import ThreadPoolExecutor
import llama_index.core as core
real, runs = core.__spec__.loader.exec_module, []
def broken(module): raise ImportError('broken')
core.__spec__.loader.exec_module = broken
try: core.VectorStoreIndex
except ImportError: pass
else: raise AssertionError
core.__spec__.loader.exec_module = lambda module: (runs.append(module), real(module))
with ThreadPoolExecutor(8) as pool:
    classes = set(pool.map(lambda _: core.VectorStoreIndex, range(8)))
assert len(classes) == 1 and runs == [core], runs
"""
ALREADY = f"""
import sys, llama_index.core
before = {{name: (module, type(module)) for name, module in sys.modules.items() if name.startswith('llama_index')}}
{LATE}{PARTS}{WHOLE}{INTEGRATIONS}
assert all(sys.modules[name] is module and type(module) is kind for name, (module, kind) in before.items())
"""
FORKS = """
import os, sys, traceback
import openai, nltk, sqlalchemy.orm, workflows, tiktoken, opensearchpy, aiohttp, griffe, numpy  # what others import, which takes longest
assert not [name for name in sys.modules if name.partition(".")[0] in {"llama_index", "app"}]
def ends_well(name, code):
    if child := os.fork():
        return not os.waitpid(child, 0)[1]
    try:
        exec(code, {})
        os._exit(0)
    except BaseException:
        print(name, traceback.format_exc(), file=sys.stderr, flush=True)
        os._exit(1)
sys.exit(not all([ends_well(name, code) for name, code in CODES.items()]))
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert not done.returncode, done.stderr


def test_parts_and_our_embedders_are_imported_without_the_whole() -> None:
    run(
        f"{LATE}{PARTS}{OURS}\nimport sys\n"
        "assert not {'nltk', 'sqlalchemy', 'workflows', 'llama_index.core.indices.vector_store'} & set(sys.modules)\n"
        "core = sys.modules['llama_index.core']\n"
        "assert getattr(core, '__wrapped__', None) is None and 'VectorStoreIndex' not in vars(core)"
    )


def test_our_embedders_import_no_global_settings() -> None:
    run(f"{OURS}\nimport sys\nassert 'llama_index.core.settings' not in sys.modules")


def test_everything_is_there_after_whatever_is_imported_first() -> None:
    """Each order has a process of its own, which begins with what other packages import."""
    codes = {
        "whole": LATE + WHOLE,
        "parts first": LATE + PARTS + WHOLE + INTEGRATIONS,
        "integrations first": LATE + INTEGRATIONS + WHOLE,
        "indices first": f"{LATE}from llama_index.core.indices import SummaryIndex\n{WHOLE}",
        "module of indices first": f"{LATE}import llama_index.core.indices.vector_store\n{WHOLE}",
        "global handlers of callbacks are those of ours": LISTENED,
        "what is imported already stays as it is": ALREADY,
        "an init that failed runs again, and once for several threads": ONCE,
    }
    run(f"CODES = {codes!r}\n{FORKS}")
