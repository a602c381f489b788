"""`eval verdicts`: asks the questions that editors gave verdicts on again, and compares each answer with the one before."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.conversations.question_log import opened_log
from app.conversations.records import Evaluation
from app.core.settings import Settings
from app.index import directory_of
from eval.answers.contestants import OwnAssistant
from eval.answers.verdicts import before, compared, compared_text, kept_cases, measured, rows_of
from eval.commands.options import (
    FAILED,
    OK,
    Options,
    check_writable,
    command,
    configuration,
    flag,
    keep,
    model_name,
    progress_bar,
    quiet_pipeline,
)
from eval.files import in_parallel
from eval.measure.result import VERDICTS, Outcome, Result
from eval.questions.documents import Documents
from eval.questions.verdicts import Judged, judged_cases


@command(
    "--assistant --parallel --max-drop --no-model --out",
    flag("--first", "compare with the answers that the verdicts are about, not with the last run"),
)
async def verdicts(options: Options, settings: Settings) -> int:
    """Asks each question with a verdict of an editor again, and says whether its answer became better or worse by that verdict.

    It compares with the last run, which the database of conversations keeps. The exit code is 1 if an answer became worse.
    """
    check_writable(options, "out")
    judged = judged_cases(settings, options.assistant)
    # an answer without the model, because that was down, would count as an answer of the assistant
    base = settings.model_copy(update={"on_model_failure": "error", **options.overrides})
    async with opened(base, by_meaning=True) as assistants:
        generation = await assistants.get(options.assistant).store.live()
        documents = Documents([page.url for page in await generation.pages()])
        outcomes = await _answers(options, assistants, judged, documents)
    config = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "assistant": options.assistant,
        "index": {"id": generation.info.id, "built_at": generation.info.built_at},
        **configuration("verdicts", settings, options.overrides, model_name(options, settings)),
    }
    result = Result(VERDICTS, outcomes, config)
    last = None if options.first else _last(settings, options.assistant)
    found = compared(judged, [before(one, last, documents) for one in judged], result, options.max_drop)
    if not result.failed:  # else the next run would be compared with a failure
        keep(settings, result, cases=kept_cases(result))
    if options.out:
        result.save(Path(options.out), changes=rows_of(found))
    sys.stdout.write(compared_text(found, last, result) + "\n")
    return FAILED if result.failed or any(one.move == "worse" for one in found) else OK


async def _answers(
    options: Options, assistants: Assistants, judged: Sequence[Judged], documents: Documents
) -> tuple[Outcome, ...]:
    """The answers of today, each by the assistant of the verdict; by the first one if that is gone."""

    async def ask(_: int, one: Judged) -> Outcome:
        name = one.verdict.assistant if one.verdict.assistant in assistants.by_id else ""
        contestant = OwnAssistant(assistants.get(name), one.verdict.assistant)
        return measured(await contestant.answer(one.case), one.case, documents)

    with quiet_pipeline(), progress_bar("Asking again") as progress:
        return await in_parallel(judged, ask, options.parallel, progress)


def _last(settings: Settings, assistant: str) -> Evaluation | None:
    from app.conversations.evaluations import last_evaluations

    with opened_log(settings, directory_of(settings)) as log:
        found = log.read(last_evaluations, VERDICTS, assistant, 1)
    return found[0] if found else None
