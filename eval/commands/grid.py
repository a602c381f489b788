"""`eval grid`: models, prompts, temperature, weights, chunks, embedders, steps and personas compared in one run."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from app.assistants.assembly import opened
from app.assistants.assistant import Assistant, Assistants
from app.assistants.file import AssistantsFile, read_assistants
from app.core.settings import Settings
from app.index import open_store
from eval.answers.contestants import Corpus, OwnAssistant, collect
from eval.answers.score import Answer
from eval.commands.answers import check_judge, fingerprint_of_answers, measured, sourced
from eval.commands.measuring import plan_of
from eval.commands.options import (
    FAILED,
    JUDGE,
    NO_MODEL,
    OK,
    Options,
    argument,
    command,
    configuration,
    model_name,
    option,
    output_folder,
    progress_bar,
    quiet_pipeline,
)
from eval.files import Cache, EvaluationError, fingerprint, save_document, write_text
from eval.measure.grid import Combination, Grid, lines_of, load_grid
from eval.measure.result import ANSWERS, RETRIEVAL, Result, load_result
from eval.measure.retrieval import Finder, evaluate
from eval.questions.cases import Case, load_cases, sample
from eval.questions.indexes import Indexes
from eval.reports.grids import grid_page, grid_text
from eval.reports.pages import answers_page, evidently_page

FORM = "docs-assistant grid 1"


@command(
    f"--limit --doc-map --parallel --no-model {JUDGE} --evidently",
    argument("grid", "a TOML file of settings, or a shipped one: moodibot or hpc", "GRID"),
    argument("file", "question set, .jsonl or .csv", "QUESTIONS"),
    option("--values", "a TOML file whose [axes] and [settings] replace those of the grid", "FILE"),
    option("--out", "directory for tables, plots, results and indexes", "DIR", required=True),
)
async def grid(options: Options, settings: Settings) -> int:
    """Compares settings by what is found and answered. The same command continues a stopped run.

    Pages are those of the configured index; settings that need another one build it once, in the directory of --out.
    """
    wanted = load_grid(options.grid, options.values)
    cases = load_cases(options.file)
    cases = sample(cases, options.limit or len(cases))
    # an answer without the model, because that was down, would count as an answer of the combination
    base = settings.model_copy(update={"on_model_failure": "error", **options.overrides})
    run = Run(options, base, wanted, cases)
    check_judge(options, {one.llm_model for one in run.settings.values()})
    output_folder(options)
    results = await run.results()
    _write(options, wanted, results)
    sys.stdout.write(f"{grid_text(wanted, results)}\nTables and plots: {Path(options.out, 'grid.html')}\n")
    return FAILED if any(result.failed or result.malformed for result in results.values()) else OK


@dataclass(frozen=True)
class Run:
    """One run of a grid over some questions; `base` are the settings that combinations change."""

    options: Options
    base: Settings
    grid: Grid
    cases: Sequence[Case]

    @cached_property
    def combinations(self) -> Mapping[str, Combination]:
        """All combinations by name."""
        return {one.name: one for kind in (RETRIEVAL, ANSWERS) for one in self.grid.needed(kind)}

    @cached_property
    def settings(self) -> Mapping[str, Settings]:
        """The settings of each combination, by name. Raises `EvaluationError` for a wrong value."""
        return {name: _with(self.base, one, self.options.overrides) for name, one in self.combinations.items()}

    async def results(self) -> dict[str, Result]:
        """The result of each kind of run that the tables need."""
        folder, live = output_folder(self.options, "indexes"), open_store(self.base)
        try:
            with progress_bar("Indexing") as told:
                indexes = Indexes(self.base, await live.live(), folder, told)
                own = {name: await indexes.of(settings) for name, settings in self.settings.items()}
        finally:
            await live.close()
        results = dict[str, Result]()
        if names := [one.name for one in self.grid.needed(RETRIEVAL)]:
            results[RETRIEVAL] = _joined([await self._searched(self.combinations[name], own[name]) for name in names])
        if names := [one.name for one in self.grid.needed(ANSWERS)]:
            results[ANSWERS] = await self._answered({name: own[name] for name in names})
        return results

    async def _searched(self, one: Combination, settings: Settings) -> Result:
        plan, passages = plan_of(Options(**{**vars(self.options), "k": self.grid.k, "assistant": ""}), settings)
        settings = settings.model_copy(update=passages)
        async with opened(settings, by_meaning=True, file=_file(settings, one)) as assistants:
            mark = await _mark(assistants, settings, one, *map(str, (self.grid.k, self.options.doc_map, self.cases)))
            kept = output_folder(self.options, "searches") / f"{mark}.json"
            if saved := _saved(kept, one.name):
                return saved
            config = configuration(self.options.file, settings, one.settings, model_name(self.options, settings))
            plan = replace(plan, assistant=_asked(assistants, one).id)
            with quiet_pipeline(), progress_bar(f"Searching: {one.name}") as told:
                finder = Finder(assistants)
                result = await evaluate(finder, self.cases, plan, contestant=one.name, config=config, progress=told)
        _keep(result, kept)
        return result

    async def _answered(self, own: Mapping[str, Settings]) -> Result:
        """The measured answers; cosines of all are those of one embedder, which `base` has."""
        answers = list[Answer]()
        with quiet_pipeline(), Cache(Path(self.options.out, "answers.jsonl")) as cache:
            for name, settings in own.items():
                answers += await self._collected(self.combinations[name], settings, cache)
        async with opened(self.base.model_copy(update=NO_MODEL), by_meaning=True) as assistants:
            corpus = await Corpus.of(assistants.get(""), self.base.tuning.passage_tokens, self.options.rules)
            known = await sourced(corpus, answers, self.cases)
            return await measured(self.options, self.base, assistants, self.cases, known)

    async def _collected(self, one: Combination, settings: Settings, cache: Cache) -> Sequence[Answer]:
        async with opened(settings, by_meaning=True, file=_file(settings, one)) as assistants:
            asked = OwnAssistant(_asked(assistants, one), one.name, await _mark(assistants, settings, one))
            with progress_bar(f"Answering: {one.name}") as told:
                return await collect([asked], self.cases, cache, parallel=self.options.parallel, progress=told)


def _with(base: Settings, one: Combination, overrides: Mapping[str, Any]) -> Settings:
    changed = base.model_copy(update={**one.settings, **overrides})
    try:
        return Settings.model_validate(changed.model_dump())
    except ValidationError as error:
        problem = error.errors()[0]
        raise EvaluationError(f"{one.name}: {problem['loc'][-1]} is {problem['input']!r}: {problem['msg']}.") from error


def _asked(assistants: Assistants, one: Combination) -> Assistant:
    """The assistant that a combination asks, with its persona."""
    id_ = assistants.get(one.chosen.get("assistant", "")).id
    return assistants.get(":".join(filter(None, (id_, one.chosen.get("persona", "")))))


def _file(settings: Settings, one: Combination) -> AssistantsFile:
    """The assistants, of which the one that is asked has the steps of the combination."""
    file = read_assistants(settings)
    if not (steps := one.chosen.get("steps")):
        return file
    id_ = one.chosen.get("assistant") or file.assistants[0].id
    changed = [table.model_copy(update={"steps": steps} if table.id == id_ else {}) for table in file.assistants]
    return file.model_copy(update={"assistants": changed})


async def _mark(assistants: Assistants, settings: Settings, one: Combination, *more: str) -> str:
    """Stands for all that the answers of a combination depend on, as far as known."""
    own = {name: one.chosen[name] for name in ("assistant", "persona", "steps") if name in one.chosen}
    index = (await assistants.store.live()).info
    return fingerprint(fingerprint_of_answers(settings, _asked(assistants, one).id, index, json.dumps(own)), *more)


def _saved(kept: Path, name: str) -> Result | None:
    """The searches of an earlier run, under this name of their combination."""
    if not kept.is_file():
        return None
    result = load_result(kept)
    return replace(result, outcomes=tuple(replace(outcome, contestant=name) for outcome in result.outcomes))


def _keep(result: Result, path: Path) -> None:
    """Save the searches of a combination, unless some failed: a later run asks them again."""
    if not result.failed:
        partial = path.with_suffix(".part")
        result.save(partial)
        partial.replace(path)


def _joined(results: Sequence[Result]) -> Result:
    """The outcomes of all; the configuration is that of the first one."""
    return replace(results[0], outcomes=tuple(outcome for result in results for outcome in result.outcomes))


def _write(options: Options, wanted: Grid, results: Mapping[str, Result]) -> None:
    """Write the tables as JSON and HTML, and the results of each kind, to the directory of --out."""
    folder = Path(options.out)
    rows = [
        {"title": table.title, "axes": table.axes, "rows": [asdict(line) for line in lines_of(wanted, table, results)]}
        for table in wanted.table
    ]
    config = {kind: dict(result.config) for kind, result in results.items()}
    save_document(folder / "grid.json", {"form": FORM, "config": config}, "tables", rows)
    write_text(grid_page(wanted, results), folder / "grid.html")
    if searched := results.get(RETRIEVAL):
        searched.save(folder / "retrieval.json")
    if answered := results.get(ANSWERS):
        answered.save(folder / "answers.json")
        write_text(answers_page(answered, options.rules), folder / "answers.html")
        if options.evidently:
            evidently_page(answered, folder / "evidently.html")
