/** The question log: what was asked, one by one and by day. Filters and parts are addresses. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DayFigures, DayList, LoggedBody, LoggedConversation, LogList } from "../../api";
import { Markdown, type Reading } from "../shared/markdown";
import { useUi } from "../shared/ui";
import { Write } from "./curated";
import { Ago, Badge, Docs, Facts, Failure, Figures, Outside, Select, Table, type Tone, View, submitted, useAction, useAdmin, useJson, useKept } from "./data";
import { address, go } from "./location";
import { Plot } from "./plot";
import type { ViewProps } from "./routes";
import { Verdict } from "./verdict";

const DEFAULT = "30d";
export const REFUSED = ["refused", "unproven", "recited"];
const OUTCOMES = ["written", "extractive", "perhaps", "marked", REFUSED.join(","), "clarified", "curated", "looped", "turned", "failed"];
const FIGURES = ["questions", "answered", "refused", "marked", "down", "tokens"] as const;
/** Figures that are no share of the questions. */
const WHOLE = new Set<string>(["questions", "tokens"]);
/** Numbers in a kept answer are no links: its sources are among the pages. */
const READING: Reading = {};
const DOUBTED = new Set(["marked", "perhaps"]);
const BAD = new Set([...REFUSED, "looped", "turned", "failed"]);

type Given = Record<string, string>;

export function Questions({ rest, query }: ViewProps): JSX.Element {
  return rest ? <Question id={rest} /> : <List given={Object.fromEntries(query)} />;
}

function List({ given }: { given: Given }): JSX.Element {
  const { t } = useAdmin();
  const loaded = useKept(useJson<LogList>("v1/admin/question-log", given["equal"] ? given : { ...given, folded: "true" }));
  return (
    <View loaded={loaded} absent={t.questions.off}>
      {(found) => (
        <>
          {found.log !== "text" && <p role="alert">{t.questions[found.log === "off" ? "off" : "hashed"]} <Docs page="gaps#kept">{t.questions.kept}</Docs></p>}
          <Filters found={found} given={given} />
          <Days given={given} />
          <Rows found={found} given={given} />
        </>
      )}
    </View>
  );
}

function Filters({ found, given }: { found: LogList; given: Given }): JSX.Element {
  const { t, languageName } = useAdmin();
  const choose = (name: string, value: string) => go(address("questions", { ...given, ...(name === "since" && { day: null }), [name]: value || null, after: null }));
  const find = (event: Event) => choose("q", submitted(event).text("q"));
  const select = (name: string, options: [string, string][]) => (
    <Select label={t.questions.filters[name]} options={options} none={t.questions.all} value={given[name] ?? ""} onChoose={(value) => choose(name, value)} />
  );
  return (
    <form class="ad-search ad-choose" role="search" onSubmit={find}>
      <Select label={t.questions.filters["since"]} options={Object.entries(t.gaps.periods)} value={given["since"] ?? DEFAULT} onChoose={(value) => choose("since", value)} />
      <label class="ad-field">{t.questions.day}<input type="date" value={given["day"] ?? ""} onChange={(event) => choose("day", event.currentTarget.value)} /></label>
      {select("only", Object.entries(t.questions.only))}
      {select("outcome", OUTCOMES.map((one) => [one, t.outcomes[one.split(",")[0]!] ?? one]))}
      {select("rating", Object.entries(t.questions.ratings))}
      {found.languages.length > 1 && select("language", found.languages.map((code) => [code, languageName(code)]))}
      {found.assistants.length > 1 && select("assistant", found.assistants.map((id) => [id, id]))}
      {found.keys.length > 0 && select("key", [...found.keys.map((name): [string, string] => [name, name]), ["none", t.questions.noKey]])}
      <label class="ad-field">{t.questions.filters["q"]}<input name="q" type="search" key={given["q"] ?? ""} defaultValue={given["q"] ?? ""} /></label>
      <button class="da-button">{t.pages.find}</button>
    </form>
  );
}

/** The figures of each day, which follow the period, the language, the assistant and the key. */
function Days({ given }: { given: Given }): JSX.Element | null {
  const { t, day, number, percent } = useAdmin();
  const [at, setAt] = useState<number | null>(null);
  const { since, until, language, assistant, key } = given;
  const { data, problem } = useKept(useJson<DayList>("v1/admin/question-log/days", { since, until, language, assistant, key }));
  if (problem) return <Failure problem={problem} />;
  if (!data?.data.length) return null;
  const days = everyDay(data.data);
  const total = (name: (typeof FIGURES)[number]) => days.reduce((sum, one) => sum + one[name], 0);
  const chosen = days.findIndex((one) => one.day === given["day"]);
  const plot = (name: (typeof FIGURES)[number]) => (
    <>
      {number(total(name))}{!WHOLE.has(name) && <> <span class="da-label">{percent(total(name) / (total("questions") || 1))}</span></>}
      <Plot name={t.questions.figures[name]} unit={t.questions.units[name === "tokens" ? 1 : 0]!} days={days.map((one) => one.day)} values={days.map((one) => one[name])} at={at === null ? (chosen < 0 ? null : chosen) : Math.min(at, days.length - 1)} onPoint={setAt} onChoose={(one) => go(address("questions", { ...given, day: one, after: null }))} />
    </>
  );
  return (
    <section>
      <h2>{t.questions.byDay}</h2>
      <Figures rows={FIGURES.map((name) => [t.questions.figures[name], plot(name)])} />
      <details>
        <summary>{t.questions.asTable}</summary>
        <Table name={t.questions.byDay} head={[t.questions.day, ...FIGURES.map((name) => t.questions.figures[name])]}>
          {[...days].reverse().map((one) => <tr key={one.day}><th scope="row">{day(one.day)}</th>{FIGURES.map((name) => <td key={name} class="ad-number">{number(one[name])}</td>)}</tr>)}
        </Table>
      </details>
    </section>
  );
}

/** The days from the first to the last one, also those without a question. */
export function everyDay(days: DayFigures[], first = days[0]!.day, last = days.at(-1)!.day): DayFigures[] {
  const known = new Map(days.map((one) => [one.day, one]));
  const all: DayFigures[] = [];
  for (let at = Date.parse(first); at <= Date.parse(last); at += 86_400_000) {
    const day = new Date(at).toISOString().slice(0, 10);
    all.push(known.get(day) ?? { day, questions: 0, answered: 0, refused: 0, marked: 0, down: 0, tokens: 0 });
  }
  return all;
}

function Rows({ found, given }: { found: LogList; given: Given }): JSX.Element {
  const { t } = useAdmin();
  const chosen = Object.keys(given).some((name) => !["since", "after", "folded"].includes(name));
  return (
    <section>
      <h2>{given["after"] ? t.questions.next : t.questions.first}</h2>
      {found.data.length ? (
        <Table name={t.views.questions} head={(["question", "outcome", "rating", "pages"] as const).map((name) => t.questions.columns[name])}>
          {found.data.map((one) => <Row key={one.id} one={one} several={found.assistants.length > 1} given={given} />)}
        </Table>
      ) : <p>{chosen ? t.questions.noMatch : t.questions.none}</p>}
      <p class="ad-parts">
        {given["after"] && <a href={address("questions", { ...given, after: null })}>{t.questions.first}</a>}
        {found.next && <a href={found.next.replace("v1/admin/question-log", "admin/questions")}>{t.questions.next}</a>}
        {chosen && <a href={address("questions", { since: given["since"] })}>{t.questions.clear}</a>}
      </p>
      {found.data.length > 0 && <Export given={given} />}
    </section>
  );
}

/** What readers wrote under the answers. */
export function Comments({ of: { comments } }: { of: { comments: string[] } }): JSX.Element {
  return <>{comments.map((one, i) => <q key={i} class="ad-said">{one}</q>)}</>;
}

function Row({ one, several, given }: { one: LoggedBody; several: boolean; given: Given }): JSX.Element {
  const { t, language, number } = useAdmin();
  const down = t.questions.ratings["down"]!;
  return (
    <tr>
      <th scope="row" class="ad-page">
        <a lang={one.language} href={address(`questions/${one.id}`)}>{one.question || t.questions.noText}</a>
        <small lang={language} class="da-muted">
          <Ago time={one.asked_at} /> · {one.language}{several && ` · ${one.assistant}`}{one.question && <> · <Trace one={one} text={t.questions.traced} /> · <Write {...entryOf(one)} /></>}
          {one.count > 1 && <> · <a href={address("questions", { ...given, equal: one.id, after: null })}>{t.questions.equal(number(one.count))}</a></>}
        </small>
        <Comments of={one} />
      </th>
      <td><Outcome outcome={one.outcome} /></td>
      <td>{one.count > 1 && one.down ? `${down} ${t.gaps.times(number(one.down))}` : one.rating ? t.questions.ratings[one.rating] : "–"}</td>
      <td class="ad-page"><Pages pages={one.pages} /></td>
    </tr>
  );
}

/** What an entry for the question begins with. */
const entryOf = (one: LoggedBody) => ({ questions: [one.question].filter(Boolean), language: one.language, page: one.pages[0] || one.nearest });

/** Asks the question again, which shows how the answer is made. */
function Trace({ one, text }: { one: LoggedBody; text: string }): JSX.Element {
  return <a href={address("ask", { q: one.question, model: one.assistant })}>{text}</a>;
}

function Outcome({ outcome }: { outcome: string }): JSX.Element {
  const { t } = useAdmin();
  const tone: Tone = BAD.has(outcome) ? "bad" : DOUBTED.has(outcome) ? "warn" : "calm";
  return <Badge tone={tone}>{t.outcomes[outcome] ?? outcome}</Badge>;
}

/** The first page by the end of its address, and how many others there are. */
function Pages({ pages }: { pages: readonly string[] }): JSX.Element {
  const [first, ...more] = pages;
  if (!first) return <>–</>;
  const end = first.replace(/^https?:\/\/[^/]+/, "") || first;
  return <><Outside url={first} text={end} />{more.length > 0 && <span class="da-muted" title={more.join("\n")}> +{more.length}</span>}</>;
}

/** All questions of these filters as a file. It needs the key, so a link doesn't do. */
function Export({ given }: { given: Given }): JSX.Element {
  const { api } = useUi();
  const { t } = useAdmin();
  const { act, failure } = useAction();
  const save = (format: "csv" | "jsonl") => act(async () => {
    const { after: _, ...rest } = given;
    const response = await api.fetch(`v1/admin/question-log?${new URLSearchParams({ ...rest, format })}`);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await response.blob());
    link.download = `questions.${format}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  });
  return (
    <div class="ad-row">
      <button type="button" class="da-button" onClick={() => void save("csv")}>{t.questions.save("CSV")}</button>
      <button type="button" class="da-button" onClick={() => void save("jsonl")}>{t.questions.save("JSON Lines")}</button>
      {failure}
    </div>
  );
}

/** One question, and the conversation up to its answer where that is kept. */
function Question({ id }: { id: string }): JSX.Element {
  const { t, exact, languageName } = useAdmin();
  const loaded = useJson<LoggedConversation>(`v1/admin/question-log/${encodeURIComponent(id)}`);
  return (
    <View loaded={loaded} absent={t.questions.gone}>
      {({ question: one, turns, verdict }) => (
        <>
          <h2 class="ad-title" lang={one.language}>{one.question || t.questions.noText}</h2>
          <Facts
            rows={[
              [t.questions.columns.asked, exact(one.asked_at)],
              [t.questions.columns.outcome, <Outcome outcome={one.outcome} />],
              [t.questions.columns.language, languageName(one.language)],
              [t.questions.columns.rating, one.rating && t.questions.ratings[one.rating]],
              [t.questions.comments, one.comments.length > 0 && <Comments of={one} />],
              [t.questions.columns.assistant, one.assistant],
              [t.questions.columns.pages, one.pages.length > 0 && <ul>{one.pages.map((url) => <li key={url}><Outside url={url} text={url} /></li>)}</ul>],
            ]}
          />
          {one.question && <p class="ad-parts"><Write {...entryOf(one)} /><Trace one={one} text={t.questions.trace} /></p>}
          <h2>{t.questions.conversation}</h2>
          {turns.length ? turns.map((turn) => (
            <article key={turn.id} class="ad-chunk" lang={turn.language}>
              <h3>{turn.question}</h3>
              <Markdown text={turn.answer} reading={READING} />
            </article>
          )) : <p class="da-muted">{one.question ? t.questions.noConversation : t.questions.hashed}</p>}
          {one.question && <Verdict id={one.id} had={verdict} />}
        </>
      )}
    </View>
  );
}
