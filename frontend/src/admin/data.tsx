/** JSON of the service as what views are made from: loading, failing, and the address that it came from. */
import { type ComponentChildren, type JSX, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type ApiError, asApiError } from "../shared/api";
import { CopyButton } from "../shared/copy";
import { Problem } from "../shared/problems";
import { type Loaded, useLoaded } from "../shared/interface";
import { languageName } from "../shared/texts";
import { useUi } from "../shared/ui";
import { type Parameters, address, withQuery } from "./location";
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
  // a day without a time is the same one in all time zones
  const date = (time: string, style: Intl.DateTimeFormatOptions) => new Date(time.length > 10 ? time : `${time}T12:00`).toLocaleDateString(language, style);
  return {
    number: (value: number) => value.toLocaleString(language),
    compact: (value: number) => value.toLocaleString(language, { notation: "compact" }),
    percent: (part: number) => part.toLocaleString(language, { style: "percent" }),
    ms: (value: number) => value.toLocaleString(language, { maximumFractionDigits: value < 10 ? 1 : 0 }),
    score: (value: number) => value.toLocaleString(language, { minimumFractionDigits: 3, maximumFractionDigits: 3 }),
    seconds: (value: number) =>
      value < 60 ? `${value.toLocaleString(language, { maximumFractionDigits: 1 })} s` : `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`,
    ago: (time: string | null) => (time && !Number.isNaN(Date.parse(time)) ? ago((Date.now() - Date.parse(time)) / 1000) : unknown),
    day: (time: string) => (Number.isNaN(Date.parse(time)) ? time || unknown : date(time, { dateStyle: "medium" })),
    shortDay: (time: string) => date(time, { day: "numeric", month: "short" }),
    exact: (time: string) => (Number.isNaN(Date.parse(time)) ? time : new Date(time).toLocaleString(language, { dateStyle: "medium", timeStyle: "medium" })),
    languageName: (code: string) => (code ? languageName(code, language) : unknown),
  };
}

const Context = createContext<Admin | null>(null);

export const AdminProvider = Context.Provider;

export function useAdmin(): Admin {
  return useContext(Context)!;
}

/** Something of the service; asks for another key if the service does. */
export function useAdmitted<T>(loaded: Loaded<T>): Loaded<T> {
  const { onKey } = useAdmin();
  useEffect(() => {
    if (loaded.problem?.kind === "key") onKey();
  }, [loaded.problem]);
  return loaded;
}

export interface Json<T> extends Loaded<T> {
  path: string;
}

/** The JSON at this address. */
export function useJson<T>(place: string, parameters: Parameters = {}): Json<T> {
  const path = withQuery(place, parameters);
  return { ...useAdmitted(useLoaded<T>(useUi().api, path)), path };
}

/** The same with what was there before, until there is more: who filters keeps the focus and the place. */
export function useKept<T>(loaded: Json<T>): Json<T> {
  const last = useRef<T | null>(null);
  last.current = loaded.data ?? (loaded.problem ? null : last.current);
  return { ...loaded, data: last.current };
}

interface ViewProps<T> {
  loaded: Json<T>;
  /** What helps if there is no such thing. */
  absent?: ComponentChildren;
  /** What is said until it is there. */
  waiting?: string;
  /** What follows, also without the data. */
  after?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}

/** The children of the data once it is there, and at the end the address that it came from. */
export function View<T>({ loaded: { path, data, problem, reload }, absent, waiting, after, children }: ViewProps<T>): JSX.Element {
  const { t } = useAdmin();
  const empty = problem?.code === "no_index";
  const nothing = empty ? <a href={address("sites")}>{t.sites.add}</a> : problem?.kind === "missing" && absent;
  return (
    <>
      {problem && (nothing ? <div role="alert"><p>{empty ? t.problems.titles["no_index"] : <Told text={problem.message} />}</p><p>{nothing}</p></div> : <Failure problem={problem} onRetry={reload} />)}
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

interface SelectProps {
  label: ComponentChildren;
  /** Values with their names. */
  options: readonly (readonly [string, string])[];
  /** What is chosen, or at first if nobody is told `onChoose`; an unknown value is one more option. */
  value: string;
  name?: string;
  /** What it means to choose nothing, if that is possible. */
  none?: string;
  onChoose?: (value: string) => void;
}

export function Select({ label, options, value, name, none, onChoose }: SelectProps): JSX.Element {
  const all = [...(none === undefined ? [] : [["", none] as const]), ...options];
  if (!all.some(([one]) => one === value)) all.push([value, value]);
  return (
    <label class="ad-field">
      {label}
      <select name={name} {...(onChoose && { value })} onChange={(event) => onChoose?.(event.currentTarget.value)}>
        {all.map(([one, shown]) => <option key={one} value={one} selected={one === value}>{shown}</option>)}
      </select>
    </label>
  );
}

/** The element in whose middle its current link is scrolled, also when that changes. */
export function useCurrent(inputs: unknown[]): { current: HTMLElement | null } {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    const [box, link] = [nav.current, nav.current?.querySelector<HTMLElement>("[aria-current]")];
    if (box && link) box.scrollLeft = link.offsetLeft - (box.clientWidth - link.offsetWidth) / 2;
  }, inputs);
  return nav;
}

/** The parts of a view, one of which is shown, as links. */
export function Tabs({ label, parts, shown, to }: { label: string; parts: readonly (readonly [string, string])[]; shown: string; to: (part: string) => string }): JSX.Element {
  return (
    <nav ref={useCurrent([shown])} class="ad-switch" aria-label={label}>
      {parts.map(([part, name]) => <a key={part} href={to(part)} aria-current={part === shown ? "page" : undefined}>{name}</a>)}
    </nav>
  );
}

/** What a run says went wrong, closed at first; nothing without any. */
export function Errors({ errors }: { errors: readonly string[] }): JSX.Element | null {
  const { t, number } = useAdmin();
  return errors.length ? <details><summary>{t.runs.errors(number(errors.length))}</summary><ul>{errors.map((error, i) => <li key={i} class="ad-break">{error}</li>)}</ul></details> : null;
}

/** A button that asks before something is lost. */
export function Sure({ name, text, yes = name, act }: { name: string; text: string; yes?: string; act: () => Promise<unknown> }): JSX.Element {
  const { t } = useUi();
  const dialog = useRef<HTMLDialogElement>(null);
  const { act: begin, busy, failure } = useAction();
  return (
    <>
      <button type="button" class="da-button ad-bad" onClick={() => dialog.current!.showModal()}>{name}</button>
      <dialog ref={dialog} class="ad-confirm" role="alertdialog" aria-label={yes}>
        <p>{text}</p>
        {failure}
        <button type="button" class="da-button" autofocus onClick={() => dialog.current!.close()}>{t.page.cancel}</button>
        <button type="button" class="da-button ad-danger" disabled={busy} onClick={() => void begin(() => act().then(() => dialog.current?.close()))}>{yes}</button>
      </dialog>
    </>
  );
}

/** A sentence of the service: what stands between backticks is code, and times are as the reader writes them. */
export function Told({ text }: { text: string }): JSX.Element {
  const { exact } = useAdmin();
  const parts = text.replace(/\d{4}-\d\d-\d\dT[\d:.]+(Z|\+\d\d:\d\d)/g, (time) => exact(time)).split("`");
  return <>{parts.map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}</>;
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
    <div class="ad-table da-scroll" role="region" aria-label={name} tabIndex={0}>
      <table ref={table}>
        <thead><tr>{head.map((cell, i) => (cell ? <th key={i} scope="col">{cell}</th> : <td key={i} />))}</tr></thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** Figures beside each other: what they are, how many, and what is to be said of them. */
export function Figures({ rows }: { rows: [string, ComponentChildren, ComponentChildren?][] }): JSX.Element {
  return (
    <dl class="ad-figures">
      {rows.map(([name, value, beside]) => <div key={name}><dt>{name}</dt><dd>{value}{beside && <small class="da-muted">{beside}</small>}</dd></div>)}
    </dl>
  );
}

/** The first of many items, and the others behind a line that says how many they are. */
export function Some({ of, shown, class: kind }: { of: JSX.Element[]; shown: number; class?: string }): JSX.Element {
  const { t, number } = useAdmin();
  return (
    <>
      <ul class={kind}>{of.slice(0, shown)}</ul>
      {of.length > shown && <details><summary>{t.runs.more(number(of.length - shown))}</summary><ul class={kind}>{of.slice(shown)}</ul></details>}
    </>
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
