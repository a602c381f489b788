"""Delivers a briefing to mail servers and web hooks, each morning while the service runs. It is off until an address is set."""

from __future__ import annotations

import asyncio
import logging
import smtplib
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from hashlib import sha256
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from app.core.errors import AssistantError
from app.core.log_message import LogMessage
from app.core.settings import Settings, is_loopback
from app.routes.admin.problems import EVERY, TIMEOUT, called
from app.routes.service import Service
from plugins.gaps.briefing import Briefing, briefing_of, yesterday
from plugins.gaps.making import in_process

log = logging.getLogger("plugins.gaps")

PORTS = {"smtp": smtplib.SMTP_PORT, "smtps": smtplib.SMTP_SSL_PORT}


class NotDelivered(AssistantError):
    """A mail server or web hook can't be reached, or didn't take a briefing. The message has its host, but no secret."""


def addresses(settings: Settings) -> Sequence[str]:
    """The addresses of DOCS_TUNING__BRIEFING."""
    wanted: str = settings.tuning.briefing.get_secret_value()
    return wanted.split()


def deliver(address: str, made: Briefing) -> None:
    """Send the briefing to this address; blocks for some seconds at most. Raises `NotDelivered`."""
    parts = urlsplit(address)
    (_mail if parts.scheme in PORTS else _post)(parts, made)


def _mail(parts: SplitResult, made: Briefing) -> None:
    host = parts.hostname or ""
    port = parts.port or PORTS[parts.scheme]
    message = EmailMessage()
    message["Subject"], message["Date"], message["Message-ID"] = made.subject, formatdate(), make_msgid(domain=host)
    message["To"] = unquote(parts.path.strip("/"))
    message["From"] = (parse_qs(parts.query).get("from") or [message["To"].split(",")[0]])[0]
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(made.text)
    try:
        with closing(_connected(parts, port)) as server:
            server.send_message(message)
            with suppress(OSError, smtplib.SMTPException):  # the mail is taken, whatever the server says to a goodbye
                server.quit()
    except (OSError, smtplib.SMTPException) as error:
        raise NotDelivered(f"The mail server {host}:{port} {_why(error)}") from error


def _connected(parts: SplitResult, port: int) -> smtplib.SMTP:
    """A mail server that knows who sends; encrypted from the beginning (smtps), or as soon as it offers that."""
    host, secure = parts.hostname or "", ssl.create_default_context()
    if parts.scheme == "smtps":
        return _known(smtplib.SMTP_SSL(host, port, timeout=TIMEOUT, context=secure), parts)
    return _known(smtplib.SMTP(host, port, timeout=TIMEOUT), parts, secure)


def _known(server: smtplib.SMTP, parts: SplitResult, secure: ssl.SSLContext | None = None) -> smtplib.SMTP:
    """The server after a login, and encryption if it isn't `secure` yet. A password is never sent without, but to this machine."""
    with ExitStack() as stack:
        stack.callback(server.close)
        server.ehlo()
        if secure and server.has_extn("starttls"):
            server.starttls(context=secure)
        elif secure and parts.password and not is_loopback(parts.hostname or ""):
            raise NotDelivered(
                f"The mail server {parts.hostname} offers no encryption, so it gets no password: write smtps://."
            )
        if parts.username:
            server.login(unquote(parts.username), unquote(parts.password or ""))
        stack.pop_all()
    return server


REASONS: tuple[tuple[type[Exception], str], ...] = (
    (smtplib.SMTPAuthenticationError, "refuses the user name or the password"),
    (smtplib.SMTPRecipientsRefused, "refuses the recipient"),
    (smtplib.SMTPSenderRefused, "refuses the sender: name another by ?from= in the address"),
    (ssl.SSLError, "has no certificate that this machine trusts"),
    (smtplib.SMTPException, "didn't take the mail"),
    (OSError, "can't be reached: check its name and port"),
)
"""What a failure says of a mail server; the first that fits, as some are kinds of later ones."""


def _why(error: Exception) -> str:
    code = getattr(error, "smtp_code", 0)
    if str(code).startswith("4"):
        return f"takes no mail at the moment (code {code})."
    return next(f"{text} ({code or type(error).__name__})." for kind, text in REASONS if isinstance(error, kind))


def _post(parts: SplitResult, made: Briefing) -> None:
    status, failure = asyncio.run(called(parts.geturl(), made.body))
    if failure:
        raise NotDelivered(f"The web hook at {parts.hostname} can't be reached ({failure}): check its address.")
    if not 200 <= status < 300:
        raise NotDelivered(f"The web hook at {parts.hostname} answered with status {status}.")


@dataclass
class Mornings:
    """Sends the briefing about the day before to each address, once after DOCS_TUNING__BRIEFING_HOUR; what isn't taken, at the next look.

    There are `every` seconds between two looks. The index keeps who got it, so that neither a start nor another service sends it twice.
    """

    service: Service
    clock: Callable[[], float] = time.time
    every: float = EVERY
    _made: Briefing | None = None

    async def run(self) -> None:
        """Look at the clock until cancelled; at once over without an address."""
        while addresses(self.service.settings):
            try:
                await self._look()
            except AssistantError as error:
                log.warning(LogMessage("the briefing can't be made, which is tried again", error=error))
            await asyncio.sleep(self.every)

    async def _look(self) -> None:
        now, settings = self.clock(), self.service.settings
        if datetime.fromtimestamp(now, UTC).hour < settings.tuning.briefing_hour:
            return
        day, store = yesterday(now), self.service.assistants.store
        kept: Mapping[str, Sequence[str]] = (await store.kept("briefing")).get("sent", {})
        sent = list(kept.get(day, ()))
        if not (waiting := [address for address in addresses(settings) if _mark(address) not in sent]):
            return
        if self._made is None or self._made.day != day:
            self._made = await in_process(briefing_of, settings, day, now)
        for address in waiting:
            try:
                await asyncio.to_thread(deliver, address, self._made)
            except NotDelivered as error:
                log.warning(LogMessage("the briefing isn't taken, and is sent again", error=error))
                continue
            sent.append(_mark(address))
            await store.keep("briefing", {"sent": {day: sent}})


def _mark(address: str) -> str:
    """What stands for an address, which may be a secret."""
    return sha256(address.encode()).hexdigest()[:16]
