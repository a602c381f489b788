"""The briefing of a morning: by a real mail server and a real web hook, by the service and by the command."""

import asyncio
import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from app.assistants.assembly import opened
from app.conversations.opening import open_conversations
from app.conversations.records import DayFigures, Found, KeptAnswer
from app.conversations.store import DAY
from app.core.errors import SettingsError
from app.core.settings import Settings
from app.index import open_store
from app.index.run_history import EndedRun, RunOrigin, add_run
from app.routes.server import create_app
from plugins.gaps import delivery
from plugins.gaps.briefing import Briefing, briefing_of, yesterday
from plugins.gaps.command import briefing
from plugins.gaps.delivery import Mornings, NotDelivered, deliver
from tests.app.routes.scripted import serving, until
from tests.app.routes.test_alarm import hooked
from tests.end_to_end.program import free_port
from tests.plugins.gaps.mail_server import PASSWORD, REFUSED, USER, mail_server

pytestmark = pytest.mark.plugins
NOW = time.time()
TO = "editor@example.org"
MADE = Briefing(
    "2026-11-29", DayFigures("2026-11-29", 1, 1, 0, 0, 0, 0), (), (), (), "Nadpis", "Příliš žluťoučký\n.kůň"
)
COMMENT = "<!channel> Nothing about\nOneDrive, write to jan@example.org."


async def logged(folder: Path, **options: Any) -> Settings:
    """The settings of a log with questions of yesterday, one of them with a comment, and of an index whose last run failed."""
    settings = Settings.load(None, store=str(folder), database=f"sqlite:///{folder / 'log.db'}", **options)
    store = open_conversations(settings, folder)
    assert store
    noon = (NOW // DAY - 1) * DAY + DAY / 2
    asked = ("How do I connect SharePoint?", "Is SharePoint there?", "What is a volume?")
    for number, question in enumerate(asked):
        answer = KeptAnswer(f"a{number}", "k", question, "", noon + number, outcome="refused", language="en")
        await store.keep(replace(answer, assistant="docs", found=Found(0.1, 0.4)))
    await store.rate("k", "a1", "down", COMMENT)
    await store.close()
    index = open_store(settings)
    await add_run(index, EndedRun(RunOrigin("nightly"), NOW - 3600, 1.0, "failed", errors=("The disk is full.",)))
    await index.close()
    return settings


async def test_each_morning_a_mail_and_a_web_hook_have_it_once(tmp_path: Path, monkeypatch, caplog):
    """What isn't taken at first is sent again, while the service answers; after a start, it isn't sent twice, and no secret is logged."""
    monkeypatch.setattr(delivery, "Mornings", partial(Mornings, every=0.05))
    with mail_server() as mail, hooked() as hook:  # which refuses the first request
        mail.busy = True
        to = f"smtp://{USER}:{PASSWORD}@127.0.0.1:{mail.port}/{TO}?from=docs@example.org"
        given = {"briefing": f"{to} http://127.0.0.1:{hook.server_port}/secret-of-tests", "briefing_hour": 0}
        settings = await logged(tmp_path, default_language="cs", **given)

        async def served(done: Any) -> None:
            conversations = open_conversations(settings, tmp_path)
            async with opened(settings) as assistants:
                with serving(create_app(assistants, settings, conversations=conversations)) as url:
                    await until(lambda: done(url))

        def both(url: str) -> bool:
            assert httpx.get(f"{url}/health/live", timeout=30, trust_env=False).status_code == 200
            mail.busy = mail.tries < 2
            return bool(mail.mails and hook.told)

        await served(both)
        began = time.monotonic()
        await served(lambda _: time.monotonic() > began + 1)
    (sent,), (told,) = mail.mails, hook.told
    assert (sent["to"], sent["from"]) == (TO, "docs@example.org")
    assert sent["subject"] == f"Asistent dokumentace, {yesterday(NOW)}: položeno 3, odmítnuto 3, palec dolů 1"
    text = sent.get_content()
    assert "Poslední běh: selhal" in text
    assert "The disk is full." in text
    assert "Položeno: 3\nZodpovězeno: 0\nOdmítnuto: 3" in text.replace("\r", "")
    assert "- Is SharePoint there?\n  <!channel> Nothing about OneDrive, write to" in text.replace("\r", "")
    assert "jan@example.org" not in text
    assert "1. SharePoint" in text or "SharePoint" in text.partition("Co napsat příště")[2]
    assert (told["event"], told["figures"]["questions"], told["comments"][0]["id"]) == ("briefing", 3, "a1")
    assert "jan@example.org" not in json.dumps(told)
    assert "<!channel>" not in told["text"]
    assert "Odmítnuto: 3\n" in told["text"]
    assert "takes no mail at the moment (code 451)" in caplog.text
    assert "status 500" in caplog.text
    assert not any(secret in caplog.text for secret in (PASSWORD, "secret-of-tests"))


async def test_it_waits_for_its_hour_and_is_off_without_an_address(tmp_path: Path, monkeypatch):
    before = partial(Mornings, every=0.02, clock=lambda: NOW // DAY * DAY + 3600.0)
    monkeypatch.setattr(delivery, "Mornings", before)
    with mail_server() as mail:
        for to in (f"smtp://127.0.0.1:{mail.port}/{TO}", ""):
            settings = await logged(tmp_path / str(bool(to)), briefing=to, briefing_hour=5)
            conversations = open_conversations(settings, tmp_path / str(bool(to)))
            async with opened(settings) as assistants:
                with serving(create_app(assistants, settings, conversations=conversations)):
                    began = time.monotonic()
                    await until(lambda began=began: time.monotonic() > began + 1)
        assert (mail.tries, mail.mails) == (0, [])


def test_letters_and_dots_of_a_mail_arrive_as_they_are():
    with mail_server() as mail:
        deliver(f"smtp://127.0.0.1:{mail.port}/{TO}", MADE)
    (sent,) = mail.mails
    assert (sent["subject"], sent.get_content().replace("\r", "")) == (MADE.subject, f"{MADE.text}\n")


def test_each_failure_of_a_mail_server_or_a_web_hook_is_named_without_its_secrets():
    with mail_server() as mail, hooked() as hook:
        server = f"127.0.0.1:{mail.port}"
        for address, said in (
            (f"smtp://127.0.0.1:{(port := free_port())}/{TO}", f"127.0.0.1:{port} can't be reached: check its name"),
            (f"smtp://{USER}:geheim-wrong@{server}/{TO}", f"{server} refuses the user name or the password"),
            (f"smtp://{server}/{REFUSED}", f"{server} refuses the recipient"),
            (f"smtps://{server}/{TO}", f"{server} has no certificate"),
            (f"http://127.0.0.1:{free_port()}/geheim", "The web hook at 127.0.0.1 can't be reached (ConnectError)"),
            (f"http://127.0.0.1:{hook.server_port}/geheim", "The web hook at 127.0.0.1 answered with status 500"),
        ):
            with pytest.raises(NotDelivered) as caught:
                deliver(address, MADE)
            assert said in str(caught.value)
            assert "geheim" not in str(caught.value)
        assert mail.mails == []


async def test_the_command_prints_it_and_sends_it_to_all_that_take_it(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = await logged(tmp_path)
    monkeypatch.setenv("DOCS_STORE", settings.store)
    monkeypatch.setenv("DOCS_DATABASE", settings.database)
    run = CliRunner()

    def called(*arguments: str) -> Any:
        return run.invoke(briefing, arguments, standalone_mode=False)

    printed = await asyncio.to_thread(called)
    assert printed.output.startswith(
        f"Documentation assistant, {yesterday(NOW)}: asked 3, refused 3, rated down 1\n\nLast run"
    )
    told = json.loads((await asyncio.to_thread(called, "--json", "--day", "2026-01-01")).output)
    assert (told["day"], told["figures"]["questions"], told["comments"]) == ("2026-01-01", 0, [])
    assert isinstance((await asyncio.to_thread(called, "--send")).exception, SettingsError)
    with mail_server() as mail:
        monkeypatch.setenv(
            "DOCS_TUNING__BRIEFING", f"http://127.0.0.1:{free_port()}/x smtp://127.0.0.1:{mail.port}/{TO}"
        )
        sent = await asyncio.to_thread(called, "--send")
    assert (sent.return_value, len(mail.mails)) == (1, 1)
    assert "The web hook at 127.0.0.1 can't be reached" in sent.stderr


async def test_a_log_without_texts_tells_figures_alone(tmp_path: Path):
    settings = await logged(tmp_path, question_log="hashed")

    made = await asyncio.to_thread(briefing_of, settings, yesterday(NOW), NOW)
    assert (made.figures.questions, made.comments) == (3, [])
    assert "OneDrive" not in made.text


@pytest.mark.parametrize(
    "wrong", ["mail.example.org", "smtp://mail.example.org", "smtp:///a@b", "ftp://h/a@b", "https://"]
)
def test_an_address_that_is_none_is_a_mistake_in_the_settings_that_repeats_no_secret(wrong: str):
    with pytest.raises(SettingsError) as caught:
        Settings.load(None, briefing=f"{wrong} smtp://u:geheim@h/a@b")
    assert "smtp://USER:PASSWORD@mail.example.org/editor@example.org" in str(caught.value) or "web address" in str(
        caught.value
    )
    assert "geheim" not in str(caught.value)
