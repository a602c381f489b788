"""Labels: what is pooled, what a model and people said, and how far they agree."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.core.settings import Settings
from app.core.types import Candidate, Legs, LexicalText, Query
from eval.files import EvaluationError
from eval.label import (
    Label,
    Pair,
    agreement,
    drawn,
    kappa,
    load_labels,
    pooled,
    relevant_by_case,
    search_methods,
    write_labels,
    write_sheet,
)
from eval.measure.result import load_result
from eval.questions.own_docs import own_set
from tests.eval.conftest import command
from tests.fake_llm import Reply, fake_llm


def leg(*ids: str) -> tuple[Candidate, ...]:
    return tuple(Candidate(id_, f"u/page-{id_}", "en", 1 - rank / 50) for rank, id_ in enumerate(ids))


def label(n: int, relevant: bool, by: str = "model") -> Label:
    return Label(f"q{n}", "c", relevant, by)


def test_every_way_of_searching_brings_its_first_passages():
    """What words or vectors alone find is labelled as well, else their hits could never count."""
    legs = Legs(leg(*(f"w{n}" for n in range(30))), leg(*(f"v{n}" for n in range(30))))
    query = Query((LexicalText("en", "q"),), vector=(1.0,), language="en", lexical_weight=0.9, vector_weight=0.1)
    found = pooled(legs, query)
    assert {f"w{n}" for n in range(20)} | {f"v{n}" for n in range(20)} == set(found)
    assert set(found[:2]) == {"w0", "v0"}
    assert set(search_methods(query)) == {"as set", "rrf", "words", "vectors"}


def test_kappa_and_f1_are_those_of_scikit_learn():
    """On 100 random labellings; the product doesn't use it, the extra eval brings it."""
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(100):
        dice = random.Random(seed)
        pairs = [(dice.random() < 0.4, dice.random() < 0.6) for _ in range(30)]
        theirs, ours = [b for _, b in pairs], [a for a, _ in pairs]
        assert kappa(pairs) == pytest.approx(metrics.cohen_kappa_score(ours, theirs))
        found = agreement(
            [label(n, a) for n, a in enumerate(ours)], [[label(n, b, "eva") for n, b in enumerate(theirs)]]
        )
        assert found.f1 == pytest.approx(metrics.f1_score(theirs, ours))
        assert found.kappa == pytest.approx(kappa(pairs))


def test_kappa_of_the_textbook():
    """Cohen's example: 20 times both say yes, 15 both no, 5 and 10 they differ: 0.4."""
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    assert kappa(pairs) == pytest.approx(0.4)
    assert kappa([(True, True)] * 3) == 1.0


def test_the_consensus_needs_more_than_half():
    """Two of three people decide; an even split decides nothing and is counted; people are compared in pairs."""
    model = [label(0, relevant=True), label(1, relevant=False), label(2, relevant=True), label(9, relevant=True)]
    eva = [label(0, True, "eva"), label(1, True, "eva"), label(2, False, "eva")]
    jan = [label(0, True, "jan"), label(1, True, "jan"), label(2, True, "jan")]
    ota = [label(0, False, "ota"), label(1, False, "ota")]
    found = agreement(model, [eva, jan, ota])
    assert (found.n, found.split, found.people) == (2, 1, 3)
    assert (found.precision, found.recall) == (1.0, 0.5)
    assert found.among_people is not None
    assert agreement(model, [eva]).among_people is None
    with pytest.raises(EvaluationError, match="no pair in common"):
        agreement(model, [[label(7, True, "eva")]])


def filled_in(sheet: Path, file: Path, words: Sequence[str], delimiter: str = ",") -> None:
    """The sheet with these words, as a spreadsheet saves it."""
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    with file.open("w", encoding="utf-8-sig", newline="") as opened:
        table = csv.DictWriter(opened, rows[0], delimiter=delimiter)
        table.writeheader()
        table.writerows({**row, "relevant": word} for row, word in zip(rows, words, strict=True))


def test_a_sheet_comes_back_as_labels(tmp_path):
    """Yes and no in both languages; empty cells are left out; another word is named with its line."""
    write_sheet(
        [Pair(f"q{n}", "c", "Proč, a jak?", "u", 'text "x"\nwith; lines') for n in range(4)], tmp_path / "eva.csv"
    )
    filled_in(tmp_path / "eva.csv", tmp_path / "eva.csv", ("ano", "N", "", "yes"))
    assert load_labels(tmp_path / "eva.csv") == (label(0, True, "eva"), label(1, False, "eva"), label(3, True, "eva"))
    filled_in(tmp_path / "eva.csv", tmp_path / "eva.csv", ("maybe", "N", "", "yes"))
    with pytest.raises(EvaluationError, match="'maybe'"):
        load_labels(tmp_path / "eva.csv")


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
async def test_two_filled_in_sheets_give_the_agreement(tmp_path, capsys, delimiter):
    """Two people filled in what `--sheet` wrote, by whatever their spreadsheet divides cells: F1 and kappa by hand."""
    pairs = [Pair(f"q{n}", "c", "How; or, why?", "u", "some text") for n in range(6)]
    write_sheet(pairs, tmp_path / "sheet.csv")
    for person, words in {"eva": "y y y n n n", "jan": "ano ano ne ne ne ano"}.items():
        filled_in(tmp_path / "sheet.csv", tmp_path / f"{person}.csv", words.split(), delimiter)
    # both say: yes yes split no no split; the model: yes no – yes no –
    write_labels([label(n, n in {0, 3}, "model") for n in range(6)], tmp_path / "labels.jsonl")
    files = [tmp_path / name for name in ("labels.jsonl", "eva.csv", "jan.csv")]
    assert await command(Settings.load(env_file=None), "agreement", *files, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n"], found["split"], found["people"]) == (4, 2, 2)
    assert (found["precision"], found["recall"], found["f1"], found["kappa"]) == (0.5, 0.5, 0.5, 0.0)
    assert found["among_people"] == pytest.approx((4 / 6 - 0.5) / 0.5)


def test_labels_are_kept_and_wrong_files_refused(tmp_path):
    """A label file read again is the same; relevance by case keeps cases without any."""
    labels = (label(0, True), Label("q0", "d", True, "m"), label(1, False))
    write_labels(labels, tmp_path / "l.jsonl")
    assert load_labels(tmp_path / "l.jsonl") == labels
    assert relevant_by_case(labels) == {"q0": {"c", "d"}, "q1": frozenset()}
    (tmp_path / "l.jsonl").write_text('{"case": "a", "chunk": "b", "relevant": "yes", "by": "m"}\n', encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"l\.jsonl:1"):
        load_labels(tmp_path / "l.jsonl")


def test_the_sample_is_half_relevant_and_the_same_each_time():
    """People see as much of what the model calls relevant as of the rest, in an order that doesn't tell."""
    pairs = [Pair(f"q{n}", "c", "", "", "") for n in range(100)]
    labels = [label(n, relevant=n < 10) for n in range(100)]
    chosen = drawn(pairs, labels, 20)
    assert chosen == drawn(pairs, labels, 20)
    assert sum(int(pair.case[1:]) < 10 for pair in chosen) == 10
    assert [int(pair.case[1:]) < 10 for pair in chosen] != sorted(
        (int(pair.case[1:]) < 10 for pair in chosen), reverse=True
    )


async def test_from_a_models_labels_to_the_agreement(tmp_path, monkeypatch, index, capsys):
    """Pool, judge, ask a person in the terminal, compare, and measure chunks with the labels."""

    def verdict(body) -> Reply:
        relevant = "8000" in body["messages"][-1]["content"].split("PASSAGE starts")[1]
        return Reply(json.dumps({"category": "RELEVANT" if relevant else "IRRELEVANT"}))

    out = tmp_path / "labels"
    async with fake_llm() as llm:
        llm.reply = verdict
        with own_set() as questions:
            words = ["label", questions, "--limit", "4", "--out", out]
            assert await command(index, *words) == 2
            judge = ["--judge-url", llm.url, "--judge-model", "j"]
            assert await command(index, *words, *judge) == 0
            asked = len(llm.calls)
            assert asked >= 80
            assert await command(index, *words, *judge) == 0
            assert len(llm.calls) == asked
            monkeypatch.setattr("sys.stdin", io.StringIO("what\ny\ns\n" + "n\n" * 5 + "q\n"))
            assert await command(index, *words, "--person", "eva", "--samples", "20", "--sheet") == 0
            kept = tmp_path / "r.json"
            await command(
                index, "retrieval", questions, "--limit", "4", "--labels", out / "labels.jsonl", "--out", kept
            )
    assert len(load_labels(out / "eva.jsonl")) == 6
    assert (out / "sheet.csv").read_text(encoding="utf-8-sig").startswith("case,chunk,question")
    capsys.readouterr()
    assert await command(index, "agreement", out / "labels.jsonl", out / "eva.jsonl", "--json") == 0
    assert json.loads(capsys.readouterr().out)["n"] == 6
    relevant = relevant_by_case(load_labels(out / "labels.jsonl"))
    for one in load_result(kept).cases:
        assert one.chunks.relevant == len(relevant[one.case.id])
