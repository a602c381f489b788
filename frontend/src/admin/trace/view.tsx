/** A question, its answer and the trace of it; asked again with other choices, both side by side. The address has all but prompts. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Trace } from "../../../api";
import { type Api, ApiError } from "../../shared/api";
import { chat } from "../../shared/chat";
import { type Loaded, useWork } from "../../shared/interface";
import { Markdown } from "../../shared/markdown";
import { useUi } from "../../shared/ui";
import { Failure, Tabs, useAdmin, useAdmitted } from "../data";
import { address, go } from "../location";
import type { ViewProps } from "../routes";
import { ChoicesText, Compare, type Side } from "./compare";
import { AgainForm, AskForm } from "./forms";
import { QuestionForm } from "./question_form";
import { Summary, TRACED } from "./sections";
import "./trace.css";
import { type Choices, type TracedAnswer, choicesIn, isAgain, parameters } from "./choices";

async function asked(api: Api, question: string, choices: Choices, signal: AbortSignal): Promise<TracedAnswer> {
  const numbers = Object.entries(choices.settings).map(([name, value]) => [name, name === "fusion" ? value : Number(value)]);
  const { model, prompts } = choices;
  const overrides = { ...Object.fromEntries(numbers), ...(Object.keys(prompts).length && { prompts }) };
  const messages = [{ role: "user" as const, content: question }];
  const request = { model, messages, trace: true, ...(Object.keys(overrides).length && { overrides }) };
  let text = "";
  try {
    // as a stream, because readers get one
    for await (const event of chat(api, request, signal)) {
      if (event.kind === "text") text += event.text;
      if (event.kind === "done") return { text, trace: event.trace as Trace };
    }
  } catch (error) {
    if (error instanceof ApiError && error.trace) return { text, trace: error.trace as Trace };
    throw error;
  }
  throw new ApiError("cut", "The stream has no end.");
}

type Run = Loaded<TracedAnswer> & { again: () => void };

/** The answer to this question with these choices; asked again only if one of them changes, or on `again`. */
function useAnswer(question: string, choices: Choices | null): Run {
  const { api } = useUi();
  const [turn, setTurn] = useState(0);
  const work = question && choices ? (signal: AbortSignal) => asked(api, question, choices, signal) : null;
  const run = useAdmitted(useWork(work, [question, JSON.stringify(choices), turn]));
  return { ...run, again: () => setTurn(turn + 1) };
}

/** What is shown below the answer, by the parameter `part` of the address. */
const PARTS = ["steps", "candidates", "links", "again", "add"] as const;
type Part = (typeof PARTS)[number];

export function Ask({ query }: ViewProps): JSX.Element {
  const { trace: t } = useAdmin();
  const question = query.get("q") ?? "";
  const [prompts, setPrompts] = useState<Record<string, string>>({});
  const first = choicesIn(query, {}, false);
  const second = isAgain(query) || Object.keys(prompts).length ? choicesIn(query, prompts, true) : null;
  const one = useAnswer(question, question ? first : null);
  const other = useAnswer(question, one.data && second);
  const ask = (q: string, choices: Choices) => {
    setPrompts({});
    if (q === question && JSON.stringify(choices) === JSON.stringify(first)) one.again();
    else go(address("ask", { q, ...parameters(choices, false) }));
  };
  const askAgain = (choices: Choices) => {
    setPrompts(choices.prompts);
    go(address("ask", { q: question, ...parameters(first, false), ...parameters(choices, true) }));
    other.again();
  };
  const close = () => {
    setPrompts({});
    go(address("ask", { q: question, ...parameters(first, false) }));
  };
  const [here, there] = [one.data && { answer: one.data, choices: first }, second && other.data && { answer: other.data, choices: second }];
  return (
    <div class="tr-view">
      {!question && <p>{t.intro}</p>}
      <AskForm question={question} choices={first} onAsk={ask} />
      {question && <Answered run={one} />}
      {second && one.data && <Answered run={other} />}
      {here && (there ? <Compare first={here} second={there} /> : <Single {...here} />)}
      {here && <Below key={String(there !== null)} sides={there ? [here, there] : [here]} query={query} onClose={close}>
        {{
          again: <AgainForm key={`${question} ${JSON.stringify(second)}`} choices={second ?? first} language={here.answer.trace.language} onAsk={askAgain} />,
          add: <QuestionForm key={question} trace={here.answer.trace} model={first.model} />,
        }}
      </Below>}
    </div>
  );
}

/** The parts of the trace of one answer or two, one at a time; what is written into the forms stays while another one is shown. */
function Below({ sides, query, onClose, children }: { sides: Side[]; query: URLSearchParams; onClose: () => void; children: Record<"again" | "add", JSX.Element> }): JSX.Element {
  const { trace: t } = useAdmin();
  const [side, setSide] = useState(sides.length - 1);
  const box = useRef<HTMLDivElement>(null);
  const parts = PARTS.filter((part) => part !== "steps" || sides.length === 1); // both have their steps above
  const shown = parts.find((part) => part === query.get("part")) ?? parts[0]!;
  const { trace } = sides[side]!.answer;
  const given = Object.fromEntries(query);
  // the tabs stay in sight, but what they show begins above
  useEffect(() => scrollBy(0, Math.min(0, box.current!.getBoundingClientRect().top)), [shown]);
  const content = (part: Part) => {
    if (part === "again" || part === "add") return children[part];
    const Traced = TRACED[part];
    return <Traced key={side} trace={trace} />;
  };
  return (
    <div ref={box}>
      {trace.problem && <p class="tr-problem"><strong>{t.incomplete}:</strong> {trace.problem}</p>}
      <Tabs label={t.parts} parts={parts.map((part) => [part, t[part]])} shown={shown} to={(part) => address("ask", { ...given, part })} />
      {sides.length > 1 && (
        <div class="ad-row" role="group" aria-label={t.details}>
          <span>{t.details}:</span>
          {[t.first, t.second].map((name, i) => <button key={name} type="button" class="da-button" aria-pressed={side === i} onClick={() => setSide(i)}>{name}</button>)}
          <button type="button" class="da-button" onClick={onClose}>{t.close}</button>
        </div>
      )}
      {parts.map((part) => <div key={part} hidden={part !== shown}>{content(part)}</div>)}
    </div>
  );
}

function Answered({ run }: { run: Run }): JSX.Element | null {
  const { trace: t } = useAdmin();
  if (run.problem) return <Failure problem={run.problem} onRetry={run.again} />;
  if (run.data) return null;
  return <p class="da-status" role="status"><span class="da-spinner" aria-hidden="true" />{t.asking}</p>;
}

function Single({ answer, choices }: Side): JSX.Element {
  const { trace: t } = useAdmin();
  const reading = useMemo(() => ({ cite: (number: number) => citation(number, answer.trace) }), [answer]);
  return (
    <section>
      <h2>{t.answer} <ChoicesText choices={choices} /></h2>
      <Summary trace={answer.trace} />
      <div class="tr-answer" lang={answer.trace.language}><Markdown text={answer.text} reading={reading} /></div>
    </section>
  );
}

/** The link of the answer with this number. */
function citation(number: number, trace: Trace): JSX.Element | null {
  const link = trace.links.find((one) => one.number === number);
  return link ? <a class="da-cite" href={link.url} target="_blank" rel="noopener noreferrer">{number}</a> : null;
}
