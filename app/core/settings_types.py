"""Types of settings: lists of words, keys, JSON objects, addresses and texts that must not be empty."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from app.core.rates import parse_rates

EMPTY = "write a value, or remove the setting."
HASHED = "sha256:"
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
    given = f"{parts.scheme}://{parts.netloc}"
    name = re.fullmatch(r"(\*\.)?[\w-]++(\.[\w-]++)*+|\[[0-9a-f:.]++\]", host, re.ASCII)
    if parts.scheme not in PORTS or not name or given != text.lower().rstrip("/"):
        raise ValueError(
            f"{text!r} is no origin: write a scheme and a host without a path, such as https://docs.example.org or https://*.example.org."
        )
    return f"{parts.scheme}://{host}" if port in {None, PORTS[parts.scheme]} else given


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError(EMPTY)
    return text


def _keys(values: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
    for value in values:
        if value.get_secret_value().startswith(HASHED) and not re.fullmatch(HASH, value.get_secret_value()):
            raise ValueError("a hash must be sha256: and 64 hexadecimal digits, as `docs-assistant key new` prints it.")
    return values


def _rates(text: str) -> str:
    parse_rates(text)
    return text


def _limits_store(text: str) -> str:
    if not re.fullmatch(r"memory|(redis|rediss)://\S+", text):
        raise ValueError("it must be memory, or the address of a Redis server, such as redis://host:6379/0.")
    return text


def _splitter(text: str) -> str:
    if not re.fullmatch(r"markdown|semantic|fixed|page|[\w.]+:\w+", text):
        raise ValueError("it must be markdown, semantic, fixed, page, or a LlamaIndex NodeParser as module:Class.")
    return text


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(web_origin)], ...], BeforeValidator(_split)]
SomeWords = Annotated[tuple[str, ...], BeforeValidator(_split_some)]
Keys = Annotated[tuple[SecretStr, ...], BeforeValidator(_split_some), AfterValidator(_keys)]
LimitsStore = Annotated[str, AfterValidator(_limits_store)]
Rates = Annotated[str, AfterValidator(_rates)]
Object = Annotated[dict[str, Any], BeforeValidator(_object)]
Weights = Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], BeforeValidator(_object)]
Url = Annotated[str, AfterValidator(_address)]
Filled = Annotated[str, AfterValidator(_filled)]
Splitter = Annotated[str, AfterValidator(_splitter)]
parse_object = BeforeValidator(_object)
