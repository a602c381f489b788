"""`eval run`: contestants answer a question set, and their answers are measured, with or without a judge.

Also what the answers are compared with.
"""

import os
import sys
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.generation import GenerationInfo
from app.core.prompts import differing, files_in_force, load_prompts, own_files
from app.core.settings import Settings
from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from eval.answers.contestants import Contestant, Corpus, OwnAssistant, RemoteService, citing, collect
from eval.answers.score import Answer, Scorer, answers_text, efforts, kind_shares, tasks
from eval.commands.options import (
    CONTESTANT_KEY,
    FAILED,
    JUDGE,
    JUDGE_KEY,
    OK,
    Options,
    command,
    configuration,
    fingerprint_of_code,
    fingerprint_of_prompts,
    keep,
    model_name,
    option,
    output_folder,
    progress_bar,
    quiet_pipeline,
    several,
)
from eval.files import Cache, EvaluationError, fingerprint, write_text
from eval.judge import Judge, Judgement, Pace, Task, criteria
from eval.measure.gate import drops
from eval.measure.result import ANSWERS, Result
from eval.measure.tables import drops_text
from eval.questions.cases import Case, load_cases, load_unanswerable, sample
from eval.reports.pages import answers_page, evidently_page

SHIPPED = "shipped"
JUDGE_SECONDS = 60.0
FORMS = f"`{SHIPPED}` (the shipped prompts), a directory of prompts, or one of the assistants"


@command(
    f"file --limit --unanswerable --url --doc-map --parallel --max-drop --no-model --keep {JUDGE} --evidently",
    several("--assistant", "one of ours; may be repeated", "ID"),
    option("--prompts", "directory of prompts, instead of DOCS_PROMPTS", "DIR"),
    option("--against", f"compare with {FORMS}", "WHAT"),
    option("--out", "directory for answers, judgements and the report", "DIR", required=True),
)
async def run(options: Options, settings: Settings) -> int:
    """Lets contestants answer a question set and measures the answers. The same command continues a stopped run.

    Saves everything in the directory of --out immediately. With --against, the exit code is 1 if something dropped.
    """
    check_judge(options, {settings.llm_model})
    if options.prompts and not own_files(options.prompts):
        raise EvaluationError(f"--prompts {options.prompts}: it has no prompts, such as en/synthesize.md.")
    # an answer without the model, because that was down, would count as an answer of the assistant
    base = settings.model_copy(update={"on_model_failure": "error", **options.overrides})
    questions = [*load_cases(options.file), *(load_unanswerable(options.unanswerable) if options.unanswerable else ())]
    result = await _result(options, base, sample(questions, options.limit or len(questions)))
    _write_answers(result, options)
    if options.keep:
        keep(settings, result)
    dropped = [verdict for comparison in result.comparisons for verdict in drops(comparison, options.max_drop)]
    sys.stdout.write(answers_text(result) + "\n")
    if options.against:
        sys.stdout.write(drops_text(dropped, options.max_drop) + "\n")
    sys.stdout.write(f"The answers side by side: {Path(options.out, 'answers.html')}\n")
    return FAILED if result.failed or result.malformed or (options.against and dropped) else OK


def check_judge(options: Options, models: Collection[str]) -> None:
    """Raises `EvaluationError` for half a judge, and for one that is among the `models` that answer."""
    if bool(options.judge_url) != bool(options.judge_model):
        raise EvaluationError("--judge-url and --judge-model need each other.")
    if options.judge_model and options.judge_model in models:
        raise EvaluationError(f"{options.judge_model} answers, so it can't judge: models prefer their own answers.")


async def _result(options: Options, base: Settings, cases: Sequence[Case]) -> Result:
    """The measured answers of all contestants; `base` are the settings without --prompts."""
    settings = base.model_copy(update={"prompts": options.prompts}) if options.prompts else base
    async with opened(settings, by_meaning=True) as assistants:
        own = _own(options, settings, assistants)
        other, note = against(options.against, own[0], base, assistants) if options.against else (None, "")
        # without an index, nobody is asked in vain
        first = assistants.get(own[0].assistant if own else "")
        corpus = await Corpus.of(first, settings.tuning.passage_tokens, options.rules)
        output_folder(options)
        asked = [*own, *([other] if other else [])]
        answers = await _all_answers(options, settings, asked, cases)
        known = await sourced(corpus, answers, cases)
        result = await measured(options, settings, assistants, cases, known)
    ours = {contestant.name for contestant in asked}
    config = {
        **result.config,
        "cite indexed pages": citing([answer for answer in known if answer.contestant not in ours]),
    }
    return replace(result, config=config | ({"against": other.name, "note": note} if other else {}))


@dataclass(frozen=True, slots=True)
class Configuration:
    """One of our assistants under a name, and the directory of its prompts (empty: the shipped ones)."""

    name: str
    assistant: str
    prompts: str


def _own(options: Options, settings: Settings, assistants: Assistants) -> list[Configuration]:
    """The assistants that are asked. Raises `EvaluationError` if --against has none of them to compare."""
    named = options.assistant or ([] if options.url and not options.against else [""])
    ids = [assistants.get(name).id for name in named]
    if options.against and len(ids) > 1:
        raise EvaluationError("--against compares one assistant: give --assistant once.")
    if not (folder := options.prompts):
        return [Configuration(id_, id_, settings.prompts) for id_ in ids]
    return [Configuration(folder if len(ids) == 1 else f"{id_} with {folder}", id_, folder) for id_ in ids]


async def sourced(corpus: Corpus, answers: Sequence[Answer], cases: Sequence[Case]) -> list[Answer]:
    """The answers with what they are judged against: a refusal of ours as well, or it would be missing among the judged."""
    by_id, known = {case.id: case for case in cases}, list[Answer]()
    with quiet_pipeline(), progress_bar("Finding sources") as progress:
        for answer in answers:
            known.append(await corpus.sourced(answer, by_id[answer.case]))
            progress(len(known), len(answers))
    return known


def against(text: str, own: Configuration, base: Settings, assistants: Assistants) -> tuple[Configuration, str]:
    """What --against names, and a note in which prompts the two sides differ. `own` is compared with it; `base` are the settings
    without --prompts.

    Raises `EvaluationError` if there is no such thing, or if both sides are the same; `PromptError` for wrong prompts.
    """
    if text in assistants.by_id:
        other = Configuration(text, text, base.prompts)
    elif text == SHIPPED or (Path(text).is_dir() and own_files(text)):
        other = Configuration(text, own.assistant, "" if text == SHIPPED else text)
    else:
        raise EvaluationError(
            f"--against {text}: there is no such thing. It takes {FORMS}: {', '.join(assistants.by_id)}."
        )
    load_prompts(base.languages, other.prompts)  # a wrong file is an error before the first question
    files = differing(files_in_force(own.prompts), files_in_force(other.prompts))
    if not files and other.assistant == own.assistant:
        raise EvaluationError(f"--against {text}: it has the same prompts, so there is nothing to compare.")
    name = text if text != own.name else f"{text} as set"
    return replace(other, name=name), f"Prompts that differ: {', '.join(files) or 'none'}."


async def _all_answers(
    options: Options, settings: Settings, configurations: Sequence[Configuration], cases: Sequence[Case]
) -> tuple[Answer, ...]:
    """The answers of the configurations, then of every --url; those that the directory of --out has aren't asked again."""
    remotes = _remotes(options, settings)
    names = [*(contestant.name for contestant in configurations), *(contestant.name for contestant in remotes)]
    if len(set(names)) != len(names):
        raise EvaluationError("Two contestants have the same name.")
    answers = list[Answer]()
    try:
        with quiet_pipeline(), Cache(Path(options.out, "answers.jsonl")) as cache:

            async def ask(contestants: Sequence[Contestant], title: str) -> None:
                with progress_bar(title) as bar:
                    answers.extend(await collect(contestants, cases, cache, parallel=options.parallel, progress=bar))

            for asked in configurations:
                own = settings.model_copy(update={"prompts": asked.prompts})
                async with opened(own, by_meaning=True) as assistants:
                    mark = fingerprint_of_answers(own, asked.assistant, (await assistants.store.live()).info)
                    await ask([OwnAssistant(assistants.get(asked.assistant), asked.name, mark)], asked.name)
            if remotes:
                await ask(remotes, "Answering")
    finally:
        for remote in remotes:
            await remote.endpoint.close()
    return tuple(answers)


def fingerprint_of_answers(settings: Settings, assistant: str, index: GenerationInfo, *more: str) -> str:
    """Settings, steps, prompts, program and index, and what `more` answers depend on."""
    steps = Path(settings.assistants).read_text(encoding="utf-8") if settings.assistants else ""
    described = settings.model_dump_json(exclude={"store", "assistants", "prompts"}) + steps
    return fingerprint(
        assistant, described, str(index.recipe), f"{index.pages} {index.chunks}", f"{index.id} {index.built_at}",
        fingerprint_of_code(), fingerprint_of_prompts(settings.prompts), *more,
    )  # fmt: skip


def _remotes(options: Options, settings: Settings) -> list[RemoteService]:
    remotes = []
    for text in options.url:
        name, equals, rest = text.partition("=")
        url, comma, model = rest.rpartition(",")
        if not (equals and comma and name and url and model):
            raise EvaluationError(f"--url {text}: it must be NAME=URL,MODEL, for example old=http://host/v1,old-bot.")
        key = os.environ.get(CONTESTANT_KEY, "")
        remotes.append(RemoteService(name, Endpoint(url, key, timeout=settings.llm_timeout), model))
    return remotes


async def measured(
    options: Options, settings: Settings, assistants: Assistants, cases: Sequence[Case], answers: Sequence[Answer]
) -> Result:
    """The answers with their measures, judged if a judge is configured."""
    by_id = {case.id: case for case in cases}
    wanted = criteria()
    judgements: Sequence[Judgement] = ()
    if options.judge_url:
        judgements = await judge_all(options, tasks(answers, by_id, wanted))
    scorer = Scorer(assistants.prompts, assistants.tools.detector, assistants.embedder)
    config = {
        **configuration(options.file, settings, {}, model_name(options, settings)),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "judge": options.judge_model,
        "criteria": {name: criterion.origin for name, criterion in wanted.items()} if options.judge_model else {},
    }
    return Result(ANSWERS, await scorer.score(answers, by_id, judgements), config)


async def judge_all(options: Options, asked: Sequence[Task]) -> Sequence[Judgement]:
    """The judgements of the judge of the options, in the order of the tasks; kept in judgements.jsonl of --out, so none is paid twice."""
    endpoint = Endpoint(options.judge_url, os.environ.get(JUDGE_KEY, ""), timeout=JUDGE_SECONDS)
    model = Model(OpenAIModel(endpoint, options.judge_model), patient=True)
    pace = Pace(options.parallel, options.judge_per_minute, JUDGE_SECONDS)
    try:
        with Cache(Path(options.out, "judgements.jsonl")) as cache, progress_bar("Judging") as progress:
            return await Judge(model, cache, pace).judge(asked, progress)
    finally:
        await model.close()


def _write_answers(result: Result, options: Options) -> None:
    """Write answers.json and answers.html to the directory of --out, and Evidently's page with --evidently."""
    folder = Path(options.out)
    shares = {
        kind: {name: {"n": n, **asdict(estimate)} for name, (n, estimate) in own.items()}
        for kind, own in kind_shares(result).items()
    }
    result.save(folder / "answers.json", efforts=efforts(result), shares=shares)
    write_text(answers_page(result, options.rules), folder / "answers.html")
    if options.evidently:
        evidently_page(result, folder / "evidently.html")
