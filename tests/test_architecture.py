"""The shape of the code: sizes, directions of imports, no prints, nothing of the machine it was written on."""

import ast
import functools
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from vulture import Vulture

ROOT = Path(__file__).parents[1]
PACKAGES = ("docs_assistant", "app", "ingestion", "eval", "plugins", "prompts")
SOURCES = sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py"))
LONGEST_FILE = 600
LONGEST_FUNCTION = 50
NOT_OURS = {".git", ".venv", "__pycache__", "node_modules", "data", "dist", "results"}
# written so that it doesn't find itself
FOREIGN = re.compile(r"(?<![\w.~$}-])/(?:wor[k]|roo[t])/|bash[_]jobs")


def name(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.fixture(autouse=True, scope="module")
def forgotten() -> Iterator[None]:
    """The trees are millions of objects, in which nobody looks for garbage and which others don't need."""
    gc.disable()
    yield
    tree.cache_clear()
    gc.enable()


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text("utf-8"), str(file))


def repository() -> Iterator[Path]:
    """Every file that belongs to the project; an installation beside it has a hundred times as many."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [one for one in folders if one not in NOT_OURS and (one == ".ci" or not one.startswith("."))]
        yield from (Path(folder, file) for file in files if file not in NOT_OURS)


def test_the_sources_are_found():
    """Otherwise, the tests below would check nothing."""
    assert len(SOURCES) > 90
    assert {file.relative_to(ROOT).parts[0] for file in SOURCES} == set(PACKAGES)


def test_files_are_short():
    """At most 600 lines."""
    lengths = {name(file): len(file.read_text("utf-8").splitlines()) for file in SOURCES}
    assert {file: lines for file, lines in lengths.items() if lines > LONGEST_FILE} == {}


def importers() -> dict[str, set[str]]:
    """The modules of ours that import each module, by their files."""
    by_module = {
        name(file).removesuffix(".py").replace("/", ".").removesuffix(".__init__"): name(file) for file in SOURCES
    }
    importing: dict[str, set[str]] = {file: set() for file in by_module.values()}
    for file in SOURCES:
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    module = f"{node.module}.{alias.name}"
                    target = by_module.get(module) or by_module.get(node.module)
                    if target and target != name(file):
                        importing[target].add(name(file))
    return importing


APART = {
    "app/routes": ("openid",),
    "docs_assistant/cli": ("server",),
    "plugins/gaps": ("routes",),
    "plugins/more_apis": ("llms_txt",),
    "app/models": ("openai_embedder", "rerank"),
    "ingestion/convert/boilerplate": ("compare",),
}
"""Short modules that stand apart from their only importer, which stands beside them: commands
that `docs_assistant.cli.commands` names, what is loaded only when it is needed (a store, a server, a description, an embedder, a reranker, a provider of sign-in, a
comparison of pages). None is to
be added without such a reason."""


def test_a_short_module_has_more_than_its_neighbour_as_importer():
    """A module of under 150 lines that only one module of its folder imports belongs into that one."""
    alone = {
        file
        for file, by in importers().items()
        if len(by) == 1
        and not file.endswith("__init__.py")
        and len((ROOT / file).read_text("utf-8").splitlines()) < 150
        and Path(next(iter(by))).parent == Path(file).parent
    }
    assert alone == {f"{folder}/{module}.py" for folder, modules in APART.items() for module in modules}


def test_functions_are_short():
    """At most 50 lines, so that one fits on a screen."""
    long = {
        f"{name(file)}:{node.name}": lines
        for file in SOURCES
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
    }
    assert long == {}


CALLED_BY_LIBRARIES = frozenset(
    re.findall(
        r"\w+",
        """_aget_query_embedding _aget_text_embedding _aget_text_embeddings _aquery _aretrieve _get_prompt_modules _get_query_embedding
        _get_text_embedding _parse_nodes _aparse_nodes aload_data lazy_load_data _postprocess_nodes acomplete alazy_load_data astream_complete stream_complete _retrieve _parse_filters acquire_entry get_moving_window send_400_response
        timeout_keep_alive_handler is_allowed_origin format_commands process_bind_param create_module exec_module
        connect_unix_socket load_server_metadata __getattr__""",
    )
)
"""Methods of classes that libraries define: LlamaIndex, limits, uvicorn, Starlette, click, SQLAlchemy, importlib, httpcore
and Authlib call them, and Python calls `__getattr__` of a module."""


def test_no_code_is_dead():
    """By vulture, which looks at names only. Fields of data are left out, and what a decorator registers."""
    vulture = Vulture(
        ignore_decorators=["@hookimpl", "@_spec", "@model_validator*", "@field_validator*", "@*command*", "@*option*"]
    )
    vulture.scavenge([str(ROOT / package) for package in PACKAGES])
    unused = {
        f"{name(item.filename)}:{item.name}"
        for item in vulture.get_unused_code(min_confidence=60)
        if item.typ not in ("variable", "attribute") and item.name not in CALLED_BY_LIBRARIES
    }
    assert unused == set()


def test_every_module_says_what_it_is_for():
    """In one to four lines at its top."""
    for file in SOURCES:
        docstring = ast.get_docstring(tree(file))
        assert docstring, name(file)
        assert len(docstring.splitlines()) <= 7, name(file)


def test_only_the_command_line_prints():
    """Other code returns or logs text."""
    printing = [
        f"{name(file)}:{node.lineno}"
        for file in SOURCES
        if file.parent != ROOT / "docs_assistant/cli" and file.name != "command.py"
        for node in ast.walk(tree(file))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def _own(node: ast.AST) -> str:
    """The name of an attribute of `self`; empty for anything else."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node.attr if is_own else ""


def _held_tasks(cls: ast.ClassDef) -> set[str]:
    """Attributes that tasks are kept in, one after the other: not those of an object that is entered once."""
    methods = [node for node in cls.body if getattr(node, "name", "") not in {"__init__", "__aenter__"}]
    assigned = [node for method in methods for node in ast.walk(method) if isinstance(node, ast.Assign)]
    tasks = [
        node for node in assigned if re.search(r"create_task|ensure_future|create_future", ast.unparse(node.value))
    ]
    return {_own(target) for node in tasks for target in node.targets} - {""}


def test_nobody_waits_for_a_task_in_an_attribute_and_reads_the_attribute_again():
    """Another may have replaced it meanwhile: keep the task in a variable, or let `app.core.gate.Joined` do it."""
    again = []
    for file in SOURCES:
        for cls in (node for node in ast.walk(tree(file)) if isinstance(node, ast.ClassDef)):
            held = _held_tasks(cls)
            for function in (node for node in ast.walk(cls) if isinstance(node, ast.AsyncFunctionDef)):
                awaits = [node for node in ast.walk(function) if isinstance(node, ast.Await)]
                waited = {(_own(part), node.end_lineno) for node in awaits for part in ast.walk(node)}
                again += [
                    f"{name(file)}:{node.lineno} self.{_own(node)}"
                    for node in ast.walk(function)
                    if isinstance(getattr(node, "ctx", None), ast.Load)
                    and any(_own(node) == own and own in held and node.lineno > line for own, line in waited)
                ]
    assert again == []


ANSWER = ("app/proof/", "app/citing/", "app/text/", "app/pipeline/")
"""The rooms between a model and its reader."""
BUDGETS = {
    "calls of regular expressions": 598,
    "calls of regular expressions in the answer": 190,
    "numbers of modules": 794,
    "numbers of modules in the answer": 188,
    "files whose constants stand in several places": 116,
}
"""Rules that were made by hand. A budget only falls: who needs one more takes another away, and who needs fewer lowers it here."""


def _expressions(module: ast.Module) -> int:
    used = [node.func for node in ast.walk(module) if isinstance(node, ast.Call)]
    called = [f for f in used if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id == "re"]
    return sum(f.attr != "escape" for f in called)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _numbers(module: ast.Module) -> int:
    """Values of the module that are or have a number, calls aside."""
    values = [node.value for node in module.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value]
    return sum(not isinstance(value, ast.Call) and any(map(_is_number, ast.walk(value))) for value in values)


def _islands(module: ast.Module) -> int:
    """Groups of constants with a function or a class between them."""
    kinds = []
    for node in module.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id.strip("_").isupper() for target in targets):
            kinds.append("c")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            kinds.append(" ")
    return len("".join(kinds).split())


def test_rules_become_fewer():
    """Patterns, numbers and constants are what an expert system grows by; the budget is the number of today, or at most five above it."""
    counted = dict.fromkeys(BUDGETS, 0)
    for file in SOURCES:
        module, in_answer = tree(file), name(file).startswith(ANSWER)
        for kind, number in (
            ("calls of regular expressions", _expressions(module)),
            ("numbers of modules", _numbers(module)),
        ):
            counted[kind] += number
            counted[f"{kind} in the answer"] += number * in_answer
        counted["files whose constants stand in several places"] += _islands(module) > 1
    assert {kind: number for kind, number in counted.items() if number > BUDGETS[kind]} == {}, "more than the budget"
    assert {kind: number for kind, number in counted.items() if number < BUDGETS[kind] - 5} == {}, "lower the budget"


LETTERS = r"(?:\[\^\\W(?:\\d)?_?\]|\\w)"
OWNERS: dict[str, tuple[str, re.Pattern[str], re.Pattern[str]]] = {
    "word": (
        "app/text/analysis.py",
        re.compile(rf"\(?{LETTERS}[+*]{{1,2}}(?:\(\?:\['’\].*\)\*?\??)?\)?"),
        re.compile(r"_?(?:words(?:_in)?|tokens|tokenize)"),
    ),
    "stem": (
        "app/text/analysis.py",
        re.compile(rf"\(?{LETTERS}\{{.*\}}\)?.*{LETTERS}\*"),
        re.compile(r"_?(?:stems?|stem_of|roots?|fold(?:ed)?)"),
    ),
}
"""What a text consists of: each noun with its owner, and how a second definition would look: as a pattern, and as a function of a text."""
ADAPTERS = {"app/proof/check.py:_stems", "app/citing/headings.py:_words"}
"""Functions that choose among what the owner finds."""
LEFT = {("app/citing/citations.py", "word")}
"""Modules that still have one of their own; none is to be added."""


def _patterns(module: ast.Module) -> Iterator[tuple[int, str]]:
    """What calls of `re` are given, in lines."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "re":
            given = node.args[0] if node.args else None
            parts = given.values if isinstance(given, ast.JoinedStr) else [given] if given else []
            yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in parts)


def second_definitions(file: str, module: ast.Module) -> list[str]:
    """Where a module that isn't the owner says again what a noun of `OWNERS` is."""
    found = list[str]()
    for noun, (owner, pattern, function) in OWNERS.items():
        if file == owner or (file, noun) in LEFT:
            continue
        found += [f"{file}:{line} {noun}" for line, text in _patterns(module) if pattern.fullmatch(text)]
        found += [
            f"{file}:{node.name} {noun}"
            for node in ast.walk(module)
            if isinstance(node, ast.FunctionDef)
            and function.fullmatch(node.name)
            and f"{file}:{node.name}" not in ADAPTERS
            and ast.unparse(node.args).startswith(("text: str", "word: str", "plain: str"))
        ]
    return found


def test_each_noun_of_a_text_has_one_owner():
    """What a word is, is decided once: two answers to that make a text that one part of the program finds and another doesn't."""
    found = [
        one for file in SOURCES if name(file).startswith(ANSWER) for one in second_definitions(name(file), tree(file))
    ]
    assert found == []


@pytest.mark.parametrize(
    "second",
    [
        'WORD = re.compile(r"[^\\W\\d_]+(?:[\'’]t)?")', 'found = re.findall(r"\\w+", text)', "def stem_of(word: str) -> str: ...",
        'STEMS = re.compile(rf"([^\\W_]{{3,{STEM}}})[^\\W_]*")', "def words_in(text: str) -> list[str]: ...",
    ],
)  # fmt: skip
def test_a_second_definition_is_found(second: str):
    """These have been in the program."""
    assert second_definitions("app/proof/new.py", ast.parse(second))
    assert not second_definitions("app/text/analysis.py", ast.parse(second))


def test_no_module_has_a_vague_name():
    """Names such as utils or helpers are forbidden."""
    empty_words = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}
    assert [name(file) for file in SOURCES if file.stem in empty_words] == []


def test_imports_go_one_way():
    """The contracts of pyproject.toml hold."""
    lint_imports = Path(sys.executable).with_name("lint-imports")
    if not lint_imports.exists():
        pytest.fail("import-linter isn't installed: run `make install-dev`")
    done = subprocess.run([lint_imports, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", done.stdout)


def test_routes_are_added_in_one_way():
    """On the router of their group, which `include` adds to the service."""
    adding = re.compile(r"\bapp\.(?:router\b|(?:add_api_route|add_route|api_route|mount|include_router)\()")
    assert {name(file) for file in SOURCES if adding.search(file.read_text("utf-8"))} == {"app/routes/routers.py"}


def test_no_file_names_places_of_somebody_s_machine():
    """No absolute paths of the machine that something was written or measured on."""
    found = []
    for file in repository():
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:  # a picture
            continue
        found += [f"{name(file)}: {text[max(0, m.start() - 30) : m.end() + 20]!r}" for m in FOREIGN.finditer(text)]
    assert found == []


def test_no_two_tests_of_a_file_have_the_same_name():
    """No two tests of one file have the same name: the second would silently replace the first."""
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        names = [n.name for n in tree(file).body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        assert len(names) == len(set(names)), name(file)
