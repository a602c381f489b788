/** The kept generations of an index, and the way back to the previous one. */
import type { JSX } from "preact";
import type { GenerationBody, GenerationList } from "../../api";
import { useUi } from "../shared/ui";
import { Ago, Badge, Sure, Table, View, useAdmin, useJson } from "./data";
import type { ViewProps } from "./routes";

export function Generations({ query }: ViewProps): JSX.Element {
  const { t } = useAdmin();
  const loaded = useJson<GenerationList>("v1/admin/generations", Object.fromEntries(query));
  return (
    <>
      <p>{t.generations.text}</p>
      <View loaded={loaded}>
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
  const [live, earlier] = found.data;
  if (!live || !earlier) return <p class="da-muted">{t.generations.only}</p>;
  const back = () => api.json("v1/admin/rollback", { method: "POST", body: { index: found.index, generation: earlier.id } }).then(onDone);
  return <Sure name={t.generations.rollback(earlier.id)} text={t.generations.sure(earlier.id, live.id)} yes={t.generations.confirm} act={back} />;
}
