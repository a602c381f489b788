"""Finds every regular expression of the program and times it on hostile texts: none may take more than linear time.

`python -m bench.patterns` fails on the first text that a pattern needs too long for (`make check` runs it);
`python -m bench.patterns --table` prints how long each takes for 10, 100 and 1,000 KB of its worst text.

What is found: patterns of modules, patterns in calls such as `re.search("...", text)`, and what functions build,
for which `BUILT` has an example each; one that isn't there is an error.
"""

import ast
import importlib
import pkgutil
import re
import signal
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from bench.built import AWAITED, BOUNDED, BUILT, entries
from bench.hostile import ODD, Grow, hostile

ROOMS = ("docs_assistant", "app", "ingestion", "plugins")
FUNCTIONS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
SCREENED = (32, 64, 128, 1_000, 4_000)  # characters
STEEP = 4.6  # times as long for the last of these as for the one before: 4 is linear
TOO_LONG = 0.025  # seconds for one of these: a longer one may take for ever
SIZES = (20_000, 80_000)  # what grows with the square takes 4 times what is linear, which a busy machine never does
QUICK = 0.005  # seconds for the longer of these: what grows with the square takes a thousand times that
WORST = 3  # times what linear growth would be: the square is 4, and beside other work 2.5 was seen of linear growth
SLOWEST = 0.05  # seconds for a text as long as a bounded pattern may see
LIMIT = 2.0  # seconds for one text
QUESTIONS = (5_000, 20_000)  # characters: the second is the longest question
LONGEST_READ = 0.3  # seconds for the longest question, in one function
TRIES = 6


@dataclass(frozen=True)
class Used:
    """A pattern, where it is, and whether it is only tried at the beginning of a text."""

    place: str
    pattern: re.Pattern[Any]
    way: str = "finditer"

    def seconds(self, text: str, limit: float | None = None) -> float:
        """How long it takes with a text; infinite where that is beyond the limit."""
        given: Any = text if isinstance(self.pattern.pattern, str) else text.encode("latin-1", "replace")
        signal.setitimer(signal.ITIMER_VIRTUAL, limit or LIMIT)
        started = time.thread_time()
        try:
            if self.way == "finditer":
                deque(self.pattern.finditer(given), maxlen=0)
            else:
                getattr(self.pattern, self.way)(given)
            return time.thread_time() - started
        except TimeoutError:
            return float("inf")
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def worst(self) -> tuple[str, Grow]:
        """The text that takes longest for its length."""
        return max(hostile(self.pattern), key=lambda one: self.seconds(one[1](SCREENED[-1])))

    def problem(self) -> str:
        """The text that it takes more than linear time for, and how long; empty where there is none."""
        for name, grow in hostile(self.pattern):
            if bound := BOUNDED.get(self.place):
                if (seconds := self._least(grow(bound))) > SLOWEST:
                    return f"{self.place}: {name} takes {seconds:.3f} s for {bound} characters"
            elif self._suspicious(grow) and (factor := self._growth(grow)) > WORST:
                return f"{self.place}: {name} takes {factor:.1f} x what linear growth would be\n    {self.pattern.pattern!r}"
        return ""

    def _least(self, text: str) -> float:
        """How long it takes with a text; the best of some tries where that is too long."""
        seconds = self.seconds(text)
        for _ in range(TRIES):
            if seconds > SLOWEST:
                seconds = min(seconds, self.seconds(text))
        return seconds

    def _suspicious(self, grow: Grow) -> bool:
        before = seconds = 0.0
        for size in SCREENED:
            before, seconds = seconds, self.seconds(grow(size))
            if seconds > TOO_LONG:
                return True
        return seconds > STEEP * before

    def _growth(self, grow: Grow) -> float:
        """How much longer the longer of `SIZES` takes, by what linear growth would be; the best of some tries."""
        best = [float("inf"), float("inf")]
        for _ in range(TRIES):
            best = [min(one, self.seconds(grow(size))) for one, size in zip(best, SIZES, strict=True)]
            growth = best[1] / best[0] / (SIZES[1] / SIZES[0]) if best[1] < LIMIT else float("inf")
            if best[1] < QUICK:
                return 1.0
            if growth <= WORST or growth == float("inf"):
                break
        return growth


def found(rooms: Iterable[str] = ROOMS) -> list[Used]:
    """Every pattern of the packages. Raises `LookupError` for one that a function builds and `BUILT` doesn't know."""
    modules = [module for room in rooms for module in _modules(room)]
    trees = {module: ast.parse(_source(module)) for module in modules}
    everywhere = _ways(trees.values())
    used = [each for module, tree in trees.items() for each in _in_module(module, tree, everywhere)]
    unique = {(each.pattern.pattern, each.pattern.flags, each.way): each for each in used}
    return list(unique.values())


def _modules(room: str) -> Iterator[ModuleType]:
    package = importlib.import_module(room)
    yield package
    for info in pkgutil.walk_packages(package.__path__, f"{room}."):
        if not info.name.endswith("__main__"):  # which only run
            yield importlib.import_module(info.name)


def _source(module: ModuleType) -> str:
    assert module.__file__
    with open(module.__file__, encoding="utf-8") as file:  # noqa: PTH123  # one line
        return file.read()


def _ways(trees: Iterable[ast.AST]) -> Mapping[str, set[str]]:
    """The methods that are called on what has a name, as {"_FENCE": {"match"}}."""
    ways = defaultdict[str, set[str]](set)
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                ways[node.value.id].add(node.attr)
    return ways


def _in_module(module: ModuleType, tree: ast.Module, everywhere: Mapping[str, set[str]]) -> Iterator[Used]:
    names, ways = vars(module), _ways([tree])
    for name, value in names.items():
        if isinstance(value, re.Pattern):  # one that is imported is used as in its own module, or otherwise
            yield Used(f"{module.__name__}.{name}", value, _way((ways.get(name) or everywhere[name]) - {"pattern"}))
    own = {(value.pattern, value.flags) for value in names.values() if isinstance(value, re.Pattern)}
    for function, method, call in _calls(tree):
        place = f"{module.__name__}.{function}".rstrip(".")
        built = _in_call(place, call, method, names)
        yield from (each for each in built if (each.pattern.pattern, each.pattern.flags) not in own)


def _in_call(place: str, call: ast.Call, method: str, names: Mapping[str, Any]) -> list[Used]:
    try:
        return [Used(place, _evaluated(call, method, names), _way({method}))]
    except NameError as error:
        if place not in BUILT:
            raise LookupError(f"{place} builds a pattern that BUILT in bench/built.py has no example of.") from error
        return [Used(place, pattern, way) for pattern, way in BUILT[place]()]


def _way(methods: set[str]) -> str:
    return next(iter(methods)) if len(methods) == 1 and methods <= {"match", "fullmatch", "search"} else "finditer"


def _evaluated(call: ast.Call, method: str, names: Mapping[str, Any]) -> re.Pattern[Any]:
    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "", "eval"), dict(names))  # our own source

    given = [keyword.value for keyword in call.keywords if keyword.arg == "flags"]
    if not given and method == "compile" and len(call.args) > 1:
        given = [call.args[1]]
    return re.compile(value(call.args[0]), value(given[0]) if given else 0)


def _calls(node: ast.AST, function: str = "") -> Iterator[tuple[str, str, ast.Call]]:
    """All calls of functions of `re`, each with the function or class that it is in, and its own name."""
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        inner = ".".join(filter(None, (function, child.name))) if named else function  # type: ignore[attr-defined]
        if isinstance(child, ast.Call):
            module, _, name = ast.unparse(child.func).rpartition(".")
            if module == "re" and name in FUNCTIONS:
                yield function, name, child
        yield from _calls(child, inner)


def table(used: Iterable[Used], report: Callable[[str], None]) -> None:
    """A line for each pattern: milliseconds for 10, 100 and 1,000 KB of its worst text, and growth by linear growth."""
    report("10 KB  100 KB  1,000 KB   growth  pattern, worst text")
    for each in used:
        name, grow = each.worst()
        times = [min(each.seconds(grow(size), 60) for _ in range(3)) * 1000 for size in (10_000, 100_000, 1_000_000)]
        report(
            f"{times[0]:5.2f}  {times[1]:6.1f}  {times[2]:8.0f}   {times[2] / times[1] / 10:6.2f}  {each.place} {name[:60]}"
        )


def interrupt(*_: object) -> None:
    """What the signal does that ends a search."""
    raise TimeoutError


def slow_entry(name: str, read: Callable[[str], object]) -> str:
    """The odd letters that a function that reads questions takes too long for; empty where there are none."""
    for pump in ODD:
        before, seconds = (_seconds_of(read, pump * (size // len(pump))) for size in QUESTIONS)
        if (seconds > SLOWEST and seconds > WORST * before * QUESTIONS[1] / QUESTIONS[0]) or seconds > LONGEST_READ:
            return f"{name}: {QUESTIONS[1]} characters of {pump[:10]!r} take {seconds:.3f} s"
    return ""


def _seconds_of(read: Callable[[str], object], text: str) -> float:
    best = float("inf")
    for _ in range(TRIES):
        started = time.thread_time()
        read(text)
        best = min(best, time.thread_time() - started)
        if best < SLOWEST:
            break
    return best


def main() -> int:
    """1 where a pattern takes more than linear time."""
    signal.signal(signal.SIGVTALRM, interrupt)
    used = found()
    if "--table" in sys.argv:
        table((each for each in used if each.place not in AWAITED and each.place not in BOUNDED), print)
        return 0
    problems = [problem for each in used if each.place not in AWAITED and (problem := each.problem())]
    problems += [problem for name, read in entries().items() if (problem := slow_entry(name, read))]
    print("\n".join(problems) or f"{len(used)} patterns, all linear but for {len(AWAITED)} that are exempt.")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
