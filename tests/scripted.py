"""`python -m tests.scripted`: a language model that answers from files, by question or by exact prompt, for `DOCS_LLM_URL`."""

import argparse
import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.core.errors import AssistantError, ModelError, PromptError
from app.core.prompts import Prompts, load_prompts, placeholders
from app.core.turn import Message
from eval.files import EvaluationError, Required, Row, fingerprint, json_lines, parse_row
from eval.questions.cases import Case, load_cases
from tests.fake_llm import FakeLLM, Reply, fake_llm

_CUT = "\0"
_KINDS = ("refine_question", "refine_keywords", "analyze", "hyde", "synthesize")


class _Output(Row):
    id: Required
    refined: Required


class _Recorded(Row):
    key: Required
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """The answers to one question: its clear wording, and by language code its keywords and a made-up answer."""

    refined: str
    keywords: Mapping[str, tuple[str, ...]]
    imagined: Mapping[str, str] = field(default_factory=dict)


def load_script(outputs: str | Path, cases: Sequence[Case]) -> dict[str, Line]:
    """The outputs (JSONL: id, refined, lists of keywords under language codes) of those cases, by the text of the question.

    Raises `EvaluationError` for a wrong line, an id that the cases lack, or two questions of the same text.
    """
    questions = {case.id: _normal(case.question) for case in cases}
    lines: dict[str, Line] = {}
    for where, row in json_lines(Path(outputs)):
        output = parse_row(_Output, where, row)
        if (question := questions.get(output.id)) is None:
            raise EvaluationError(
                f"{where}: the question set has no id {output.id!r}. Do the two files belong together?"
            )
        if question in lines:
            raise EvaluationError(f"{where}: there is already a line for {question!r}.")
        imagined = {key.removeprefix("hyde_"): str(text) for key, text in row.items() if key.startswith("hyde_")}
        lines[question] = Line(output.refined, dict(_keywords_in(where, row)), imagined)
    return lines


def _normal(text: str) -> str:
    return " ".join(text.split()).strip("\"'“”„")


def _keywords_in(where: str, row: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for code, words in row.items():
        if code in {"id", "refined"} or not re.fullmatch(r"[a-z]{2,3}", code):
            continue
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise EvaluationError(f"{where}: {code!r} is {words!r}, it must be a list of keywords.")
        yield code, tuple(words)


class ScriptedModel:
    """Recognises our prompts by their first lines and answers from the script, which only the text of a question leads to.

    `calls` counts the prompts by kind; `unknown` has the questions that the script lacks.
    """

    def __init__(self, script: Mapping[str, Line], prompts: Prompts) -> None:
        self.calls: Counter[str] = Counter()
        self.unknown: set[str] = set()
        self._script, self._prompts = script, prompts
        self._marks = _marks(prompts)

    def answer(self, messages: Sequence[Message]) -> str:
        """Raises `ModelError` for a question that the script lacks, and for a prompt of somebody else."""
        system = "\n".join(message.content for message in messages if message.role == "system")
        kind, language = self._recognised(system)
        self.calls[kind] += 1
        if kind == "synthesize":
            return f"{self._prompts.language(language).texts.found} [1].".replace("{count}", "1")
        question = next((m.content for m in reversed(messages) if m.role == "user"), "")
        line = self._line(question)
        match kind:
            case "hyde":
                if language not in line.imagined:
                    raise ModelError(f"There is no made-up answer in {language} for {question[:200]!r}.")
                return line.imagined[language]
            case "analyze":
                return json.dumps({"question": line.refined, **line.keywords}, ensure_ascii=False)
            case "refine_question":
                return line.refined
        asked = [code for code in line.keywords if re.search(rf"^{re.escape(code)}:", system, re.MULTILINE)]
        return "\n".join(f"{code}: {', '.join(line.keywords[code])}" for code in asked or line.keywords)

    def _line(self, message: str) -> Line:
        """The answers to the message, or to the last of its lines that is a known question."""
        for text in (message, *reversed(message.splitlines())):
            if line := self._script.get(_normal(text)):
                return line
        self.unknown.add(message)
        raise ModelError(f"The scripted model has no line for the question {message[:200]!r}.")

    def _recognised(self, system: str) -> tuple[str, str]:
        for mark, found in self._marks.items():
            if mark in system:
                return found
        self.calls["unknown prompt"] += 1
        raise ModelError(f"Only our own prompts are known ({', '.join(_KINDS)}), this one begins {system[:80]!r}.")


def _marks(prompts: Prompts) -> dict[str, tuple[str, str]]:
    """The first line of each prompt in each language, up to the first placeholder."""
    marks: dict[str, tuple[str, str]] = {}
    for language in prompts.languages:
        for kind in _KINDS:
            text = prompts.render(language, kind, **dict.fromkeys(placeholders()[kind], _CUT))
            marks[text.splitlines()[0].split(_CUT)[0].strip()] = (kind, language)
    clash = any(a in b for a in marks for b in marks if a is not b)
    if clash or "" in marks or len(marks) != len(_KINDS) * len(prompts.languages):
        raise PromptError(f"The prompts {', '.join(_KINDS)} must begin differently, within and among languages.")
    return marks


class RecordedModel:
    """Repeats the answers that a language model gave to exactly the same messages, and asks `otherwise` for others.

    `missing` has the messages that neither could answer, by their key in a record.
    """

    def __init__(self, record: Mapping[str, str], otherwise: ScriptedModel | None = None) -> None:
        self.missing: dict[str, Sequence[Message]] = {}
        self._record, self._otherwise = record, otherwise

    def answer(self, messages: Sequence[Message]) -> str:
        """Raises `ModelError` where there is none."""
        key = fingerprint(*(part for message in messages for part in (message.role, message.content)))
        if key in self._record:
            return self._record[key]
        try:
            if self._otherwise is not None:
                return self._otherwise.answer(messages)
            raise ModelError(f"There is no recorded answer to {messages[-1].content[:200]!r}.")
        except ModelError:
            self.missing[key] = messages
            raise


def load_record(path: str | Path) -> dict[str, str]:
    """Answers by key, from JSONL with `key` and `text`. Raises `EvaluationError` for a wrong line."""
    return {row.key: row.text.strip() for row in (parse_row(_Recorded, where, row) for where, row in json_lines(path))}


def missing_lines(model: RecordedModel) -> str:
    """The unanswered messages as lines of a record, with null as `text`."""
    lines = (
        {"key": key, "messages": [{"role": m.role, "content": m.content} for m in messages], "text": None}
        for key, messages in model.missing.items()
    )
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def served_by(model: ScriptedModel | RecordedModel) -> FakeLLM:
    """A server whose replies are the model's answers; status 400 for messages without one."""

    def reply(body: Mapping[str, Any]) -> Reply:
        llm.calls.clear()  # they are counted by the model
        try:
            return Reply(model.answer([Message(one["role"], _content(one["content"])) for one in body["messages"]]))
        except ModelError as error:
            return Reply(str(error), status=400)

    llm = FakeLLM()
    llm.reply = reply
    return llm


def _content(content: str | Sequence[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "\n".join(one["text"] for one in content if one["type"] == "text")


def main() -> int:
    """Exit code 0 after an interrupt, 2 for wrong input."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", default="", metavar="FILE", help="the question set that the outputs belong to")
    parser.add_argument("--outputs", default="", metavar="FILE", help="answers of the scripted model, joined by id")
    parser.add_argument("--recorded", default="", metavar="FILE", help="answers to exactly the same messages")
    parser.add_argument("--missing", default="", metavar="FILE", help="at the end, write the prompts without an answer")
    parser.add_argument("--port", type=int, default=0, help="port to listen on; 0 takes a free one (%(default)s)")
    parser.add_argument("--languages", default="cs en", help="languages of the known prompts (%(default)s)")
    parser.add_argument("--prompts", default="", metavar="DIR", help="your own prompts, as DOCS_PROMPTS")
    options = parser.parse_args()
    if bool(options.cases) != bool(options.outputs) or not (options.outputs or options.recorded):
        parser.error("give --cases with --outputs, or --recorded, or both")
    try:
        model = _model(options)
        asyncio.run(_serve(model, options.port))
    except KeyboardInterrupt:
        print(_counted(model))
        if options.missing and isinstance(model, RecordedModel):
            Path(options.missing).write_text(missing_lines(model), encoding="utf-8")
    except (AssistantError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _model(options: argparse.Namespace) -> ScriptedModel | RecordedModel:
    scripted = None
    if options.outputs:
        script = load_script(options.outputs, load_cases(options.cases))
        scripted = ScriptedModel(script, load_prompts(options.languages.split(), options.prompts))
    return RecordedModel(load_record(options.recorded), scripted) if options.recorded else scripted  # type: ignore[return-value]


async def _serve(model: ScriptedModel | RecordedModel, port: int) -> None:
    async with fake_llm(served_by(model), port) as llm:
        print(f"The model listens on {llm.url}", flush=True)
        await asyncio.Event().wait()


def _counted(model: ScriptedModel | RecordedModel) -> str:
    if isinstance(model, RecordedModel):
        return f"{len(model.missing)} prompts had no answer."
    asked = ", ".join(f"{kind} {n}" for kind, n in sorted(model.calls.items())) or "nothing"
    return f"Prompts: {asked}; {len(model.unknown)} unknown questions."


if __name__ == "__main__":
    sys.exit(main())
