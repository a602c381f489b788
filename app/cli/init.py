"""`docs-assistant init`: asks five questions, tries each answer on the real site, store, model and port, and writes the settings."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click
import httpx
from pydantic import SecretStr

from app.cli.serve import bind
from app.cli.settings_file import kept_in_file, overridden, settings_text, write_settings
from app.cli.shared import opened_store, print_error
from app.core.errors import AssistantError, ModelError, ModelUnavailable, NoIndex, SettingsError, StoreError
from app.core.settings import NAMES, Settings
from app.core.settings_sources import ENVIRONMENT, FILE, Origin

T = TypeVar("T")

LANGUAGES = ("en", "cs")
MACHINE, KEYS = "this-machine", "keys"
ACCESS = {"1": "127.0.0.1", MACHINE: "127.0.0.1", "2": "0.0.0.0", KEYS: "0.0.0.0"}  # noqa: S104  # only with a key
OPTIONS = {
    "site": "address of a sitemap or a site; several separated by spaces",
    "store": "a directory or an OpenSearch address",
    "model_url": "address of an OpenAI-compatible API; DOCS_LLM_KEY in the environment is its key",
    "model": "name of the language model",
    "languages": "codes of the languages, the default one first",
    "host_name": "host name under which other machines reach the service",
    "port": "port to listen on",
}
SECONDS = 10.0
SHOWN = 9
PORTS = 65_536


class UnusableAnswer(SettingsError):
    """An answer that can't be used, however much the person insists."""


class KeyRefused(ModelError):
    """The server wants another key."""


@click.command(params=[click.Option([f"--{name.replace('_', '-')}"], help=text) for name, text in OPTIONS.items()])
@click.option("--access", type=click.Choice((MACHINE, KEYS)), help="who may use the service; keys makes a key")
@click.option("--yes", is_flag=True, help="ask nothing: defaults for all that has no option")
@click.option("--force", is_flag=True, help="with --yes: accept what doesn't work, and change existing files")
@click.option("--print", "only_print", is_flag=True, help=f"only print {FILE} with every setting and its default")
@click.option("--language", type=click.Choice(LANGUAGES), help="language of the questions (default: the terminal's)")
def init(yes: bool, force: bool, only_print: bool, language: str | None, **options: str | None) -> int:
    """Asks five questions, tries each answer at once, and writes docs-assistant.toml; keys and passwords go into .env.

    The exit code is 1 if existing files are left as they are.
    """
    if only_print:
        print(settings_text({}, every=True), end="")
        return 0
    chosen = {name: value for name, value in options.items() if value is not None}
    dialogue = Dialogue(texts_of(language or _language_of_terminal()), chosen, asks=not yes, force=force)
    try:
        if not _may_change(dialogue):
            dialogue.say("nothing_written")
            return 1
        settings, origins = Settings.load_with_origins()
        interview = Interview(dialogue, settings, origins)
        interview.ask()
    except KeyboardInterrupt:
        print()
        dialogue.say("nothing_written")
        raise
    write_settings(interview.values, interview.secret, kept_in_file(settings, origins))
    dialogue.say("written", file=FILE)
    _say_next(dialogue, interview)
    return 0


def _say_next(dialogue: Dialogue, interview: Interview) -> None:
    values, secret = interview.values, interview.secret
    if secret:
        dialogue.say("written_secret", file=".env", names=", ".join(NAMES.variable(name) for name in secret))
    if key := secret.get("api_keys"):
        dialogue.say("key", key=key)
    for name in overridden(values, secret):
        dialogue.say("overridden", name=name)
    if values.get("llm_model"):
        dialogue.say("next_exam")
        print(f"  {_program()} check --exam")
    dialogue.say("next" if "sites" in {**values, **secret} else "next_none")
    print(f"  {_program()} run")


def _program() -> str:
    """Returns the command that starts this program again."""
    if shutil.which("docs-assistant"):
        return "docs-assistant"
    started = Path(sys.argv[0])
    return str(started) if started.name == "docs-assistant" else f"{sys.executable} -P -m app.cli"


def _language_of_terminal() -> str:
    return next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "en")[:2]


def texts_of(language: str) -> Mapping[str, str]:
    """The texts in this language, otherwise in English."""
    name = language if language in LANGUAGES else "en"
    return tomllib.loads(files("app.cli").joinpath(f"templates/init/{name}.toml").read_text(encoding="utf-8"))


def _may_change(dialogue: Dialogue) -> bool:
    """False if files are there and should stay. Raises `SettingsError` if no file can be written."""
    if not os.access(".", os.W_OK):
        raise SettingsError(f"{Path.cwd()} can't be written to: change to a directory of your own.")
    there = ", ".join(name for name in (FILE, ".env") if Path(name).exists())
    if not there or dialogue.confirmed("replace", file=there):
        return True
    if dialogue.asks:
        return False
    raise SettingsError(
        f"{there} already exists. Add --force to change it: its other settings stay, and the old file is kept as .bak."
    )


@dataclass
class Dialogue:
    """Questions with their `texts` in a language. Each of the `given` answers is used once, before a question is asked.

    Without `asks`, the default is taken for what isn't given, and an answer that doesn't work is an error unless `force` is set.
    """

    texts: Mapping[str, str]
    given: dict[str, str]
    asks: bool = True
    force: bool = False

    def say(self, name: str, /, **values: object) -> None:
        """Print a text."""
        print(self.texts[name].format_map(values), flush=True)

    def ask(self, name: str, default: str = "", shown: str = "", *, secret: bool = False) -> str:
        """The answer to a question; `shown` stands for the default in brackets. Raises `SettingsError` at the end of the input."""
        if (answer := self.given.pop(name, None)) is not None:
            return answer
        shown = self.texts.get(shown, shown) or default
        return self._prompt(f"{self.texts[name]} [{shown}]", default, secret=secret) if self.asks else default

    def confirmed(self, name: str, /, **values: object) -> bool:
        """True if the answer is yes, or begins like it; without questions, if `force` is set."""
        if not self.asks:
            return self.force
        yes, no = self.texts["yes"], self.texts["no"]
        return yes.startswith(self._prompt(f"{self.texts[name].format_map(values)} {yes}/{no} [{no}]", no).casefold())

    def _prompt(self, question: str, default: str, *, secret: bool = False) -> str:
        hidden = secret and sys.stdin.isatty()
        try:
            typed = click.prompt(question, default, hidden, prompt_suffix=" ", show_default=False)
        except click.Abort as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from error
            print()
            raise SettingsError(
                "init asks questions, and nobody answers. In a script: docs-assistant init --yes with --site, --store, --model-url … (see --help)."
            ) from error
        return typed.strip() or default

    def settle(self, ask: Callable[[], T], attempt: Callable[[T], Awaitable[T]]) -> T:
        """Returns what `attempt` makes of the answer: `ask` is repeated until that works, or until the person insists."""

        async def attempted() -> T:
            return await attempt(answer)

        while True:
            answer = ask()
            try:
                return asyncio.run(attempted())
            except AssistantError as error:
                unusable = isinstance(error, UnusableAnswer)
                if not self.asks and (unusable or not self.force):
                    raise
                print_error(error)
                if not unusable and self.confirmed("insist"):
                    return answer


class Interview:
    """Asks and tries. Its answers are settings by field: `values` for docs-assistant.toml, `secret` for .env.

    Defaults are the current `settings`.
    """

    def __init__(self, dialogue: Dialogue, settings: Settings, origins: Mapping[str, Origin]) -> None:
        self.values: dict[str, Any] = {}
        self.secret: dict[str, str] = {}
        self._dialogue = dialogue
        self._settings = settings
        self._origins = origins

    def ask(self) -> None:
        """Ask all five questions."""
        if self._dialogue.asks:
            self._dialogue.say("welcome")
        self._site()
        self._store()
        self._model()
        self._languages()
        self._access()

    def _put(self, name: str, text: str, value: Any) -> None:
        """Add a setting; as a secret, if an address in its text has a password."""
        if any(urlsplit(word).password for word in text.split() if "://" in word):
            self.secret[name] = text
        else:
            self.values[name] = value

    def _is_written(self, name: str) -> bool:
        return name in self._origins and self._origins[name].place != ENVIRONMENT

    def _say_trying(self) -> None:
        """Say that something is tried that takes a while."""
        if self._dialogue.asks:
            self._dialogue.say("trying")

    def _site(self) -> None:
        dialogue, current = self._dialogue, " ".join(self._settings.sites)

        def ask() -> str:
            return _with_schemes(dialogue.ask("site", current, "" if current else "no_site"))

        async def attempt(sites: str) -> str:
            if sites:
                self._say_trying()
                pages, first = await pages_of(sites.split(), self._settings)
                dialogue.say("found_pages", pages=pages, first=first)
            return sites

        if sites := dialogue.settle(ask, attempt):
            self._put("sites", sites, sites.split())

    def _store(self) -> None:
        async def attempt(address: str) -> str:
            self._say_trying()
            pages = await pages_in_store(self._settings.model_copy(update={"store": address}))
            self._dialogue.say("found_no_index" if pages is None else "found_index", pages=pages)
            return address

        store = self._dialogue.settle(lambda: self._dialogue.ask("store", self._settings.store), attempt)
        self._put("store", store, store)

    def _model(self) -> None:
        dialogue, current = self._dialogue, self._settings
        current_key = current.llm_key.get_secret_value()
        names: list[str] = []

        def ask() -> tuple[str, str]:
            if not (url := dialogue.ask("model_url", current.llm_url, "" if current.llm_url else "no_model")):
                return "", ""
            return url, dialogue.ask("model_key", current_key, "***" if current_key else "no_key", secret=True)

        async def attempt(answer: tuple[str, str]) -> tuple[str, str]:
            if not answer[0]:
                return answer
            self._say_trying()
            url, names[:] = model_names(*answer)
            shown = ", ".join(f"{number} {name}" for number, name in enumerate(names[:SHOWN], 1))
            dialogue.say("found_models", count=len(names), names=f"{shown} …" if len(names) > SHOWN else shown)
            return url, answer[1]

        url, key = dialogue.settle(ask, attempt)
        if url:
            model = {"llm_url": url, "llm_key": SecretStr(key), "llm_class": ""}
            self._put("llm_url", url, url)
            self.values["llm_model"] = self._named_model(current.model_copy(update=model), names)
        if key and (key != current_key or not self._is_written("llm_key")):
            self.secret["llm_key"] = key

    def _named_model(self, settings: Settings, names: Sequence[str]) -> str:
        from app.core.turn import Message
        from app.models import open_model
        from app.models.protocols import CallOptions

        default = settings.llm_model or (names[0] if names else "")

        def ask() -> str:
            typed = self._dialogue.ask("model", default)
            return names[int(typed) - 1] if typed.isdecimal() and 0 < int(typed) <= len(names) else typed

        async def attempt(model: str) -> str:
            self._say_trying()
            named = open_model(settings.model_copy(update={"llm_model": model}))
            assert named
            try:
                options = CallOptions(max_tokens=16, timeout=settings.llm_timeout)
                await named.complete([Message("user", "Say OK.")], options)
            finally:
                await named.close()
            self._dialogue.say("found_answer", model=model)
            return model

        return self._dialogue.settle(ask, attempt)

    def _languages(self) -> None:
        default = " ".join(dict.fromkeys((self._settings.default_language, *self._settings.languages)))

        async def attempt(codes: str) -> str:
            from app.core.prompts import load_prompts

            if not codes.split():
                raise SettingsError("Name at least one language by its code, such as en.")
            prompts = load_prompts(codes.split(), self._settings.prompts)
            self._dialogue.say(
                "found_languages", names=", ".join(language.traits.name for language in prompts.languages.values())
            )
            return codes

        def ask() -> str:
            return self._dialogue.ask("languages", default).replace(",", " ").lower()

        codes = self._dialogue.settle(ask, attempt).split()
        self.values |= {"languages": codes, "default_language": next(iter(codes), "")}

    def _access(self) -> None:
        """Host and port; for other machines, host name and key."""
        dialogue, current = self._dialogue, self._settings

        async def attempt(typed: str) -> str:
            if typed not in ACCESS:
                raise UnusableAnswer(f"{typed!r} is neither 1 nor 2.")
            return typed

        default = "1" if current.host == ACCESS["1"] else "2"
        host = self.values["host"] = ACCESS[dialogue.settle(lambda: dialogue.ask("access", default), attempt)]
        if host != ACCESS["1"]:
            if names := dialogue.ask("host_name", " ".join(current.allowed_hosts), "by_address"):
                self.values["allowed_hosts"] = names.replace(",", " ").split()
            if not (current.api_keys and self._is_written("api_keys")):
                self.secret["api_keys"] = secrets.token_urlsafe(24)
        self.values["port"] = self._port(host)

    def _port(self, host: str) -> int:
        dialogue, current = self._dialogue, str(self._settings.port)
        is_written = self._is_written("port")

        async def attempt(text: str) -> str:
            if not text.isdecimal() or not 0 < int(text) < PORTS:
                raise UnusableAnswer(f"{text!r} isn't a port: write a number from 1 to 65535.")
            if text != current or not is_written:  # else our own service may have it
                bind(host, int(text)).close()
                dialogue.say("found_port", port=text)
            return text

        default = current if is_written else str(free_port(host, self._settings.port))
        return int(dialogue.settle(lambda: dialogue.ask("port", default), attempt))


def _with_schemes(text: str) -> str:
    """The addresses, with https:// before a bare host; names of TOML files stay."""
    words = text.replace(",", " ").split()
    return " ".join(word if "://" in word or word.endswith(".toml") else f"https://{word}" for word in words)


async def pages_of(sites: Sequence[str], settings: Settings) -> tuple[int, str]:
    """The number of pages that the sites list, and the address of the first, which was read."""
    from ingestion.crawl.exchange import PageRequest
    from ingestion.crawl.fetch import Fetcher
    from ingestion.crawl.listing import list_pages
    from ingestion.errors import PageError
    from ingestion.sources import as_sources
    from ingestion.workers import Workers

    limited = settings.model_copy(update={"crawl_timeout": min(settings.tuning.crawl_timeout, SECONDS)})
    async with Fetcher(limited) as fetcher, Workers() as workers:
        listing = await list_pages(as_sources(sites), fetcher, workers)
        first = listing.entries[0]
        if first.site.is_site:
            try:
                await fetcher.get(PageRequest(first.url))
            except PageError as error:
                raise PageError(f"Its first page {first.url} can't be read: {error}.") from error
    return len(listing.entries), first.url


async def pages_in_store(settings: Settings) -> int | None:
    """The number of pages in the store's live index; None if it is empty and can be written to."""
    from app.index import directory_of

    if (directory := directory_of(settings)) is not None:
        there = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
        try:
            tempfile.TemporaryFile(dir=there).close()
        except OSError as error:
            raise StoreError(f"{directory} can't be written to: {error.strerror or error} ({there}).") from error
    async with opened_store(settings) as store:
        try:
            return (await store.live()).info.pages
        except NoIndex:
            return None


def model_names(url: str, key: str) -> tuple[str, list[str]]:
    """The address of the API, to which /v1 is added where that is missing, and the names of its models."""
    if not url.startswith(("http://", "https://")):
        raise UnusableAnswer(f"{url!r} isn't a web address: write it as http://localhost:11434/v1.")
    address = url.rstrip("/")
    failure: ModelError | None = None
    for candidate in [address] if address.endswith("/v1") else [address, f"{address}/v1"]:
        try:
            return candidate, _listed(candidate, key)
        except (KeyRefused, ModelUnavailable):
            raise
        except ModelError as error:
            failure = failure or error
    assert failure
    raise failure


def _listed(url: str, key: str) -> list[str]:
    address = f"{url}/models"
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        response = httpx.get(address, headers=headers, timeout=SECONDS, follow_redirects=True)
    except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:
        raise ModelUnavailable(
            f"{address} can't be reached: {error or type(error).__name__}. Is the server running, and is this its address?"
        ) from error
    if response.status_code in (401, 403):
        raise KeyRefused(f"{address} refuses the {'key' if key else 'call without a key'} ({response.status_code}).")
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        return [str(model["id"]) for model in response.json()["data"]]
    raise ModelError(
        f"{address} doesn't list models as the OpenAI API does (status {response.status_code}): such addresses usually end in /v1."
    )


def free_port(host: str, first: int) -> int:
    """The first port from this one on that is free; this one if 20 are taken."""
    for port in range(first, first + 20):
        with suppress(SettingsError):
            bind(host, port).close()
            return port
    return first
