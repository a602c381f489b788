"""What readers get of an answer that is proved while it streams."""

from __future__ import annotations

import re

import pytest

from app.core.prompts import load_prompts
from app.proof.check import Checker
from app.proof.evidence import Evidence
from app.proof.stream import Instructions, Mode, Prover
from app.proof.wording import Wording
from app.text.segments import Segment, Segmenter

PROMPTS = load_prompts(("cs", "en"), "")
WORDING = Wording(PROMPTS.languages)
SIGN = "(?)"
RULES = "Use nothing but this documentation. What it does not say, you do not know. Copy numbers word for word."
PASSAGE = "Backups run every night at 02:00. They are kept for 30 days. Run `backup --all` to make one now."


async def read(proof: Prover, answer: str, pieces: str = r"\S+\s*|\s+") -> str:
    """What readers get of the answer, in pieces like these."""
    segmenter, shown = Segmenter(), list[Segment]()
    for piece in re.findall(pieces, answer, re.DOTALL):
        for segment in segmenter.feed(piece):
            shown += await proof.feed(segment)
    for segment in segmenter.rest():
        shown += await proof.feed(segment)
    return "".join(one.text for one in (*shown, *proof.rest()))


async def proved(answer: str, mode: Mode = "mark", pieces: str = r"\S+\s*|\s+") -> tuple[str, Prover]:
    checker = Checker(Evidence([PASSAGE], ["en"], "How are backups kept?"), "en", WORDING)
    proof = Prover(checker, mode, SIGN, Instructions(RULES))
    return await read(proof, answer, pieces), proof


@pytest.mark.parametrize("pieces", [r"\S+\s*|\s+", r".", r".+"])
@pytest.mark.parametrize(
    "answer",
    [
        "Backups run every night at 02:00 [1]. They are kept for 30 days. [1] That is all.",
        "1. Backups run every night [1].\n2. Run this:\n\n   ```sh\n   backup --all\n   ```\n\n| a | b |\n|---|---|\n| 02:00 | 30 days |\n",
        "Use e.g. a < b [link](https://docs.example.org/a), see [1][2].\n\n> **Note**: done",
        "# Backups\n\nThey run every night.\n",
    ],
)
async def test_a_proved_answer_stays_as_it_is(answer: str, pieces: str) -> None:
    """However it is cut into pieces."""
    assert (await proved(answer, pieces=pieces))[0] == answer


@pytest.mark.parametrize("pieces", [r"\S+\s*|\s+", r".", r".+"])
async def test_a_fault_is_marked_at_the_end_of_its_sentence(pieces: str) -> None:
    """Its citation goes: a link is no proof."""
    text, proof = await proved(
        "Backups run every night [1]. They are kept for 60 days [1]. They run at 02:00 [1].", pieces=pieces
    )
    assert text == "Backups run every night [1]. They are kept for 60 days. (?) They run at 02:00 [1]."
    assert [(fault.text, fault.kind, fault.passage) for fault in proof.faults] == [
        ("They are kept for 60 days [1].", "number", 1)
    ]
    assert (proof.judged, proof.refuted) == (3, False)


async def test_an_index_in_code_is_no_citation() -> None:
    assert (await proved("They are kept in `kept[1]` for 60 days [1]."))[
        0
    ] == "They are kept in `kept[1]` for 60 days. (?)"


async def test_a_line_of_code_is_named_below_the_block() -> None:
    text, _ = await proved("Run it [1]:\n\n```sh\nbackup --all\nbackup --fast\n```\n\nDone.")
    assert text == "Run it [1]:\n\n```sh\nbackup --all\nbackup --fast\n```\n\n(?) `backup --fast`\n\n\nDone."


async def test_what_is_removed_leaves_a_text_that_reads() -> None:
    text, _ = await proved(
        "They run every night [1]. They are kept for 60 days. Run it:\n\n```sh\nbackup --fast\nbackup --all\n```\n",
        "remove",
    )
    assert text == "They run every night [1]. Run it:\n\n```sh\nbackup --all\n```\n"


async def test_nothing_is_judged_when_it_is_off() -> None:
    text, proof = await proved("They are kept for 60 days.<|im_end|>", "off")
    assert (text, proof.judged) == ("They are kept for 60 days.<|im_end|>", 0)


@pytest.mark.parametrize(
    "ending", ["<|im_end|>\n<|im_start|>user", "</s>", "\n\n### Response:\nAgain", "\n\nUser: And then?", "[INST] more"]
)
@pytest.mark.parametrize("pieces", [r"\S+\s*|\s+", r"."])
async def test_a_sign_of_another_turn_ends_the_answer(ending: str, pieces: str) -> None:
    text, proof = await proved(f"Backups run every night.{ending}", pieces=pieces)
    assert (text.strip(), proof.ending) == ("Backups run every night.", "turned")


async def test_a_last_sentence_without_a_stop_is_judged() -> None:
    """Models are cut off, too."""
    assert (await proved("They run every night. They are kept for 60 days"))[0].endswith("for 60 days (?)")
    assert (await proved("They run every night. They are kept for 30 days"))[0].endswith("for 30 days")


async def test_a_sign_at_the_beginning_is_left_out() -> None:
    text, proof = await proved("### Response:\nBackups run every night.")
    assert (text, proof.ending) == ("Backups run every night.", "")


async def test_recited_rules_end_the_answer() -> None:
    """At most seven words of them are shown."""
    text, proof = await proved(f"My rules are these. {RULES}")
    assert (proof.ending, proof.refuted) == ("recited", True)
    assert len(text.removeprefix("My rules are these. ").split()) < 8


async def test_a_loop_is_cut() -> None:
    text, proof = await proved("Backups run every night at 02:00 [1]. " * 9)
    assert (text.strip(), proof.ending) == ("Backups run every night at 02:00 [1].", "looped")
    assert (await proved("Backups" + ", run every night" * 6 + ". Done."))[1].ending == "looped"
    text, proof = await proved("".join(f"Backups run every night at 02:00 [{number}]. " for number in range(1, 6)))
    assert (text.strip(), proof.ending) == ("Backups run every night at 02:00 [1].", "looped")


async def test_a_sentence_that_is_said_again_leaves_no_first_word() -> None:
    """Each piece waits while it can be the beginning of one that was said."""
    said = "The backups are kept for 30 days."
    text, _ = await proved(f"{said}\n\n{said}\n\n{said}\n\nThey run at 02:00.")
    assert text.split() == [*said.split(), "They", "run", "at", "02:00."]


async def test_words_in_circles_are_cut() -> None:
    text, proof = await proved("It is " + "the best of " * 100)
    assert proof.ending == "looped"
    assert len(text) < 500


async def test_an_answer_of_which_most_is_unproved_is_refuted() -> None:
    _, proof = await proved("Backups run every night. They are kept for 60 days. The port is 9999.")
    assert proof.refuted


@pytest.mark.parametrize("pieces", [r"\S+\s*|\s+", r".+"])
async def test_a_block_of_code_is_one_statement(pieces: str) -> None:
    """Its many lines outweigh no sentences: neither invented lines, nor those that any code has."""
    invented = "".join(f"backup --{name}\n" for name in ("fast", "slow", "twice", "never"))
    good = "Backups run every night [1]. They are kept for 30 days [1]."
    _, proof = await proved(f"{good}\n\n```sh\n{invented}```\n", pieces=pieces)
    assert (proof.judged, proof.wrong, len(proof.faults), proof.refuted) == (3, 1, 4, False)
    known = "```sh\nbackup --all\n\nbackup --all\nbackup --all\nbackup --all\n```\n"
    _, proof = await proved(f"They are kept for 60 days. They run at 03:00.\n\n{known}", pieces=pieces)
    assert (proof.judged, proof.wrong, proof.refuted) == (3, 2, True)


@pytest.mark.parametrize(
    ("answer", "faults"),
    [
        ("They are kept for 60 days.", 1),
        ("They run every night. They are kept for 60 days. It is port 9999. At 02:00.", 2),
    ],
)
async def test_one_fault_or_half_of_an_answer_refutes_nothing(answer: str, faults: int) -> None:
    """A false alarm about a short answer only marks it."""
    text, proof = await proved(answer)
    assert (len(proof.faults), proof.refuted) == (faults, False)
    assert text.count(SIGN) == faults


@pytest.mark.parametrize("pieces", [r"\S+\s*|\s+", r".", r".+"])
@pytest.mark.parametrize("mode", ["mark", "remove"])
async def test_a_statement_in_doubt_waits_for_its_meaning(mode: Mode, pieces: str) -> None:
    """What stands behind it waits too: other sentences, lines, an open fence, and a sign of another turn."""
    foreign = "A courier collects tapes weekly and stores them beneath a mountain [1]."
    rest = " They run at 02:00 [1].\nThey are kept for 30 days.\n\n```\nbackup --all"

    async def shown(answer: str, near: float) -> tuple[str, Prover]:
        asked = []

        async def compared(statement: str) -> dict[int, float]:
            asked.append(statement)
            return {1: near}

        checker = Checker(Evidence([PASSAGE], ["en"], "How are backups kept?"), "en", WORDING, compares=True)
        proof = Prover(checker, mode, SIGN, Instructions(RULES), compared)
        text = await read(proof, answer, pieces)
        assert asked == ["A courier collects tapes weekly and stores them beneath a mountain."]
        return text, proof

    text, proof = await shown(foreign + rest, 0.9)
    assert (text, proof.faults, proof.judged) == (foreign + rest, [], 4)
    text, proof = await shown(foreign + rest, 0.0)
    marked = foreign.replace(" [1].", ". (?)") if mode == "mark" else ""
    assert text.strip() == (marked + rest).strip()
    assert [fault.kind for fault in proof.faults] == ["statement"]
    text, proof = await shown(f"{foreign} They run at 02:00 [1].<|im_end|> More.", 0.9)
    assert (text, proof.ending) == (f"{foreign} They run at 02:00 [1].", "turned")


async def test_a_statement_in_another_language_than_the_answer_asks_nobody() -> None:
    """No meaning can save it."""
    sentence = "Kurýr každou noc odváží všechny pásky do skladu pod horou."
    checker = Checker(Evidence([PASSAGE], ["en"], "How are backups kept?"), "en", WORDING, compares=True)
    asked = []

    async def compared(statement: str) -> dict[int, float]:
        asked.append(statement)
        return {}

    proof = Prover(checker, "mark", SIGN, Instructions(RULES), compared)
    text = await read(proof, f"{sentence} They run at 02:00 [1].")
    assert (asked, [fault.kind for fault in proof.faults]) == ([], ["statement"])
    assert text == f"{sentence} {SIGN} They run at 02:00 [1]."


async def test_an_item_that_only_has_another_number_is_a_repetition() -> None:
    text, proof = await proved("".join(f"{number}. Backups run every night at 02:00.\n" for number in range(1, 7)))
    assert (text.count("02:00"), proof.ending) == (1, "looped")


async def test_a_list_that_begins_again_is_cut_and_a_list_of_like_parts_is_not() -> None:
    """Its items may be short; the same ones below another item are no repetition."""
    text, proof = await proved("Backups:\n\n" + "- every night\n- at 02:00\n- for 30 days\n" * 3)
    assert (text.count("30 days"), proof.ending) == (1, "looped")
    parts = "".join(f"- `--{name}`\n  - kept\n  - 30 days\n" for name in ("all", "all-kept", "night", "run"))
    assert (await proved(parts))[1].ending == ""


async def test_a_turn_behind_a_fence_ends_the_answer() -> None:
    """Models write it on the line that closes their code."""
    text, proof = await proved("Run it:\n\n```\nbackup --all\n```<|im_end|>\n<|im_start|>user\nAnd then?")
    assert (text, proof.ending) == ("Run it:\n\n```\nbackup --all\n```\n", "turned")


async def test_a_refusal_that_tells_more_is_judged() -> None:
    """What it tells may be its instructions in other words."""
    refusal = "The documentation does not say who restores them."
    assert (await proved(f"Backups are kept for 30 days. {refusal}"))[1].faults == []
    told = "I am an assistant whose rules forbid knowledge from elsewhere, and whose orders demand the reply that the context lacks information."
    assert [fault.kind for fault in (await proved(f"Backups are kept for 30 days. {told}"))[1].faults] == ["statement"]


@pytest.mark.parametrize("pieces", [r"\S+\s*|\s+", r".", r".+"])
@pytest.mark.parametrize("mark", ["[1] ", "", "- ", "> **[1]** ", "### "])
async def test_the_line_above_a_passage_is_cut(mark: str, pieces: str) -> None:
    """Weak models copy it with the passage. Prose that names a menu of the site stays."""
    recited = f"{mark}docs.example.org > Backups: how? When? > Kept (2026-01-02)\n\n"
    said = "Backups run every night [1]. See docs.example.org.\nOpen the menu docs.example.org > Backups.\n"
    checker = Checker(Evidence([PASSAGE], ["en"], "How are backups kept? docs.example.org menu"), "en", WORDING)
    proof = Prover(checker, "mark", SIGN, Instructions(RULES).beside(["docs.example.org"]))
    text = await read(proof, recited + said, pieces)
    assert "Backups run every night [1]." in text
    assert "Kept" not in text
    assert "Open the menu docs.example.org > Backups" in text
