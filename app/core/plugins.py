"""Loads classes that a setting names as `module:Class`, and checks the arguments that it gives them.

Called wherever a class from outside can take the place of one of ours; every mistake is a `SettingsError` at start-up.
"""

import inspect
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from pydantic import ValidationError

from app.core.errors import SettingsError

T = TypeVar("T")
SHOWN = 30
"""Names that a message lists at most."""


def load(path: str, base: type[T], what: str) -> type[T]:
    """The class at `module:Class`, a subclass of `base`.

    Raises `SettingsError`, which begins with `what` (the setting) and the path, and says what is wrong: no such module,
    one that can't be imported, no such class, a class that is no `base` or leaves out a part of it.
    """
    module, colon, name = path.partition(":")
    if not colon or not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
        raise SettingsError(f"{what}={path}: write it as module:Class.")
    class_ = getattr(loaded := _imported(module, f"{what}={path}"), name, None)
    if not isinstance(class_, type):
        classes = {key: value for key, value in vars(loaded).items() if isinstance(value, type) and value is not base}
        there = sorted(key for key, value in classes.items() if issubclass(value, base))
        listed = ", ".join(there[:SHOWN]) + (" …" if len(there) > SHOWN else "")
        kind = "" if base is object else f"{base.__name__} "
        raise SettingsError(f"{what}={path}: {module} has no class {name}. Its {kind}classes: {listed or 'none'}.")
    if not issubclass(class_, base):
        raise SettingsError(
            f"{what}={path}: {name} is no {base.__name__}. Derive it from {base.__module__}.{base.__qualname__}."
        )
    if missing := getattr(class_, "__abstractmethods__", None):
        raise SettingsError(f"{what}={path}: {name} is abstract: it lacks {', '.join(sorted(missing))}.")
    return class_


def made(path: str, base: type[T], arguments: Mapping[str, Any], what: str, by: str = "") -> T:
    """An instance of the class at `module:Class`, with its arguments checked; made by its class method `by` where it has
    one of its own. Raises `SettingsError` as `load` does.
    """
    class_ = load(path, base, what)
    make: Callable[..., T] = getattr(class_, by) if by in vars(class_) else class_
    return instance(make, arguments, f"{what}={path}")


def instance(make: Callable[..., T], arguments: Mapping[str, Any], what: str) -> T:
    """Returns what `make` does, such as an instance of a class. Raises `SettingsError`, which begins with `what`, for arguments
    that it doesn't take.
    """
    check_arguments(make, arguments, what)
    try:
        return make(**arguments)
    except ValidationError as error:  # its own text repeats the values, which may be secret
        problems = "; ".join(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise SettingsError(f"{what} refuses its arguments: {problems}") from None
    except Exception as error:  # anything can happen in a class from outside
        raise SettingsError(f"{what} refuses its arguments: {error} ({type(error).__name__})") from error


def check_arguments(call: Callable[..., Any], arguments: Mapping[str, Any], what: str) -> None:
    """Raises `SettingsError` that names an argument which `call` doesn't take, or one that it needs, and those it has."""
    parameters = _parameters(call)
    if parameters is None:
        return
    known = ", ".join(list(parameters)[:SHOWN]) or "none"
    if unknown := [name for name in arguments if name not in parameters]:
        raise SettingsError(f"{what} has no argument {', '.join(unknown)}. Its arguments: {known}.")
    needed = [
        name for name, parameter in parameters.items() if parameter.default is parameter.empty and name not in arguments
    ]
    if needed:
        raise SettingsError(f"{what} needs the argument {', '.join(needed)}. Its arguments: {known}.")


def _parameters(call: Callable[..., Any]) -> dict[str, inspect.Parameter] | None:
    """The parameters that can be given by name; None if every name is taken, or nobody can know."""
    try:
        parameters = inspect.signature(call).parameters.values()
        # pydantic's signature of a class hides the `**kwargs` of an `__init__` of its own
        init = getattr(call, "__init__", None) if isinstance(call, type) else None
        own = init is not None and not getattr(init, "__module__", "").startswith("pydantic")
        taken = [*parameters, *(inspect.signature(init).parameters.values() if own and init else ())]
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken):
        return None
    return {
        parameter.name: parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }


def _imported(module: str, what: str) -> ModuleType:
    try:
        return import_module(module)
    except Exception as error:  # a module from outside may fail with anything
        lacking = error.name if isinstance(error, ModuleNotFoundError) and error.name else ""
        if f"{module}.".startswith(f"{lacking}.") and lacking:
            raise SettingsError(
                f"{what}: there is no module {lacking}. Install the package that has it, or add its directory to "
                "PYTHONPATH."
            ) from error
        todo = f" Install the package that has {lacking}." if lacking else ""
        raise SettingsError(f"{what}: {module} can't be imported: {error} ({type(error).__name__}).{todo}") from error
