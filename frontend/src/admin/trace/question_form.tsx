/** Adds the question of a trace to a question set, with the pages that answer it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Trace } from "../../../api";
import { useUi } from "../../shared/ui";
import { submitted, useAction, useAdmin } from "../data";

/** The pages that may answer it: those that the answer links to, and those of the chunks that were kept. */
function offered(trace: Trace): string[] {
  const cited = trace.links.filter((link) => link.number !== null).map((link) => link.url);
  const kept = trace.candidates.filter((one) => !one.dropped).map((one) => one.url);
  return [...new Set([...cited, ...kept.filter((url) => !cited.some((one) => one.split("#")[0] === url))])];
}

export function QuestionForm({ trace, model }: { trace: Trace; model: string }): JSX.Element {
  const { api } = useUi();
  const { trace: t } = useAdmin();
  const [answerable, setAnswerable] = useState(!trace.end.refused);
  const [file, setFile] = useState("");
  const { act, failure } = useAction();
  const send = (event: Event) => {
    const { form, text } = submitted(event);
    const pages = [...form.getAll("page"), text("other")].filter(Boolean);
    const right = answerable ? { pages, ...(text("evidence") && { evidence: text("evidence") }) } : {};
    const body = { question: text("question"), language: trace.language, answerable, model, ...right };
    setFile("");
    void act(async () => setFile((await api.json<{ file: string }>("v1/admin/questions", { method: "POST", body })).file));
  };
  return (
    <section>
      <h2>{t.add}</h2>
      <p class="da-muted">{t.addText}</p>
      <form class="ad-form" onSubmit={send}>
        <label class="ad-field">{t.question}<textarea name="question" rows={2} required defaultValue={trace.question} /></label>
        <label class="ad-check"><input type="checkbox" checked={answerable} onChange={(event) => setAnswerable(event.currentTarget.checked)} /> {t.answerable}</label>
        {answerable && (
          <>
            <fieldset>
              <legend>{t.pages}</legend>
              {offered(trace).map((url) => <label key={url} class="ad-check"><input type="checkbox" name="page" value={url} /> <span class="ad-break">{url}</span></label>)}
              <label class="ad-field">{t.otherPage}<input name="other" type="url" /></label>
            </fieldset>
            <label class="ad-field">{t.evidenceField}<input name="evidence" /></label>
          </>
        )}
        <button class="da-button da-primary">{t.addButton}</button>
        {file && <p role="status" class="tr-done">{t.added(file)}</p>}
        {failure}
      </form>
    </section>
  );
}
