"""What the trace says was removed from a model's text, and why."""

from __future__ import annotations

import random
import re
from itertools import islice

from app.citing.citations import Citations
from app.citing.links import Addresses, Removals
from app.citing.placement import OwnList, Placement
from app.citing.rewrite import Rewriter
from app.core.turn import Removal
from app.text.segments import Line
from bench.markdown_fuzz import KNOWN, pieces_of, rewritten, shown, texts

UNKNOWN = "no passage has this address"
AS_TEXT = "shown as text: only plain tags within a line, such as <br>, may stay"
AS_KNOWN = "shown as the passages have it: none has this fragment or spelling"
CASES = [
    ("See [the guide](https://evil.io/a 'title').", [("address", "https://evil.io/a title", UNKNOWN)]),
    ("See [the guide](https://known.cz/a) and https://known.cz/a.", []),
    ("Bare https://evil.io/b here, <https://evil.io/c> there", [("address", "https://evil.io/b", UNKNOWN), ("address", "https://evil.io/c", UNKNOWN)]),
    ("`curl https://evil.io/d`\n\n```sh\ncurl https://evil.io/e\n```", [("address", "https://evil.io/d", UNKNOWN), ("address", "https://evil.io/e", UNKNOWN)]),
    ("[x](https://known.cz/a#s) https://known.cz/a#s", [("address", "https://known.cz/a#s", AS_KNOWN)] * 2),
    ("It is so [9] and [1, 7].", [("citation", "[9]", "there is no passage 9 among 3"), ("citation", "[1, 7]", "there is no passage 7 among 3")]),
    ("So [2](https://evil.io/f).", [("address", "https://evil.io/f", "the citation in front of it gets our link")]),
    ("Ports [80, 443], items[9] and [2].", []),
    ("![p](https://evil.io/p.png)", [("image", "https://evil.io/p.png", UNKNOWN)]),
    ("![p](https://known.cz/p.png) ![q](https://cdn.other.cz/q.png)", [("image", "https://cdn.other.cz/q.png", "pictures are shown from the documentation's own hosts alone")]),
    ("Some <script>x</script> and <b>bold</b><br>", [("html", "<script>", AS_TEXT), ("html", "</script>", AS_TEXT)]),
    ("| a |\n|---|\n| b | more |\n", [("table cell", "more |", "the table has no column for it")]),
    ("> - ```\nIt ends here [1].", [("markup", "> - ```\nIt ends here [1].", "shown with all its signs: clients could read its Markdown in different ways")]),
    ("Said [2].\n\nSources:\n\n1. [Evil](https://evil.io/g)\n2. Other", [("source list", "Sources:\n\n1. [Evil](https://evil.io/g)\n2. Other", "the list of sources is made from the citations")]),
    ("Said.\n\nSources:\n\n- [2] https://evil.io/h", [("source list", "Sources:\n\n- [2] https://evil.io/h", "the list of sources is made from the citations")]),
]  # fmt: skip


def run(pieces: list[str]) -> tuple[str, list[Removal]]:
    addresses = Addresses([KNOWN], ["https://known.cz/"])
    citations = Citations(tuple(f"https://known.cz/{i}" for i in range(1, 4)))
    removed: list[Removal] = []
    safe = Rewriter(addresses, citations, Removals(removed, addresses, citations))
    line = Line(OwnList(frozenset({"sources"})), Placement(citations), safe)
    return "".join(shown(pieces, line)), removed


def test_each_removal_has_its_kind_text_and_reason() -> None:
    """However the stream is cut; what stays isn't among them."""
    for text, expected in CASES:
        for size in (1, 7, 1000):
            _, removed = run([text[at : at + size] for at in range(0, len(text), size)])
            found = [(one.kind, one.text, one.reason) for one in removed]
            assert sorted(found) == sorted(expected), (text, size)


def test_collecting_removals_changes_no_text_and_misses_no_address() -> None:
    """Of hostile Markdown, with the same removals for each way to cut it."""
    chance = random.Random(11)
    counted = 0
    for text in islice(texts(random.Random(17)), 160):
        written, removed = run([text])
        assert written == rewritten([text])
        assert sorted(map(repr, run(pieces_of(text, chance))[1])) == sorted(map(repr, removed)), text
        if re.search(r"evil\.io/x\b", text) and "evil.io/x" not in re.sub(r"\\(?=[./])", "", written):
            counted += 1
            assert "evil.io/x" in "\n".join(one.text for one in removed), text
    assert counted > 12
