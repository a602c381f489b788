/** Two answers to one question side by side, with what is different marked. */
import type { JSX } from "preact";
import { type Change as Part, diffWords } from "diff";
import { useMemo } from "preact/hooks";
import type { TraceCandidate } from "../../../api";
import { Badge, Table, useAdmin } from "../data";
import { ChunkLink, namesOf } from "./candidates";
import { Summary, tokensOf } from "./sections";
import { Waterfall } from "./waterfall";
import type { Choices, TracedAnswer } from "./choices";

/** Answers with more different words are shown as wholly different. */
const MOST_EDITS = 3000;

export interface Side {
  answer: TracedAnswer;
  choices: Choices;
}

export function Compare({ first, second }: { first: Side; second: Side }): JSX.Element {
  const { trace: t } = useAdmin();
  const parts = useMemo(() => diffWords(first.answer.text, second.answer.text, { maxEditLength: MOST_EDITS }) ?? [
    { value: first.answer.text, removed: true, added: false, count: 1 }, { value: second.answer.text, removed: false, added: true, count: 1 },
  ], [first.answer.text, second.answer.text]);
  const scale = Math.max(first.answer.trace.ms, second.answer.trace.ms);
  return (
    <section>
      <h2>{t.compare}</h2>
      {parts.every((part) => !part.added && !part.removed) && <p role="status">{t.sameAnswer}</p>}
      <div class="tr-sides">
        <One name={t.first} side={first} parts={parts.filter((part) => !part.added)} scale={scale} />
        <One name={t.second} side={second} parts={parts.filter((part) => !part.removed)} scale={scale} />
      </div>
      <Figures first={first.answer} second={second.answer} />
      <Hits first={first.answer} second={second.answer} />
    </section>
  );
}

function One({ name, side, parts, scale }: { name: string; side: Side; parts: Part[]; scale: number }): JSX.Element {
  const { trace } = side.answer;
  return (
    <section class="tr-side" aria-label={name}>
      <h3>{name} <ChoicesText choices={side.choices} /></h3>
      <Summary trace={trace} />
      <p class="tr-text" lang={trace.language}>
        {parts.map((part, i) => part.removed ? <del key={i}>{part.value}</del> : part.added ? <ins key={i}>{part.value}</ins> : part.value)}
      </p>
      <Waterfall trace={trace} scale={scale} />
    </section>
  );
}

export function ChoicesText({ choices }: { choices: Choices }): JSX.Element {
  const given = [
    ...(choices.model ? [choices.model] : []),
    ...Object.entries(choices.settings).map(([name, value]) => `${name} = ${value}`),
    ...Object.keys(choices.prompts),
  ];
  return <span class="tr-choices">{given.map((one) => <Badge key={one} tone="calm">{one}</Badge>)}</span>;
}

function Figures({ first, second }: { first: TracedAnswer; second: TracedAnswer }): JSX.Element {
  const { trace: t, ms, score, number } = useAdmin();
  const figures = ({ trace }: TracedAnswer): [string, string][] => [
    [t.rows.time, `${ms(trace.ms)} ms`],
    [t.rows.firstText, trace.first_text === null ? "–" : `${ms(trace.first_text)} ms`],
    [t.rows.tokens, number(tokensOf(trace))],
    [t.rows.evidence, trace.evidence ? `${score(trace.evidence.found)} / ${score(trace.evidence.needed)}` : "–"],
    [t.rows.language, trace.language],
    [t.rows.hits, number(hits(trace.candidates).size)],
    [t.rows.links, number(trace.links.length)],
  ];
  const others = figures(second);
  return (
    <Table name={t.compare} head={["", t.first, t.second]}>
      {figures(first).map(([name, value], i) => {
        const other = others[i]![1];
        return <tr key={name}><th scope="row">{name}</th><td>{value}</td><td>{value === other ? value : <mark>{other}</mark>}</td></tr>;
      })}
    </Table>
  );
}

function hits(candidates: TraceCandidate[]): Map<string, TraceCandidate> {
  return new Map(candidates.filter((one) => one.place !== null && !one.dropped).map((one) => [one.chunk, one]));
}

function Hits({ first, second }: { first: TracedAnswer; second: TracedAnswer }): JSX.Element {
  const { trace: t } = useAdmin();
  const [before, after] = [hits(first.trace.candidates), hits(second.trace.candidates)];
  const all = new Map([...after, ...before]);
  const names = new Map([...namesOf(first.trace), ...namesOf(second.trace)]);
  const place = (one: TraceCandidate | undefined) => (one ? t.rank(one.place!) : "–");
  return (
    <>
      <h3>{t.rows.hits}</h3>
      <Table name={t.rows.hits} head={t.hitColumns}>
        {[...all.values()].map((one) => {
          const [was, is] = [before.get(one.chunk), after.get(one.chunk)];
          return (
            <tr key={one.chunk} class={was && is ? "" : is ? "tr-gained" : "tr-lost"}>
              <td class="ad-number">{place(was)}</td>
              <td class="ad-number">{place(is)}</td>
              <td class="ad-page"><ChunkLink id={one.chunk} names={names} /><span class="da-muted ad-break">{one.url}</span></td>
              <td><Change was={was} now={is} reason={lostBecause(second, one.chunk)} /></td>
            </tr>
          );
        })}
      </Table>
    </>
  );
}

function lostBecause(answer: TracedAnswer, chunk: string): string {
  return answer.trace.candidates.find((one) => one.chunk === chunk)?.dropped?.reason ?? "";
}

function Change({ was, now, reason }: { was: TraceCandidate | undefined; now: TraceCandidate | undefined; reason: string }): JSX.Element {
  const { trace: t } = useAdmin();
  if (!was) return <Badge tone="good">{t.gained}</Badge>;
  if (!now) return <><Badge tone="bad">{t.lost}</Badge> <span class="da-muted">{t.reasons[reason] ?? reason}</span></>;
  return was.place === now.place ? <span class="da-muted">{t.same}</span> : <Badge tone="warn">{t.moved(was.place!, now.place!)}</Badge>;
}
