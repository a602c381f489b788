/** Curated answers and pinned pages: edited, tried against the question log, saved as versions, taken back. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { CuratedList, Entry, TriedList } from "../../api";
import { useUi } from "../shared/ui";
import { Ago, Badge, Docs, Outside, Select, Table, View, submitted, useAction, useAdmin, useJson } from "./data";
import { address, go } from "./location";
import type { ViewProps } from "./routes";

const PATH = "v1/admin/curated";

interface Begun {
  questions: string[];
  language: string;
  page: string;
}

/** A link that begins an entry for these questions, where entries are kept. */
export function Write({ questions, language, page }: Begun): JSX.Element | null {
  const { t, routes } = useAdmin();
  if (!questions.length || !routes.some((one) => one.path === "curated")) return null;
  return <a href={address("curated", { questions: questions.join("\n"), language, page })}>{t.curated.write}</a>;
}

export function Curated({ query }: ViewProps): JSX.Element {
  const { t } = useAdmin();
  const { index, questions, language, page } = Object.fromEntries(query);
  const begun = questions ? { questions: questions.split("\n"), language: language ?? "", page: page ?? "", answer: "" } : undefined;
  const loaded = useJson<CuratedList>(PATH, { index });
  return (
    <>
      <p>{t.curated.text} <Docs page="step-curated">{t.curated.how}</Docs></p>
      <View loaded={loaded}>{(list) => <Editor key={list.data[0]?.version ?? 0} list={list} begun={begun} onSaved={() => (loaded.reload(), begun && go(address("curated", { index })))} />}</View>
    </>
  );
}

function Editor({ list, begun, onSaved }: { list: CuratedList; begun: Entry | undefined; onSaved: () => void }): JSX.Element {
  const { api } = useUi();
  const { t, number } = useAdmin();
  const { act, busy, failure } = useAction();
  const newest = list.data[0];
  const [entries, setEntries] = useState<Entry[]>([...(newest?.entries ?? [])]);
  const [edited, setEdited] = useState<number | null>(null);
  const [tried, setTried] = useState<TriedList | null>(null);
  const [changed, setChanged] = useState(false);
  const post = <T,>(path: string, body: object) => api.json<T>(path, { method: "POST", body });
  const change = (some: Entry[]) => {
    setEntries(some);
    setTried(null);
    setChanged(true);
    setEdited(null);
  };
  const save = (some: readonly Entry[]) =>
    void act(() => post(PATH, { index: list.index, version: newest?.version ?? 0, entries: some }).then(onSaved));
  const attempt = () => void act(async () => setTried(await post<TriedList>(`${PATH}/try`, { index: list.index, entries })));
  return (
    <>
      {!list.assistants.length && <p role="note"><Badge tone="warn">{t.curated.unused}</Badge> {t.curated.unusedText}</p>}
      <Table name={t.views.curated} head={t.curated.columns}>
        {entries.map((entry, at) => (
          <tr key={at}>
            <th scope="row" class="ad-break">{entry.questions.map((one) => <div key={one}>{one}</div>)}</th>
            <td class="ad-break">{entry.answer || <Badge tone="calm">{t.curated.pinned}</Badge>}<small><Outside url={entry.page} text={entry.page} /></small></td>
            <td>{entry.language}</td>
            <td class="ad-buttons">
              <button type="button" class="da-button" onClick={() => setEdited(at)}>{t.curated.edit}</button>
              <button type="button" class="da-button ad-bad" onClick={() => change(entries.filter((_, i) => i !== at))}>{t.curated.remove}</button>
            </td>
          </tr>
        ))}
      </Table>
      <Form
        key={edited ?? `new${entries.length}`}
        entry={edited === null ? undefined : entries[edited]}
        begun={changed ? undefined : begun}
        languages={list.languages}
        onDone={(entry) => change(edited === null ? [...entries, entry] : entries.map((one, i) => (i === edited ? entry : one)))}
      />
      {failure}
      {busy && <p class="da-status" role="status"><span class="da-spinner" />{t.loading}</p>}
      <p class="ad-total">
        <button type="button" class="da-button" disabled={busy || !entries.length} onClick={attempt}>{t.curated.try}</button>
        <button type="button" class="da-button da-primary" disabled={busy || !changed || (entries.length > 0 && !tried)} onClick={() => save(entries)}>{t.curated.save}</button>
        {changed && !tried && entries.length > 0 && <span>{t.curated.tryFirst}</span>}
      </p>
      {tried && (
        <section>
          <p role="status"><strong>{t.curated.tried(number(tried.data.filter((one) => one.like).length), number(tried.tried))}</strong></p>
          {tried.data.length > 0 && (
            <Table name={t.curated.try} head={t.curated.triedColumns(String(list.near))}>
              {tried.data.map((one) => (
                <tr key={one.id}>
                  <th scope="row" class="ad-break"><a href={address(`questions/${one.id}`)}>{one.question}</a></th>
                  <td><Badge tone={one.like ? "good" : "calm"}>{one.like ? t.curated.gets : t.curated.nearly}</Badge> <small>{entries[one.entry]?.questions[0]}</small></td>
                  <td class="ad-number">{number(one.cosine)}</td>
                  <td class="ad-break">{one.other_words.join(", ")}</td>
                  <td>{t.outcomes[one.outcome] ?? one.outcome}</td>
                </tr>
              ))}
            </Table>
          )}
        </section>
      )}
      {newest && <h2>{t.curated.versions}</h2>}
      <ul>
        {list.data.map((one, i) => (
          <li key={one.version}>
            {t.curated.version(one.version, number(one.entries.length))} · <Ago time={one.at} /> · {one.by}{" "}
            {i > 0 && <button type="button" class="da-button" disabled={busy} onClick={() => save(one.entries)}>{t.curated.back(one.version)}</button>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Form({ entry, begun, languages, onDone }: { entry: Entry | undefined; begun: Entry | undefined; languages: readonly string[]; onDone: (entry: Entry) => void }): JSX.Element {
  const { t, language, languageName } = useAdmin();
  const first = entry ?? begun;
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => void (begun && field.current!.focus()), []);
  const send = (event: Event) => {
    const { text, lines } = submitted(event);
    onDone({ questions: lines("questions"), language: text("language"), page: text("page"), answer: text("answer") });
  };
  return (
    <form class="ad-start ad-form" onSubmit={send}>
      <h2>{entry ? t.curated.edit : t.curated.add}</h2>
      <label class="ad-field">{t.curated.questions}<textarea name="questions" rows={3} required defaultValue={first?.questions.join("\n") ?? ""} /></label>
      <Select label={t.curated.language} name="language" options={languages.map((code) => [code, languageName(code)])} value={first?.language || language} />
      <label class="ad-field">{t.curated.answer}<textarea name="answer" rows={4} ref={field} defaultValue={first?.answer ?? ""} /></label>
      <label class="ad-field">{t.curated.page}<input name="page" type="url" required defaultValue={first?.page ?? ""} /></label>
      <button class="da-button">{entry ? t.curated.change : t.curated.add}</button>
    </form>
  );
}
