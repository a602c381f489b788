"""Types of settings: lists of words, keys, JSON objects, addresses and texts that must not be empty."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

EMPTY = "write a value, or remove the setting."


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


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError(EMPTY)
    return text


def _splitter(text: str) -> str:
    if not re.fullmatch(r"markdown|semantic|fixed|page|[\w.]+:\w+", text):
        raise ValueError("it must be markdown, semantic, fixed, page, or a LlamaIndex NodeParser as module:Class.")
    return text


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
SomeWords = Annotated[tuple[str, ...], BeforeValidator(_split_some)]
Keys = Annotated[tuple[SecretStr, ...], BeforeValidator(_split_some)]
Object = Annotated[dict[str, Any], BeforeValidator(_object)]
Weights = Annotated[dict[str, Annotated[float, Field(ge=0, le=1)]], BeforeValidator(_object)]
Url = Annotated[str, AfterValidator(_address)]
Filled = Annotated[str, AfterValidator(_filled)]
Splitter = Annotated[str, AfterValidator(_splitter)]
parse_object = BeforeValidator(_object)
