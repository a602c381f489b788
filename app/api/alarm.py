"""Tells a web hook when a run failed, or when none has succeeded for too long, whatever started it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.api.admin.problems import failure_of, overdue
from app.api.runs import Runs
from app.core.errors import AssistantError
from app.core.log_message import LogMessage
from app.core.settings import Settings
from app.index.run_history import RunHistory

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants

log = logging.getLogger("app.api")

EVERY = 60.0  # seconds between two looks at the runs
TIMEOUT = 10.0


@dataclass
class RunAlarm:
    """Looks at the runs of all indexes. A failure is told once, if it is of after the start; a silence once per DOCS_TUNING__RUN_HOURS.

    What the web hook doesn't take is told at the next look.
    """

    assistants: Assistants
    settings: Settings
    runs: Runs
    since: float = field(default_factory=time.time)
    _told: dict[tuple[str, str], float] = field(default_factory=dict)

    async def run(self) -> None:
        """Look until cancelled; at once over without a web hook."""
        while self.settings.tuning.run_webhook.get_secret_value():
            for name, index in self.assistants.used().items():
                try:
                    history = await index.store.runs()
                except AssistantError as error:
                    log.warning(LogMessage("runs can't be looked at", index=name, error=error))
                    continue
                for event, when, message in self._alarms(name, history):
                    if self._told.get((name, event), 0.0) < when and await self._tell(name, event, message):
                        self._told[name, event] = when
            await asyncio.sleep(EVERY)

    def _alarms(self, name: str, history: RunHistory) -> Iterator[tuple[str, float, str]]:
        """Each alarm with a time that is later than that of an alarm that says the same."""
        run = None if name else self.runs.last
        ended = max([*history.ended.values(), run.ended if run else 0.0], default=0.0)
        if ended >= self.since and (message := failure_of(history, run)):
            yield "run_failed", ended, message
        if late := overdue(history, self.settings.tuning.run_hours, self.since):
            period = self.settings.tuning.run_hours * 3600
            yield "no_run", time.time() // period * period, late

    async def _tell(self, name: str, event: str, message: str) -> bool:
        import httpx

        text = f"Docs Assistant{f', index {name}' if name else ''}: {message}"
        body = {"event": event, "index": name, "message": message, "text": text}  # chats show `text`
        try:
            async with httpx.AsyncClient(timeout=TIMEOUT) as client:
                response = await client.post(self.settings.tuning.run_webhook.get_secret_value(), json=body)
            problem = "" if response.is_success else f"status {response.status_code}"
        except httpx.HTTPError as error:
            problem = type(error).__name__  # its text has the address, which may be a secret
        if problem:
            log.warning(LogMessage("the web hook of runs doesn't answer", event=event, error=problem))
        return not problem
