"""Questions from chat programs: a plugin for each of `slack` and `discord`, and `threads`, which they share."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from app.core.hooks import hookimpl


@dataclass(frozen=True)
class ChatPlugin:
    """The plugin of a chat program, whose module is loaded only by the service."""

    module: str

    @hookimpl
    def register_routes(self, app: Any, service: Any) -> None:
        """The route that the chat program calls, if its secrets are set."""
        import_module(f"plugins.chats.{self.module}").add_to(app, service)


for_slack, for_discord = ChatPlugin("slack"), ChatPlugin("discord")
