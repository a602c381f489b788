/** The settings in force with their origins, and the last warnings and errors. */
import type { JSX } from "preact";
import type { RecentProblem, SettingBody } from "../../api";
import { useUi } from "../shared/ui";
import { Ago, Badge, Docs, Table, View, useAdmin, useJson } from "./data";
import { address } from "./location";
import type { ViewProps } from "./routes";

export function Settings({ query }: ViewProps): JSX.Element {
  const { api } = useUi();
  const { t, number } = useAdmin();
  const loaded = useJson<{ data: SettingBody[] }>("v1/admin/settings");
  const text = query.get("q") ?? "";
  const changed = query.has("changed");
  // the address follows the filter without a step back for each letter
  const filter = (values: Record<string, string | null>) => {
    history.replaceState(null, "", api.url(address("settings", { q: text || null, changed: changed ? "1" : null, ...values })));
    dispatchEvent(new PopStateEvent("popstate"));
  };
  return (
    <View loaded={loaded}>
      {({ data }) => {
        const found = data.filter((one) => (!changed || differs(one)) && matches(one, text));
        return (
          <>
            <div class="ad-search" role="search">
              <label class="da-hidden" for="filter">{t.settings.filter}</label>
              <input id="filter" type="search" value={text} placeholder={t.settings.filter} onInput={(event) => filter({ q: event.currentTarget.value || null })} />
              <label class="ad-check"><input type="checkbox" checked={changed} onChange={() => filter({ changed: changed ? null : "1" })} /> {t.settings.changed}</label>
            </div>
            <p class="ad-total" role="status">{t.settings.shown(number(found.length), number(data.length))} <Docs page="settings">{t.settings.docs}</Docs></p>
            {[...Map.groupBy(found, tableOf)].map(([table, some]) => (
              <details key={table} open={changed || text.trim() !== ""}>
                <summary><h2>[{table}]</h2> {t.settings.shown(number(some.length), number(data.filter((one) => tableOf(one) === table).length))}</summary>
                <Table name={table} head={t.settings.columns}>{some.map((one) => <SettingRow key={one.name} one={one} />)}</Table>
              </details>
            ))}
          </>
        );
      }}
    </View>
  );
}

/** The table of docs-assistant.toml that has it. */
const tableOf = (one: SettingBody) => one.key.split(".")[0]!;
const differs = (one: SettingBody) => written(one.value) !== written(one.default);

function matches(one: SettingBody, text: string): boolean {
  return `${one.name}\n${one.key}\n${written(one.value)}\n${one.description}\n${one.from}`.toLowerCase().includes(text.trim().toLowerCase());
}

function written(value: unknown): string {
  if (Array.isArray(value)) return value.map(written).join(" ");
  if (typeof value === "object" && value !== null) return Object.keys(value).length ? JSON.stringify(value) : "";
  return String(value ?? "");
}

function SettingRow({ one }: { one: SettingBody }): JSX.Element {
  const { t } = useAdmin();
  const value = written(one.value);
  return (
    <tr>
      <th scope="row" class="ad-page"><code>{one.name}</code><code class="da-muted">{one.key}</code><span class="da-muted">{one.description}</span></th>
      <td class="ad-page ad-break">
        {value ? <code>{value}</code> : <span class="da-muted">{t.settings.empty}</span>}
        {differs(one) && <span class="da-muted">{t.settings.default(written(one.default) || t.settings.empty)}</span>}
      </td>
      <td><Badge tone={differs(one) ? "good" : "calm"}>{t.settings.origins[one.from] ?? one.from}</Badge></td>
    </tr>
  );
}

export function Errors(): JSX.Element {
  const { t } = useAdmin();
  const loaded = useJson<{ data: RecentProblem[] }>("v1/admin/errors");
  return (
    <>
      <p>{t.errors.text}</p>
      <View loaded={loaded}>
        {({ data }) => data.length ? (
          <ul class="ad-problems">{data.map((one, i) => <Row key={i} one={one} />)}</ul>
        ) : <p>{t.errors.none}</p>}
      </View>
    </>
  );
}

function Row({ one }: { one: RecentProblem }): JSX.Element {
  const { t, number, ago } = useAdmin();
  return (
    <li>
      <Badge tone={one.level === "warning" ? "warn" : "bad"}>{t.errors.levels[one.level] ?? one.level}</Badge>
      <div>
        <p><code class="ad-break">{one.message}</code></p>
        {one.exception && <p><code class="ad-break">{one.exception}</code></p>}
        <p class="da-muted ad-break">
          <Ago time={one.last_at} />
          {one.count > 1 && ` · ${number(one.count)} × (${t.errors.first(ago(one.first_at))})`}
          {` · ${one.logger}`}
          {one.request_id && <> · {t.errors.request} <code>{one.request_id}</code></>}
        </p>
      </div>
    </li>
  );
}
