/** A day of the question log, at first yesterday: figures that open their questions, what readers wrote, and where the days lie. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { DayList, LogList } from "../../api";
import { Failure, Figures, Tabs, useAdmin, useJson, useKept } from "./data";
import { address, go } from "./location";
import { Plot } from "./plot";
import { Comments, REFUSED, everyDay } from "./questions";

const DAYS = 14;
const MOST = "3"; // comments
/** The filters that choose the questions of a figure. */
const OPENED = { questions: {}, answered: { only: "answered" }, refused: { outcome: REFUSED.join(",") }, marked: { outcome: "marked" }, down: { rating: "down" } };
const ago = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

/** The children stand below its name. */
export function Day({ given, children }: { given: string | null; children: ComponentChildren }): JSX.Element | null {
  const { t, day: written, number, routes } = useAdmin();
  const [at, setAt] = useState<number | null>(null);
  const [first, yesterday, today] = [ago(DAYS - 1), ago(1), ago(0)];
  const day = given ?? yesterday;
  const { data, problem } = useKept(useJson<DayList>("v1/admin/question-log/days", { since: day < first ? day : first }));
  if (problem) return problem.code === "no_log" ? <section>{children}</section> : <Failure problem={problem} />;
  if (!data) return null;
  const days = everyDay(data.data, day < first ? day : first, today);
  const chosen = days.findIndex((one) => one.day === day);
  const figures = days[chosen];
  const open = (name: keyof typeof OPENED) => <a href={address("questions", { day, ...OPENED[name] })}>{number(figures?.[name] ?? 0)}</a>;
  return (
    <section>
      <h2>{day === yesterday ? t.day.yesterday : day === today ? t.day.today : t.day.other}, {written(day)}</h2>
      {children}
      <Tabs label={t.day.other} parts={[[yesterday, t.day.yesterday], [today, t.day.today]]} shown={day} to={(one) => address("", { day: one })} />
      <Figures
        rows={[
          ...(Object.keys(OPENED) as (keyof typeof OPENED)[]).map((name): [string, JSX.Element] => [t.questions.figures[name], open(name)]),
          [t.questions.byDay, <Plot name={t.questions.byDay} unit={t.questions.units[0]!} days={days.map((one) => one.day)} values={days.map((one) => one.questions)} at={at ?? (chosen < 0 ? null : chosen)} onPoint={setAt} onChoose={(one) => go(address("", { day: one }))} />],
        ]}
      />
      <Complaints day={day} />
      <p class="ad-parts">
        <a href={address("questions", { day, only: "failed" })}>{t.day.failed}</a>
        {routes.some((one) => one.path === "gaps") && <a href={address("gaps")}>{t.day.gaps}</a>}
      </p>
    </section>
  );
}

/** What readers wrote under the answers of a day, each with its question. */
function Complaints({ day }: { day: string }): JSX.Element | null {
  const { t } = useAdmin();
  const given = { day, only: "commented" };
  const { data } = useKept(useJson<LogList>("v1/admin/question-log", { ...given, limit: MOST }));
  if (!data) return null;
  if (!data.data.length) return <p class="da-muted">{t.day.noComments}</p>;
  return (
    <>
      <h3><a href={address("questions", given)}>{t.questions.comments}</a></h3>
      <ul class="ad-asked">
        {data.data.map((one) => <li key={one.id}><a lang={one.language} href={address(`questions/${one.id}`)}>{one.question}</a><Comments of={one} /></li>)}
      </ul>
    </>
  );
}
