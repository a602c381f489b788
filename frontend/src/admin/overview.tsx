/** The overview: whether everything works, what doesn't and what to do, and what the indexes hold. */
import type { JSX } from "preact";
import type { AdminIndexBody, IndexBody, PartState, ProblemBody } from "../../api";
import { Icon } from "../shared/icons";
import { Ago, Badge, Facts, Figures, Table, Told, View, useAdmin, useJson } from "./data";
import { address } from "./location";
import { useShown } from "./pages";
import { RESULTS } from "./runs";
import type { ViewProps } from "./routes";
import { Day } from "./yesterday";

export function Overview({ query }: ViewProps): JSX.Element {
  const loaded = useJson<AdminIndexBody>("v1/admin/index");
  return (
    <View loaded={loaded}>
      {(found) => (
        <>
          {found.state === "broken" && <State found={found} />}
          <Day given={query.get("day")}><LastRuns indexes={found.indexes} /></Day>
          {found.state !== "broken" && <State found={found} />}
          <Problems problems={found.problems} />
          {found.indexes.map((one) => one.generation && <Index key={one.name} index={one} generation={one.generation} />)}
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

/** How the night run went, of each index. */
function LastRuns({ indexes }: { indexes: IndexBody[] }): JSX.Element {
  const { t } = useAdmin();
  return (
    <p class="ad-parts">
      {indexes.map(({ name, runs }) => runs.last && (
        <span key={name}>
          <a href={address("runs", { index: name || null })}>{t.index.lastRun}{name && ` (${name})`}</a>: <Badge tone={RESULTS[runs.last] ?? "bad"}>{t.results[runs.last] ?? runs.last}</Badge> <Ago time={runs.ended[runs.last] ?? null} />
        </span>
      ))}
    </p>
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
  const to = { pages_failing: address("pages", { state: "failing", index: problem.index || null }), no_index: address("sites") }[problem.code] ?? address("runs");
  return (
    <li>
      {problem.severity !== "info" && <Badge tone={TONES[problem.severity]}>{t.problems.severity[problem.severity]}</Badge>}
      <div>
        <h3>{t.problems.titles[problem.code] ?? problem.code}{problem.index && <span class="da-muted"> · {t.problems.ofIndex(problem.index)}</span>}</h3>
        <p><Told text={problem.message} /></p>
        <p class="da-muted">{t.problems.toDo}: <Told text={problem.to_do} /></p>
        {see && <p><a href={to}>{see}</a></p>}
      </div>
    </li>
  );
}

function Index({ index, generation }: { index: IndexBody; generation: NonNullable<IndexBody["generation"]> }): JSX.Element {
  const { t, number, seconds } = useAdmin();
  const { runs } = index;
  const name = index.name || null;
  return (
    <section>
      <h2>{t.index.heading(index.name)}</h2>
      <Figures
        rows={[
          [t.views.pages, <a href={address("pages", { index: name })}>{number(generation.pages)}</a>],
          [t.index.chunks, number(generation.chunks)],
          [t.index.generation, <a href={address("generations", { index: name })}>{generation.id}</a>],
          [t.index.published, <Ago time={generation.built_at} />],
          [t.index.lastRun, runs.last ? t.results[runs.last] ?? runs.last : "–", runs.last && <><Ago time={runs.ended[runs.last] ?? null} />, {t.index.took(seconds(runs.seconds))}</>],
        ]}
      />
      <Breakdown index={index} />
      <Recipe recipe={generation.recipe} />
    </section>
  );
}

/** How many pages each language has, and so on; with a bar where there are several. */
function Breakdown({ index }: { index: IndexBody }): JSX.Element {
  const { t, number } = useAdmin();
  const shown = useShown();
  const groups = { language: index.pages_by_language, collection: index.pages_by_collection, source: index.pages_by_source, state: index.pages_by_state };
  return (
    <div class="ad-groups">
      {(Object.keys(groups) as (keyof typeof groups)[]).map((name) => (
        <div key={name}>
          <h3>{t.pages[name]}</h3>
          <ul class="ad-bars">
            {Object.entries(groups[name]).map(([value, count], _, all) => (
              <li key={value}>
                <a href={address("pages", { index: index.name || null, [name]: value })}>{shown(name, value)}</a>
                <span>{number(count)}</span>
                {all.length > 1 && <progress aria-hidden="true" max={all.reduce((sum, [, one]) => sum + one, 0)} value={count} />}
              </li>
            ))}
          </ul>
        </div>
      ))}
    </div>
  );
}

function Recipe({ recipe }: Pick<NonNullable<IndexBody["generation"]>, "recipe">): JSX.Element {
  const { t, number } = useAdmin();
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
