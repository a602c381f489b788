"""Answers: plain measures, judgements, contestants, and the figures made of them."""

import json
from dataclasses import replace
from importlib.util import find_spec

import lxml.html
import pytest

from app.core.prompts import load_prompts
from app.models.openai import Endpoint
from app.text.language import LanguageDetector
from app.text.literals import claims
from eval.answers.contestants import RemoteService, collect, without_links
from eval.answers.score import (
    Answer,
    Scorer,
    answers_text,
    cosine,
    efforts,
    entity_overlap,
    fidelity,
    keyword_overlap,
    kind_table,
    outcome_of,
    tasks,
)  # fmt: skip
from eval.files import Cache
from eval.judge import Judgement, criteria
from eval.measure.result import ANSWERS, Result, load_result
from eval.questions.cases import Case
from eval.reports.pages import answers_page, evidently_page
from tests.fake_llm import Reply, fake_llm
from tests.fakes import FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))
PASSAGE = "Storage\nEach volume has 10 GiB. Run `kubectl get pvc` or see https://docs.example.org/pvc. Version 11.25."


def case(id_: str = "a", language: str = "en", *, doc: str = "en/volumes") -> Case:
    return Case(id_, language, f"How big is {id_}?", doc, "1", answer="Each volume has 10 GiB of storage.")


def scorer() -> Scorer:
    return Scorer(PROMPTS, LanguageDetector(PROMPTS.languages, "en"), FakeEmbedder())


async def scored(text: str, *judgements: Judgement, of: Case | None = None, **more):
    one = of or case()
    answer = Answer("us", one.id, text, more.pop("passages", (PASSAGE,)), **more)
    return (await scorer().score([answer], {one.id: one}, judgements))[0]


def judged(criterion: str, verdict: bool | None, row: str = "us\0a") -> Judgement:
    return Judgement(row, criterion, verdict)


def test_fidelity_counts_what_a_reader_copies():
    """Numbers, commands and addresses must stand in the passages; citations and list numbers are no claims."""
    for answer, share in (
        ("It has 10 GiB [1].", 1.0),
        ("It has 100 GiB.", 0.0),
        ("It has 10 MiB.", 0.0),
        ("It has 10GiB.", 1.0),
        ("It is version 1.25.", 0.0),
        ("It is version 11.25.", 1.0),
        ("Run `kubectl get pvc`.", 1.0),
        ("Run `kubectl delete pvc`.", 0.0),
        ("```sh\nkubectl get pvc\nkubectl get pods\n```", 0.5),
        ("See https://docs.example.org/pvc.", 1.0),
        ("See https://evil.example/pvc.", 0.0),
        ("10 GiB, never 20.", 0.5),
        ("1. Open it.\n2. Close it.", None),
        ("It is large [1][2].", None),
    ):
        assert fidelity(answer, [PASSAGE]) == share, answer
        assert (claims(answer) == ()) == (share is None), answer
    assert fidelity("It has 10 GiB.", []) is None  # the passages of a foreign bot aren't known


def test_overlaps_count_telling_words_and_names():
    """Endings and stopwords don't matter for words; names and numbers must be whole."""
    assert keyword_overlap("Volumes have storage", "the volume has storages", {"the", "has", "have"}) == 1.0
    assert keyword_overlap("Something else", "the volume", {"the"}) == 0.0
    assert entity_overlap("set DOCS_PORT to 8001", "DOCS_PORT=8001") == 1.0
    assert entity_overlap("set DOCS_PORT to 80010", "use DOCS_PORT and 8001") == 0.5
    assert entity_overlap("anything", "no names here") is None
    assert cosine((1, 0), (0, 0)) == 0.0


async def test_an_answer_is_measured_without_a_judge():
    """Correctness is the mean of its three parts; the judge's measures are unknown, not zero."""
    one = await scored("Each volume has 10 GiB of storage.")
    assert one.values["correctness"] == pytest.approx(1)
    assert one.values["language"] == one.values["refusal"] == one.values["fidelity"] == 1
    assert one.values["faithful"] is None
    wrong = await scored("Pods restart.")
    assert wrong.values["correctness"] < 0.3
    parts = [wrong.values[name] for name in ("keywords", "entities", "similarity")]
    assert wrong.values["correctness"] == pytest.approx(sum(parts) / 3)


async def test_language_and_refusals_are_told_by_code():
    """The service's own "nothing found" is a refusal: right for a question without an answer, wrong otherwise."""
    nothing = PROMPTS.render("en", "nothing_found")
    assert (await scored(nothing)).values["refusal"] == 0
    assert (await scored(nothing, of=case("u", doc=""))).values["refusal"] == 1
    assert (await scored("It has 10 GiB.", of=case("u", doc=""))).values["refusal"] == 0
    greeting = replace(case("u", doc=""), variant="chit-chat")
    assert (await scored("Hello! Ask me about the documentation.", of=greeting)).values["refusal"] is None
    assert (await scored("Každý svazek má deset gigabajtů.")).values["language"] == 0


async def test_the_judge_decides_where_it_was_asked():
    """Its verdict on refusals wins over the code's; UNKNOWN counts as unknown."""
    one = await scored("I can't say.", judged("refuses", True), judged("faithful", True), judged("complete", None))
    assert (one.values["refusal"], one.values["faithful"], one.values["complete"]) == (0, 1, None)


async def test_a_failed_answer_counts():
    """It answered nothing in no language, and is never left out of the mean."""
    one = await scored("", error="ModelTimeout: late")
    assert (one.values["language"], one.values["refusal"], one.values["correctness"]) == (0, 0, None)


def test_only_what_can_be_judged_is_asked():
    """No source: no faithfulness; no answer in the documentation: refusal alone; failed answers: nothing."""
    cases = {"a": case(), "u": case("u", doc="")}
    answers = [
        Answer("us", "a", "x", ("p",)),
        Answer("old", "a", "x"),
        Answer("us", "u", "x", ("p",)),
        Answer("old", "u", error="e"),
    ]
    asked = [(t.row, t.criterion.name) for t in tasks(answers, cases, criteria(evidently=False))]
    assert [name for row, name in asked if row == "us\0a"] == ["faithful", "complete", "answers", "refuses"]
    assert [name for row, name in asked if row == "old\0a"] == ["complete", "answers", "refuses"]
    assert [name for row, name in asked if row.endswith("u")] == ["refuses"]


async def result_of(verdicts: dict[str, list[tuple[bool | None, bool | None]]]) -> Result:
    found = []
    for name, pairs in verdicts.items():
        for i, (faithful, complete) in enumerate(pairs):
            one = case(f"q{i}", "cs" if i % 2 else "en", doc=f"p{i % 8}")
            row = f"{name}\0{one.id}"
            answer = Answer(name, one.id, "Each volume has 10 GiB.", (PASSAGE,))
            rulings = [judged("faithful", faithful, row), judged("complete", complete, row)]
            found += await scorer().score([answer], {one.id: one}, rulings)
    return Result(ANSWERS, tuple(found), {"set": "s.jsonl", "judge": "j"})


async def test_the_table_counts_faithful_complete_and_language():
    """Each answer is in exactly one cell."""
    result = await result_of({"us": [(True, True), (True, False), (False, True), (False, False), (None, True)] * 2})
    header, rows = kind_table(result)
    assert header[1:] == ["right language", "wrong language", "all"]
    # the answers are English, half of the questions Czech
    assert rows == [
        [f"us: {kind}", "1 (10 %)", "1 (10 %)", "2 (20 %)"]
        for kind in (
            "faithful, complete", "faithful, incomplete", "unfaithful, complete", "unfaithful, incomplete", "not judged",
        )
    ]  # fmt: skip


async def test_contestants_are_compared_question_by_question(tmp_path):
    """The second one is less often faithful, and the difference is outside the noise; JSON and page say the same."""
    result = await result_of({"us": [(True, True)] * 40, "old": [(i % 2 == 0, True) for i in range(40)]})
    (comparison,) = result.comparisons
    difference = next(row for row in comparison.rows if row.language == "mean").measures["faithful"]
    assert comparison.names == ("us", "old")
    assert (difference.n, difference.estimate.mean, difference.better, difference.worse) == (40, -0.5, 0, 20)
    assert difference.outside_noise
    assert "old minus us" in answers_text(result)
    result.save(tmp_path / "a.json")
    assert load_result(tmp_path / "a.json") == result
    page = lxml.html.document_fromstring(answers_page(result))
    assert not any("src" in e.attrib or ("href" in e.attrib and e.tag != "a") for e in page.iter())
    assert "-0.500" in page.text_content()


async def test_failures_are_told(tmp_path):
    """A malformed judgement and a missing answer stand in the report, with what to do."""
    result = await result_of({"us": [(True, True)] * 4})
    malformed = [{"criterion": "faithful", "error": "malformed: x", "category": "", "reasoning": ""}]
    first, second, *rest = result.outcomes
    broken = replace(first, details={**first.details, "judgements": malformed})
    missing = replace(second, error="ModelTimeout: late")
    result = replace(result, outcomes=(broken, missing, *rest))
    assert "FAILED: 1 answers, 1 judgements" in answers_text(result)


def test_time_and_tokens_are_told_by_contestant():
    """Failed answers are left out; where nobody counted tokens there is no figure, not a zero."""
    ours = [Answer("us", "a", "x", ms=ms, prompt_tokens=100, completion_tokens=n) for ms, n in ((10, 5), (30, 15))]
    late = Answer("us", "c", ms=60_000, error="ModelTimeout: late")
    answers = [*ours, late, Answer("old", "a", "x", ms=7)]
    outcomes = [outcome_of(answer, case(answer.case), {}) for answer in answers]
    us, old = efforts(Result(ANSWERS, tuple(outcomes)))
    assert (us["n"], us["p50"], us["prompt_tokens"], us["completion_tokens"]) == (2, 20, 100, 10)
    assert old == {"contestant": "old", "n": 1, "p50": 7, "p95": 7, "prompt_tokens": None, "completion_tokens": None}
    assert efforts(Result(ANSWERS, (outcomes[2],))) == []


async def test_a_foreign_api_answers_and_is_asked_once(tmp_path):
    """Its failure is an answer with an error, which a later run asks again; the rest comes from the file."""
    async with fake_llm() as llm:
        replies = [
            Reply("Ten GiB.\n\n**Sources**\n1. [Volumes](https://x.example/v)"),
            Reply("no", status=500),
            Reply("So."),
        ]
        llm.reply = lambda _: replies[min(len(llm.calls), 3) - 1]
        remote = RemoteService("old", Endpoint(llm.url, timeout=60), "bot")
        for run in range(2):
            with Cache(tmp_path / "a.jsonl") as cache:
                first, second = await collect([remote], [case("a"), case("b")], cache, parallel=1)
            assert first.text == "Ten GiB."
            assert (first.prompt_tokens, first.completion_tokens) == (11, 7)
            assert bool(second.error) == (run == 0)
        await remote.endpoint.close()
        assert len(llm.calls) == 3


async def test_the_addresses_that_a_foreign_api_cites_are_read_wherever_they_are():
    """As our service, OpenAI, Perplexity, Azure and Open WebUI send them, and as links in the text."""
    url, message = "https://x.example/v#a", {"role": "assistant", "content": "Ten."}
    shapes = [
        {"sources": [{"number": 1, "url": url}]},
        {"message": {"annotations": [{"type": "url_citation", "url_citation": {"url": url, "title": "https:"}}]}},
        {"citations": [url, url]},
        {"message": {"context": {"citations": [{"content": f"See {url}", "url": url}]}}},
        {"sources": [{"source": {"name": "docs"}, "document": ["Ten."], "metadata": [{"source": url}]}]},
        {"message": {"content": f"Ten, see [volumes]({url})."}},
    ]
    async with fake_llm() as llm:
        remote = RemoteService("old", Endpoint(llm.url, timeout=60), "bot")
        for shape in shapes:
            choice = {"message": message | shape.get("message", {})}
            llm.reply = lambda _, sent={"choices": [choice]} | shape: Reply(raw=json.dumps(sent))
            assert (await remote.answer(case())).links == (url,), shape
        await remote.endpoint.close()
    assert llm.calls[0]["stream"] is False


def test_only_the_list_of_links_is_cut_off():
    """A bold paragraph at the end of an answer stays."""
    assert without_links("A.\n\n**Zdroje**\n1. [B](http://x/b)\n2. [C](http://x/c)") == "A."
    assert without_links("A.\n\n**Note**\nmind the gap") == "A.\n\n**Note**\nmind the gap"
    assert without_links("A.") == "A."


@pytest.mark.slow
async def test_evidentlys_own_report_is_written_where_it_is_installed(tmp_path):
    """A page with our measures as columns."""
    pytest.importorskip("pandas")
    if not find_spec("evidently"):
        pytest.skip("needs the extra eval")
    result = await result_of({"us": [(True, True), (False, None)] * 4})
    evidently_page(result, tmp_path / "e.html")
    text = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert "correctness" in text
    assert "<html" in text
