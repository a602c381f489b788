"""The words of an index: counts, completions and corrections are those of a plain dictionary."""

from __future__ import annotations

from heapq import nlargest

from app.index.vocabulary import Vocabulary

COUNTS = {"disk": 7, "disk~": 9, "disks": 7, "diskový": 70_000, "display": 2, "žába": 3, "žáby=": 4, "a": 1}
COUNTS["z\U0010fffe"] = 5


def test_counts_and_completions_are_those_of_the_chunks() -> None:
    words = Vocabulary.of(COUNTS)
    read = Vocabulary(words.tokens, words.counts)
    for one in (words, read):
        assert {token: one.count(token) for token in COUNTS} == COUNTS
        assert [one.count(other) for other in ("", "dis", "diskz", "žáb", "zz", 'od"d \\ (')] == [0] * 6
        plain = sorted(word for word in COUNTS if word[-1] not in "*~=")
        for beginning in ("", "d", "dis", "disk", "disks", "ž", "z", "nothing"):
            begun = [word for word in plain if word.startswith(beginning)]
            for most in (1, 2, 9):
                assert one.completions(beginning, most) == tuple(nlargest(most, begun, key=COUNTS.__getitem__))
        assert one.corrected("dispaly", whole=True) == "display"
        assert one.corrected("žáby", whole=True) == "žáby"


def test_an_index_without_chunks_has_no_words() -> None:
    for words in (Vocabulary(), Vocabulary.of({})):
        assert words.count("disk") == 0
        assert words.completions("d", 3) == ()
        assert words.corrected("disks", whole=True) == "disks"
