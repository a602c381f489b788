"""Questions that follow an answer: headings of what was found and isn't cited."""

from dataclasses import replace

from app.core.prompts import load_prompts
from app.core.turn import Done, Message, Request, Text
from app.core.types import Hit, Section
from app.pipeline.steps.cite import Cite
from tests.app.pipeline.turns import hit, stream, turn

CITE = Cite(load_prompts(("cs", "en")))
CODE = "Run this:\n\n```sh\nlumora snapshot copy\n```\n"
HITS = (
    hit(1, anchor="create", path=("Volumes", "How do I create a volume?"), title="Volumes"),
    hit(2, anchor="resize", path=("Volumes", "How do I resize a volume?"), title="Volumes"),
    hit(3, CODE, anchor="copy", path=("Snapshots", "Copy a snapshot"), title="Snapshots"),
    hit(4, anchor="quotas", path=("Quotas", "Limits of storage quotas"), title="Quotas"),  # neither question nor task
    hit(5, anchor="delete", path=("Volumes", "How do I delete a volume?"), title="Volumes"),
    hit(6, anchor="bill", path=("Bills", "How do I pay a bill?"), title="Bills"),  # of something else
    hit(7, anchor="mount", path=("Volumes", "How do I mount a volume?"), title="Volumes"),
)


QUESTION = "How do I make a volume, and a snapshot of it?"


async def follow_ups(
    said: str, *, hits: tuple[Hit, ...] = HITS, step: Cite = CITE, end: Done | None = None, **asked: object
) -> tuple[str, ...]:
    given = turn(QUESTION, asked.pop("language", "en"), hits=hits, events=stream(Text(said), end or Done()), **asked)
    events = [event async for event in (await step(given))["events"]]
    assert isinstance(events[-1], Done)
    return events[-1].follow_ups


async def test_up_to_three_questions_and_tasks_follow_that_were_found_and_not_cited() -> None:
    """In the order in which they were found; a section that is only a subject is none, nor is one of something else."""
    assert await follow_ups("So [1].") == (
        "How do I resize a volume?",
        "Copy a snapshot",
        "How do I delete a volume?",
    )
    assert (await follow_ups("So [2][3]."))[0] == "How do I create a volume?"


async def test_nothing_follows_that_was_asked_already_or_is_in_another_language() -> None:
    earlier = (Message("user", "how do I RESIZE a volume"), Message("assistant", "So."), Message("user", "And now?"))
    assert await follow_ups("So [1].", request=Request(earlier)) == (
        "Copy a snapshot",
        "How do I delete a volume?",
        "How do I mount a volume?",
    )
    assert await follow_ups("Takto [1].", language="cs") == ()


async def test_nothing_follows_a_refusal_or_a_question_back_or_where_it_is_switched_off() -> None:
    assert await follow_ups("So.", end=Done(extractive=True, refused=True)) == ()
    assert await follow_ups("Which?", choices=HITS[:2]) == ()
    assert await follow_ups("So [1].", step=replace(CITE, follow_ups=False)) == ()


async def test_a_section_is_asked_about_by_its_own_steps() -> None:
    """Of a chunk with several sections, the heading of the one with code or steps is a task."""
    sections = (Section(0, ("Disks", "Shape of a disk"), "shape"), Section(7, ("Disks", "Format a disk"), "format"))
    found = replace(
        HITS[1],
        chunk=replace(
            HITS[1].chunk, id="x", url=HITS[0].chunk.url, text="Flat.\n\n1. Format it.\n2. Wait.", sections=sections
        ),
    )
    assert await follow_ups("So [1].", hits=(HITS[0], found)) == ("Format a disk",)
