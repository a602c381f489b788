"""Labels of relevance: pairs for models and people, their files, the agreement of those who labelled, and measures on labels."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from eval.commands.labelling import RELEVANT
from eval.files import EvaluationError
from eval.measure.agreement import against, consensus, fleiss
from eval.measure.result import load_result
from eval.questions.cases import load_cases
from eval.questions.labels import Label, Pair, drawn, load_labels, relevant_chunks, write_labels
from eval.questions.own_docs import own_set
from tests.eval.conftest import command
from tests.fake_llm import FakeLLM, Reply, fake_llm

needs_sklearn = pytest.mark.skipif(not find_spec("sklearn"), reason="needs the extra clusters")
PAIRS = [Pair(f"q{n % 5}", f"c{n}", "How?", "https://x", "Text.") for n in range(40)]


def rater(*labels: bool | None) -> dict[tuple[str, str], bool]:
    return {("q", str(n)): label for n, label in enumerate(labels) if label is not None}


def by_title(llm: FakeLLM, word: str, failing: str = "\0") -> None:
    """A model that takes passages with a word for relevant, and fails on others."""

    def reply(body) -> Reply:
        text = body["messages"][-1]["content"]
        if failing in text:
            return Reply(status=500)
        return Reply(json.dumps({"reasoning": "r", "category": "RELEVANT" if word in text else "IRRELEVANT"}))

    llm.reply = reply


async def label(index, path: Path, out: Path, llm: FakeLLM | None, *words: object, model: str = "m/1") -> int:
    judge = ["--judge-url", llm.url, "--judge-model", model] if llm else []
    return await command(index, "label", path, "--out", out, *judge, *words)


async def test_two_models_and_people_label_what_searches_find(index, tmp_path, capsys):
    """A second run pays for nothing; the sheet has pairs of both labels; measures follow the labels."""
    out = tmp_path / "out"
    async with fake_llm() as llm:
        by_title(llm, "evidence")
        with own_set() as path:
            assert await label(index, path, out, llm, "--limit", "3", "--depth", "4") == 0
            calls = len(llm.calls)
            first = load_labels(out / "labels-m-1.jsonl")
            assert {one.by for one in first} == {"m/1"}
            assert len({one.case for one in first}) == 3
            assert 3 * 4 <= len(first) == calls <= 3 * 16
            assert await label(index, path, out, llm, "--limit", "3", "--depth", "4", "--sheet", "6") == 0
            assert len(llm.calls) == calls
            by_title(llm, "page")
            assert await label(index, path, out, llm, "--limit", "3", "--depth", "4", model="two") == 0
            assert len(load_labels(out / "labels-two.jsonl")) == len(first)
        sheet = (out / "sheet.csv").read_text("utf-8-sig").splitlines()
        assert sheet[0] == "case,chunk,question,url,passage,relevant"
        assert (out / "sheet.html").read_text().count("<fieldset") == 6
    assert RELEVANT.yes == "RELEVANT"
    capsys.readouterr()


async def test_a_model_rates_all_chunks_and_goes_on_where_it_stopped(index, tmp_path, capsys):
    """Each chunk of the index for each question; what failed is asked again, and nothing else."""
    out = tmp_path / "out"
    async with fake_llm() as llm:
        by_title(llm, "evidence", failing="Helm")
        with own_set() as path:
            words = ("--limit", "1", "--all", "--parallel", "16")
            first = await label(index, path, out, llm, *words)
            assert first == 1
            assert "failed" in capsys.readouterr().out
            known, calls = len(load_labels(out / "labels-m-1.jsonl")), len(llm.calls)
            by_title(llm, "evidence")
            assert await label(index, path, out, llm, *words) == 0
            labels = load_labels(out / "labels-m-1.jsonl")
            assert len(llm.calls) - calls <= len(labels) - known
            assert known < len(labels) > 300
            # measured on the labels: the chunks are right that were called relevant
            result = tmp_path / "r.json"
            file = out / "labels-m-1.jsonl"
            assert (
                await command(index, "retrieval", path, "--limit", "1", "--deep", "--labels", file, "--out", result)
                == 0
            )
            saved = load_result(result)
            assert saved.config["labels"] == "labels-m-1.jsonl"
            ((found, listed, relevant),) = [outcome.details["ranks"]["chunk"] for outcome in saved.outcomes]
            assert relevant == sum(one.relevant for one in labels)
            assert found == [rank for rank in found if rank <= listed]
            assert "chunks, first 20" in capsys.readouterr().out


async def test_somebody_must_label(index, tmp_path, capsys):
    with own_set() as path:
        assert await label(index, path, tmp_path, None) == 2
        assert "Who labels?" in capsys.readouterr().err
        assert await command(index, "label", path, "--out", tmp_path, "--judge-url", "http://127.0.0.1:1") == 2
        # without a model's labels, people get any pairs
        assert await label(index, path, tmp_path, None, "--limit", "2", "--sheet", "5") == 0
        assert len(load_cases(path)) > 2
    assert (tmp_path / "sheet.html").read_text().count("<fieldset") == 5


def test_half_of_a_sample_is_relevant_and_it_is_always_the_same():
    labels = [Label(pair.case, pair.chunk, n % 4 == 0, "m") for n, pair in enumerate(PAIRS)]
    chosen = drawn(PAIRS, labels, 10)
    relevant = [pair in PAIRS[::4] for pair in chosen]
    assert (len(chosen), sum(relevant)) == (10, 5)
    assert relevant != sorted(relevant, reverse=True)
    assert chosen == drawn(PAIRS, labels, 10)
    assert len(drawn(PAIRS, (), 10)) == 10


def test_sheets_are_read_as_spreadsheets_save_them(tmp_path):
    """With semicolons, in Czech, with empty cells; a wrong word names its line."""
    path = tmp_path / "eva.csv"
    path.write_text("\ufeffcase;chunk;relevant\na;1;Ano\na;2;ne\nb;3;\n", encoding="utf-8")
    labels = load_labels(path)
    assert [(one.case, one.chunk, one.relevant, one.by) for one in labels] == [
        ("a", "1", True, "eva"),
        ("a", "2", False, "eva"),
    ]
    assert relevant_chunks(labels) == {"a": frozenset({"1"})}
    write_labels(labels, tmp_path / "eva.jsonl")
    assert load_labels(tmp_path / "eva.jsonl") == labels
    path.write_text("case,chunk,relevant\na,1,perhaps\n", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"eva.csv:2: 'relevant' is 'perhaps'"):
        load_labels(path)
    path.write_text("case,relevant\na,yes\n", encoding="utf-8")
    with pytest.raises(EvaluationError, match="case, chunk and relevant"):
        load_labels(path)


def test_consensus_goes_by_its_threshold():
    raters = [rater(True, True, False), rater(True, False, False), rater(True, False, None)]
    assert consensus(raters) == rater(True, False, False)
    assert consensus(raters, 0.3) == rater(True, True, False)


@needs_sklearn
def test_agreement_has_the_known_values():
    """Cohen's example of 1960's form: 50 grants, 20 and 15 of both, kappa .4; F1 against the consensus by hand."""
    one = rater(*[True] * 25, *[False] * 25)
    other = rater(*[True] * 20, *[False] * 5, *[True] * 10, *[False] * 15)
    for own, agreed in ((one, other), (other, one)):
        assert against(own, agreed)["kappa"] == pytest.approx(0.4)
    found = against(one, other)
    assert (found["n"], found["same"], found["relevant"]) == (50, 0.7, 0.5)
    assert (found["precision"], found["recall"]) == (0.8, pytest.approx(20 / 30))
    assert found["f1"] == pytest.approx(2 * 20 / 55)
    assert against(rater(True), rater(True))["kappa"] == 1.0
    assert against(rater(True, True), rater(True, False))["kappa"] == 0.0
    assert against(rater(True), {}) is None


def test_fleiss_kappa_is_that_of_statsmodels():
    votes = [[True] * n + [False] * (6 - n) for n in (0, 6, 3, 1, 5, 4, 6, 2, 0, 6)]
    # by hand: P = mean of (n(n-1) + m(m-1)) / 30, Pe = .55² + .45²
    same = sum(n * (n - 1) + (6 - n) * (5 - n) for n in (0, 6, 3, 1, 5, 4, 6, 2, 0, 6)) / 300
    assert fleiss(votes) == pytest.approx((same - 0.505) / 0.495)
    assert fleiss([[True, True], [False, False]]) == 1.0
    if find_spec("statsmodels"):
        from statsmodels.stats.inter_rater import fleiss_kappa

        assert fleiss(votes) == pytest.approx(fleiss_kappa([[sum(own), 6 - sum(own)] for own in votes]))


@needs_sklearn
async def test_the_command_compares_models_with_people(index, tmp_path, capsys):
    def file(name: str, *labels: bool) -> Path:
        path = tmp_path / f"{name}.jsonl"
        write_labels([Label("q", str(n), said, name) for n, said in enumerate(labels)], path)
        return path

    model = file("gpt", True, True, False, False)
    eva, jan = file("eva", True, False, False, False), file("jan", True, True, False, False)
    out = tmp_path / "consensus.jsonl"
    assert await command(index, "agreement", model, "--person", eva, "--person", jan, "--out", out) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[1].split() == ["gpt", "4", "50", "%", "100", "%", "1.00", "1.00", "1.00", "1.00"]
    assert "Fleiss' kappa 0.66" in printed
    assert [one.relevant for one in load_labels(out)] == [True, True, False, False]
    words = ["agreement", model, "--person", eva, "--person", jan, "--threshold", "0.6", "--out", out]
    assert await command(index, *words) == 0
    assert [one.relevant for one in load_labels(out)] == [True, False, False, False]
    # a person is compared with the others only: for Jan, that is Eva
    assert printed.splitlines()[3].split()[:6] == ["jan", "4", "50", "%", "75", "%"]
    assert await command(index, "agreement", model, tmp_path / "other.jsonl") == 2
    assert await command(index, "agreement", model) == 2
    assert "at least two files" in capsys.readouterr().err
