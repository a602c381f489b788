"""Plugins, examples and programs need nothing but the public package."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import docs_assistant
from app.core.errors import NoIndex, RequestError, SettingsError
from docs_assistant import llama_index, open_index
from tests.docs_assistant.corpus import SITE

ROOT = Path(__file__).parents[2]
ROOMS = {"app", "ingestion", "eval", "plugins", "prompts"}
PUBLIC = {"docs_assistant": docs_assistant.__all__, "docs_assistant.llama_index": llama_index.__all__}
CODE = [
    *((file.relative_to(ROOT), file.read_text("utf-8")) for file in sorted((ROOT / "examples").rglob("*.py"))),
    *(
        (page.relative_to(ROOT), code)
        for page in (*sorted((ROOT / "docs").glob("[a-z][a-z]/*.md")), ROOT / "README.md")
        for code in re.findall(r"^```python[^\n]*\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    ),
]


def imports(code: str) -> set[tuple[str, str]]:
    """The modules and names that the code imports, also within functions."""
    nodes = list(ast.walk(ast.parse(code)))
    modules = {(alias.name, "") for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return modules | {
        (node.module or "", alias.name) for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def private(code: str) -> set[tuple[str, str]]:
    """Those of ours that aren't public."""
    ours = {(module, name) for module, name in imports(code) if module.split(".")[0] in {*ROOMS, "docs_assistant"}}
    return {(module, name) for module, name in ours if name not in PUBLIC.get(module, ())}


def test_examples_and_the_documentation_import_public_names_alone() -> None:
    using = [where for where, code in CODE if any(module in PUBLIC for module, _ in imports(code))]
    assert {str(where.parent) for where in using} >= {"examples/textile-plugin", "examples/json-dump", "docs/en"}
    assert {str(where): private(code) for where, code in CODE if private(code)} == {}


@pytest.mark.parametrize(
    "code", ["import app.core.turn", "def f():\n from ingestion import run", "from docs_assistant import Hits"]
)
def test_a_private_import_is_found(code: str) -> None:
    assert private(code)


def test_every_name_is_what_its_module_has_and_is_documented() -> None:
    """The lines for type checkers name the same modules as those by which a name is imported."""
    told = {
        (node.module, alias.name)
        for node in ast.walk(ast.parse(Path(docs_assistant.__file__).read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in {*ROOMS, "docs_assistant"}
        for alias in node.names
    }
    assert sorted(name for _, name in told) == sorted(docs_assistant.__all__)
    for module, name in told:
        assert getattr(docs_assistant, name) is getattr(import_module(str(module)), name)
    page = (ROOT / "docs/en/plugins.md").read_text("utf-8").partition("{#imports}")[2].partition("\n## ")[0]
    rows = "\n".join(line for line in page.splitlines() if line.startswith("|"))
    assert set(re.findall(r"`(\w+)`", rows)) == set(docs_assistant.__all__)
    with pytest.raises(AttributeError, match="no 'Hits'"):
        _ = docs_assistant.Hits


def test_the_package_itself_is_light() -> None:
    """A plugin that only marks its functions loads no library of models, stores or HTTP."""
    script = "import sys\nfrom docs_assistant import hookimpl\nprint({'fastapi', 'numpy', 'llama_index', 'ingestion'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


async def test_a_program_searches_and_asks_an_index(directory: str) -> None:
    """Without a service and a language model; what the service refuses is refused."""
    async with open_index(directory) as index:
        passages = await index.search("How do I set API keys?", 3)
        assert len(passages) == 3
        assert [one["score"] for one in passages] == sorted((one["score"] for one in passages), reverse=True)
        assert all(one["url"].startswith(SITE) for one in passages)
        czech = await index.search("API", filters={"languages": ["cs"]})
        assert {one["language"] for one in czech} == {"cs"}
        answer = await index.answer("How do I set API keys?")
        assert answer.extractive
        assert answer.sources[0].url in answer.text
        with pytest.raises(RequestError):
            await index.search("keys", 51)
        with pytest.raises(RequestError):
            await index.answer("keys", model="gpt-4")


async def test_an_index_that_can_t_be_opened_is_an_error_of_ours(tmp_path: Path) -> None:
    async with open_index(str(tmp_path)) as index:
        with pytest.raises(NoIndex):
            await index.search("keys")
    async with open_index("ftp://x/y") as index:
        with pytest.raises(SettingsError, match="ftp"):
            await index.search("keys")
