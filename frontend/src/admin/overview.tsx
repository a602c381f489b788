/** The overview: whether everything works, what doesn't and what to do, and what the indexes hold. */
import type { JSX } from "preact";
import type { AdminIndexBody, IndexBody, PartState, ProblemBody } from "../../api";
import { Icon } from "../shared/icons";
import { Ago, Badge, type Counts, Facts, Table, View, useAdmin, useJson } from "./data";
import { address } from "./location";

const PATH = "v1/admin/index";

export function Overview(): JSX.Element {
  const loaded = useJson<AdminIndexBody>(PATH);
  return (
    <View path={PATH} loaded={loaded}>
      {(found) => (
        <>
          <State found={found} />
          <Problems problems={found.problems} />
          {found.indexes.map((one) => <Index key={one.name} index={one} />)}
          <Parts parts={found.parts} />
        </>
      )}
    </View>
  );
}

function State({ found }: { found: AdminIndexBody }): JSX.Element {
  const { t, number, ago } = useAdmin();
  const [title, text] = t.states[found.state]!;
  const pages = found.indexes.reduce((sum, one) => sum + (one.generation?.pages ?? 0), 0);
  const built = found.indexes.find((one) => one.generation)?.generation?.built_at;
  return (
    <section class={`ad-state ad-${found.state}`} aria-label={title}>
      <Icon name={found.state === "ok" ? "check" : "warning"} size={30} />
      <div>
        <p class="ad-state-title">{title}</p>
        {text && <p>{text}</p>}
        {built && <p>{t.summary(number(pages), ago(built), found.model ?? "")}</p>}
      </div>
    </section>
  );
}

function Problems({ problems }: { problems: ProblemBody[] }): JSX.Element | null {
  const { t } = useAdmin();
  if (!problems.length) return null;
  const harmless = problems.every((one) => one.severity === "info");
  return (
    <section>
      <h2>{harmless ? t.problems.severity.info : t.problems.heading}</h2>
      <ul class="ad-problems">{problems.map((one, i) => <ProblemCard key={i} problem={one} />)}</ul>
    </section>
  );
}

const TONES = { error: "bad", warning: "warn", info: "calm" } as const;

function ProblemCard({ problem }: { problem: ProblemBody }): JSX.Element {
  const { t } = useAdmin();
  const see = t.problems.see[problem.code];
  const to = problem.code === "pages_failing" ? address("pages", { state: "failing", index: problem.index }) : address("runs");
  return (
    <li>
      {problem.severity !== "info" && <Badge tone={TONES[problem.severity]}>{t.problems.severity[problem.severity]}</Badge>}
      <div>
        <h3>{t.problems.titles[problem.code] ?? problem.code}{problem.index && <span class="da-muted"> · {t.problems.ofIndex(problem.index)}</span>}</h3>
        <p>{problem.message}</p>
        <p class="da-muted">{t.problems.toDo}: {problem.to_do}</p>
        {see && <p><a href={to}>{see}</a></p>}
      </div>
    </li>
  );
}

function Index({ index }: { index: IndexBody }): JSX.Element {
  const { t, number, seconds } = useAdmin();
  const { generation, runs } = index;
  const last = runs.last ? <>{t.results[runs.last] ?? runs.last} <Ago time={runs.ended[runs.last] ?? null} /></> : "–";
  return (
    <section>
      <h2>{t.index.heading(index.name)}</h2>
      {generation && (
        <dl class="ad-figures">
          <div><dt>{t.views.pages}</dt><dd><a href={address("pages", { index: index.name })}>{number(generation.pages)}</a></dd></div>
          <div><dt>{t.index.chunks}</dt><dd>{number(generation.chunks)}</dd></div>
          <div><dt>{t.index.generation}</dt><dd><a href={address("generations", { index: index.name })}>{generation.id}</a></dd></div>
          <div><dt>{t.index.published}</dt><dd><Ago time={generation.built_at} /></dd></div>
          <div><dt>{t.index.lastRun}</dt><dd>{last}{runs.last && <small class="da-muted">{t.index.took(seconds(runs.seconds))}</small>}</dd></div>
        </dl>
      )}
      {generation && <Breakdown index={index} />}
      {generation && <Recipe index={index} />}
    </section>
  );
}

function Breakdown({ index }: { index: IndexBody }): JSX.Element {
  const { t, languageName } = useAdmin();
  const same = (value: string) => value;
  const groups: [string, string, Counts, (value: string) => string][] = [
    [t.index.byLanguage, "language", index.pages_by_language, languageName],
    [t.index.byCollection, "collection", index.pages_by_collection, same],
    [t.index.bySource, "source", index.pages_by_source, same],
    [t.index.byState, "state", index.pages_by_state, (value) => t.pages.states[value] ?? value],
  ];
  return (
    <div class="ad-groups">
      {groups.map(([heading, name, counts, shown]) => (
        <div key={name}>
          <h3>{heading}</h3>
          <Bars counts={counts} shown={shown} to={(value) => address("pages", { index: index.name, [name]: value })} />
        </div>
      ))}
    </div>
  );
}

function Bars({ counts, shown, to }: { counts: Counts; shown: (value: string) => string; to: (value: string) => string }): JSX.Element {
  const { t, number } = useAdmin();
  const all = Object.values(counts).reduce((sum, count) => sum + count, 0) || 1;
  return (
    <ul class="ad-bars">
      {Object.entries(counts).map(([value, count]) => (
        <li key={value}>
          <a href={to(value)}>{shown(value) || t.unknown}</a>
          <span>{number(count)}</span>
          <progress aria-hidden="true" max={all} value={count} />
        </li>
      ))}
    </ul>
  );
}

function Recipe({ index }: { index: IndexBody }): JSX.Element {
  const { t, number } = useAdmin();
  const { recipe } = index.generation!;
  return (
    <details>
      <summary>{t.index.recipe}</summary>
      <Facts
        rows={[
          [t.index.embedder, `${recipe.embedder}, ${t.index.numbers(number(recipe.dimension))}`],
          [t.index.splitter, recipe.splitter],
          [t.index.summaries, recipe.summaries ? t.index.yes : t.index.no],
          [t.index.questions, recipe.questions ? t.index.yes : t.index.no],
        ]}
      />
    </details>
  );
}

const PART_TONES = { ok: "good", failing: "bad", unknown: "calm" } as const;

function Parts({ parts }: { parts: Record<string, PartState | null> }): JSX.Element {
  const { t, number } = useAdmin();
  const head = [t.parts.part, t.parts.name, t.pages.state, t.parts.latency, t.parts.success, t.parts.failure];
  const rows = Object.entries(parts).flatMap(([kind, part]) => (part ? [part, ...part.others] : [null]).map((one) => [kind, one] as const));
  return (
    <section>
      <h2>{t.parts.heading}</h2>
      <Table name={t.parts.heading} head={head}>
        {rows.map(([kind, part], i) => (
          <tr key={i}>
            <th scope="row">{t.parts.kinds[kind] ?? kind}</th>
            {part ? (
              <>
                <td class="ad-break">{part.name}</td>
                <td><Badge tone={PART_TONES[part.state]}>{t.parts.states[part.state]}</Badge></td>
                <td class="ad-number">{part.latency_ms === null ? "–" : `${number(part.latency_ms)} ms`}</td>
                <td><Ago time={part.last_success} /></td>
                <td>{part.last_failure ? <><Ago time={part.last_failure.at} /><p class="da-muted ad-break">{part.last_failure.error}</p></> : "–"}</td>
              </>
            ) : <td colSpan={5} class="da-muted">{t.parts.notSet}</td>}
          </tr>
        ))}
      </Table>
    </section>
  );
}
