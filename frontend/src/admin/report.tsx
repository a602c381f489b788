/** The report of a run: pages by outcome, and what went wrong, by reason. */
import type { JSX } from "preact";
import { type Counts, Figures, Some, useAdmin } from "./data";
import { address } from "./location";

const SHOWN = 20;

export interface PageReport {
  url: string;
  outcome: string;
  reason: string;
}

/** What a run reports, as far as it is shown: the report of `ingest --json`. */
export interface Report {
  counts: Counts;
  warnings: string[];
  failed_sources: string[];
  refused: string[];
  seconds: number;
  changed: boolean;
  pages: PageReport[];
}

export function ReportView({ report }: { report: Report }): JSX.Element {
  const { t, number } = useAdmin();
  return (
    <section>
      <h2>{t.runs.report}</h2>
      <Figures rows={Object.entries(report.counts).map(([name, count]) => [t.runs.outcomes[name] ?? name, number(count)])} />
      {!report.changed && !report.refused.length && <p>{t.runs.unchanged}</p>}
      <Lines heading={t.runs.refused} lines={report.refused} />
      <Lines heading={t.runs.failedSources} lines={report.failed_sources} />
      <Reasons pages={report.pages} heading={t.runs.problems} />
      <Lines heading={t.runs.warnings} lines={report.warnings} />
    </section>
  );
}

function Lines({ heading, lines }: { heading: string; lines: string[] }): JSX.Element | null {
  if (!lines.length) return null;
  return <><h3>{heading}</h3><ul>{lines.map((line, i) => <li key={i} class="ad-break">{line}</li>)}</ul></>;
}

const WRONG = ["failed", "skipped", "removed"];

/** Numbers and addresses in reasons differ from page to page. */
const kind = (page: PageReport) => `${page.outcome}: ${page.reason.replace(/https?:\/\/\S+/g, "…").replace(/\d+/g, "#")}`;

/** What was left out or failed, by reason. */
export function Reasons({ pages, heading }: { pages: PageReport[]; heading: string }): JSX.Element {
  const { t, number } = useAdmin();
  const groups = Map.groupBy(pages.filter((one) => WRONG.includes(one.outcome)), kind);
  if (!groups.size) return <p>{t.runs.noProblems}</p>;
  const ordered = [...groups.values()].sort((a, b) => WRONG.indexOf(a[0]!.outcome) - WRONG.indexOf(b[0]!.outcome) || b.length - a.length);
  return (
    <>
      {heading && <h3>{heading}</h3>}
      {ordered.map((group) => (
        <details key={kind(group[0]!)} open={ordered.length === 1 && group.length <= SHOWN}>
          <summary>{number(group.length)} × {t.runs.outcomes[group[0]!.outcome]}: {group[0]!.reason}</summary>
          <Some shown={SHOWN} of={group.map((one) => <li key={one.url} class="ad-break"><a href={address("page", { url: one.url })}>{one.url}</a></li>)} />
        </details>
      ))}
    </>
  );
}
