/** Search as you type: sections of pages, and from each to a question about it. A combobox whose popup is a grid, so that the
 * rows can have a link and a button; the focus stays in the field. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Passage, Piece, SearchResult } from "../../api";
import { type Api, type ApiError, asApiError } from "./api";
import { Icon, IconButton } from "./icons";
import { Link, Pages, path } from "./link";
import { Problem } from "./problems";
import { Storage } from "./storage";
import { languageName } from "./texts";
import { useUi } from "./ui";

const DEBOUNCE = 120; // milliseconds without a letter
const ROWS = 12;
const LONGEST = 300; // characters of a query
const RECENT = 5; // searches that are offered again

interface SearchProps {
  api: Api;
  /** Of the reader. */
  language: string;
  /** Address of the page that the reader looks at, whose section comes first. */
  page?: string;
  /** The assistant whose pages are searched. */
  model?: string;
  /** Collections that the search is limited to. */
  collections?: string[];
  /** Titles of pages to begin with, by address. */
  pages?: Record<string, string> | undefined;
  /** What is searched first. */
  query?: string;
  onQuery?: (query: string) => void;
  /** Asks the assistant what was typed, for one who looks at the page that was found. */
  onAsk: (question: string, page?: string) => void;
}

/** What the search is limited to; empty for nothing. */
type Filters = Record<"collections" | "languages", string>;

interface State {
  /** The query that the rows are of; empty before the first answer. */
  asked: string;
  found: SearchResult | null;
  problem: ApiError | null;
}

const NOTHING: State = { asked: "", found: null, problem: null };

export function Search(props: SearchProps): JSX.Element {
  const { language, onAsk, onQuery } = props;
  const { t } = useUi();
  const [text, setText] = useState(props.query ?? "");
  const [filters, setFilters] = useState<Filters>({ collections: "", languages: "" });
  const [chosen, setChosen] = useState(-1); // by the arrow keys
  const field = useRef<HTMLInputElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const id = useId();
  const recent = useRecent(props.api);
  const query = text.trim();
  const { state, again } = useFound(props, query, filters);
  const found = query ? (state.found?.data ?? []) : [];
  const rows = useMemo(() => byPage(found), [state.found, query]);
  const sites = state.found?.facets.collections.length ?? 0;
  const best = Math.max(rows.indexOf(found[0]!), 0);
  useEffect(() => field.current?.focus(), []);
  useLayoutEffect(() => setChosen(-1), [rows]); // with the rows: an effect after them would take back the first arrow
  useEffect(() => onQuery?.(query), [query]);
  useEffect(() => grid.current?.querySelector(".da-active")?.scrollIntoView({ block: "nearest" }), [chosen]);
  const ask = (row?: Passage) => {
    recent.add(query);
    onAsk(query, row?.url);
  };
  // the row below the results asks the query itself
  const last = query ? rows.length : -1;
  const known = state.asked === query; // results of other words aren't opened unseen
  const active = chosen >= 0 ? chosen : known || rows.length ? best : -1; // what Enter opens is seen before
  const enter = (asks: boolean) => {
    const row = rows[active];
    if (asks) ask(chosen >= 0 ? row : undefined);
    else if (known) row ? grid.current?.querySelectorAll<HTMLElement>(".da-found")[active]?.click() : ask();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setChosen((active + (event.key === "ArrowDown" ? 1 : last)) % (last + 1) || 0);
    } else if (event.key === "Enter" && query) {
      event.preventDefault();
      enter(event.ctrlKey || event.metaKey);
    } else if (event.key === "Escape" && text) {
      event.stopPropagation(); // the first Escape empties the field, the next one closes what is around it
      setText("");
    }
  };
  return (
    <div class="da-search" role="search" aria-label={t.search.label}>
      <div class="da-composer da-search-field">
        <Icon name="search" />
        <input ref={field} type="text" dir="auto" inputMode="search" enterkeyhint="search" autocomplete="off" autocapitalize="off" spellcheck={false}
          role="combobox" aria-autocomplete="list" aria-haspopup="grid" aria-expanded={last >= 0} aria-controls={`${id}-grid`}
          aria-activedescendant={query && active >= 0 ? `${id}-${active}` : undefined} aria-label={t.search.field} aria-describedby={`${id}-keys`}
          placeholder={`${t.search.label}…`} maxLength={LONGEST} value={text}
          onInput={(event) => setText(event.currentTarget.value)} onKeyDown={onKeyDown} />
        {text && <IconButton icon="close" label={t.search.clear} onClick={() => { setText(""); field.current?.focus(); }} />}
      </div>
      <div class="da-search-state">
        <p role="status">{said(state, query, t)}</p>
        <Choices facets={state.found?.facets} {...{ filters, setFilters, language }} />
      </div>
      {state.problem && state.asked === query && <Problem key={query} problem={state.problem} onRetry={again} />}
      <div ref={grid} id={`${id}-grid`} role="grid" aria-label={t.search.results} class="da-results" hidden={last < 0}
        onClick={(event) => event.target instanceof Element && event.target.closest(".da-found") && recent.add(query)}>
        {rows.map((row, index) => (
          <Result key={row.url + row.section} id={`${id}-${index}`} row={row} active={index === active} ui={language} several={sites > 1} onAsk={() => ask(row)} />
        ))}
        {query && (
          <div role="row" class={active === rows.length ? "da-result da-active" : "da-result"}>
            <div role="gridcell" id={`${id}-${rows.length}`} aria-selected={active === rows.length}>
              <button type="button" tabIndex={-1} class="da-ask-query" onClick={() => ask()}>
                <Icon name="send" size={16} /> <span>{t.search.ask} <strong>{query}</strong></span>
              </button>
            </div>
          </div>
        )}
      </div>
      {!query && recent.known.length > 0 && (
        <section class="da-recent" aria-label={t.search.recent}>
          <p class="da-label">{t.search.recent}</p>
          {recent.known.map((one) => <button key={one} type="button" class="da-button da-plain" onClick={() => setText(one)}>{one}</button>)}
          <button type="button" class="da-button da-plain da-muted" onClick={recent.forget}>{t.search.forget}</button>
        </section>
      )}
      {!query && <Pages label={t.search.pages} pages={props.pages} />}
      <p id={`${id}-keys`} class="da-search-keys">{t.search.keys}</p>
    </div>
  );
}

/** The last searches whose results were used, the newest first. */
function useRecent(api: Api) {
  const storage = new Storage(`docs-assistant:${api.base}:`);
  const [known, setKnown] = useState(() => storage.get("searches").split("\n").filter(Boolean));
  const keep = (searches: string[]) => {
    setKnown(searches);
    storage.set("searches", searches.join("\n"));
  };
  return { known, add: (query: string) => keep([query, ...known.filter((one) => one !== query)].slice(0, RECENT)), forget: () => keep([]) };
}

/** A row for each page, with what it says itself if that was found, above those of its sections. */
function byPage(found: Passage[]): Passage[] {
  const pages = Map.groupBy(found, ({ url }) => url.split("#")[0]!);
  return [...pages].flatMap(([url, rows]) => {
    const own = rows.find(({ section }) => !section);
    const page = own ?? { ...rows[0]!, url, section: "", highlights: { ...rows[0]!.highlights, excerpt: [] } };
    return [page, ...rows.filter((row) => row !== own)];
  });
}

function said({ found, problem, asked }: State, query: string, t: ReturnType<typeof useUi>["t"]): string {
  if (!query || !found || problem || asked !== query) return "";
  if (!found.data.length) return t.search.nothing(query);
  const count = t.search.found(found.data.length);
  return found.query !== query ? `${t.search.corrected(found.query)} ${count}` : count;
}

/** What is found for the query. A newer query aborts the older ones, so that their answers never come after its own. */
function useFound({ api, language, page, model, collections }: SearchProps, query: string, filters: Filters) {
  const [state, setState] = useState<State>(NOTHING);
  const [tries, setTries] = useState(0);
  useEffect(() => {
    if (!query) return setState(NOTHING);
    const body = {
      query,
      as_you_type: true,
      limit: ROWS,
      language,
      filters: {
        collections: filters.collections ? [filters.collections] : (collections ?? []),
        languages: filters.languages ? [filters.languages] : [],
      },
      ...(model && { model }),
      ...(page && { page }),
    };
    const stopper = new AbortController();
    const timer = window.setTimeout(async () => {
      try {
        const found = await api.json<SearchResult>("v1/search", { method: "POST", body, signal: stopper.signal });
        if (stopper.signal.aborted) return;
        setState({ asked: query, found, problem: null });
      } catch (error) {
        if (!stopper.signal.aborted) setState({ asked: query, found: null, problem: asApiError(error) });
      }
    }, DEBOUNCE);
    return () => {
      window.clearTimeout(timer);
      stopper.abort();
    };
  }, [query, filters, language, page, model, tries]);
  return { state, again: () => setTries(tries + 1) };
}

interface ChoicesProps {
  facets: SearchResult["facets"] | undefined;
  filters: Filters;
  setFilters: (filters: Filters) => void;
  language: string;
}

/** The filters that have more than one value. */
function Choices({ facets, filters, setFilters, language }: ChoicesProps): JSX.Element {
  const { t } = useUi();
  const known = useRef(facets);
  if (facets) known.current = facets;
  const choices = (Object.keys(filters) as (keyof Filters)[]).map((name) => {
    const values = known.current?.[name] ?? [];
    const [label, all] = t.search.filters[name];
    return values.length > 1 && (
      <select key={name} aria-label={label} value={filters[name]} onChange={(event) => setFilters({ ...filters, [name]: event.currentTarget.value })}>
        <option value="">{all}</option>
        {values.map((value) => <option key={value} value={value}>{name === "languages" ? languageName(value, language) : value}</option>)}
      </select>
    );
  });
  return <>{choices}</>;
}

interface ResultProps {
  id: string;
  row: Passage;
  active: boolean;
  /** Language of the interface. */
  ui: string;
  /** Whether pages of several collections are searched. */
  several: boolean;
  onAsk: () => void;
}

/** A page with its path, or a section below its page. */
function Result({ id, row: { url, section, title, language, collection, highlights }, active, ui, several, onAsk }: ResultProps): JSX.Element {
  const { t } = useUi();
  const [page = [], ...headings] = highlights.breadcrumbs;
  const crumbs = section && headings.length ? headings : [page];
  return (
    <div role="row" class={`da-result${active ? " da-active" : ""}${section ? " da-below" : ""}`}>
      <div role="gridcell" id={id} aria-selected={active}>
        <Link class="da-found" dir="auto" tabIndex={-1} href={url}>
          <span class="da-found-title">
            {crumbs.map((pieces, index) => <>{index > 0 && <span class="da-between"> › </span>}<span>{marked(pieces)}</span></>)}
          </span>
          {!section && several && <span class="da-tag">{collection}</span>}
          {!section && language !== ui && <span class="da-tag">{languageName(language, ui)}</span>}
          {!section && <span class="da-card-path">{path(url)}</span>}
          <span class="da-found-text">{marked(highlights.excerpt)}</span>
        </Link>
      </div>
      <div role="gridcell" class="da-found-ask">
        <IconButton icon="ask" label={t.search.askAbout(section || title || url)} tabIndex={-1} onClick={onAsk} />
      </div>
    </div>
  );
}

function marked(pieces: Piece[]): ComponentChildren {
  return pieces.map(({ text, match }) => (match ? <mark>{text}</mark> : text));
}
