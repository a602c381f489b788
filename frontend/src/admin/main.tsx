/** The pages of operators. They ask for a key only if the service wants one. */
import "../shared/style.css";
import "../shared/answers.css";
import "./style.css";
import { type JSX, render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { InterfaceBody, ViewBody } from "../../api";
import { Api, type ApiError, asApiError } from "../shared/api";
import { highlighter } from "../shared/code";
import { KeyForm, SignOut } from "../shared/problems";
import { Storage } from "../shared/storage";
import { texts, uiLanguage } from "../shared/texts";
import { UiProvider, useUi } from "../shared/ui";
import { AdminProvider, Failure, Told, formats, useAdmin, useCurrent } from "./data";
import { type Place, usePlace } from "./location";
import { routeOf, routesWith } from "./routes";
import { cs } from "./texts/cs";
import { en } from "./texts/en";
import { traceTexts } from "./trace/texts";

const PREFIX = `docs-assistant:${new URL(document.baseURI).pathname}:`;
const secrets = new Storage(PREFIX, "sessionStorage");
const choices = new Storage(PREFIX);
const SITE = document.title; // the name of the documentation, as the service writes it
const LANGUAGES = { en: "English", cs: "Čeština" };

type Door = "trying" | "open" | "key" | "wrong" | "blocked" | "closed" | { problem: ApiError };

function App(): JSX.Element {
  const [language, setLanguage] = useState<"en" | "cs">(uiLanguage(choices.get("language")) === "cs" ? "cs" : "en");
  const [door, setDoor] = useState<Door>("trying");
  const [views, setViews] = useState<ViewBody[]>([]);
  const api = useMemo(() => new Api(document.baseURI, secrets.get("admin-key"), language), []);
  const t = language === "cs" ? cs : en;
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  /** At once, not in an effect: whoever leaves the page right after choosing still has chosen. */
  const choose = (chosen: "en" | "cs") => {
    choices.set("language", chosen);
    api.language = chosen;
    setLanguage(chosen);
  };
  const knock = async (key: string) => {
    api.key = key;
    const answer = await answered(api);
    if (Array.isArray(answer)) {
      secrets.set("admin-key", key);
      setViews(answer);
      setDoor("open");
    } else setDoor(answer === "key" && key ? "wrong" : answer);
  };
  useEffect(() => void knock(api.key), []);
  const forget = () => {
    secrets.set("admin-key", "");
    api.key = "";
    setDoor("key");
  };
  const routes = useMemo(() => routesWith(views), [views]);
  const people = usePeople();
  const admin = { t, trace: traceTexts(language), ...formats(language, t.unknown), language, routes, onKey: () => setDoor("key") };
  return (
    <UiProvider value={{ api, t: texts(uiLanguage(language)), target: "_blank" }}>
      <AdminProvider value={admin}>
        <div class="da-root ad-root">
          <a class="da-skip" href="#content" onClick={skip}>{t.skip}</a>
          <Header open={door === "open"} person={people.person} onForget={api.key ? forget : null} onLanguage={choose} />
          {door === "open" ? <Views /> : <main id="content" class="ad-door" tabIndex={-1}><Closed door={door} people={people} onKey={(key) => void knock(key)} /></main>}
        </div>
      </AdminProvider>
    </UiProvider>
  );
}

/** To the content of this view, whatever the base of addresses is. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")!.focus();
}

/** What stands in place of the views. */
function Closed({ door, people, onKey }: { door: Door; people: People; onKey: (key: string) => void }): JSX.Element {
  const { api } = useUi();
  const { t } = useAdmin();
  if (typeof door === "object") return <Failure problem={door.problem} onRetry={() => onKey(api.key)} />;
  if (door === "trying") return <p class="da-status" role="status"><span class="da-spinner" />{t.loading}</p>;
  if (door === "closed") return <><h1>{t.closed.heading}</h1><p><Told text={t.closed.text} /></p></>;
  const wrong = door === "wrong" || door === "blocked";
  return (
    <>
      {people.person && <p role="alert">{t.key.reader(people.person)}</p>}
      <KeyForm said={[t.key.heading, <Told text={t.key[wrong ? door : "text"]} />]} wrong={wrong} signIn={people.sign_in && !people.person} note={t.key.note} onKey={onKey} />
    </>
  );
}

type People = Pick<InterfaceBody, "sign_in" | "person">;

/** Whether people can sign in, and who has: asked without a key, which may be a wrong one. */
function usePeople(): People {
  const [people, set] = useState<People>({ sign_in: false, person: "" });
  useEffect(() => void fetch("v1/interface").then((response) => response.json()).then(set, () => undefined), []);
  return people;
}

/** The views of plugins if the key of the API, or none, opens; else what is wrong. */
async function answered(api: Api): Promise<Door | ViewBody[]> {
  try {
    return (await api.json<{ data: ViewBody[] }>("v1/admin/views")).data;
  } catch (error) {
    const problem = asApiError(error);
    if (problem.kind === "key" || problem.code === "key_refused") return "key";
    if (problem.code === "wrong_keys") return "blocked";
    return problem.code === "admin_disabled" ? "closed" : { problem };
  }
}

function Header({ open, person, onForget, onLanguage }: { open: boolean; person: string; onForget: (() => void) | null; onLanguage: (language: "en" | "cs") => void }): JSX.Element {
  const { t, language, routes } = useAdmin();
  const { t: ui } = useUi();
  const { path } = usePlace();
  const found = routeOf(routes, path)?.route;
  const current = found?.within ?? found?.path;
  const nav = useCurrent([current, open]);
  return (
    <header class="ad-header">
      <a class="ad-name" href="admin/"><img src="brand/icon" alt="" width={22} height={22} /> {SITE} <span class="da-muted">{t.title}</span></a>
      {open && (
        <nav ref={nav} aria-label={t.menu}>
          {routes.filter((route) => !route.within).map((route) => (
            <a key={route.path} class={route.first ? "ad-first" : ""} href={`admin/${route.path}`} aria-current={route.path === current ? "page" : undefined}>{route.title(t, language)}</a>
          ))}
          <a href="./">{t.readers}</a>
        </nav>
      )}
      <div class="ad-choices">
        <label class="da-hidden" for="language">{t.pages.language}</label>
        <select id="language" value={language} onChange={(event) => onLanguage(event.currentTarget.value as "en" | "cs")}>
          {Object.entries(LANGUAGES).map(([code, name]) => <option key={code} value={code} lang={code}>{name}</option>)}
        </select>
        {person && <SignOut person={person} />}
        {open && onForget && <button type="button" class="da-button da-plain" onClick={onForget}>{ui.page.forgetKey}</button>}
      </div>
    </header>
  );
}

function Views(): JSX.Element {
  const place = usePlace();
  const { t, language, routes } = useAdmin();
  const found = routeOf(routes, place.path);
  const title = found ? found.route.title(t, language) : t.views.missing;
  const heading = useRef<HTMLHeadingElement>(null);
  useTitle(title, place, heading);
  return (
    <main id="content" tabIndex={-1}>
      <h1 ref={heading} tabIndex={-1}>{title}</h1>
      {found && <found.route.view key={found.route.path} rest={found.rest} query={place.query} />}
    </main>
  );
}

/** The title of the tab; after a click, readers of the screen start at the heading of the new view. */
function useTitle(title: string, { path }: Place, heading: { current: HTMLElement | null }): void {
  const first = useRef(true);
  useEffect(() => void (document.title = `${title} · ${SITE}`), [title]);
  useEffect(() => {
    if (!first.current) {
      scrollTo(0, 0);
      heading.current?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [path]);
}

highlighter.load = () => import("../shared/highlight");
render(<App />, document.body);
