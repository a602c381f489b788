"""Questions from chat programs: a plugin for each of `slack` and `discord`, and `threads`, which they share."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from app.core.hooks import hookimpl


@dataclass(frozen=True)
class ChatPlugin:
    """The plugin of a chat program, whose module is loaded only by the service."""

    module: str

    @hookimpl
    def register_routes(self, app: Any, service: Any) -> Iterable[Any]:
        """The route that the chat program calls, if its secrets are set."""
        routers: Iterable[Any] = import_module(f"plugins.chats.{self.module}").routers(app, service)
        return routers


for_slack, for_discord = ChatPlugin("slack"), ChatPlugin("discord")
