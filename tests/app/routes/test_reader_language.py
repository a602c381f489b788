"""The language of answers to questions that show none: conversation, client, found pages, default, in this order."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.core.prompts import load_prompts
from tests.app.routes.indexed import Indexed, indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fake_llm import Reply

PROMPTS = load_prompts(("cs", "en"))
INTRO = {
    code: (language.texts.extractive_intro, language.texts.extractive_unsure)
    for code, language in PROMPTS.languages.items()
}
BEGINS = {intro: code for code, intros in INTRO.items() for intro in intros} | {
    PROMPTS.render(code, "nothing_found"): f"nothing in {code}" for code in INTRO
}
CZECH = "# Karty\n\nProjekt s nvidia.com/mig-3g dostane jednu kartu na sedm dní."
ENGLISH = "nfs-csi"  # only in an English page
ASKED_IN_CZECH = [{"role": "user", "content": "Jak vytvořím svazek?"}, {"role": "assistant", "content": "-"}]


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Indexed]:
    async with indexed(tmp_path, with_model=False, more={"cs-karty": CZECH}, min_evidence=0.01) as running:
        yield running


async def ask(
    service: Indexed, question: str, accepted: str = "", before: Sequence[dict[str, str]] = (), **body: Any
) -> httpx.Response:
    headers = {"accept-language": accepted} if accepted else {}
    async with client_of(service.app) as client:
        return await client.post(CHAT, json=chat(question, *before, **body), headers=headers)


async def language_of(service: Indexed, question: str, accepted: str = "", **more: Any) -> str:
    text = (await ask(service, question, accepted, **more)).json()["choices"][0]["message"]["content"]
    return next(found for begin, found in BEGINS.items() if text.startswith(begin))


async def test_each_rank_decides_where_those_before_it_say_nothing(service: Indexed) -> None:
    for question, accepted, more, language in (
        # its own words, against all others
        ("What is nvidia.com/mig-3g?", "cs", {"language": "cs", "before": ASKED_IN_CZECH}, "en"),
        # the conversation: its questions, then its last answer
        (ENGLISH, "en", {"language": "en", "before": ASKED_IN_CZECH}, "cs"),
        (ENGLISH, "en", {"before": [{"role": "user", "content": "s3://x"}, {"role": "assistant", "content": "Nelze."}]}, "cs"),
        # what the client says: the body, then the header
        (ENGLISH, "en", {"language": "cs"}, "cs"),
        (ENGLISH, "cs-CZ,en;q=0.8", {"language": None}, "cs"),
        (ENGLISH, "", {"language": "cs_CZ"}, "cs"),
        ("nvidia.com/mig-3g", "de, en;q=0.5, cs;q=0.4, *;q=0.1", {}, "en"),
        # languages that nobody configured, and a header that says nothing: the pages
        ("nvidia.com/mig-3g", "fr", {}, "cs"),
        ("nvidia.com/mig-3g", "*, ;q=x", {}, "cs"),
        (ENGLISH, "", {}, "en"),
        # nothing is found: the default
        ("s3://bucket", "", {}, "nothing in en"),
        ("s3://bucket", "cs", {}, "nothing in cs"),
    ):  # fmt: skip
        assert await language_of(service, question, accepted, **more) == language, (question, accepted, more)


@pytest.mark.plugins
async def test_all_routes_take_the_hint_and_refuse_a_language_that_is_not_configured(service: Indexed) -> None:
    async with client_of(service.app) as client:
        for path, body in (
            (CHAT, chat(ENGLISH)),
            ("/v1/responses", {"model": "docs-assistant", "input": ENGLISH}),
            ("/v1/search", {"query": ENGLISH}),
        ):
            answers = [await client.post(path, json={**body, "language": "cs"})]
            answers.append(await client.post(path, json=body, headers={"accept-language": "cs"}))
            for answer in answers:
                assert any(intro in answer.text for intro in INTRO["cs"]) or answer.json()["language"] == "cs"
            refused = await client.post(path, json={**body, "language": "fr"})
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "language")
            assert refused.json()["error"]["message"].endswith("Configured are: cs, en.")


async def test_a_stream_names_the_found_pages_in_the_language_of_the_answer(service: Indexed) -> None:
    async with client_of(service.app) as client:
        response = await client.post(CHAT, json=chat("nvidia.com/mig-3g", stream=True), headers={"x-owui-task": ""})
    assert PROMPTS.language("cs").texts.found.partition("{")[0] in response.text
    assert any(intro.split()[-1] in response.text for intro in INTRO["cs"])


async def test_a_rewrite_in_another_language_is_dropped(tmp_path: Path) -> None:
    """The model translated the question: it is searched as the reader asked it, and the answer is to the reader's words."""
    async with indexed(tmp_path, more={"cs-karty": CZECH}, min_evidence=0.3) as running:
        running.llm.reply = lambda call: Reply("OK [1]." if call.get("stream") else "Které karty jsou pro projekt?")
        before = [{"role": "user", "content": "Which cards are there?"}, {"role": "assistant", "content": "Some."}]
        answer = (await ask(running, "And the claims for it?", before=before, stream=True)).text
        assert "karty" not in answer
        last = next(call for call in running.llm.calls if call.get("stream"))["messages"][-1]["content"]
        assert last.startswith("And the claims for it?")


async def test_a_name_in_pages_of_both_languages_is_asked_in_the_default_one(tmp_path: Path) -> None:
    """Its letters may look Czech, and the Czech page may have it more often: neither says who asks. A word of one language does."""
    pages = {
        "cs-keycloak": "# Keycloak\n\nKeycloak ověří heslo: Keycloak, jiný Keycloak a ještě jeden Keycloak.",
        "keycloak": "# Signing in\n\nThe password is checked by a server of the university, which is Keycloak.",
    }
    async with indexed(tmp_path, with_model=False, more=pages) as service:
        for question, client, language, first in (
            ("keycloak", "", "en", "keycloak"),
            ("keycloak", "en", "en", "keycloak"),
            ("What is Keycloak?", "", "en", "keycloak"),
            ("keycloak", "cs", "cs", "cs-keycloak"),
            ("keycloak heslo", "", "cs", "cs-keycloak"),
        ):
            answer = (await ask(service, question, client)).json()
            text = answer["choices"][0]["message"]["content"]
            assert next(code for begin, code in BEGINS.items() if text.startswith(begin)) == language, question
            assert answer["sources"][0]["url"].startswith(f"https://docs.example.org/{first}"), (question, client)


async def test_names_are_asked_in_the_default_language_wherever_its_pages_have_them(tmp_path: Path) -> None:
    """A Czech page has both names in its prose; the English pages have them apart, or only in code. A word that these lack is Czech."""
    pages = {
        "cs-widget": "# Vložení\n\nTakto vloží widget Docusaurus, Sphinx a další nástroje. Soubor robots.txt čte robot sám.",
        "cs-prevod": "# Převod\n\nSkladbu převede `musicxml` a její export.",
        "widget": "# Embedding\n\nThe widget is a button on each page, which opens the chat.",
        "generators": "# Generators\n\nDocusaurus takes a line of its settings, and so does `sphinx` with `conf.py`.",
        "crawling": "# Crawling\n\nThe crawler heeds `robots.txt` of each site.",
        "exports": "# Exports\n\nExporting conversations takes a minute.",
    }
    async with indexed(tmp_path, with_model=False, more=pages, min_evidence=0.01) as service:
        for question, client, language, first in (
            ("widget docusaurus", "", "en", ("widget", "generators")),
            ("docusaurus widget", "cs", "cs", ("cs-widget",)),
            ("robots.txt", "", "en", ("crawling",)),
            ("widget docusaurus robot", "", "cs", ("cs-widget",)),
            ("export do musicxml", "", "cs", ("cs-prevod",)),
        ):
            answer = (await ask(service, question, client)).json()
            text = answer["choices"][0]["message"]["content"]
            assert next(code for begin, code in BEGINS.items() if text.startswith(begin)) == language, question
            assert answer["sources"][0]["url"].removeprefix("https://docs.example.org/").partition("#")[0] in first, (
                question
            )
