/** The indexed pages as a table; filters, order and parts are addresses. */
import type { JSX } from "preact";
import type { PageList, PageRow } from "../../api";
import { Icon } from "../shared/icons";
import { Ago, Badge, type Counts, Docs, Table, type Tone, View, submitted, useAdmin, useJson, useKept } from "./data";
import { address, go } from "./location";
import type { ViewProps } from "./routes";

const FILTERS = ["source", "collection", "language", "state", "age"] as const;
const COLUMNS = ["title", "language", "state", "modified", "last_ok", "chunks"] as const;
export const STATES: Record<string, Tone> = { ok: "calm", failing: "bad", duplicate: "calm", empty: "warn" };
const SHOWN = 12;

export function Pages({ query }: ViewProps): JSX.Element {
  const given = Object.fromEntries(query);
  const loaded = useKept(useJson<PageList>("v1/admin/pages", given));
  return (
    <>
      <Search given={given} />
      <View loaded={loaded}>
        {(found) => (
          <div class="ad-list">
            <Filters counts={found.counts} given={given} />
            <List found={found} given={given} />
          </div>
        )}
      </View>
    </>
  );
}

type Given = Record<string, string>;

const isFiltered = (given: Given) => FILTERS.some((name) => given[name] !== undefined);

function Search({ given }: { given: Given }): JSX.Element {
  const { t } = useAdmin();
  const find = (event: Event) => go(address("pages", { ...given, q: submitted(event).text("q") || null, offset: null }));
  return (
    <form class="ad-search" role="search" onSubmit={find}>
      <label class="da-hidden" for="q">{t.pages.search}</label>
      <input id="q" name="q" type="search" key={given["q"] ?? ""} defaultValue={given["q"] ?? ""} placeholder={t.pages.search} />
      <button class="da-button">{t.pages.find}</button>
    </form>
  );
}

/** How a value of a filter is shown. */
export function useShown(): (name: string, value: string) => string {
  const { t, languageName } = useAdmin();
  return (name, value) => {
    if (name === "language") return languageName(value);
    if (name === "state") return t.pages.states[value] ?? value;
    if (name === "age") return t.pages.ages[value] ?? value;
    return value || t.unknown;
  };
}

function Filters({ counts, given }: { counts: Record<string, Counts>; given: Given }): JSX.Element {
  const { t } = useAdmin();
  return (
    <details class="ad-filters" open={matchMedia("(min-width: 900px)").matches || isFiltered(given)}>
      <summary>{t.pages.filters}</summary>
      {FILTERS.filter((name) => given[name] !== undefined || Object.keys(counts[name] ?? {}).length > 1).map((name) => (
        <nav key={name} aria-label={t.pages[name]}>
          <h2>{t.pages[name]}</h2>
          <ul>
            {Object.entries(counts[name] ?? {}).slice(0, SHOWN).map(([value, count]) => (
              <Filter key={value} name={name} value={value} count={count} given={given} />
            ))}
          </ul>
        </nav>
      ))}
    </details>
  );
}

function Filter({ name, value, count, given }: { name: string; value: string; count: number; given: Given }): JSX.Element {
  const { t, number } = useAdmin();
  const shown = useShown()(name, value);
  const chosen = given[name] === value;
  return (
    <li>
      <a href={address("pages", { ...given, offset: null, [name]: chosen ? null : value })} aria-current={chosen ? "true" : undefined} aria-label={chosen ? t.pages.remove(shown) : undefined}>
        <span>{shown}</span>
        {chosen ? <Icon name="close" size={14} /> : <span class="da-muted">{number(count)}</span>}
      </a>
    </li>
  );
}

function List({ found, given }: { found: PageList; given: Given }): JSX.Element {
  const { t, number } = useAdmin();
  return (
    <section>
      <p class="ad-total" role="status">
        {t.pages.found(number(found.total), number(found.pages))}
        {(isFiltered(given) || given["q"]) && <a href={address("pages", { index: given["index"] })}>{t.pages.clear}</a>}
      </p>
      {found.total ? (
        <Table name={t.views.pages} head={COLUMNS.map((name) => <Heading key={name} name={name} given={given} />)}>
          {found.data.map((page) => <Row key={page.url} page={page} index={given["index"]} />)}
        </Table>
      ) : <p>{t.pages.nothing} <Docs page="admin#not-found">{t.pages.why}</Docs></p>}
      <p class="ad-parts">
        {Number(given["offset"]) > 0 && <a href={address("pages", { ...given, offset: null })}>{t.pages.first}</a>}
        {found.next && <a href={found.next.replace(/^v1\//, "")}>{t.pages.next}</a>}
      </p>
    </section>
  );
}

function Heading({ name, given }: { name: string; given: Given }): JSX.Element {
  const { t } = useAdmin();
  const order = given["sort"] ?? "url";
  const next = order === name ? `-${name}` : name;
  const arrow = order === name ? "↑" : order === `-${name}` ? "↓" : "↕";
  return <a href={address("pages", { ...given, sort: next, offset: null })} data-order={arrow}>{t.pages.columns[name]}</a>;
}

function Row({ page, index }: { page: PageRow; index: string | undefined }): JSX.Element {
  const { t, number, day } = useAdmin();
  return (
    <tr>
      <td class="ad-page">
        <a href={address("page", { url: page.url, index })}>{page.title || page.url}</a>
        <span class="da-muted ad-break">{page.url}</span>
      </td>
      <td>{page.language}</td>
      <td><Badge tone={STATES[page.state] ?? "calm"}>{t.pages.states[page.state] ?? page.state}</Badge></td>
      <td>{page.modified || page.published ? <time>{day(page.modified || page.published)}</time> : "–"}</td>
      <td><Ago time={page.last_ok} /></td>
      <td class="ad-number">{number(page.chunks)}</td>
    </tr>
  );
}
