"""Question and keywords by one call: what is asked for, what can be read, and how many calls a question may have."""

import pytest

from app.core.errors import ModelError
from app.core.prompts import load_prompts
from app.core.turn import Usage
from app.models import Model
from app.pipeline.runner import run
from app.pipeline.steps.retrieve import Keywords, Refine
from app.text.language import LanguageDetector
from plugins.steps.searches import Analyze
from plugins.steps.searches import parse_analysis as parse
from tests.app.pipeline.turns import SETTINGS, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
DETECTOR = LanguageDetector(PROMPTS.languages, "en")
READ = ("Kolik paměti mám?", {"cs": "paměť, limit", "en": "memory"})


async def test_one_call_gives_both(llm: FakeLLM, model: Model) -> None:
    """The prompt names all languages, the question's first; the form is an object with a list for each."""
    llm.reply = lambda _: Reply('{"question": "Kolik paměti mám?", "cs": ["paměť", "limit"], "en": ["memory"]}')
    changes = await Analyze(model, PROMPTS, SETTINGS, DETECTOR)(turn("kolik pameti", "cs"))
    assert (changes["refined"].text, changes["keywords"]) == READ
    system = llm.calls[0]["messages"][0]["content"]
    assert "čeština (cs), English (en)" in system
    assert system.endswith('{\n  "question": "…",\n  "cs": ["…", "…", "…"],\n  "en": ["…", "…", "…"]\n}')
    assert (llm.calls[0]["temperature"], len(llm.calls)) == (0, 1)


FORMS = (
    '```json\n{"question": "Kolik paměti mám?", "cs": ["paměť", "limit"], "en": ["memory"]}\n```',
    'Here it is:\n{"question": "Kolik paměti mám?", "cs": "paměť, limit", "en": "memory",}\nHope it helps!',
    '{"question": "Kolik paměti mám?", "keywords": {"cs": ["paměť", "limit"], "en": ["memory"]}}',
    "{'question': 'Kolik paměti mám?', 'cs': ['paměť', 'limit'], 'en': ['memory'],}",
    "question: Kolik paměti mám?\ncs: paměť, limit\nen: memory",
    '"question": "Kolik paměti mám?",\n"cs": paměť, limit\n"en": memory',
    '{"question": " „Kolik paměti mám?“ ", "cs": ["paměť", "", 7, "limit"], "en": ["memory"], "de": ["Speicher"]}',
)
HALVES = {'{"question": "Kolik paměti mám?"': ("Kolik paměti mám?", {}), '{"cs": ["paměť"]}': ("", {"cs": "paměť"})}
NONE = ('{"question": 7, "cs": {"a": 1}, "en": null}', '["paměť"]', "{" * 5000 + "}" * 5000, "Sorry, I can't.", "")


def test_the_forms_that_models_write_are_read_and_what_is_missing_is_left_out() -> None:
    """Fences, words around, trailing commas, Python's quotes, a level more, lines instead of JSON. Half an answer is
    better than none, and no answer breaks the parser.
    """
    for answer, read in {**dict.fromkeys(FORMS, READ), **HALVES, **dict.fromkeys(NONE, ("", {}))}.items():
        assert parse(answer, ["cs", "en"]) == read, answer


@pytest.mark.parametrize("answer", ["", "I can't help with that.", '{"question": "' + "word " * 400 + '"}'])
async def test_an_answer_without_either_is_an_error(llm: FakeLLM, model: Model, answer: str) -> None:
    """The trace then tells why the original question is used; the runner goes on without."""
    llm.reply = lambda _: Reply(answer)
    step = Analyze(model, PROMPTS, SETTINGS, DETECTOR)
    with pytest.raises(ModelError, match="the original is used"):
        await step(turn())
    after = await run(((step,),), turn())
    assert (after.refined, after.keywords) == (None, {})
    assert "the original is used" in after.trace[0].error


@pytest.mark.parametrize("limit", [0, 1, 2])
async def test_a_question_has_only_so_many_helper_calls(llm: FakeLLM, model: Model, limit: int) -> None:
    """Steps beyond the limit are left out, also in one group; each question counts for itself; calls are remembered."""
    llm.reply = lambda _: Reply("en: memory")
    settings = SETTINGS.model_copy(update={"helper_calls": limit})
    plan = ((Refine(model, PROMPTS, settings, DETECTOR), Keywords(model, PROMPTS, settings)),)
    after = await run(plan, turn())
    assert len(llm.calls) == limit
    assert ["helper calls" in record.error for record in after.trace] == [limit < 1, limit < 2]
    assert [call.usage for call in after.calls.ended] == [Usage(11, 7)] * limit
    await run(plan, turn())
    assert len(llm.calls) == 2 * limit
