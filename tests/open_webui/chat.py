"""One chat in Open WebUI's page, as a person works it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 60_000  # milliseconds


@dataclass
class Chat:
    """The page; `foreign` are the addresses on other machines that it asked for."""

    page: Any
    url: str
    pictures: Path
    name: str
    foreign: list[str] = field(default_factory=list)

    def open(self) -> None:
        """The start page, without the dialog of news."""
        self.page.set_default_timeout(PATIENCE)
        self.page.on("request", self._note)
        self.page.goto(self.url)
        self.page.locator("#chat-input").wait_for()
        welcome = self.page.get_by_role("button", name="Okay, Let's Go!")
        self.page.wait_for_timeout(1500)
        if welcome.count():
            welcome.first.click()

    def _note(self, request: Any) -> None:
        if urlsplit(request.url).hostname not in {"127.0.0.1", None}:
            self.foreign.append(request.url)

    def ask(self, question: str) -> None:
        """Type it and press Enter."""
        self.page.locator("#chat-input").click()
        self.page.keyboard.insert_text(question)
        self.page.keyboard.press("Enter")

    @property
    def answer(self) -> Any:
        """The last answer on the page."""
        return self.page.locator(".chat-assistant").last

    @property
    def message(self) -> Any:
        """The last answer with what stands around it: name, status line, sources."""
        return self.page.locator('[id^="message-"]').filter(has=self.page.locator(".chat-assistant")).last

    def finished(self) -> str:
        """Wait until the answer is whole: its text."""
        self.message.get_by_role("button", name="Copy").first.wait_for()
        self.page.wait_for_timeout(500)
        return str(self.answer.inner_text())

    def shows(self, text: str) -> bool:
        """Wait until the page shows this."""
        self.page.get_by_text(text).first.wait_for()
        return True

    def picture(self, what: str) -> None:
        """Keep what is seen."""
        self.page.screenshot(path=self.pictures / f"{self.name}-{what}.png")
