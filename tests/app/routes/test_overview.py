"""Questions about the documentation as a whole, and suggested questions: both are made from the index, without a model."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.core.prompts import load_prompts
from app.text.language import is_overview
from tests.app.routes.indexed import URL, Indexed, indexed
from tests.app.routes.scripted import CHAT, chat, client_of

PROMPTS = load_prompts(("cs", "en"))
PAGES = {
    "": "The platform runs notebooks.\n\nRead [limits](https://docs.example.org/limits) first.",
    "how are volumes kept safe?": "Every volume is copied each night.",
    "a deep/er/page": "Deep text about copies.",
    "cs-uvod": "Platforma spouští notebooky.",
    "cs-jak na svazek": "Svazek vytvoří formulář.",
    "run <b>all</b> of it?": "Unlikely words.",
    "create notebooks": "Notebooks of volumes.",  # all its words are elsewhere too
}
OVERVIEW = {
    "en": (
        "What does this documentation cover?",
        "what is this site about",
        "What can I find in the docs?",
        "overview",
    ),
    "cs": ("Co všechno tato dokumentace popisuje?", "o čem je tento web", "Co najdu v dokumentaci?", "obsah"),
}
OTHERS = {
    "en": (
        "How do I build the documentation site?",
        "What does it cover?",
        "Which pages are indexed?",
        "What is this?",
        "",
    ),
    "cs": ("Jak napsat dokumentaci?", "Co popisuje pravidlo?", "Co to je?", "Jak smažu stránky?"),
}


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Indexed]:
    async with indexed(tmp_path, with_model=False, more=PAGES) as running:
        yield running


async def answer(service: Indexed, question: str) -> tuple[str, list[str]]:
    """The text, and the paths of the sources."""
    async with client_of(service.app) as client:
        answered = (await client.post(CHAT, json=chat(question))).json()
    paths = [source["url"].removeprefix(URL).partition("#")[0] for source in answered["sources"]]
    return answered["choices"][0]["message"]["content"], paths


async def suggested(service: Indexed) -> list[str]:
    async with client_of(service.app) as client:
        (model,) = (await client.get("/v1/models")).json()["data"]
    return [prompt["content"] for prompt in model["info"]["meta"]["suggestion_prompts"]]


def test_only_questions_about_the_whole_documentation_are_overview_questions() -> None:
    for code, language in PROMPTS.languages.items():
        assert [text for text in OVERVIEW[code] if not is_overview(text, language)] == []
        assert [text for text in OTHERS[code] if is_overview(text, language)] == []


async def test_an_overview_quotes_the_home_page_and_lists_the_top_pages_with_links(service: Indexed) -> None:
    """In the language of the question; the pages that the home page links to come first, those further down last."""
    text, paths = await answer(service, OVERVIEW["en"][0])
    assert "The platform runs notebooks." in text
    assert paths[:2] == ["", "limits"]
    assert paths[-1] == "a deep/er/page"
    assert len(paths) == 7
    assert "Platforma" not in text
    text, paths = await answer(service, OVERVIEW["cs"][0])
    assert "Platforma spouští notebooky." in text
    assert paths == ["cs-uvod", "cs-jak na svazek"]


async def test_suggestions_are_headings_that_their_own_page_answers_first(service: Indexed) -> None:
    found = await suggested(service)
    assert found[0] == "How Are Volumes Kept Safe?"
    assert "Cs-Jak Na Svazek" in found
    assert not any("<" in question for question in found)  # some clients take a tag for HTML
    for question in found:
        assert (await answer(service, question))[1][0] == question.lower()


async def test_questions_and_tasks_are_suggested_and_never_trouble(tmp_path: Path) -> None:
    """A section with code or steps is a task; what went wrong, law and numbered headings are no first questions."""
    more = {
        "": "Home of copies.",
        "colours of volumes": "Colours of volumes are blue.",
        "copy volumes": "Copy volumes with:\n\n```sh\ncopy volumes\n```",
        "paint a volume": "1. Take paint.\n2. Paint a volume.",
        "why are volumes slow?": "Volumes are slow at night.",
        "privacy of volumes": "Privacy of volumes is a matter of law.",
        "2. service volumes": "Service volumes follow.\n\n```sh\nservice volumes\n```",
    }
    async with indexed(tmp_path, with_model=False, more=more) as service:
        assert sorted(await suggested(service)) == ["Colours Of Volumes", "Copy Volumes", "Paint A Volume"]
        assert (await suggested(service))[2] == "Colours Of Volumes"


async def test_suggestions_follow_the_index(service: Indexed) -> None:
    """They are made once for each generation: a page that is gone isn't suggested."""
    assert "How Are Volumes Kept Safe?" in await suggested(service)
    searched = service.searches
    await suggested(service)
    assert service.searches == searched
    async with await service.store.draft((await service.store.live()).info.recipe) as draft:
        await draft.remove(f"{URL}how are volumes kept safe?")
        await draft.publish()
    assert "How Are Volumes Kept Safe?" not in await suggested(service)
