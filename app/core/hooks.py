"""Plugins: what a package may add to the service, as functions that it marks with `hookimpl`.

A plugin is a module that an installed package names in the entry-point group `docs_assistant`. Those of this repository
lie in `plugins/` and are found in the same way. Pluggy (https://pluggy.readthedocs.io) finds and calls them, as in
pytest, datasette and llm.
"""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points
from itertools import chain
from typing import Any

import pluggy

from app.core.errors import SettingsError, did_you_mean

log = logging.getLogger("app.core")

GROUP = "docs_assistant"
VARIABLE = "DOCS_PLUGINS"
"""Names the plugins to load, with blanks or commas between; without it, all that are installed are loaded. It is read from the
environment alone, because processes that convert pages inherit that, and have no settings.
"""

hookimpl = pluggy.HookimplMarker(GROUP)
_spec = pluggy.HookspecMarker(GROUP)


class Hooks:
    """The hooks. A plugin has those that it needs, with the parameters that it needs of them."""

    @_spec
    def register_formats(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """Forms of pages with their converters, each an `ingestion.formats.Format`."""

    @_spec
    def register_sources(self) -> Mapping[str, Any]:  # type: ignore[empty-body]
        """Functions that list the pages of a source, by the name that `reader` of a [[source]] gives; see
        `ingestion.crawl.listing.SourceReader`.
        """

    @_spec
    def register_steps(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """Steps, each a class as in own-classes.md or an `app.pipeline.registry.StepFactory`."""

    @_spec
    def register_commands(self) -> Mapping[str, tuple[str, str]]:  # type: ignore[empty-body]
        """Commands of `docs-assistant`: by name, the place of the click.Command as `module:name`, and what it does."""

    @_spec
    def register_routes(self, app: Any, service: Any, metrics: Any) -> Iterable[Any]:  # type: ignore[empty-body]
        """Routers with routes, each a `fastapi.APIRouter`. `service` is the `app.routes.service.Service` with what routes share,
        and `app` the FastAPI application, for requests to it.
        """

    @_spec
    def register_work(self, service: Any) -> Iterable[Any]:  # type: ignore[empty-body]
        """Coroutines that go on in the background while the service runs. One that ends with an error is logged."""

    @_spec
    def register_admin_views(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """Views of /admin, each an `app.routes.admin.routes.AdminView`."""

    @_spec
    def answered(self, record: Any) -> None:
        """Notice that an answer of the service has ended. `record` is its `app.core.turn.AnswerRecord`; it is called once for each,
        in the event loop, so it returns at once.
        """


@cache
def plugins() -> pluggy.PluginManager:
    """The loaded plugins. Raises `SettingsError` for one that is named and not installed, or that can't be loaded."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    names = os.environ[VARIABLE].replace(",", " ").split() if VARIABLE in os.environ else sorted(installed)
    for name in names:
        if name not in installed:
            raise SettingsError(
                f"{VARIABLE}: no plugin {name!r} is installed.{did_you_mean(name, installed)} Installed are: "
                f"{', '.join(sorted(installed)) or 'none'}."
            )
        try:
            manager.register(installed[name].load(), name)
            manager.check_pending()
        except Exception as error:  # a module from outside may fail with anything
            raise SettingsError(
                f"The plugin {name} ({installed[name].value}) can't be loaded: {error} ({type(error).__name__}). Repair it, "
                f"uninstall its package, or leave it out of {VARIABLE}."
            ) from error
    return manager


def registered(hook: str, **given: Any) -> list[Any]:
    """Returns what all plugins return for a hook of a list, in the order of their names; `given` are its parameters."""
    return list(chain.from_iterable(reversed(getattr(plugins().hook, hook)(**given))))


def registered_by_name(hook: str) -> dict[str, Any]:
    """Returns what all plugins return for a hook of a mapping. Raises `SettingsError` for a name that two of them give."""
    merged: dict[str, Any] = {}
    for named in reversed(getattr(plugins().hook, hook)()):
        if both := merged.keys() & named.keys():
            raise SettingsError(f"Two plugins register {', '.join(sorted(both))}: leave one of them out of {VARIABLE}.")
        merged |= named
    return merged


def answer_listener(*own: object) -> Callable[[Any], None]:
    """Returns what tells `own` and all plugins of an ended answer, by their hook `answered`. The failure of one is logged."""
    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Hooks)
    for part in own:
        manager.register(part)
    for name, plugin in plugins().list_name_plugin():
        manager.register(plugin, name)
    listening = manager.hook.answered.get_hookimpls()

    def tell(record: Any) -> None:
        for one in listening:
            try:
                one.function(*[record] * len(one.argnames))
            except Exception:  # a plugin must not keep others from hearing of the answer
                log.exception("The plugin %s failed after an answer.", one.plugin_name)

    return tell
