/** The parts of a trace below its candidates: passages, links, and what was removed; and the line above all. */
import type { JSX } from "preact";
import type { Trace } from "../../../api";
import { Badge, Table, useAdmin } from "../data";
import { Candidates, ChunkLink, Searches, namesOf } from "./candidates";
import { Sent } from "./step";
import { Waterfall } from "./waterfall";

export function tokensOf(trace: Trace): number {
  return trace.steps.flatMap((step) => step.calls).reduce((sum, call) => sum + call.prompt_tokens + call.completion_tokens, 0);
}

export function Summary({ trace }: { trace: Trace }): JSX.Element {
  const { trace: t, ms, number } = useAdmin();
  const calls = trace.steps.flatMap((step) => step.calls).filter((call) => call.kind === "chat").length;
  const first = trace.first_text === null ? "" : ms(trace.first_text);
  const notes = [
    trace.end.extractive && t.extractive,
    trace.end.refused && t.refused,
    !trace.searches.length && t.smalltalk,
    t.ended[trace.end.finish_reason],
    t.ended[trace.end.language],
    trace.end.failure,
  ].filter(Boolean);
  return (
    <p class="tr-summary">
      {t.total(ms(trace.ms), first, calls, number(tokensOf(trace)))} · {t.state(trace.language, trace.generation)}
      {trace.end.verbatim && ` · ${t.verbatim(trace.end.verbatim.found, trace.end.verbatim.statements)}`}
      {notes.map((note) => <span key={note}> <Badge tone="warn">{note}</Badge></span>)}
    </p>
  );
}

/** What a trace says, by its parts. */
export const TRACED = {
  steps: ({ trace }: { trace: Trace }): JSX.Element => {
    const { trace: t } = useAdmin();
    return <section><h2>{t.steps}</h2><p class="da-muted">{t.stepsText}</p><Waterfall trace={trace} /></section>;
  },
  candidates: ({ trace }: { trace: Trace }): JSX.Element => (
    <>
      <section><h2>{useAdmin().trace.candidates}</h2><Candidates trace={trace} /></section>
      <Searches trace={trace} />
    </>
  ),
  links: ({ trace }: { trace: Trace }): JSX.Element => {
    const { trace: t } = useAdmin();
    return (
      <>
        <section><h2>{t.links}</h2><Links trace={trace} /></section>
        <section><h2>{t.passages}</h2><Passages trace={trace} /></section>
        {trace.removed.length > 0 && <section><h2>{t.removed}</h2><Removed trace={trace} /></section>}
      </>
    );
  },
};

function Passages({ trace }: { trace: Trace }): JSX.Element {
  const { trace: t } = useAdmin();
  if (!trace.passages.length) return <p>{t.noPassages}</p>;
  return (
    <>
      {trace.passages.map((one) => (
        <details key={one.number}>
          <summary><strong>[{one.number}]</strong> {one.title || one.url} <span class="da-muted">{one.url} · {one.language} · {one.chunks.length}</span></summary>
          <Sent name={t.inPassage(one.number)} text={one.text} />
        </details>
      ))}
    </>
  );
}

function Links({ trace }: { trace: Trace }): JSX.Element {
  const { trace: t } = useAdmin();
  if (!trace.links.length) return <p>{t.noLinks}</p>;
  const names = namesOf(trace);
  return (
    <Table name={t.links} head={t.linkColumns}>
      {trace.links.map((one, i) => (
        <tr key={i}>
          <td class="ad-page"><strong>{one.number === null ? t.offered : `[${one.number}]`}</strong> <a class="ad-break" href={one.url} target="_blank" rel="noopener noreferrer">{one.url}</a></td>
          <td>{one.section || "–"}</td>
          <td class="ad-page">{one.passage !== null && <span>{t.inPassage(one.passage)}</span>}<ChunkLink id={one.chunk} names={names} /></td>
          <td class="ad-page">{one.reason}</td>
        </tr>
      ))}
    </Table>
  );
}

function Removed({ trace }: { trace: Trace }): JSX.Element {
  const { trace: t } = useAdmin();
  return (
    <Table name={t.removed} head={t.removedColumns}>
      {trace.removed.map((one, i) => (
        <tr key={i}><td>{one.kind}</td><td class="ad-page"><code class="ad-break">{one.text}</code></td><td class="ad-page">{one.reason}</td></tr>
      ))}
    </Table>
  );
}
