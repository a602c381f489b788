"""The five questions of `docs-assistant init`, and how each answer is tried."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from pydantic import SecretStr

from app.cli import trials
from app.cli.dialogue import Dialogue, UnusableAnswer
from app.core.settings import Settings
from app.core.settings_sources import ENVIRONMENT, Origin

SHOWN = 9
PORTS = 65_536
ACCESS = {"1": "127.0.0.1", "this-machine": "127.0.0.1", "2": "0.0.0.0", "keys": "0.0.0.0"}  # noqa: S104  # only with a key


@dataclass
class Answers:
    """Settings by field: `values` for docs-assistant.toml, `secret` for .env."""

    values: dict[str, Any] = field(default_factory=dict)
    secret: dict[str, str] = field(default_factory=dict)

    def put(self, name: str, text: str, value: Any = None) -> None:
        """Add a setting; as a secret, if an address in its text has a password."""
        if any(urlsplit(word).password for word in text.split() if "://" in word):
            self.secret[name] = text
        else:
            self.values[name] = text if value is None else value


class Interview:
    """Asks and tries. Defaults are the current `settings`."""

    def __init__(self, dialogue: Dialogue, settings: Settings, origins: Mapping[str, Origin]) -> None:
        self._dialogue = dialogue
        self._settings = settings
        self._origins = origins
        self._found = Answers()

    def answers(self) -> Answers:
        """All answers."""
        if self._dialogue.asks:
            self._dialogue.say("welcome")
        self._site()
        self._store()
        self._model()
        self._languages()
        self._access()
        return self._found

    def _site(self) -> None:
        dialogue, current = self._dialogue, " ".join(self._settings.sites)

        def ask() -> str:
            return _with_schemes(dialogue.ask("site", current, "" if current else "no_site"))

        def attempt(sites: str) -> str:
            if sites:
                dialogue.say_trying()
                pages, first = trials.pages_of(sites.split(), self._settings)
                dialogue.say("found_pages", pages=pages, first=first)
            return sites

        if sites := dialogue.settle(ask, attempt):
            self._found.put("sites", sites, sites.split())

    def _store(self) -> None:
        def attempt(address: str) -> str:
            self._dialogue.say_trying()
            pages = trials.pages_in_store(self._settings.model_copy(update={"store": address}))
            self._dialogue.say("found_no_index" if pages is None else "found_index", pages=pages)
            return address

        default = self._settings.store
        self._found.put("store", self._dialogue.settle(lambda: self._dialogue.ask("store", default), attempt))

    def _model(self) -> None:
        dialogue, current = self._dialogue, self._settings
        names: list[str] = []

        def ask() -> tuple[str, str]:
            if not (url := dialogue.ask("model_url", current.llm_url, "" if current.llm_url else "no_model")):
                return "", ""
            key = current.llm_key.get_secret_value()
            return url, dialogue.ask("model_key", key, "***" if key else "no_key", secret=True)

        def attempt(answer: tuple[str, str]) -> tuple[str, str]:
            if not answer[0]:
                return answer
            dialogue.say_trying()
            url, names[:] = trials.model_names(*answer)
            dialogue.say("found_models", count=len(names), names=_listed(names))
            return url, answer[1]

        url, key = dialogue.settle(ask, attempt)
        if url:
            given = {"llm_url": url, "llm_key": SecretStr(key), "llm_class": ""}
            self._found.put("llm_url", url)
            self._found.values["llm_model"] = self._named_model(self._settings.model_copy(update=given), names)
        if key and (key != current.llm_key.get_secret_value() or not self._is_written("llm_key")):
            self._found.secret["llm_key"] = key

    def _named_model(self, settings: Settings, names: Sequence[str]) -> str:
        default = settings.llm_model or (names[0] if names else "")

        def ask() -> str:
            typed = self._dialogue.ask("model", default)
            return names[int(typed) - 1] if typed.isdecimal() and 0 < int(typed) <= len(names) else typed

        def attempt(model: str) -> str:
            self._dialogue.say_trying()
            trials.check_model(settings.model_copy(update={"llm_model": model}))
            self._dialogue.say("found_answer", model=model)
            return model

        return self._dialogue.settle(ask, attempt)

    def _languages(self) -> None:
        default = " ".join(dict.fromkeys((self._settings.default_language, *self._settings.languages)))

        def attempt(codes: str) -> str:
            names = trials.check_languages(codes.split(), self._settings)
            self._dialogue.say("found_languages", names=", ".join(names))
            return codes

        def ask() -> str:
            return self._dialogue.ask("languages", default).replace(",", " ").lower()

        codes = self._dialogue.settle(ask, attempt).split()
        self._found.values |= {"languages": codes, "default_language": next(iter(codes), "")}

    def _access(self) -> None:
        """Host and port; for other machines, host name and key."""
        dialogue, current = self._dialogue, self._settings

        def host(typed: str) -> str:
            if typed not in ACCESS:
                raise UnusableAnswer(f"{typed!r} is neither 1 nor 2.")
            return typed

        default = "1" if current.host == ACCESS["1"] else "2"
        self._found.values["host"] = ACCESS[dialogue.settle(lambda: dialogue.ask("access", default), host)]
        if self._found.values["host"] != ACCESS["1"]:
            if names := dialogue.ask("host_name", " ".join(current.allowed_hosts), "by_address"):
                self._found.values["allowed_hosts"] = names.replace(",", " ").split()
            if not (current.api_keys and self._is_written("api_keys")):
                self._found.secret["api_keys"] = secrets.token_urlsafe(24)
        self._found.values["port"] = self._port(self._found.values["host"])

    def _is_written(self, name: str) -> bool:
        return name in self._origins and self._origins[name].place != ENVIRONMENT

    def _port(self, host: str) -> int:
        dialogue, current = self._dialogue, self._settings

        def attempt(text: str) -> str:
            if not text.isdecimal() or not 0 < int(text) < PORTS:
                raise UnusableAnswer(f"{text!r} isn't a port: write a number from 1 to 65535.")
            if text != str(current.port) or not self._is_written("port"):  # else our own service may have it
                trials.check_port(host, int(text))
                dialogue.say("found_port", port=text)
            return text

        default = current.port
        if not self._is_written("port"):
            default = trials.free_port(host, current.port)
        return int(dialogue.settle(lambda: dialogue.ask("port", str(default)), attempt))


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{number} {name}" for number, name in enumerate(names[:SHOWN], 1))
    return f"{shown} …" if len(names) > SHOWN else shown


def _with_schemes(text: str) -> str:
    """The addresses, with https:// before a bare host; names of TOML files stay."""
    words = text.replace(",", " ").split()
    return " ".join(word if "://" in word or word.endswith(".toml") else f"https://{word}" for word in words)
