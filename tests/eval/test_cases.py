"""Question sets: what is read, and what a mistake in one is told as."""

import pytest

from eval.files import EvaluationError
from eval.questions.cases import Case, load_cases, load_unanswerable, sample

ROW = {"id": "a", "lang": "en", "question": "How?", "doc": "en/a.md"}


def test_a_jsonl_row_becomes_a_case(write_jsonl):
    """Every field arrives, numbers of variants as text, unknown fields are left alone; documents are relevant once.

    Also from a file as editors save it: byte order mark, empty lines, U+2028 inside a text.
    """
    row = {**ROW, "variant": 3, "cross": True, "also": ["b", "a"], "answer": "So.", "evidence": "so", "note": 1}
    (case,) = load_cases(write_jsonl("q.jsonl", row))
    assert case == Case("a", "en", "How?", "en/a.md", "3", True, ("b", "a"), "So.", "so")
    assert Case("a", "en", "?", "x", also=("y", "x", "y")).relevant == ("x", "y")
    odd = write_jsonl("odd.jsonl")
    odd.write_text('\ufeff{"lang":"cs","question":"a\u2028b","doc":"d"}\r\n\r\n', encoding="utf-8")
    assert load_cases(odd)[0].question == "a\u2028b"


def test_what_is_optional_may_be_missing(write_jsonl):
    """Only question, doc and lang are needed; an id is made from the question and stays when rows move."""
    bare = {"lang": "en", "question": "How?", "doc": "en/a.md"}
    first = load_cases(write_jsonl("one.jsonl", bare))[0]
    moved = load_cases(write_jsonl("two.jsonl", {**ROW, "question": "Why?"}, bare))[1]
    assert first == moved
    assert first.id
    assert (first.variant, first.cross, first.also) == ("", False, ())


def test_csv_gives_the_same_cases_as_jsonl(tmp_path, write_jsonl):
    """A spreadsheet's export reads like the JSONL form; also is divided by semicolons."""
    path = tmp_path / "q.csv"
    path.write_text(
        'id,lang,variant,question,doc,cross,also\na,en,1,"How, exactly\nso?",en/a.md,true,b.md; c.md\n'
        "b,cs,,Jak?,cs/a.md,,\n",
        encoding="utf-8",
    )
    row = {**ROW, "variant": 1, "question": "How, exactly\nso?", "cross": True, "also": ["b.md", "c.md"]}
    other = {"id": "b", "lang": "cs", "question": "Jak?", "doc": "cs/a.md"}
    assert load_cases(path) == load_cases(write_jsonl("q.jsonl", row, other))


LINES = {
    "{": "isn't JSON",
    "[]": "JSON object",
    '{"lang":"en","doc":"d"}': "'question' is missing",
    '{"lang":"en","doc":"d","question":"  "}': "'question' is missing or empty",
    '{"lang":"en","question":"q"}': "'doc' is missing",
    '{"doc":"d","question":"q"}': "'lang' is missing",
    '{"lang":"en","doc":["d"],"question":"q"}': "'doc' is ['d']",
    '{"lang":"en","doc":"d","question":"q","also":"x"}': "'also' is 'x'",
    '{"lang":"en","doc":"d","question":"q","also":[{}]}': "'also.0' is {}",
    '{"lang":"en","doc":"d","question":"q","cross":"maybe"}': "'cross' is 'maybe'",
    '{"id":"a","lang":"en","doc":"d","question":"q"}': "'a' was used before",
}
TABLES = {
    "lang,question,doc\nen,a,b,c\n": ":2: the row has more fields",
    "lang,question\nen,a\n": ":2: 'doc' is missing",
    'lang,question,doc\nen,"a,b\n': "no valid CSV",
}


def test_a_mistake_is_named_with_file_and_line(tmp_path):
    """The message leads to the line, also of a spreadsheet."""
    first = '{"id":"a","lang":"en","doc":"d","question":"q"}'
    files = [("q.jsonl", f"{first}\n\n{line}\n", ":3: ", said) for line, said in LINES.items()]
    for name, text, place, said in [*files, *(("q.csv", text, "", said) for text, said in TABLES.items())]:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        with pytest.raises(EvaluationError) as raised:
            load_cases(path)
        assert str(raised.value).startswith(f"{path}{place}"), text
        assert said in str(raised.value)


def test_files_that_are_no_set_are_refused(tmp_path):
    """Missing, empty, binary, of an unknown kind: each is told by its name."""
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "set.txt").write_text("q")
    for name in ("missing.jsonl", "empty.jsonl", "binary.jsonl", "set.txt"):
        with pytest.raises(EvaluationError, match=name):
            load_cases(tmp_path / name)


def test_a_sample_is_always_the_same_and_from_the_whole_set():
    """--limit draws the same questions each time, not the first ones of the file."""
    cases = [Case(str(i), "en", f"q{i}", "d") for i in range(100)]
    drawn = sample(cases, 10)
    assert drawn == sample(cases, 10)
    assert len(drawn) == 10
    assert [int(case.id) for case in drawn] == sorted(int(case.id) for case in drawn)
    assert int(drawn[-1].id) > 50
    assert sample(cases, 500) == tuple(cases)


def test_a_case_may_say_only_which_pages_are_wrong(write_jsonl):
    """It is answerable, though nobody has named the page; without both, there is nothing to measure."""
    bare = {"id": "a", "lang": "en", "question": "How?"}
    (case,) = load_cases(write_jsonl("avoid.jsonl", {**bare, "avoid": ["old"]}))
    assert (case.relevant, case.avoid, case.answerable) == ((), ("old",), True)
    with pytest.raises(EvaluationError, match="'doc' is missing or empty"):
        load_cases(write_jsonl("none.jsonl", bare))
    messages = [{"role": "user", "content": "Who?"}, {"role": "user", "content": "And why?"}]
    (refused,) = load_unanswerable(write_jsonl("refuse.jsonl", {"id": "a", "lang": "en", "messages": messages}))
    assert ([one.content for one in refused.messages], refused.answerable) == (["Who?", "And why?"], False)
