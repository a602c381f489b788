"""Types of settings whose values are checked, with messages that say what to write."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from ipaddress import ip_network
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

if TYPE_CHECKING:
    from limits import RateLimitItem

EXAMPLE = '"60/minute" or "5/second; 1000/day"'


@lru_cache(maxsize=256)
def parse_rates(text: str) -> tuple[RateLimitItem, ...]:
    """The rates in a text, the shortest window first; none in an empty text. Raises `ValueError` for any other text."""
    from limits import parse_many  # takes .1 s

    if not text.strip():
        return ()
    try:
        rates = parse_many(text.strip())
    except ValueError as error:
        raise ValueError(f"it must be a rate, such as {EXAMPLE}.") from error
    if not all(rate.amount for rate in rates):
        raise ValueError("a rate must allow at least 1 request. To revoke a key, remove it.")
    return tuple(sorted(rates, key=lambda rate: rate.get_expiry()))


EMPTY = "write a value, or remove the setting."
HASHED = "sha256:"
SHORTEST_KEY = 16  # characters
QUOTES = "\"'“”„`"
HASH = f"{HASHED}[0-9a-fA-F]{{64}}"
PORTS = {"http": 80, "https": 443}


def _split(value: object) -> object:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def _split_some(value: object) -> object:
    # a setting that stayed empty by mistake must not open the service; a program may pass an empty tuple
    words = _split(value)
    if words == [] or (isinstance(value, str) and not words):
        raise ValueError(EMPTY)
    return words


def _object(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value) if value.strip() else {}
    except ValueError as error:
        raise ValueError(
            f'it must be a JSON object such as {{"name": "value"}}, but isn\'t valid JSON ({error}).'
        ) from error


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = not text or (parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0)
    except ValueError:  # a port that is no number, a bracket without its other
        valid = False
    if not valid or re.search(r"\s", text):
        raise ValueError(
            "it must be a web address that begins with http:// or https://, such as http://localhost:8080/v1."
        )
    return text


def web_origin(text: str) -> str:
    """The origin as browsers send it; `https://*.example.org` stands for all names below. Raises `ValueError` for anything else."""
    try:
        parts = urlsplit(text.lower().rstrip("/"))
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    host = parts.netloc.removesuffix(f":{port}")
    origin = f"{parts.scheme}://{parts.netloc}"
    name = re.fullmatch(r"(\*\.)?[\w-]++(\.[\w-]++)*+|\[[0-9a-f:.]++\]", host, re.ASCII)
    if host.startswith("*.") and host.count(".") < 2:
        raise ValueError(
            f"{text!r} allows all sites below {host[2:]}: name your domain, such as https://*.example.org."
        )
    if parts.scheme not in PORTS or not name or origin != text.lower().rstrip("/"):
        raise ValueError(
            f"{text!r} is no origin: write a scheme and a host without a path, such as https://docs.example.org or https://*.example.org."
        )
    return f"{parts.scheme}://{host}" if port in {None, PORTS[parts.scheme]} else origin


def form(accepts: Callable[[str], object], otherwise: str) -> AfterValidator:
    """Allows the texts that this `accepts`; `otherwise` is said of all others."""

    def checked(text: str) -> str:
        if not accepts(text):
            raise ValueError(otherwise)
        return text

    return AfterValidator(checked)


def _keys(values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    for value in map(SecretStr.get_secret_value, values):
        if value.startswith(HASHED) and not re.fullmatch(HASH, value):
            raise ValueError("a hash must be sha256: and 64 hexadecimal digits, as `docs-assistant key new` prints it.")
        if value[0] in QUOTES or value[-1] in QUOTES:
            raise ValueError("write the keys without quotation marks.")
        if len(value) < SHORTEST_KEY:
            raise ValueError(
                f"a key must have at least {SHORTEST_KEY} characters: `docs-assistant key new NAME` makes one that nobody guesses."
            )
    return values


def _proxy(text: str) -> str:
    try:
        network = ip_network(text, strict=False)
    except ValueError as error:
        raise ValueError(
            f"{text!r} is no address: write the IP addresses or networks of your proxies, such as 10.0.0.2 or 10.0.0.0/24."
        ) from error
    if not network.prefixlen:
        raise ValueError(f"{text!r} trusts everybody, who could then pretend any address: write those of your proxies.")
    return text


def _host_name(text: str) -> str:
    if text != "*" and not re.fullmatch(r"(\*\.)?[\w-]++(\.[\w-]++)*+", text, re.ASCII):
        raise ValueError(
            f"{text!r} is no host name: write names without scheme, port and path, such as docs.example.org or *.example.org."
        )
    return text


def _rates(text: str) -> str:
    parse_rates(text)
    return text


def _secret_address(secret: SecretStr) -> SecretStr:
    return SecretStr(_address(secret.get_secret_value()))


def _deliveries(secret: SecretStr) -> SecretStr:
    for address in secret.get_secret_value().split():
        parts = urlsplit(address)
        if parts.scheme in {"http", "https"}:
            _address(address)
        elif parts.scheme not in {"smtp", "smtps"} or not parts.hostname or "@" not in parts.path:
            raise ValueError(
                "write addresses with blanks between, such as smtp://USER:PASSWORD@mail.example.org/editor@example.org or "
                "https://chat.example.org/hooks/SECRET."
            )
    return secret


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(web_origin)], ...], BeforeValidator(_split)]
SomeWords = Annotated[tuple[str, ...], BeforeValidator(_split_some)]
Keys = Annotated[tuple[SecretStr, ...], BeforeValidator(_split_some), AfterValidator(_keys)]
Proxies = Annotated[tuple[Annotated[str, AfterValidator(_proxy)], ...], BeforeValidator(_split)]
Hosts = Annotated[tuple[Annotated[str, AfterValidator(_host_name)], ...], BeforeValidator(_split)]
_LIMITS_STORE = form(
    re.compile(r"memory|(redis|rediss)://\S+").fullmatch,
    "it must be memory, or the address of a Redis server, such as redis://host:6379/0.",
)
LimitsStore = Annotated[str, _LIMITS_STORE]
Rates = Annotated[str, AfterValidator(_rates)]
Object = Annotated[dict[str, Any], BeforeValidator(_object)]
Weights = Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], BeforeValidator(_object)]
Url = Annotated[str, AfterValidator(_address)]
SecretUrl = Annotated[SecretStr, AfterValidator(_secret_address)]
Deliveries = Annotated[SecretStr, AfterValidator(_deliveries)]
Filled = Annotated[str, form(str.strip, EMPTY)]
_SPLITTER_NAME = re.compile(r"markdown|semantic|fixed|page|[\w.]+:\w+")
_SPLITTER = form(
    _SPLITTER_NAME.fullmatch,
    "it must be markdown, semantic, fixed, page, or a LlamaIndex NodeParser as module:Class.",
)
Splitter = Annotated[str, _SPLITTER]
Unproven = Literal["mark", "remove", "off"]
"""What happens to a statement that no passage proves."""
SourceForms = Annotated[dict[str, Literal["events", "links", "both"]], BeforeValidator(_object)]
