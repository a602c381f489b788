/** What the documentation lacks: questions that weren't answered well, by subject, and what a docs editor can do about each. */
import type { JSX } from "preact";
import type { Cluster as GapCluster, GapReport, SynonymProposal } from "../../api";
import { useUi } from "../shared/ui";
import { Write } from "./curated";
import { Ago, Badge, Docs, Figures, Outside, Select, Some, Table, View, useAction, useAdmin, useJson } from "./data";
import { address, go } from "./location";
import { Comments } from "./questions";
import type { ViewProps } from "./routes";

const DEFAULT = "30d";
const OPEN = 10;
const SHOWN = 3;
const LONGEST = 200;

export function Gaps({ query }: ViewProps): JSX.Element {
  const { t } = useAdmin();
  const given = Object.fromEntries(query);
  const since = given["since"] ?? DEFAULT;
  const loaded = useJson<GapReport>("v1/admin/gaps", { ...given, since });
  return (
    <>
      <p>{t.gaps.text} <Docs page="gaps">{t.gaps.how}</Docs></p>
      <div class="ad-search">
        <Select label={t.gaps.period} options={Object.entries(t.gaps.periods)} value={since} onChoose={(chosen) => go(address("gaps", { ...given, since: chosen }))} />
      </div>
      <View loaded={loaded} waiting={t.gaps.waiting} absent={t.gaps.absent}>{(report) => <Report report={report} since={since} onDone={loaded.reload} />}</View>
    </>
  );
}

function Report({ report, since, onDone }: { report: GapReport; since: string; onDone: () => void }): JSX.Element {
  const { t, number } = useAdmin();
  const clusters = report.clusters.map((one, i) => <Cluster key={i} one={one} since={since} />);
  return (
    <>
      <Totals report={report} />
      <Notes report={report} />
      <section>
        <h2>{t.gaps.clusters}</h2>
        <p>{clusters.length ? t.gaps.advice : t.gaps.none}</p>
        <Some class="ad-gaps" shown={OPEN} of={clusters} />
        {report.smaller > 0 && <p class="da-muted">{t.gaps.smaller(number(report.smaller))}</p>}
      </section>
      <Synonyms report={report} since={since} onDone={onDone} />
      <Untranslated report={report} />
      <Unused report={report} />
      <p><a href={address("questions", { since })}>{t.gaps.all}</a></p>
    </>
  );
}

function Totals({ report: { totals } }: { report: GapReport }): JSX.Element {
  const { t, number, percent } = useAdmin();
  const before = (n: number | null) => (n === null ? "" : t.gaps.before(number(n)));
  const rows: [string, number, string][] = [
    [t.views.questions, totals.questions, [t.gaps.different(number(totals.different)), before(totals.questions_before)].filter(Boolean).join(" · ")],
    [t.gaps.failed, totals.failed, [percent(totals.failed / totals.questions), before(totals.failed_before)].filter(Boolean).join(" · ")],
    [t.gaps.refused, totals.refused, t.gaps.refusedText],
    [t.gaps.unsupported, totals.unsupported, t.gaps.unsupportedText],
    [t.gaps.weak, totals.weak, t.gaps.weakText],
    [t.gaps.down, totals.down, t.gaps.downText],
  ];
  return <Figures rows={rows.map(([name, value, beside]) => [name, number(value), beside])} />;
}

function Notes({ report }: { report: GapReport }): JSX.Element {
  const { t, number, day } = useAdmin();
  return (
    <>
      {report.totals.failed_before === null && <p class="da-muted">{t.gaps.noTrend(day(report.log_from), report.retention_days)}</p>}
      {report.log === "hashed" && <p class="da-muted">{t.gaps.hashed}</p>}
      {report.clustered < report.failed_different && <p class="da-muted">{t.gaps.capped(number(report.clustered), number(report.failed_different))}</p>}
      {report.chit_chat > 0 && <p class="da-muted">{t.gaps.chitChat(number(report.chit_chat))}</p>}
      {report.index_problem && <p role="alert">{t.gaps.noIndex}{report.index_problem}</p>}
    </>
  );
}

function Cluster({ one, since }: { one: GapCluster; since: string }): JSX.Element {
  const { t, number, languageName, percent } = useAdmin();
  const toDo = t.gaps.toDo[one.to_do];
  const shares = [[t.gaps.refused, one.refused], [t.gaps.unsupported, one.unsupported], [t.gaps.weak, one.weak], [t.gaps.down, one.down]] as const;
  const asked = (text: string) => <a href={address("questions", { since, q: text.slice(0, LONGEST) })}>{text}</a>;
  const alone = one.examples.length === 1 && one.examples[0]!.text === one.name;
  const examples = one.examples.slice(alone ? 1 : 0).map((example, i) => (
    <li key={i} lang={example.language} class="ad-break">{asked(example.text)} {example.count > 1 && <span class="da-muted">{t.gaps.times(number(example.count))}</span>}</li>
  ));
  return (
    <li>
      <p class="ad-gap-count">{number(one.failed)}<small>{t.gaps.of(number(one.count))}</small><Trend one={one} /></p>
      <div>
        <h3>{alone ? asked(one.name) : one.name || t.gaps.unnamed}</h3>
        {toDo && <p><Badge tone="warn">{toDo[0]}</Badge> {toDo[1]}</p>}
        <Some class="ad-asked" shown={SHOWN} of={examples} />
        {one.comments.length > 0 && <p class="da-muted">{t.questions.comments}:</p>}
        <Comments of={one} />
        {one.nearest && <Nearest nearest={one.nearest} />}
        <p><Write questions={one.examples.slice(0, 1).map(({ text }) => text)} language={one.examples[0]?.language ?? ""} page={one.nearest?.url ?? ""} /></p>
        <p class="da-muted">
          {t.gaps.wordings(number(one.different))}
          {shares.map(([name, part]) => (part ? ` · ${name.toLowerCase()} ${percent(part / one.count)}` : ""))}
          {Object.entries(one.languages).map(([code, count]) => ` · ${languageName(code)} ${number(count)}`)}
          {` · ${t.gaps.last} `}<Ago time={one.last} />
        </p>
      </div>
    </li>
  );
}

function Trend({ one }: { one: GapCluster }): JSX.Element | null {
  const { t, number } = useAdmin();
  if (one.failed_before === null) return null;
  const more = one.failed - one.failed_before;
  const shown = !one.failed_before ? t.gaps.fresh : !more ? t.gaps.same : more > 0 ? `▲ ${number(more)}` : `▼ ${number(-more)}`;
  return <small title={t.gaps.before(number(one.failed_before))}>{shown}</small>;
}

function Nearest({ nearest }: { nearest: NonNullable<GapCluster["nearest"]> }): JSX.Element {
  const { t, percent } = useAdmin();
  return (
    <p class={nearest.clear ? "" : "da-muted"}>
      {nearest.clear ? t.gaps.nearest : t.gaps.far}: <Outside url={nearest.url} text={nearest.section || nearest.title} />{" "}
      <span class="da-muted">({t.gaps.share(percent(nearest.share))})</span>
    </p>
  );
}

function Synonyms({ report: { synonyms }, since, onDone }: { report: GapReport; since: string; onDone: () => void }): JSX.Element | null {
  const { t } = useAdmin();
  if (!synonyms.length) return null;
  return (
    <section>
      <h2>{t.gaps.synonyms}</h2>
      <p>{t.gaps.synonymsText}</p>
      <Table name={t.gaps.synonyms} head={t.gaps.synonymsColumns}>
        {synonyms.map((one) => <Proposal key={`${one.phrase} ${one.other}`} one={one} since={since} onDone={onDone} />)}
      </Table>
    </section>
  );
}

function Proposal({ one: { phrase, other, count, examples }, since, onDone }: { one: SynonymProposal; since: string; onDone: () => void }): JSX.Element {
  const { api } = useUi();
  const { t, number } = useAdmin();
  const { act, busy, failure } = useAction();
  const add = () => void act(() => api.json("v1/admin/synonyms", { method: "POST", body: { phrase, other } }).then(onDone));
  return (
    <tr>
      <th scope="row">{phrase} → {other}</th>
      <td class="ad-number">{number(count)}</td>
      <td>{examples.map(({ before, after, after_id }) => <p key={after_id}><a href={address("questions", { since, q: after.slice(0, LONGEST) })}>{before} → {after}</a></p>)}</td>
      <td><button type="button" disabled={busy} onClick={add}>{t.gaps.add}</button>{failure}</td>
    </tr>
  );
}

function Untranslated({ report: { untranslated } }: { report: GapReport }): JSX.Element | null {
  const { t, number, languageName } = useAdmin();
  if (!untranslated.length) return null;
  return (
    <section>
      <h2>{t.gaps.untranslated}</h2>
      <p>{t.gaps.untranslatedText}</p>
      <Table name={t.gaps.untranslated} head={t.gaps.untranslatedColumns}>
        {untranslated.map((one) => (
          <tr key={`${one.language} ${one.url}`}>
            <th scope="row"><Outside url={one.url} text={one.title} /></th>
            <td>{languageName(one.language)}</td>
            <td>{languageName(one.page_language)}</td>
            <td class="ad-number">{number(one.count)}</td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Unused({ report }: { report: GapReport }): JSX.Element | null {
  const { t, number, languageName } = useAdmin();
  if (report.unused_count === null) return <p class="da-muted">{t.gaps.fewAnswers(number(report.pages), number(report.answers))}</p>;
  if (!report.unused_count) return null;
  const left = report.unused_count - report.unused.length;
  return (
    <section>
      <h2>{t.gaps.unused(number(report.unused_count), number(report.pages))}</h2>
      <p>{t.gaps.unusedText}</p>
      <details open={report.unused.length <= OPEN}>
        <summary>{t.views.pages}</summary>
        <ul>
          {report.unused.map((one) => <li key={one.url}><a class="ad-break" href={address("page", { url: one.url })}>{one.title || one.url}</a> <span class="da-muted">{languageName(one.language)}</span></li>)}
        </ul>
        {left > 0 && <p class="da-muted">{t.runs.more(number(left))}</p>}
      </details>
    </section>
  );
}
