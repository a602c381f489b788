/** One chunk as it is searched, and the chunks that are near to it. */
import type { JSX } from "preact";
import type { Neighbour, OneChunkBody } from "../../api";
import { Markdown } from "../shared/markdown";
import { Badge, Facts, Table, View, useAdmin, useJson } from "./data";
import { address } from "./location";
import type { ViewProps } from "./routes";

const to = (id: string, index: string | null) => address(`chunk/${encodeURIComponent(id)}`, { index });

export function ChunkView({ rest, query }: ViewProps): JSX.Element {
  const index = query.get("index");
  const path = `v1/admin/chunks/${encodeURIComponent(rest)}`;
  const loaded = useJson<OneChunkBody>(path, { index });
  return (
    <View loaded={loaded} after={<Neighbours path={`${path}/neighbours`} index={index} />}>
      {(found) => <Content found={found} index={index} />}
    </View>
  );
}

function Content({ found, index }: { found: OneChunkBody; index: string | null }): JSX.Element {
  const { t, languageName } = useAdmin();
  const { chunk, page } = found;
  const all = found.chunks_of_page;
  const [before, after] = [all[chunk.position - 1], all[chunk.position + 1]];
  const language = languageName(chunk.language) + (chunk.translated_from && `, ${t.page.translatedFrom(languageName(chunk.translated_from))}`);
  return (
    <>
      <h2 class="ad-title">{chunk.sections[0]?.path.join(" › ") || page.title}</h2>
      <p class="ad-break"><a href={address("page", { url: page.url, index })}>{page.title}</a> · <a href={chunk.link} target="_blank" rel="noopener noreferrer">{chunk.link}</a></p>
      <nav class="ad-parts" aria-label={t.chunk.of(chunk.position + 1, all.length)}>
        {before && <a href={to(before, index)} rel="prev">← {t.chunk.previous}</a>}
        <span>{t.chunk.of(chunk.position + 1, all.length)}</span>
        {after && <a href={to(after, index)} rel="next">{t.chunk.next} →</a>}
      </nav>
      <Facts rows={[["id", <code class="ad-break">{chunk.id}</code>], [t.pages.language, language], [t.pages.collection, page.collection]]} />
      <section class="ad-chunk"><h3 class="da-hidden">{t.chunk.text}</h3><Markdown text={chunk.text} reading={{ base: chunk.link }} /></section>
      <Details found={found} />
    </>
  );
}

function Details({ found }: { found: OneChunkBody }): JSX.Element {
  const { t, number } = useAdmin();
  const { chunk } = found;
  return (
    <>
      <details>
        <summary>{t.chunk.sections} ({number(chunk.sections.length)})</summary>
        <Table name={t.chunk.sections} head={[t.chunk.offset, t.chunk.path, t.chunk.anchor]}>
          {chunk.sections.map((one, i) => <tr key={i}><td class="ad-number">{number(one.offset)}</td><td>{one.path.join(" › ")}</td><td>{one.anchor && `#${one.anchor}`}</td></tr>)}
        </Table>
      </details>
      <details><summary>{t.chunk.embedded}</summary><pre class="ad-source ad-box">{found.embedded_text}</pre></details>
      <details><summary>{t.chunk.tokens(number(found.tokens.length))}</summary><p class="ad-source ad-box">{found.tokens.join(" ")}</p></details>
      {chunk.questions.length > 0 && (
        <details>
          <summary>{t.chunk.questions}</summary>
          {chunk.questions.map(([language, text]) => <pre key={language} class="ad-source ad-box" lang={language}>{text}</pre>)}
        </details>
      )}
    </>
  );
}

function Neighbours({ path, index }: { path: string; index: string | null }): JSX.Element {
  const { t } = useAdmin();
  const loaded = useJson<{ data: Neighbour[] }>(path, { index });
  return (
    <section>
      <h2>{t.chunk.neighbours}</h2>
      <View loaded={loaded}>
        {({ data }) => data.length ? (
          <>
            <p class="da-muted">{t.chunk.neighboursText}</p>
            <Table name={t.chunk.neighbours} head={[t.chunk.cosine, t.chunk.overlap, t.views.chunk]}>
              {data.map((one) => <Row key={one.id} one={one} index={index} />)}
            </Table>
          </>
        ) : <p>{t.chunk.noNeighbours}</p>}
      </View>
    </section>
  );
}

function Row({ one, index }: { one: Neighbour; index: string | null }): JSX.Element {
  const { t, score, percent } = useAdmin();
  return (
    <tr>
      <td class="ad-number">{score(one.cosine)}</td>
      <td class="ad-number">{percent(one.overlap)}</td>
      <td class="ad-page">
        <span><a href={to(one.id, index)}>{one.path.join(" › ") || one.title}</a> {one.near_duplicate && <Badge tone="warn">{t.chunk.duplicate}</Badge>}</span>
        <span class="da-muted ad-break">{one.url} · {one.language}</span>
        <span>{one.begins}</span>
      </td>
    </tr>
  );
}
