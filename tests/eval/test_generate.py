"""Generated sets: what is asked of the model, what of its answers is kept, and that nothing is paid for twice."""

import io
import json
from collections import Counter

from app.core.prompts import load_prompts
from app.core.types import Page
from app.index.protocols import TranslationSet, TranslationSets
from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.text.language import LanguageDetector
from eval.files import Cache
from eval.generate import ask, gather, plan, reason_against, write
from eval.judge import Pace
from eval.questions.cases import load_cases
from tests.eval.conftest import command
from tests.fake_llm import Reply, fake_llm

PROMPTS = load_prompts(("cs", "en"))
DETECTOR = LanguageDetector(PROMPTS.languages, "en")
TEXT = "# Volumes\n\nEach volume has **10 GiB** by default and it costs $5 a month. " + "Volumes keep files safe. " * 12
SITE = "https://d.example/docs"


def page(name: str, language: str = "en", text: str = TEXT) -> Page:
    return Page(f"{SITE}/{language}/{name}", "docs", "Volumes", language, text, "h")


def job(variant: str = "1", language: str = "en"):
    jobs = plan([page("a")], TranslationSets(), PROMPTS, follow_ups=2, unanswerable=4)
    return next(one for one in jobs if (one.variant, one.language) == (variant, language))


def row(question: str, **more: str) -> dict[str, str]:
    return {"question": question, "answer": "10 GiB.", "evidence": "Each volume has 10 GiB by default", **more}


def test_each_page_is_asked_about_in_every_language_it_lacks():
    """A page with a Czech counterpart is asked about in English only; a lone one in Czech too, marked as cross."""
    pages = [page("both"), page("both", "cs"), page("lone"), page("short", text="# Short\n\nNothing.")]
    both = TranslationSet("both", {one.language: one.url for one in pages[:2]})
    jobs = plan(pages, TranslationSets(dict.fromkeys(both.pages.values(), both)), PROMPTS)
    found = Counter((one.doc, one.language, one.language != one.page.language) for one in jobs)
    assert found == {
        ("/docs/en/both", "en", False): 4,
        ("/docs/cs/both", "cs", False): 4,
        ("/docs/en/lone", "en", False): 4,
        ("/docs/en/lone", "cs", True): 4,
    }
    assert all("$5 a month" in one.prompt for one in jobs)
    assert "čeština" in next(one for one in jobs if one.language == "cs").prompt
    assert len({one.key for one in jobs}) == len(jobs)


def test_unfit_questions_are_refused_with_the_reason():
    """One reason each, in words that the report shows; Czech ones with or without diacritics."""
    for variant, made, reason in (
        ("1", row("How large is a new volume?"), ""),
        ("1", row("How large is a new volume?", evidence="Each volume has 20 GiB"), "evidence isn't on the page"),
        ("1", row("Is it so that each volume has 10 GiB by default and costs money?"), "copied from the page"),
        ("1", row("What does this page say about volumes?"), "leans on the page"),
        ("1", row("How large is the volume mentioned above?"), "leans on the page"),
        ("1", row("Jak velký je nový svazek?"), "in another language"),
        ("1", {"question": "How large is a new volume?"}, "a text is missing"),
        ("1", row("How large?", answer=""), "a text is missing"),
        ("3", row("how big r volumes"), ""),
        ("4", row("volume size default"), ""),
        ("4", row("How large is a volume?"), "no keywords"),
        ("4", row("one two three four five six seven eight nine"), "no keywords"),
        ("unanswerable", {"question": "What does a private cluster cost?"}, ""),
    ):
        assert reason_against(job(variant), made, DETECTOR) == reason, made
    for asked in ("Co se na této stránce píše o svazcích?", "co je vyse uvedeno o velikosti"):
        assert reason_against(job("1", "cs"), row(asked), DETECTOR) == "leans on the page"


def test_follow_ups_must_need_their_first_question():
    """And their standalone wording must stand alone."""
    made = row(
        "And how large is it?", first="What is a volume?", first_answer="A disk.", standalone="How large is a volume?"
    )
    assert reason_against(job("follow_up"), made, DETECTOR) == ""
    alone = {**made, "question": made["standalone"]}
    assert reason_against(job("follow_up"), alone, DETECTOR) == "needs no first question"
    assert reason_against(job("follow_up"), {**made, "first": ""}, DETECTOR) == "a text is missing"


async def made_with(replies, tmp_path, jobs):
    async with fake_llm() as llm:
        llm.reply = replies(llm)
        model = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "maker"))
        with Cache(tmp_path / "g.jsonl") as cache:
            errors = await ask(jobs, model, cache, Pace(first_wait=0.01))
            made = gather(jobs, cache, DETECTOR)
        await model.close()
        return made, errors, len(llm.calls)


async def test_a_failed_call_is_told_and_asked_again_alone(tmp_path):
    """Three tries, then an error that names page and variant; the next run asks for nothing else."""
    jobs = [one for one in plan([page("a")], TranslationSets(), PROMPTS) if one.variant in {"1", "3"}]

    def broken(llm):
        good = json.dumps({"questions": [row("How large is a new volume?"), row("How large is a new volume?")]})
        bad = [Reply("no", status=500), Reply("I'd rather not."), Reply('{"questions": 3}')]

        def reply(body) -> Reply:
            if "hurried" not in body["messages"][0]["content"] or "čeština" in body["messages"][0]["content"]:
                return Reply(f"```json\n{good}\n```")
            return bad[len(llm.calls) % 3]

        return reply

    made, errors, calls = await made_with(broken, tmp_path, jobs)
    assert (len(errors), calls) == (1, 6)
    assert "/docs/en/a en 3" in next(iter(errors.values()))
    assert made.refused["asked before"] >= 1
    fine = json.dumps({"questions": [row("how big r volumes")]})
    made, errors, calls = await made_with(lambda _: lambda _: Reply(fine), tmp_path, jobs)
    assert (errors, calls) == ({}, 1)
    assert {one["variant"] for one in made.questions} >= {"1", "3"}


async def test_the_files_can_be_measured_with(tmp_path):
    """The cases can be loaded; follow-ups and unanswerable ones stand apart."""
    jobs = plan([page("a")], TranslationSets(), PROMPTS, follow_ups=1, unanswerable=2)

    def reply(body) -> Reply:
        text = body["messages"][0]["content"]
        czech = "čeština" in text
        if "Titles:" in text:
            rows = [{"question": "Kolik stojí soukromý cluster?" if czech else "What does a private cluster cost?"}]
        elif "follow-up" in text:
            alone = "Jak velký je nový svazek?" if czech else "How large is a volume?"
            rows = [row("A how?", first="f", first_answer="g", standalone=alone)]
        else:
            rows = [row("Kolik místa svazek nabízí?" if czech else "How much room does a volume offer?")]
        return Reply(json.dumps({"questions": rows}))

    made, errors, _ = await made_with(lambda _: reply, tmp_path, jobs)
    names = sorted(path.name for path in write(made, tmp_path))
    assert names == ["follow_ups.jsonl", "questions.jsonl", "unanswerable.jsonl"]
    assert errors == {}
    lines = load_cases(tmp_path / "questions.jsonl")
    assert {(one.language, one.cross) for one in lines} == {("en", False), ("cs", True)}
    talk = json.loads((tmp_path / "follow_ups.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert [message["role"] for message in talk["messages"]] == ["user", "assistant", "user"]


async def test_the_command_says_the_cost_first(tmp_path, monkeypatch, few_docs, capsys):
    """Without --yes and without a terminal nothing is asked; with it the set is made from the index."""
    async with fake_llm() as llm:
        evidence = {"question": "Why not?", "answer": "a", "evidence": "Zorbling flibbers need quuxes."}
        llm.reply = lambda _: Reply(json.dumps({"questions": [evidence]}))
        settings = few_docs.model_copy(update={"llm_url": llm.url, "llm_model": "maker"})
        words = ["--pages", "2", "--per-page", "1", "--out", tmp_path / "set", "--price", "1", "2"]
        monkeypatch.setattr("sys.stdin", io.StringIO())
        assert await command(settings, "generate", *words) == 2
        said = capsys.readouterr().err
        assert "8 calls to maker: about" in said
        assert "in your money" in said
        assert llm.calls == []
        assert await command(settings, "generate", *words, "--yes") == 1  # all refused: no set
        assert len(llm.calls) == 8
    assert "rejected: 8 (evidence isn't on the page)" in capsys.readouterr().out
