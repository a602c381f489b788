"""How answers end, with all shapes of citations, titles, refusals and addresses that `bench.answers` scripts."""

from __future__ import annotations

from bench.answers import broken, in_prompts, scripts


async def test_no_scripted_answer_ends_untidily() -> None:
    """Numbers, citations below code, titles, sections, pages, refusals, retrieval's words, related pages and addresses."""
    chosen = scripts()
    assert len(chosen) > 250
    assert [(script.promise, script.answer, said) for script, said in await broken(chosen)] == []


def test_the_prompts_for_answers_never_speak_of_passages() -> None:
    """Models repeat the words of their prompt."""
    assert in_prompts() == 0
