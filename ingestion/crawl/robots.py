"""What a host's robots.txt allows, read once per run (RFC 9309)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from protego import Protego

LONGEST_DELAY = 30.0
MAX_BYTES = 512_000
_SIGNAL = re.compile(r"(?im)^[ \t]*content-signal[ \t]*:[ \t]*([^\n#]+)")


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one host for one crawler. `refusal` is set when the host's rules can't be known: ask for nothing.

    `signal` is what its Content-Signal lines say.
    """

    rules: Protego | None = None
    agent: str = "*"
    refusal: str = ""
    signal: str = ""

    def allows(self, url: str) -> bool:
        """True when the crawler may ask for the address."""
        return self.rules is None or bool(self.rules.can_fetch(url, self.agent))

    @property
    def delay(self) -> float:
        """The host's Crawl-delay in seconds, limited to `LONGEST_DELAY`; 0 without one."""
        delay = self.rules.crawl_delay(self.agent) if self.rules is not None else None
        return min(max(0.0, float(delay or 0.0)), LONGEST_DELAY)  # in this order, NaN becomes 0

    @property
    def sitemaps(self) -> tuple[str, ...]:
        """Addresses of its Sitemap lines, as written."""
        return tuple(self.rules.sitemaps) if self.rules is not None else ()


def read_robots(status: int, body: bytes, user_agent: str) -> Robots:
    """The rules that an answer to /robots.txt means: 4xx allows everything, 5xx and 429 nothing."""
    if status == 200:
        text = body[:MAX_BYTES].decode("utf-8-sig", "replace")  # a BOM would hide the first group
        agent = next(iter(user_agent.partition("/")[0].split()), "*")
        try:
            rules = Protego.parse(text)
        except Exception as error:  # noqa: BLE001  # whatever a file has that the parser didn't foresee
            return Robots(refusal=f"robots.txt can't be read ({type(error).__name__}: {error})")
        return Robots(rules, agent, signal=", ".join(_SIGNAL.findall(text)))
    if status >= 500 or status == 429:
        return Robots(refusal=f"robots.txt answered {status}, so nothing may be asked of the host")
    return Robots()
