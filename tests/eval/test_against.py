"""`eval run --against` and `eval compare` of answers: a prompt change is one command, and nothing is paid for twice."""

import json
import re
from dataclasses import replace

import lxml.html
import pytest

from app.core.settings import Settings
from eval.answers.score import side_by_side
from eval.files import EvaluationError, write_json_lines
from eval.measure.result import load_result
from eval.questions.own_docs import own_set
from eval.reports.pages import answers_page
from tests.eval.conftest import command
from tests.eval.test_answers_gate import result as answers
from tests.fake_llm import FakeLLM, Reply, fake_llm

SHORT = "- Answer with two words."


@pytest.fixture
def questions(tmp_path):
    """Sixteen questions about eight pages, and the evidence of each."""
    with own_set() as path:
        rows = [row for line in path.read_text("utf-8").splitlines() if (row := json.loads(line))["lang"] == "en"]
    chosen = list({(row["doc"], row["variant"]): row for row in rows if row["variant"] in {1, 2}}.values())
    assert len(chosen) == 16
    write_json_lines(chosen, tmp_path / "q.jsonl")
    return tmp_path / "q.jsonl", {row["question"]: row["evidence"] for row in chosen}


def prompts(folder, *lines: str):
    """A directory with one prompt of ours, the shipped one with these lines at its end of rules."""
    from app.core.prompts import shipped_files

    text = shipped_files()["en/synthesize.md"].replace("Rules:\n", "\n".join(["Rules:", *lines, ""]))
    (folder / "en").mkdir(parents=True, exist_ok=True)
    (folder / "en/synthesize.md").write_text(text, "utf-8")
    return folder


class Model:
    """Answers with the evidence of the question, or with its first two words where the prompt wants it short; counts whole answers."""

    def __init__(self, llm: FakeLLM, evidence: dict[str, str]) -> None:
        self.evidence, self.asked, self.breaks = evidence, list[str](), False
        self.settings = {"llm_url": llm.url, "llm_model": "m", "min_evidence": 0.0}
        llm.reply = self.reply

    def reply(self, body) -> Reply:
        text, system = body["messages"][-1]["content"], body["messages"][0]["content"]
        if not body.get("stream"):
            return Reply(text)
        question = next(one for one in self.evidence if one in text)
        self.asked.append(question)
        if self.breaks and question == self.asked[0]:
            return Reply("out of order", status=500)
        said = self.evidence[question]
        return Reply(f"{' '.join(said.split()[:2])} [1]." if SHORT in system else f"{said} [1]")


@pytest.mark.slow
async def test_a_prompt_change_is_one_command(tmp_path, index, questions, capsys):
    """Both sides answer the same questions; a real drop ends with 1; unchanged sides are never asked again."""
    path, evidence = questions
    mine, out = prompts(tmp_path / "mine", SHORT), tmp_path / "out"
    async with fake_llm() as llm:
        model = Model(llm, evidence)
        own = index.model_copy(update=model.settings)

        async def run(*words: object) -> tuple[int, int, str]:
            model.asked.clear()
            code = await command(own, "run", path, "--prompts", mine, "--out", out, *words)
            printed = capsys.readouterr()
            return code, len(model.asked), printed.out + printed.err

        code, asked, text = await run("--against", "shipped")
        assert (code, asked) == (1, 32), text
        assert f"{mine} minus shipped, 16 questions in both" in text
        assert "Prompts that differ: en/synthesize.md." in text
        assert re.search(r"Became worse: 1\d questions, the 10 biggest moves", text)
        assert "DROPPED" in text.partition("FAILED")[0]
        assert [(await run("--against", one))[:2] for one in ("shipped", "docs-assistant")] == [(1, 0), (1, 0)]
        assert (await run("--against", "shipped", "--max-drop", "1"))[:2] == (0, 0)
        kept = load_result(out / "answers.json")
        assert set(kept.contestants) == {str(mine), "shipped"}
        assert kept.contestants[0] == str(mine)  # what the gate judges
        # the same prompts, no such thing, too many sides: told before anything is asked
        prompts(tmp_path / "same", SHORT)
        for words, message in (
            (["--against", tmp_path / "same"], "the same prompts"),
            (["--against", "nothing"], "there is no such thing"),
            (
                ["--against", "shipped", "--assistant", "docs-assistant", "--assistant", "docs-assistant:kids"],
                "one assistant",
            ),
            (["--against", "shipped", "--prompts", tmp_path], "such as en/synthesize.md"),
        ):
            code, asked, text = await run(*words)
            assert (code, asked) == (2, 0), text
            assert message in text


async def test_a_failed_question_is_asked_again_and_the_others_are_kept(tmp_path, index, questions, capsys):
    """An answer that the model didn't give is no answer of the assistant."""
    path, evidence = questions
    async with fake_llm() as llm:
        model = Model(llm, evidence)
        model.breaks = True
        own = index.model_copy(update=model.settings)
        words = ["run", path, "--out", tmp_path / "out", "--limit", 6]
        assert await command(own, *words, "--parallel", 1) == 1
        assert "The first error: ModelUnavailable" in capsys.readouterr().out

        failed = len(load_result(tmp_path / "out/answers.json").failed)
        assert 0 < failed < 6
        model.breaks = False
        model.asked.clear()
        assert await command(own, *words) == 0
        assert len(model.asked) == failed
    assert not load_result(tmp_path / "out/answers.json").failed


async def test_without_a_model_the_quoting_answers_are_measured_too(tmp_path, index, questions):
    """No model is an option of a run of answers."""
    path, _ = questions
    own = Settings.load(env_file=None, store=index.store)
    assert await command(own, "run", path, "--no-model", "--limit", 3, "--out", tmp_path / "none") == 0


async def test_compare_reads_answers_and_refuses_what_it_cannot_compare(tmp_path, capsys):
    """Files or directories of eval run; another judge, another kind and another set are refused by name."""
    before, after = answers(*[1.0] * 40), answers(*[1.0, 0.0] * 20)
    for name, one in (("a", before), ("b", after)):
        (tmp_path / name).mkdir()
        one.save(tmp_path / name / "answers.json")
    a, b, page = tmp_path / "a", tmp_path / "b/answers.json", tmp_path / "p.html"
    none = Settings.load(env_file=None)
    assert await command(none, "compare", a, b, "--html", page) == 1
    text = capsys.readouterr().out
    assert f"{b} minus {a}, 52 questions in both" in text
    assert "faithful 1 → 0" in text
    assert await command(none, "compare", b, a) == 0
    capsys.readouterr()
    assert len(lxml.html.fromstring(page.read_text("utf-8")).xpath("//details[@class='question']")) == 52
    replace(after, config={**after.config, "judge": "other"}).save(tmp_path / "judge.json")
    after.only(frozenset({"q1"})).save(tmp_path / "less.json")
    (tmp_path / "old.json").write_text('{"form": "docs-assistant answers 1"}', "utf-8")
    replace(after, kind="eval refusals").save(tmp_path / "r.json")
    for other, message in (
        ("judge.json", "The judge of A is j own, that of B other own"),
        ("less.json", "51 are only in A"),
        ("r.json", "r.json of `eval refusals`: only results of the same command"),
        ("p.html", "p.html isn't a file of"),
        ("old.json", "has the form 'docs-assistant answers 1'"),
    ):
        assert await command(none, "compare", a, tmp_path / other) == 2
        assert message in capsys.readouterr().err


def test_the_report_shows_the_proof_the_passages_and_both_answers_side_by_side():
    """Where the proof is, or that nobody read it; what differs is marked; texts can't become HTML, nor links scripts."""
    one, other = (answers(1.0, 1.0, 1.0, 1.0) for _ in range(2))
    evil = "<script>alert(1)</script>"

    def with_texts(result, text: str):
        told = [
            ("A first line\nIt has **ten**\nlegs and " + evil, "It has ten legs"),
            ("Heading\nIt has ten big strong legs and two arms.", "ten big strong legs and three hands"),
            ("Heading\nNothing of it.", "It has ten legs"),
            ("Heading\nNothing at all.", ""),
        ]
        outcomes = [
            replace(
                kept,
                case=replace(kept.case, evidence=evidence, answer="Ten."),
                details={
                    **kept.details,
                    "text": text,
                    "passages": [passage],
                    "links": ["https://x.example/en/p1#a", "javascript:alert(1)"],
                    "pages": [f"https://x.example/{kept.case.doc}"] if i == 2 else [],
                },
            )
            for i, (kept, (passage, evidence)) in enumerate(zip(result.outcomes[:4], told, strict=True))
        ]
        return replace(result, outcomes=tuple(outcomes))

    both = side_by_side(with_texts(one, "It has ten legs."), with_texts(other, f"It has {evil} legs."), ("a", "b"))
    tree = lxml.html.document_fromstring(answers_page(both))
    shown = {e.xpath("string(.//blockquote[1])"): e for e in tree.xpath("//details[@class='question']")}
    texts = [e.text_content() for e in tree.xpath("//details[@class='question']")]
    for words in (
        "The proof is in passage 1.", "A part of the proof (60 %) is in passage 1.",
        "NOT READ: the proof is in no passage. Its page was found at rank 1", "has no evidence for this question",
    ):  # fmt: skip
        assert sum(words in text for text in texts) == 1, words
    marked = [e.text_content() for e in tree.xpath("//blockquote[contains(@class, 'text')]/mark")]
    assert marked == ["It has **ten**\nlegs", "ten big strong legs and"]
    assert {e.text for e in shown["It has ten legs"].iter("del")} == {"ten"}
    assert "".join(e.text for e in shown["It has ten legs"].iter("ins")) == evil
    assert not tree.xpath("//script | //img | //link")
    assert {e.get("href") for e in tree.iter("a")} == {"https://x.example/en/p1#a"}
    with pytest.raises(EvaluationError, match="different content"):
        b = (replace(one, case=replace(one.case, question="?")) for one in both.of("b").outcomes)
        _ = replace(both, outcomes=(*both.of("a").outcomes, *b)).comparisons
