"""Says which items of systems.toml no test has shown: `python -m tests.systems.ran FILE`, after the tests with PASSED_TESTS=FILE.

`tests/conftest.py` adds the test that passed to that file, a line for each.
"""

import ast
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
SYSTEMS = Path(__file__).with_name("systems.toml")


def items() -> list[dict[str, str]]:
    """Each item: its id, what it is, where it stands, and the test that shows it."""
    return [item for table in tomllib.loads(SYSTEMS.read_text("utf-8")).values() for item in table["items"]]


@cache
def _functions(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text("utf-8")) if file.is_file() else ast.Module([], [])
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def missing_tests() -> list[str]:
    """The items whose test doesn't exist, each with the test."""
    named = [(item, *item["test"].split("::")) for item in items()]
    return [f"{item['id']}: {item['test']}" for item, file, test in named if test not in _functions(TESTS / file)]


def unproved(passed: Path) -> Iterator[str]:
    """The items whose test isn't among those that passed, each with the test; a case of a parametrised test is enough."""
    names = {line.partition("[")[0] for line in passed.read_text("utf-8").splitlines()}
    yield from (
        f"{item['id']}: {item['item']}: {item['test']}" for item in items() if f"tests/{item['test']}" not in names
    )


def main(passed: Path) -> int:
    """Print what isn't shown; 1 if there is something."""
    lacking = list(unproved(passed))
    print(
        *lacking, f"{len(items()) - len(lacking)} of {len(items())} items of the published systems are shown", sep="\n"
    )
    return int(bool(lacking))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
