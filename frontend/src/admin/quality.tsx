/** How good answers are, and were: by outcome and day, how often they are right when they are sure, evaluations by run, and the verdicts. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { EvaluationBody, QualityBody, Share, VerdictList } from "../../api";
import { useUi } from "../shared/ui";
import { Ago, Figures, Select, Sure, Table, View, useAdmin, useJson } from "./data";
import { address, go } from "./location";
import { Plot } from "./plot";
import type { ViewProps } from "./routes";
import { Expected, Given } from "./verdict";

/** The measure that is drawn of each kind of run. */
const DRAWN: Record<string, string> = { "eval retrieval": "rr", "eval verdicts": "page", "eval refusals": "refusal", "eval run": "refusal" };

export function Quality({ query }: ViewProps): JSX.Element {
  const { t } = useAdmin();
  const since = query.get("since") ?? "30d";
  const loaded = useJson<QualityBody>("v1/admin/quality", { since });
  return (
    <>
      <div class="ad-choose"><Select label={t.gaps.period} options={Object.entries(t.gaps.periods)} value={since} onChoose={(value) => go(address("quality", { since: value }))} /></div>
      <View loaded={loaded} absent={t.questions.off} after={<Verdicts />}>
        {({ days, calibration, evidence, runs }) => (
          <>
            <h2>{t.quality.outcomes}</h2>
            {days.length ? <Outcomes days={days} /> : <p>{t.questions.none}</p>}
            <h2>{t.quality.calibration}</h2>
            <p class="da-muted">{t.quality.calibrationText}</p>
            <Shares rows={calibration.map((one) => [`${t.quality.said[one.said]}, ${t.quality.by[one.by]}`, one.right])} />
            {evidence.length > 0 && <><h3>{t.quality.evidence}</h3><Shares rows={evidence.map((one) => [`≥ ${one.times}×`, one.right])} /></>}
            <h2>{t.quality.runs}</h2>
            {Object.keys(DRAWN).map((kind) => <Runs key={kind} kind={kind} runs={runs.filter((one) => one.kind === kind)} />)}
            {!runs.length && <p>{t.quality.noRuns}</p>}
          </>
        )}
      </View>
    </>
  );
}

/** Plots of the same days or runs: of each its name, its main figure, and its values. */
function Plots({ unit, days, lines }: { unit: string; days: string[]; lines: [string, string, number[]][] }): JSX.Element {
  const [at, setAt] = useState<number | null>(null);
  return <Figures rows={lines.map(([name, shown, values]) => [name, <>{shown}<Plot {...{ name, unit, days, values, at }} onPoint={setAt} /></>])} />;
}

function Outcomes({ days }: { days: QualityBody["days"] }): JSX.Element {
  const { t, number } = useAdmin();
  const lines = [...new Set(days.flatMap((one) => Object.keys(one.outcomes)))].map((name): [string, number[]] => [name, days.map((one) => one.outcomes[name] ?? 0)]);
  const total = (values: number[]) => values.reduce((sum, one) => sum + one, 0);
  return <Plots unit={t.questions.units[0]!} days={days.map((one) => one.day)} lines={lines.map(([name, values]) => [t.outcomes[name] ?? name, number(total(values)), values])} />;
}

function Runs({ kind, runs }: { kind: string; runs: EvaluationBody[] }): JSX.Element | null {
  const { t, percent } = useAdmin();
  const last = runs.at(-1);
  if (!last) return null;
  const means = (language: string) => runs.map((run) => run.rows.find((row) => row.language === language)?.measures[DRAWN[kind]!]?.mean ?? 0);
  return (
    <>
      <h3>{t.quality.kinds[kind]}</h3>
      <Plots unit={t.quality.unit} days={runs.map((run) => run.measured_at)} lines={last.rows.map(({ language: one }) => [t.quality.languages[one] ?? one, percent(means(one).at(-1)!), means(one)])} />
      <p class="da-muted"><Ago time={last.measured_at} /> · {t.quality.run(last.questions, last.generation, last.model)}</p>
    </>
  );
}

/** Shares as bars with their intervals. */
function Shares({ rows }: { rows: [string, Share][] }): JSX.Element {
  const { number, percent } = useAdmin();
  return (
    <dl class="ad-shares">
      {rows.map(([name, { count, of, share, low, high }]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect width={100 * (share ?? 0)} height={10} />{of > 0 && <path d={`M${100 * low!} 5H${100 * high!}`} />}</svg>
            {of ? `${percent(share!)} (${percent(low!)}–${percent(high!)}), ${number(count)} / ${number(of)}` : "–"}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** All verdicts, also on answers that the log has forgotten. */
function Verdicts(): JSX.Element {
  const { api } = useUi();
  const { t } = useAdmin();
  const loaded = useJson<VerdictList>("v1/admin/verdicts");
  const takeBack = (id: string) => api.fetch(`v1/admin/verdicts/${encodeURIComponent(id)}`, { method: "DELETE" }).then(loaded.reload);
  return (
    <section>
      <h2>{t.quality.verdicts}</h2>
      <View loaded={loaded}>
        {({ data }) => data.length ? (
          <Table name={t.quality.verdicts} head={[t.questions.columns["question"], t.verdict.verdict, t.verdict.expected, ""]}>
            {data.map((one) => (
              <tr key={one.id}>
                <th scope="row" class="ad-break"><a lang={one.language} href={address(`questions/${one.id}`)}>{one.question}</a><small class="da-muted"><Ago time={one.given_at} /> · {one.by}</small></th>
                <td><Given one={one} />{one.reason && <small>{one.reason}</small>}</td>
                <td><Expected one={one} /></td>
                <td class="ad-buttons"><Sure name={t.verdict.takeBack} text={one.question} act={() => takeBack(one.id)} /></td>
              </tr>
            ))}
          </Table>
        ) : <p>{t.verdict.text}</p>}
      </View>
    </section>
  );
}
