/** An editor's verdict on an answer, which keeps the question as a case that later answers are measured by. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { VerdictBody } from "../../api";
import { useUi } from "../shared/ui";
import { Ago, Badge, Docs, Facts, Select, submitted, useAction, useAdmin } from "./data";

export function Given({ one }: { one: VerdictBody }): JSX.Element {
  const { t } = useAdmin();
  return <Badge tone={one.verdict === "good" ? "good" : "bad"}>{t.verdict.verdicts[one.verdict]}</Badge>;
}

/** The verdict that there is, or a form for one. */
export function Verdict({ id, had }: { id: string; had: VerdictBody | null }): JSX.Element {
  const { api } = useUi();
  const { t } = useAdmin();
  const { act, busy, failure } = useAction();
  const [given, setGiven] = useState(had);
  const [answerable, setAnswerable] = useState(true);
  const path = `v1/admin/verdicts/${encodeURIComponent(id)}`;
  const send = (event: Event) => {
    const { text, lines } = submitted(event);
    const body = { verdict: text("verdict"), reason: text("reason"), answerable, pages: answerable ? lines("pages") : [] };
    void act(async () => setGiven(await api.json<VerdictBody>(path, { method: "POST", body })));
  };
  const takeBack = () => void act(() => api.fetch(path, { method: "DELETE" }).then(() => setGiven(null)));
  return (
    <section>
      <h2>{t.verdict.heading}</h2>
      {given ? (
        <>
          <Facts rows={[[t.verdict.verdict, <><Given one={given} /> {given.by} · <Ago time={given.given_at} /></>], ...(given.reason ? [[t.verdict.reason, given.reason] as [string, string]] : []), [t.verdict.expected, <Expected one={given} />]]} />
          <button type="button" class="da-button" disabled={busy} onClick={takeBack}>{t.verdict.takeBack}</button>
        </>
      ) : (
        <form class="ad-form" onSubmit={send}>
          <p class="da-muted">{t.verdict.text} <Docs page="evaluate#verdicts">{t.verdict.how}</Docs></p>
          <Select label={t.verdict.verdict} name="verdict" options={Object.entries(t.verdict.verdicts)} value="good" />
          <label class="ad-field">{t.verdict.reason}<input name="reason" maxLength={2000} /></label>
          <label class="ad-check"><input type="checkbox" checked={!answerable} onChange={(event) => setAnswerable(!event.currentTarget.checked)} /> {t.verdict.unanswerable}</label>
          {answerable && <label class="ad-field">{t.verdict.pages}<textarea name="pages" rows={2} /></label>}
          <button class="da-button da-primary" disabled={busy}>{t.verdict.save}</button>
        </form>
      )}
      {failure}
    </section>
  );
}

/** What a later answer is measured by. */
export function Expected({ one }: { one: VerdictBody }): JSX.Element {
  const { t } = useAdmin();
  const pages = one.right_pages.length ? one.right_pages : one.wrong_pages;
  if (!one.answerable) return <>{t.verdict.refuse}</>;
  return <>{one.right_pages.length ? t.verdict.use : t.verdict.avoid} {pages.map((url) => <div key={url} class="ad-break">{url}</div>)}</>;
}
