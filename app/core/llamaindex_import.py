"""Lets parts of LlamaIndex be imported alone: `llama_index.core` imports all of them, which takes a second and 40 MB.

Import this module before LlamaIndex. The packages of `LATE` then run their `__init__` when somebody first asks them for a name,
and not already when one of their modules is imported. If LlamaIndex is imported already, nothing changes.
"""

import sys
import threading
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

CORE = "llama_index.core"
LATE = (CORE, f"{CORE}.indices", f"{CORE}.postprocessor", f"{CORE}.storage")
"""With `node_parser` late too, and not `node_parser.text`, modules of LlamaIndex import each other in circles."""

_LATE_DUNDERS = {"__all__", "__version__"}  # other names of this form are asked for by tools, of every module

_lock = threading.RLock()
_running = set[str]()


class _LatePackage(ModuleType):
    """A package whose `__init__` hasn't run to its end."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") or name in _LATE_DUNDERS:
            with _lock:  # another thread waits until the whole `__init__` has run
                _run(sys.modules[CORE])
                _run(self)
        return self.__getattribute__(name)


def _run(package: ModuleType) -> None:
    """Run the `__init__` of the package, once. If it fails, it runs again for the next name."""
    if type(package) is not _LatePackage or package.__name__ in _running:
        return
    assert package.__spec__
    assert package.__spec__.loader
    _running.add(package.__name__)
    try:
        package.__spec__.loader.exec_module(package)
        package.__class__ = ModuleType  # type: ignore[assignment]  # narrowed above
    finally:
        _running.discard(package.__name__)


class _LateLoader(Loader):
    """Makes a package with what imports of its modules need, and leaves its `__init__` to the real loader."""

    def __init__(self, real: Loader) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__
        module.__spec__.loader = module.__loader__ = self._real
        module.__class__ = _LatePackage
        if module.__name__ == CORE:
            module.global_handler = None  # type: ignore[attr-defined]  # each model asks for it when it is made


class _Finder(MetaPathFinder):
    """Finds the packages of `LATE`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in LATE or (fullname != CORE and type(sys.modules.get(CORE)) is ModuleType):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec and spec.loader:
            spec.loader = _LateLoader(spec.loader)
        return spec


sys.meta_path.insert(0, _Finder())
