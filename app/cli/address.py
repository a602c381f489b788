"""Where the service can be reached, by whom, and what it answers from, in one line."""

from __future__ import annotations

from app.core.errors import AssistantError, NoIndex
from app.core.settings import Settings, is_loopback
from app.index import Store
from app.models import Embedder

ALL = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104  # compared, not bound
HOUR = 3600


def base_url(settings: Settings) -> str:
    """The address of the service, as seen from this machine."""
    host = ALL.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{settings.port}"


def serving_line(settings: Settings, index: str) -> str:
    """Address, who may use it, and the state of the index."""
    keys = f"{n} API key{'s' if n > 1 else ''}" if (n := len(settings.api_keys)) else "no key needed"
    if settings.keys:
        keys = f"keys of {settings.keys}"
    if is_loopback(settings.host):
        place = "this machine only"
    else:
        place = "every network of this machine" if settings.host in ALL else f"reachable at {settings.host}"
    return f"Serving on {base_url(settings)} ({place}, {keys}); {index}"


async def index_state(store: Store, embedder: Embedder | None = None, *, fills: bool = False) -> str:
    """Pages and age of the live generation, or why nothing can be answered from it. `fills`: the caller fills an empty one."""
    from app.assistants.health import embedder_mismatch

    try:
        info = (await store.live()).info
    except NoIndex as error:
        return "the index is empty so far" if fills else f"index: {error}"
    except AssistantError as error:
        return f"index: {error}"
    if embedder and (problem := embedder_mismatch(info, embedder)):
        return f"index: {problem}"
    hours = (info.age or 0.0) / HOUR
    age = f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} h" if hours >= 1 else f"{hours * 60:.0f} min"
    return f"index: {info.pages} pages, built {age} ago"
