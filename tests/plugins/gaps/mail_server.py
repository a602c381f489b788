"""A mail server for tests: it speaks SMTP with one user, and keeps the mails that it takes."""

import asyncio
import base64
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

USER, PASSWORD = "editor", "geheim-of-tests"
REFUSED = "nobody@example.org"


@dataclass
class MailServer:
    """The server. While it is `busy`, it takes no mail. It ends with an odd code, after which no mail may be sent again."""

    port: int = 0
    busy: bool = False
    mails: list[EmailMessage] = field(default_factory=list)
    tries: int = 0

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tries += 1
        with closing(writer):
            writer.write(b"220 mail.test ESMTP\r\n")
            while line := (await reader.readline()).decode().strip():
                word, _, rest = line.partition(" ")
                if word.upper() == "DATA":
                    writer.write(b"354 go on\r\n")
                    text = (await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n").replace(b"\r\n..", b"\r\n.")
                    self.mails.append(message_from_bytes(text, policy=policy.default))
                writer.write(self._reply(word.upper(), rest))
                await writer.drain()
                if word.upper() == "QUIT":
                    break

    def _reply(self, word: str, rest: str) -> bytes:
        if word == "EHLO":
            return b"250-mail.test\r\n250 AUTH PLAIN\r\n"
        if word == "AUTH":
            right = f"\0{USER}\0{PASSWORD}".encode() == base64.b64decode(rest.removeprefix("PLAIN "))
            return b"235 welcome\r\n" if right else b"535 wrong\r\n"
        if word == "MAIL" and self.busy:
            return b"451 later\r\n"
        if word == "RCPT" and REFUSED in rest:
            return b"550 unknown\r\n"
        return b"250 ok\r\n"


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """A mail server on a free port, in a thread."""
    made, ready, known = MailServer(), threading.Event(), []

    async def serve() -> None:
        stop = asyncio.Event()
        known.extend((asyncio.get_running_loop(), stop))
        server = await asyncio.start_server(made._talk, "127.0.0.1", 0)
        made.port = server.sockets[0].getsockname()[1]
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield made
    finally:
        loop, stop = known
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
