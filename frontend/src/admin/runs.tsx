/** Ingestion runs: start one, watch it, read its report. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { AdminIndexBody, EndedRunBody, IngestRun, ReadingRun, RunList } from "../../api";
import type { Loaded } from "../shared/interface";
import { useUi } from "../shared/ui";
import { Ago, Badge, Errors, Facts, Failure, Table, Told, type Tone, View, submitted, useAction, useAdmin, useJson } from "./data";
import { address, go } from "./location";
import { type Report, ReportView } from "./report";
import type { ViewProps } from "./routes";

const POLL = 1000; // milliseconds
const TONES: Record<IngestRun["state"], Tone> = { queued: "calm", running: "calm", done: "good", failed: "bad" };
export const RESULTS: Record<string, Tone> = { published: "good", partial: "warn" };
const over = (run: IngestRun) => run.state === "done" || run.state === "failed";

export function Runs({ rest }: ViewProps): JSX.Element {
  return rest ? <OneRun id={rest} /> : <AllRuns />;
}

function AllRuns(): JSX.Element {
  const { t } = useAdmin();
  const loaded = useJson<RunList>("v1/admin/runs");
  const { current, reading } = loaded.data ?? {};
  usePolling(loaded, Boolean(current ?? reading));
  return (
    <>
      {current || reading ? (
        <section><h2>{t.runs.current}</h2>{current ? <Live run={current} /> : <Reading run={reading!} />}</section>
      ) : <Start />}
      <section>
        <h2>{t.runs.last}</h2>
        <View loaded={loaded}>
          {({ data }) => data.length ? (
            <Table name={t.runs.last} head={[t.runs.began, t.pages.state, t.runs.by, t.runs.took, ...Object.values(t.runs.outcomes)]}>
              {data.map((run) => <EndedRow key={`${run.began_at}${run.id}`} run={run} />)}
            </Table>
          ) : <p>{t.runs.noRuns}</p>}
        </View>
      </section>
    </>
  );
}

function EndedRow({ run }: { run: EndedRunBody }): JSX.Element {
  const { t, number, seconds } = useAdmin();
  const began = <Ago time={run.began_at} />;
  return (
    <tr>
      <th scope="row">{run.id ? <a href={address(`runs/${run.id}`)}>{began}</a> : began}</th>
      <td>
        <Badge tone={RESULTS[run.result] ?? "bad"}>{t.results[run.result] ?? run.result}</Badge>
        {run.generation !== null && <small class="da-muted">{t.runs.generation(run.generation)}</small>}
        {run.failed_sources.map((one) => <p key={one} class="ad-break"><Badge tone="bad">{t.runs.siteFailed}</Badge> {one}</p>)}
        <Errors errors={run.errors.filter((one) => !run.failed_sources.includes(one))} />
      </td>
      <td>{t.runs.triggers[run.trigger] ?? run.trigger}{run.by && <small class="da-muted ad-break">{run.by}</small>}</td>
      <td class="ad-number">{seconds(run.seconds)}</td>
      {Object.keys(t.runs.outcomes).map((name) => <td key={name} class="ad-number">{name in run.counts ? number(run.counts[name]!) : "–"}</td>)}
    </tr>
  );
}

/** How far a run of another process is. */
function Reading({ run }: { run: ReadingRun }): JSX.Element {
  const { t, number } = useAdmin();
  return (
    <div class="ad-progress">
      <p role="status"><Badge tone="calm">{t.runs.triggers[run.trigger] ?? run.trigger}</Badge> {t.runs.stages["Pages"]} {t.runs.progress(number(run.done), number(run.total))}</p>
      <progress aria-label={t.runs.current} max={run.total} value={run.done} />
      <p class="da-muted">{t.runs.began} <Ago time={run.began_at} /> · {t.runs.left(number(run.minutes))}</p>
    </div>
  );
}

/** Reads the data again every second, as long as something goes on. */
function usePolling<T>({ data, reload }: Loaded<T>, goesOn: boolean): void {
  useEffect(() => {
    if (!goesOn) return;
    const timer = window.setTimeout(reload, POLL);
    return () => window.clearTimeout(timer);
  }, [data, goesOn]);
}

function Start(): JSX.Element | null {
  const { api } = useUi();
  const { t } = useAdmin();
  const loaded = useJson<AdminIndexBody>("v1/admin/index");
  const { act, failure } = useAction();
  if (loaded.problem) return <Failure problem={loaded.problem} onRetry={loaded.reload} />;
  if (!loaded.data) return null;
  const { configured, indexed } = loaded.data.sites;
  if (!configured.length && !indexed.length) return <section><h2>{t.runs.start}</h2><p><Told text={t.runs.nothing} /> <a href={address("sites")}>{t.sites.add}</a></p></section>;
  const start = (event: Event) => {
    const { form } = submitted(event);
    void act(async () => {
      const run = await api.json<IngestRun>("v1/ingest", { method: "POST", body: { sites: form.getAll("site"), force: form.has("force") } });
      go(address(`runs/${run.id}`));
    });
  };
  return (
    <form class="ad-start" onSubmit={start}>
      <h2>{t.runs.start}</h2>
      <p class="da-muted">{t.runs.startText}</p>
      <fieldset>
        <legend>{t.views.sites}</legend>
        {configured.map((site) => <Site key={site} site={site} kind={t.runs.configured} />)}
        {indexed.map((site) => <Site key={site} site={site} kind={t.runs.indexed} checked={!configured.length} />)}
      </fieldset>
      <label class="ad-check"><input type="checkbox" name="force" /> {t.runs.force}</label>
      {failure}
      <button class="da-button da-primary">{t.runs.start}</button>
    </form>
  );
}

function Site({ site, kind, checked = true }: { site: string; kind: string; checked?: boolean }): JSX.Element {
  return (
    <label class="ad-check">
      <input type="checkbox" name="site" value={site} defaultChecked={checked} />
      <span class="ad-break">{site} <span class="da-muted">({kind})</span></span>
    </label>
  );
}

/** What a run does that isn't over. */
function Live({ run }: { run: IngestRun }): JSX.Element {
  const { api } = useUi();
  const { t, number } = useAdmin();
  const { act, failure } = useAction();
  const figures = run.done || run.total ? t.runs.progress(number(run.done ?? 0), run.total ? number(run.total) : "") : "";
  return (
    <div class="ad-progress">
      <p role="status"><Badge tone={TONES[run.state]}>{t.runs.states[run.state]}</Badge> {t.runs.stages[run.stage] ?? run.stage} {figures}</p>
      <progress aria-label={run.stage || t.runs.current} {...(run.total ? { max: run.total, value: run.done ?? 0 } : {})} />
      <p class="da-muted ad-break">{run.progress}</p>
      {failure}
      <button type="button" class="da-button" onClick={() => void act(() => api.json(`v1/ingest/${run.id}/cancel`, { method: "POST" }))}>{t.runs.cancel}</button>
    </div>
  );
}

function OneRun({ id }: { id: string }): JSX.Element {
  const loaded = useJson<IngestRun>(`v1/ingest/${encodeURIComponent(id)}`);
  usePolling(loaded, Boolean(loaded.data && !over(loaded.data)));
  return (
    <View loaded={loaded}>
      {(run) => (
        <>
          {over(run) ? <Ended run={run} /> : <Live run={run} />}
          {run.report && <ReportView report={run.report as unknown as Report} />}
        </>
      )}
    </View>
  );
}

function Ended({ run }: { run: IngestRun }): JSX.Element {
  const { t, seconds } = useAdmin();
  const took = run.finished_at && run.started_at ? (Date.parse(run.finished_at) - Date.parse(run.started_at)) / 1000 : null;
  return (
    <>
      <p role="status"><Badge tone={TONES[run.state]}>{run.report?.changed === false && run.state === "done" ? t.runs.outcomes.unchanged : t.runs.states[run.state]}</Badge></p>
      {run.error && <pre class="ad-source ad-box">{run.error}</pre>}
      <Facts
        rows={[
          [t.runs.began, <Ago time={run.started_at ?? run.queued_at} />],
          [t.runs.took, took === null ? "" : seconds((run.report?.seconds as number | undefined) ?? took)],
          [t.runs.by, run.by],
          [t.views.sites, <span class="ad-break">{run.sites.join(", ")}</span>],
        ]}
      />
    </>
  );
}
