/** The keys of clients and operators: make one, change its limits, revoke it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { KeyBody, KeyList } from "../../api";
import { CopyButton } from "../shared/copy";
import { useUi } from "../shared/ui";
import { Badge, Confirm, Table, View, submitted, useAction, useAdmin, useJson } from "./data";

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
      <View path={PATH} loaded={loaded} after={make}>
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
  const [doing, setDoing] = useState<"" | "limits" | "revoke">("");
  const { name, version } = shown;
  const post = (more: object) =>
    void act(() => api.json(`${PATH}/${doing}`, { method: "POST", body: { name, version, ...more } }).then(() => setDoing("")).finally(onDone));
  return (
    <tr>
      <th scope="row" class="ad-break">
        {name}
        {failure}
        {doing === "revoke" && <Confirm text={t.keys.sure(name)} yes={t.keys.revoke} busy={busy} onYes={() => post({})} onNo={() => setDoing("")} />}
      </th>
      <td><Badge tone={TONES[shown.role]}>{shown.role}</Badge></td>
      <td class="ad-break">
        {SHOWN.map((field) => [field, [shown[field] || []].flat().join(", ")] as const).map(([field, value]) => value && <div key={field}><span class="da-muted">{t.keys.fields[field]}:</span> {value}</div>)}
        {doing === "limits" && (
          <form key={version} class="ad-form" onSubmit={(event) => post(given(event))}>
            <Limits rate={shown.rate} concurrency={shown.concurrency} />
            <button class="da-button" disabled={busy}>{t.keys.change}</button>
          </form>
        )}
      </td>
      <td class="ad-buttons">
        {version ? <button type="button" class="da-button" disabled={busy} onClick={() => setDoing("limits")}>{t.keys.change}</button> : t.keys.fixed}
        {version && <button type="button" class="da-button ad-bad" disabled={busy} onClick={() => setDoing("revoke")}>{t.keys.revoke}</button>}
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
      <label>{t.fields.name}<input name="name" required maxLength={64} /></label>
      <label>{t.fields.role}<select name="role">{Object.keys(TONES).map((role) => <option key={role}>{role}</option>)}</select></label>
      {LISTS.map((field) => <label key={field}>{t.fields[field]}<textarea name={field} rows={2} /></label>)}
      <Limits rate="" concurrency={0} />
      <label>{t.fields.expires}<input name="expires" type="date" /></label>
      <label>{t.fields.note}<input name="note" maxLength={200} /></label>
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
      <label>{fields.rate}<input name="rate" placeholder="60/minute" defaultValue={rate} /></label>
      <label>{fields.concurrency}<input name="concurrency" type="number" min={1} defaultValue={concurrency || ""} /></label>
    </>
  );
}

/** What a form says, with the lists of its lines. */
function given(event: SubmitEvent): object {
  const { form, lines } = submitted(event);
  const lists = LISTS.filter((field) => form.has(field)).map((field) => [field, lines(field)]);
  return { ...Object.fromEntries(form), ...Object.fromEntries(lists), concurrency: Number(form.get("concurrency")) };
}
