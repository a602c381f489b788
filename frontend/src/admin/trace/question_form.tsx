/** Adds the question of a trace to a question set, with the pages that answer it. */
import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";
import type { Trace } from "../../../api";
import { useUi } from "../../shared/ui";
import { useAction, useAdmin } from "../data";

/** The pages that may answer it: those that the answer links to, and those of the chunks that were kept. */
function offered(trace: Trace): string[] {
  const cited = trace.links.filter((link) => link.number !== null).map((link) => link.url);
  const kept = trace.candidates.filter((one) => !one.dropped).map((one) => one.url);
  return [...new Set([...cited, ...kept.filter((url) => !cited.some((one) => one.split("#")[0] === url))])];
}

export function QuestionForm({ trace, model }: { trace: Trace; model: string }): JSX.Element {
  const { api } = useUi();
  const { trace: t } = useAdmin();
  const id = useId();
  const all = offered(trace);
  const [question, setQuestion] = useState(trace.question);
  const [answerable, setAnswerable] = useState(!trace.end.refused);
  const [chosen, setChosen] = useState(() => new Set(trace.links.filter((link) => link.number !== null).map((link) => link.url)));
  const [other, setOther] = useState("");
  const [evidence, setEvidence] = useState("");
  const [file, setFile] = useState("");
  const { act, failure } = useAction();
  const pages = [...all.filter((url) => chosen.has(url)), ...(other.trim() ? [other.trim()] : [])];
  const choose = (url: string, wanted: boolean) => {
    const changed = new Set(chosen);
    if (wanted) changed.add(url);
    else changed.delete(url);
    setChosen(changed);
  };
  const send = (event: Event) => {
    event.preventDefault();
    setFile("");
    const right = answerable ? { pages, ...(evidence.trim() ? { evidence: evidence.trim() } : {}) } : {};
    const body = { question, language: trace.language, answerable, model, ...right };
    void act(async () => setFile((await api.json<{ file: string }>("v1/admin/questions", { method: "POST", body })).file));
  };
  return (
    <section>
      <h2>{t.add}</h2>
      <p class="da-muted">{t.addText}</p>
      <form class="tr-form tr-add" onSubmit={send}>
        <div class="tr-field"><label for={`${id}-q`}>{t.question}</label><textarea id={`${id}-q`} rows={2} required value={question} onInput={(event) => setQuestion(event.currentTarget.value)} /></div>
        <label class="ad-check"><input type="checkbox" checked={answerable} onChange={(event) => setAnswerable(event.currentTarget.checked)} /> {t.answerable}</label>
        {answerable && (
          <>
            <fieldset>
              <legend>{t.pages}</legend>
              {all.map((url) => <label key={url} class="ad-check"><input type="checkbox" checked={chosen.has(url)} onChange={(event) => choose(url, event.currentTarget.checked)} /> <span class="ad-break">{url}</span></label>)}
              <div class="tr-field"><label for={`${id}-o`}>{t.otherPage}</label><input id={`${id}-o`} type="url" value={other} onInput={(event) => setOther(event.currentTarget.value)} /></div>
            </fieldset>
            <div class="tr-field"><label for={`${id}-e`}>{t.evidenceField}</label><input id={`${id}-e`} type="text" value={evidence} onInput={(event) => setEvidence(event.currentTarget.value)} /></div>
          </>
        )}
        <div class="tr-buttons"><button class="da-button da-primary" disabled={answerable && !pages.length}>{t.addButton}</button></div>
        {file && <p role="status" class="tr-done">{t.added(file)}</p>}
        {failure}
      </form>
    </section>
  );
}
