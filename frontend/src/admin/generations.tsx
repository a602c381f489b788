/** The kept generations of an index, and the way back to the previous one. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { GenerationBody, GenerationList } from "../../api";
import { useUi } from "../shared/ui";
import { Ago, Badge, Confirm, Table, View, useAction, useAdmin, useJson } from "./data";
import type { ViewProps } from "./routes";

export function Generations({ query }: ViewProps): JSX.Element {
  const { t } = useAdmin();
  const path = `v1/admin/generations${query.size ? `?${query}` : ""}`;
  const loaded = useJson<GenerationList>(path);
  return (
    <>
      <p>{t.generations.text}</p>
      <View path={path} loaded={loaded}>
        {(found) => (
          <>
            <Table name={t.views.generations} head={t.generations.columns}>
              {found.data.map((one) => <Row key={one.id} one={one} />)}
            </Table>
            <Rollback key={found.data[0]?.id} found={found} onDone={loaded.reload} />
          </>
        )}
      </View>
    </>
  );
}

function Row({ one }: { one: GenerationBody }): JSX.Element {
  const { t, number } = useAdmin();
  return (
    <tr>
      <th scope="row">{one.id}</th>
      <td><Ago time={one.built_at} /></td>
      <td class="ad-number">{number(one.pages)}</td>
      <td class="ad-number">{number(one.chunks)}</td>
      <td>{one.languages.join(", ")}</td>
      <td>{one.recipe.embedder} ({number(one.recipe.dimension)})</td>
      <td><Badge tone={one.live ? "good" : "calm"}>{one.live ? t.generations.live : t.generations.kept}</Badge></td>
    </tr>
  );
}

function Rollback({ found, onDone }: { found: GenerationList; onDone: () => void }): JSX.Element {
  const { api } = useUi();
  const { t } = useAdmin();
  const [asking, setAsking] = useState(false);
  const { act, busy, failure } = useAction();
  const [live, earlier] = found.data;
  if (!live || !earlier) return <p class="da-muted">{t.generations.only}</p>;
  const back = () =>
    act(async () => {
      await api.json("v1/admin/rollback", { method: "POST", body: { index: found.index, generation: earlier.id } });
      onDone();
    }).then(() => setAsking(false));
  return (
    <>
      {failure}
      {asking ? (
        <Confirm text={t.generations.sure(earlier.id, live.id)} yes={t.generations.confirm} busy={busy} onYes={() => void back()} onNo={() => setAsking(false)} />
      ) : <button type="button" class="da-button" onClick={() => setAsking(true)}>{t.generations.rollback(earlier.id)}</button>}
    </>
  );
}
