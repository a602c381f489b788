/** JSON of the service as what views are made from: loading, failing, and the address that it came from. */
import { type ComponentChildren, type JSX, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../shared/api";
import { CopyButton } from "../shared/copy";
import { Problem } from "../shared/problems";
import { type Loaded, useLoaded } from "../shared/interface";
import { languageName } from "../shared/texts";
import { useUi } from "../shared/ui";
import type { Route } from "./routes";
import type { AdminTexts } from "./texts/en";
import type { TraceTexts } from "./trace/texts";

export type Counts = Record<string, number>;

/** What all views have: the texts and formats of the reader's language, and what they share. */
export interface Admin extends ReturnType<typeof formats> {
  t: AdminTexts;
  trace: TraceTexts;
  language: string;
  routes: Route[];
  /** What to do when the service wants another key. */
  onKey: () => void;
}

/** Numbers, times and languages as the reader writes them. */
export function formats(language: string, unknown: string) {
  const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
  const ago = (seconds: number): string => {
    for (const [unit, size] of [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3600], ["minute", 60]] as const) {
      if (Math.abs(seconds) >= size) return relative.format(-Math.round(seconds / size), unit);
    }
    return relative.format(-Math.round(seconds), "second");
  };
  return {
    number: (value: number) => value.toLocaleString(language),
    percent: (part: number) => part.toLocaleString(language, { style: "percent" }),
    ms: (value: number) => value.toLocaleString(language, { maximumFractionDigits: value < 10 ? 1 : 0 }),
    score: (value: number) => value.toLocaleString(language, { minimumFractionDigits: 2, maximumFractionDigits: 3 }),
    seconds: (value: number) =>
      value < 60 ? `${value.toLocaleString(language, { maximumFractionDigits: 1 })} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`,
    ago: (time: string | null) => (time && !Number.isNaN(Date.parse(time)) ? ago((Date.now() - Date.parse(time)) / 1000) : unknown),
    day: (time: string) => (Number.isNaN(Date.parse(time)) ? time || unknown : new Date(time).toLocaleDateString(language, { dateStyle: "medium" })),
    exact: (time: string) => (Number.isNaN(Date.parse(time)) ? time : new Date(time).toLocaleString(language, { dateStyle: "medium", timeStyle: "medium" })),
    languageName: (code: string) => (code ? languageName(code, language) : unknown),
  };
}

const Context = createContext<Admin | null>(null);

export const AdminProvider = Context.Provider;

export function useAdmin(): Admin {
  return useContext(Context)!;
}

/** The JSON at this address; asks for another key if the service does. */
export function useJson<T>(path: string): Loaded<T> {
  const { api } = useUi();
  const { onKey } = useAdmin();
  const loaded = useLoaded<T>(api, path);
  useEffect(() => {
    if (loaded.problem?.kind === "key") onKey();
  }, [loaded.problem]);
  return loaded;
}

interface ViewProps<T> {
  path: string;
  loaded: Loaded<T>;
  /** What helps if there is no such thing. */
  absent?: ComponentChildren;
  /** What is said until it is there. */
  waiting?: string;
  /** What follows, also without the data. */
  after?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}

/** The children of the data once it is there, and at the end the address that it came from. */
export function View<T>({ path, loaded, absent, waiting, after, children }: ViewProps<T>): JSX.Element {
  const { t } = useAdmin();
  const { data, problem, reload } = loaded;
  return (
    <>
      {problem && <Failure problem={problem} onRetry={reload} />}
      {problem?.kind === "missing" && absent && <p>{absent}</p>}
      {!data && !problem && <p class="da-status" role="status"><span class="da-spinner" />{waiting ?? t.loading}</p>}
      {data && children(data)}
      {after}
      <JsonAddress path={path} />
    </>
  );
}

export function Failure({ problem, onRetry }: { problem: ApiError; onRetry?: (() => void) | undefined }): JSX.Element {
  return <Problem problem={problem} said={[useAdmin().t.failed, problem.message]} onRetry={onRetry} />;
}

/** Does something with the service; what went wrong is the `failure`, until the next try. */
export function useAction() {
  const [problem, setProblem] = useState<ApiError | null>(null);
  const [busy, setBusy] = useState(false);
  const act = async (work: () => Promise<unknown>) => {
    setBusy(true);
    setProblem(null);
    await work().catch((error: unknown) => setProblem(asApiError(error)));
    setBusy(false);
  };
  return { busy, act, failure: problem && <Failure problem={problem} /> };
}

/** The form that is submitted, which leads nowhere, with its texts and the lines of its longer ones. */
export function submitted(event: Event) {
  event.preventDefault();
  const form = new FormData(event.currentTarget as HTMLFormElement);
  const text = (name: string) => String(form.get(name)).trim();
  const lines = (name: string) => text(name).split(/\s*\n\s*/).filter(Boolean);
  return { form, text, lines };
}

/** What a run says went wrong, closed at first; nothing without any. */
export function Errors({ errors }: { errors: readonly string[] }): JSX.Element | null {
  const { t, number } = useAdmin();
  if (!errors.length) return null;
  return (
    <details>
      <summary>{t.runs.errors(number(errors.length))}</summary>
      <ul>{errors.map((error, i) => <li key={i} class="ad-break">{error}</li>)}</ul>
    </details>
  );
}

/** Asks before something is lost. */
export function Confirm({ text, yes, busy, onYes, onNo }: { text: string; yes: string; busy: boolean; onYes: () => void; onNo: () => void }): JSX.Element {
  const { t } = useUi();
  const no = useRef<HTMLButtonElement>(null);
  useEffect(() => no.current?.focus(), []);
  return (
    <div class="ad-confirm" role="alertdialog" aria-label={yes} aria-describedby="sure">
      <p id="sure">{text}</p>
      <button type="button" class="da-button ad-danger" disabled={busy} onClick={onYes}>{yes}</button>
      <button ref={no} type="button" class="da-button" disabled={busy} onClick={onNo}>{t.page.cancel}</button>
    </div>
  );
}

/** A link to a page of this product's documentation. */
export function Docs({ page, children }: { page: string; children: ComponentChildren }): JSX.Element {
  const { language } = useAdmin();
  return <a href={`docs/${language === "cs" ? "cs" : "en"}/${page}`} target="_blank" rel="noopener">{children}</a>;
}

function JsonAddress({ path }: { path: string }): JSX.Element {
  const { api } = useUi();
  const { t } = useAdmin();
  const url = api.url(path);
  return (
    <p class="ad-json">
      {t.json} <code>{url.replace(location.origin, "")}</code>
      <CopyButton text={`curl -H "Authorization: Bearer $ADMIN_KEY" '${url.replaceAll("'", "%27")}'`} label={t.copyCurl} />
    </p>
  );
}

/** How long ago, with the exact time when pointed at. */
export function Ago({ time }: { time: string | null }): JSX.Element {
  const { ago, exact } = useAdmin();
  return time ? <time dateTime={time} title={exact(time)}>{ago(time)}</time> : <span class="da-muted">–</span>;
}

export type Tone = "good" | "bad" | "warn" | "calm";

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }): JSX.Element {
  return <span class={`ad-badge ad-${tone}`}>{children}</span>;
}

/** A wide table, if it has rows, which scrolls by itself; on a phone, each row is a card whose cells have their heads beside them. */
export function Table({ name, head, children }: { name: string; head: ComponentChildren[]; children: ComponentChildren }): JSX.Element | null {
  const table = useRef<HTMLTableElement>(null);
  useLayoutEffect(() => {
    const [heads, ...rows] = table.current?.rows ?? [];
    for (const row of rows) [...row.cells].forEach((cell, i) => (cell.dataset["head"] = heads!.cells[i]!.textContent));
  });
  if (Array.isArray(children) && !children.length) return null;
  return (
    <div class="ad-table" role="region" aria-label={name} tabIndex={0}>
      <table ref={table}>
        <thead><tr>{head.map((cell, i) => <th key={i} scope="col">{cell}</th>)}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

export function Facts({ rows }: { rows: [string, ComponentChildren][] }): JSX.Element {
  return (
    <dl class="ad-facts">
      {rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value || "–"}</dd></div>)}
    </dl>
  );
}

/** A link to a page of the site; its address comes from a sitemap. */
export function Outside({ url, text }: { url: string; text: string }): JSX.Element {
  if (!/^https?:\/\//.test(url)) return <>{text || url}</>;
  return <a class="ad-break" href={url} target="_blank" rel="noopener noreferrer">{text || url}</a>;
}
