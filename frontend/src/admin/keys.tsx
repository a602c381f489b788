/** The keys of clients and operators: make one, change its limits, revoke it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { KeyBody, KeyList } from "../../api";
import { CopyButton } from "../shared/copy";
import { useUi } from "../shared/ui";
import { Badge, Select, Sure, Table, View, submitted, useAction, useAdmin, useJson } from "./data";

const PATH = "v1/admin/keys";
const LISTS = ["origins", "assistants", "collections"] as const;
const SHOWN = [...LISTS, "rate", "concurrency", "expires", "made", "note"] as const;
const TONES = { reader: "calm", widget: "warn", admin: "good" } as const;

export function Keys(): JSX.Element {
  const { t } = useAdmin();
  const loaded = useJson<KeyList>(PATH);
  const make = loaded.data?.file === "" ? <p role="note">{t.keys.noFile}</p> : <Make onDone={loaded.reload} />; // keeps its key if the list fails
  return (
    <>
      <p>{t.keys.text}</p>
      <View loaded={loaded} after={make}>
        {({ data }) => (
          <Table name={t.views.keys} head={[...t.keys.columns, ""]}>
            {data.map((key) => <Row key={`${key.name} ${!key.version}`} shown={key} onDone={loaded.reload} />)}
          </Table>
        )}
      </View>
    </>
  );
}

function Row({ shown, onDone }: { shown: KeyBody; onDone: () => void }): JSX.Element {
  const { api } = useUi();
  const { t } = useAdmin();
  const { act, busy, failure } = useAction();
  const [changing, setChanging] = useState(false);
  const { name, version } = shown;
  const limits = SHOWN.filter((field) => [shown[field] || []].flat().length);
  const post = (what: "limits" | "revoke", more: object) =>
    api.json(`${PATH}/${what}`, { method: "POST", body: { name, version, ...more } }).then(() => setChanging(false)).finally(onDone);
  return (
    <tr>
      <th scope="row" class="ad-break">{name}{failure}</th>
      <td><Badge tone={TONES[shown.role]}>{shown.role}</Badge></td>
      <td class="ad-break">
        {limits.map((field) => <div key={field}><span class="da-muted">{t.keys.fields[field]}:</span> {[shown[field]].flat().join(", ")}</div>)}
        {!limits.length && "–"}
        {changing && (
          <form key={version} class="ad-form" onSubmit={(event) => void act(() => post("limits", given(event)))}>
            <Limits rate={shown.rate} concurrency={shown.concurrency} />
            <button class="da-button" disabled={busy}>{t.keys.change}</button>
          </form>
        )}
      </td>
      <td class="ad-buttons">
        {version ? <button type="button" class="da-button" disabled={busy} onClick={() => setChanging(true)}>{t.keys.change}</button> : t.keys.fixed}
        {version && <Sure name={t.keys.revoke} text={t.keys.sure(name)} act={() => post("revoke", {})} />}
      </td>
    </tr>
  );
}

function Make({ onDone }: { onDone: () => void }): JSX.Element {
  const { api } = useUi();
  const { keys: t } = useAdmin().t;
  const { act, busy, failure } = useAction();
  const [made, setMade] = useState("");
  const send = async (event: SubmitEvent) => setMade((await api.json<KeyList>(PATH, { method: "POST", body: given(event) })).key);
  return (
    <form class="ad-start ad-form" onSubmit={(event) => void act(() => send(event)).then(onDone)}>
      <h2>{t.make}</h2>
      <label class="ad-field">{t.fields.name}<input name="name" required maxLength={64} /></label>
      <Select label={t.fields.role} name="role" options={Object.keys(TONES).map((role) => [role, role])} value="reader" />
      {LISTS.map((field) => <label key={field} class="ad-field">{t.fields[field]}<textarea name={field} rows={2} /></label>)}
      <Limits rate="" concurrency={0} />
      <label class="ad-field">{t.fields.expires}<input name="expires" type="date" /></label>
      <label class="ad-field">{t.fields.note}<input name="note" maxLength={200} /></label>
      {failure}
      {made && <p role="status">{t.once} <code class="ad-break">{made}</code> <CopyButton text={made} label={t.copy} /></p>}
      <button class="da-button da-primary" disabled={busy}>{t.make}</button>
    </form>
  );
}

function Limits({ rate, concurrency }: { rate: string; concurrency: number }): JSX.Element {
  const { fields } = useAdmin().t.keys;
  return (
    <>
      <label class="ad-field">{fields.rate}<input name="rate" placeholder="60/minute" defaultValue={rate} /></label>
      <label class="ad-field">{fields.concurrency}<input name="concurrency" type="number" min={1} defaultValue={concurrency || ""} /></label>
    </>
  );
}

/** What a form says, with the lists of its lines. */
function given(event: SubmitEvent): object {
  const { form, lines } = submitted(event);
  const lists = LISTS.filter((field) => form.has(field)).map((field) => [field, lines(field)]);
  return { ...Object.fromEntries(form), ...Object.fromEntries(lists), concurrency: Number(form.get("concurrency")) };
}
