"""200 answers by a model that does everything wrong: readers still get an answer, in their language, with our links only."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Done, Failure, Message, Request, Source, Text
from app.text.answer_language import AnswerLanguage
from tests.docs_assistant.cli.stored_index import SITE, page_with, stored
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
QUESTIONS = {
    "cs": "Jak zvětším svazek a odpojím ho od serveru?",
    "en": "How do I resize a volume and detach it from its server?",
}
PAGES = {
    "cs": "Svazek nejprve odpojte od serveru příkazem `volume detach` a potom ho můžete zvětšit.",
    "en": "To resize a volume, first detach the volume from its server by `volume detach`.",
}
RIGHT = {
    "cs": "Nejprve je potřeba svazek odpojit od serveru [1] a potom ho můžete zvětšit [2]. Více o tom není známo.",
    "en": "First you have to detach the volume from its server [1], and then you can resize it [2]. That is all.",
}
FOREIGN = [
    "Man trennt das Volume zuerst vom Server [1], dann kann man es vergrößern und wieder anschließen [2].",
    "Najprv je potrebné zväzok odpojiť od servera [1] a potom ho môžete zväčšiť, ak je to nutné [2].",
    "Détachez d'abord le volume du serveur [1], puis vous pouvez l'agrandir dans la console de gestion [2].",
]
INVENTED = (
    " See [9], [1, 44] and [the guide](https://invented.io/a?b=[1]), <https://invented.io/c> or https://invented.io/d."
    " www.invented.io/i [x](//invented.io/j) <a href='https://invented.io/k'>l</a> a lone ` sign [9] and [7](www.invented.io)."
    " ![picture](https://invented.io/e.png) [![x](https://invented.io/f.png)](https://invented.io/g)"
    "\n\n**Sources**\n\n1. [Invented](https://invented.io/h)\n"
)
THINKING = "<think>The user wants a link, say https://invented.io/secret [7].</think>"
HELPERS = [
    Reply('{"question": "How do I resi'), Reply("}{"), Reply(""), Reply("x " * 3000), Reply(status=429), Reply("late", delay=0.5),
    Reply("no JSON at all", raw="<html>"), Reply("en: volume, resize\ncs: svazek"), Reply(status=500), Reply("Sure! Here it is.\n\n- **en**: volume"),
]  # fmt: skip


def misbehaving(language: str, chance: random.Random) -> tuple[str, Reply]:
    """One way to answer badly, by its name."""
    right, other = RIGHT[language], RIGHT["en" if language == "cs" else "cs"]
    return chance.choice(
        [
            ("invents", Reply(right + INVENTED)),
            ("other language", Reply(other)),
            ("other language with links", Reply(other + INVENTED)),
            ("foreign language", Reply(chance.choice(FOREIGN))),
            ("empty", Reply("")),
            ("blank", Reply(" \n\n ")),
            ("429", Reply("slow down", status=429, headers={"Retry-After": "60"})),
            ("500", Reply("down", status=500)),
            ("too slow", Reply(right, delay=0.8)),
            ("stalls", Reply(right, piece_delay=0.8)),
            ("dies at once", Reply(right, dies_after=chance.randrange(3))),
            ("dies in mid-stream", Reply(right + INVENTED, dies_after=chance.randrange(12, 24))),
            ("breaks the stream", Reply(right, raw="data: {not JSON\n\n", finish=None)),
            ("thinks aloud", Reply(THINKING + right)),
            ("only thinks", Reply(THINKING)),
            ("thinks apart", Reply(right + INVENTED, reasoning="https://invented.io/secret")),
        ]
    )


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    with stored("embedded", tmp_path) as made:
        made.publish(*(page_with(f"/{code}/volumes", text, language=code) for code, text in PAGES.items()))
        yield made.address


STEPS = {"two calls": '["refine", "keywords", "probe"]', "one call": '["analyze", "probe"]'}


@pytest.fixture(params=STEPS)
async def assistants(request, index: str, llm: FakeLLM, tmp_path: Path) -> AsyncIterator[Assistants]:
    plan = tmp_path / "assistants.toml"
    steps = f'["detect", {STEPS[request.param]}, "retrieve", "relevance", "synthesize", "cite"]'
    plan.write_text(f'[[assistant]]\nid = "a"\nsteps = {steps}\n', encoding="utf-8")
    settings = Settings.load(
        None, store=index, llm_url=llm.url, llm_model="m", helper_timeout=0.1, llm_timeout=0.3, assistants=str(plan)
    )
    async with opened(settings) as made:
        yield made


def replies(language: str, first: Reply, chance: random.Random):
    """The bad answer first; asked a second time, more firmly, the model obeys."""
    firmer = PROMPTS.render(language, "answer_language")

    def reply(body: dict[str, Any]) -> Reply:
        if not body.get("stream"):
            return chance.choice(HELPERS)
        return Reply(RIGHT[language]) if firmer in body["messages"][0]["content"] else first

    return reply


@pytest.mark.slow
async def test_no_answer_fails_lies_about_links_or_is_in_the_wrong_language(
    assistants: Assistants, llm: FakeLLM
) -> None:
    """Every answer ends as it should; only a stream that died after its text was shown says that it broke off."""
    chance = random.Random(7)
    seen: Counter[str] = Counter()
    for number in range(100):
        language, whole = chance.choice(["cs", "en"]), number % 2 == 0
        name, bad = misbehaving(language, chance)
        seen[name] += 1
        llm.reply = replies(language, bad, chance)
        request = Request((Message("user", QUESTIONS[language]),), id=str(number), whole=whole)
        events = [event async for event in assistants.get("").answer(request)]
        text = "".join(event.text for event in events if isinstance(event, Text))
        what = f"{number} {name} {language} whole={whole}: {text!r}"
        assert "invented" not in text, what
        assert all(url.startswith(SITE) for url in re.findall(r"https?://[^\s)>]+", text)), what
        said = text.split(f"\n\n**{PROMPTS.language(language).texts.sources}**\n\n1. [A page]")[0]
        assert AnswerLanguage(language, PROMPTS.languages).beginning(said[:200]) != "wrong", what
        assert set(re.findall(r"\[(\d+)\]", said)) <= {"1", "2"}, what
        end = events[-1]
        if isinstance(end, Failure):
            assert (name, whole) in {("dies in mid-stream", False), ("breaks the stream", False)}, what
            continue
        assert isinstance(end, Done), what
        assert end.language in {"", "corrected"}, what
        assert said.strip(), what
        assert all(event.url.startswith(SITE) for event in events if isinstance(event, Source)), what
        assert any(isinstance(event, Source) for event in events), what
    assert len(seen) == 16
