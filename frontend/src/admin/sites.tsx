/** The sites that runs read: add, pause and remove them, and see what one would fetch. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SiteBody, SiteList, SitePreview, SiteRemoved } from "../../api";
import { useUi } from "../shared/ui";
import { Ago, Badge, Errors, Some, Sure, Table, View, submitted, useAction, useAdmin, useJson } from "./data";
import { address, go } from "./location";
import { Reasons } from "./report";

const PATH = "v1/admin/sites";
const SHOWN = 200;

export function Sites(): JSX.Element {
  const { t } = useAdmin();
  const loaded = useJson<SiteList>(PATH);
  return (
    <>
      <p>{t.sites.text}</p>
      <View loaded={loaded} after={<Add onDone={loaded.reload} />}>
        {({ data }) => data.length ? (
          <Table name={t.views.sites} head={[...t.sites.columns, ""]}>
            {data.map((site) => <Row key={site.url} site={site} onDone={loaded.reload} />)}
          </Table>
        ) : <p>{t.sites.none}</p>}
      </View>
    </>
  );
}

function Row({ site, onDone }: { site: SiteBody; onDone: () => void }): JSX.Element {
  const { api } = useUi();
  const { t, number } = useAdmin();
  const { act, busy, failure } = useAction();
  const [preview, setPreview] = useState<SitePreview | null>(null);
  const post = <T,>(path: string, body: object) => api.json<T>(`${PATH}/${path}`, { method: "POST", body });
  const pause = () => act(() => post("pause", { url: site.url, paused: !site.paused_at }).then(onDone));
  const remove = () => post<SiteRemoved>("remove", { url: site.url }).then(({ run }) => (run ? go(address(`runs/${run.id}`)) : onDone()));
  const look = () => act(async () => setPreview(await post<SitePreview>("preview", { url: site.url })));
  const rules = Object.entries(site.options).filter(([key]) => key !== "url");
  return (
    <tr>
      <th scope="row" class="ad-break">
        {site.url}
        {site.place && <small class="da-muted">{site.place}</small>}
        {rules.map(([key, value]) => <small key={key} class="da-muted">{key}: {[value].flat().join(", ")}</small>)}
        {site.unreadable && <small>{t.sites.unreadable(site.unreadable)}</small>}
        {failure}
        {busy && <p class="da-status" role="status"><span class="da-spinner" />{t.sites.reading}</p>}
        {preview && <Preview preview={preview} />}
      </th>
      <td>{t.sites.origins[site.origin]}{site.added_by && <small class="da-muted ad-break">{t.sites.by(site.added_by)}</small>}</td>
      <td class="ad-number">{site.pages === null ? "–" : number(site.pages)}</td>
      <td><Ago time={site.read_at} /></td>
      <td>
        <Badge tone={site.paused_at ? "calm" : site.pages === null ? "warn" : "good"}>
          {site.paused_at ? t.sites.paused : site.pages === null ? t.sites.waiting : t.sites.active}
        </Badge>
        {site.paused_by && <small class="da-muted ad-break">{t.sites.by(site.paused_by)} <Ago time={site.paused_at} /></small>}
        {site.failing > 0 && <small>{t.sites.failing(number(site.failing))}</small>}
        <Errors errors={site.errors} />
      </td>
      <td class="ad-buttons">
        {!site.place && site.origin !== "file" && <div><button type="button" class="da-button" disabled={busy} onClick={() => void look()}>{t.sites.preview}</button></div>}
        <button type="button" class="da-button" disabled={busy} onClick={() => void pause()}>{site.paused_at ? t.sites.resume : t.sites.pause}</button>
        {["added", "index"].includes(site.origin) && <Sure name={t.curated.remove} text={t.sites.sure(site.url)} act={remove} />}
      </td>
    </tr>
  );
}

function Add({ onDone }: { onDone: () => void }): JSX.Element {
  const { api } = useUi();
  const { t } = useAdmin();
  const { act, busy, failure } = useAction();
  const [preview, setPreview] = useState<SitePreview | null>(null);
  const [added, setAdded] = useState(false);
  const send = (event: SubmitEvent) => {
    const { form, text, lines } = submitted(event);
    const body = {
      url: text("url"), collection: text("collection"), language: text("language"),
      include: lines("include"), exclude: lines("exclude"), follow: form.has("follow"),
    };
    const adds = (event.submitter as HTMLButtonElement | null)?.value === "add";
    const force = form.has("force");
    setAdded(false);
    void act(async () => {
      if (!adds) return setPreview(await api.json<SitePreview>(`${PATH}/preview`, { method: "POST", body }));
      await api.json(PATH, { method: "POST", body: { ...body, force } });
      setPreview(null);
      setAdded(true);
      onDone();
    });
  };
  return (
    <form class="ad-start ad-form" onSubmit={send}>
      <h2>{t.sites.add}</h2>
      <p class="da-muted">{t.sites.addText}</p>
      <label class="ad-field">{t.sites.url}<input name="url" type="url" required maxLength={1000} /></label>
      <label class="ad-field">{t.sites.include}<textarea name="include" rows={2} placeholder="/guide/*" /></label>
      <label class="ad-field">{t.sites.exclude}<textarea name="exclude" rows={2} placeholder="/guide/archive/*" /></label>
      <label class="ad-field">{t.sites.collection}<input name="collection" maxLength={200} /></label>
      <label class="ad-field">{t.sites.language}<input name="language" pattern="[a-z]{2,3}" placeholder="en" /></label>
      <label class="ad-check"><input type="checkbox" name="follow" /> {t.sites.follow}</label>
      <label class="ad-check"><input type="checkbox" name="force" /> {t.sites.force}</label>
      {failure}
      {busy && <p class="da-status" role="status"><span class="da-spinner" />{t.sites.reading}</p>}
      {added && <p role="status">{t.sites.added} <a href={address("runs")}>{t.runs.start}</a></p>}
      <div class="ad-row">
        <button class="da-button" disabled={busy} value="preview">{t.sites.preview}</button>
        <button class="da-button da-primary" disabled={busy} value="add">{t.sites.add}</button>
      </div>
      {preview && <Preview preview={preview} />}
    </form>
  );
}

function Preview({ preview }: { preview: SitePreview }): JSX.Element {
  const { t, number } = useAdmin();
  const leftOut = preview.left_out.map((one) => ({ url: one.url ?? "", reason: one.reason ?? "", outcome: "skipped" }));
  return (
    <section aria-label={t.sites.preview}>
      <p role="status"><strong>{t.sites.would(number(preview.pages.length))}</strong></p>
      {preview.notes.map((note) => <p key={note} class="ad-break">{note}</p>)}
      <details>
        <summary>{t.views.pages}</summary>
        <Some shown={SHOWN} of={preview.pages.map((url) => <li key={url} class="ad-break">{url}</li>)} />
      </details>
      {leftOut.length > 0 && <><h3>{t.sites.leftOut(number(leftOut.length))}</h3><Reasons pages={leftOut} heading="" /></>}
    </section>
  );
}
