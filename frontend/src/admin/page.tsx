/** One page: what is known about it, and its text with the borders of its chunks. */
import type { ComponentChildren, JSX } from "preact";
import type { ChunkBody, PageBody } from "../../api";
import { Markdown } from "../shared/markdown";
import { Ago, Badge, Docs, Facts, Tabs, View, useAdmin, useJson } from "./data";
import { address } from "./location";
import { STATES } from "./pages";
import type { ViewProps } from "./routes";

export function Page({ query }: ViewProps): JSX.Element {
  const { t } = useAdmin();
  const index = query.get("index");
  const loaded = useJson<PageBody>("v1/admin/page", { url: query.get("url") ?? "", index });
  const source = query.get("view") === "markdown";
  return (
    <View loaded={loaded} absent={<Docs page="admin#not-found">{t.pages.why}</Docs>}>
      {(found) => (
        <>
          <h2 class="ad-title">{found.page.title}</h2>
          <p class="ad-break"><a href={found.page.url} target="_blank" rel="noopener noreferrer">{found.page.url}</a></p>
          <PageFacts found={found} />
          <Tabs
            label={t.page.views}
            parts={[["rendered", t.page.rendered], ["markdown", t.page.source]]}
            shown={source ? "markdown" : "rendered"}
            to={(view) => address("page", { ...Object.fromEntries(query), view: view === "markdown" ? view : null })}
          />
          {!found.chunks.length && <NoChunks found={found} />}
          {source ? <Source found={found} index={index} /> : <Rendered found={found} index={index} />}
        </>
      )}
    </View>
  );
}

function NoChunks({ found }: { found: PageBody }): JSX.Element {
  const { t } = useAdmin();
  const same = String(found.record["same_as"] ?? "");
  return <p class="da-muted">{same ? <>{t.page.sameAs} <a href={address("page", { url: same })}>{same}</a></> : t.page.noChunks}</p>;
}

function PageFacts({ found }: { found: PageBody }): JSX.Element {
  const { t, languageName, day } = useAdmin();
  const { page } = found;
  return (
    <>
      <Facts
        rows={[
          [t.pages.state, <Badge tone={STATES[page.state] ?? "calm"}>{t.pages.states[page.state] ?? page.state}</Badge>],
          [t.pages.language, languageName(page.language)],
          [t.pages.collection, page.collection],
          [t.pages.age, page.modified || page.published ? day(page.modified || page.published) : ""],
          [t.pages.columns["last_ok"]!, <Ago time={page.last_ok} />],
          [t.pages.source, <span class="ad-break">{page.source}</span>],
        ]}
      />
      <details>
        <summary>{t.page.facts}</summary>
        <Facts
          rows={Object.entries(found.record)
            .filter(([, value]) => value !== "" && !(Array.isArray(value) && !value.length) && JSON.stringify(value) !== "{}")
            .map(([name, value]) => [name, <span class="ad-break">{typeof value === "string" ? value : JSON.stringify(value)}</span>])}
        />
      </details>
    </>
  );
}

interface Shown {
  found: PageBody;
  index: string | null;
}

function Rendered({ found, index }: Shown): JSX.Element {
  if (!found.chunks.length) return <Markdown text={found.markdown} reading={{ base: found.page.url }} />;
  return <>{found.chunks.map((one) => <ChunkBox key={one.id} chunk={one} index={index}><Markdown text={one.text} reading={{ base: one.link }} /></ChunkBox>)}</>;
}

export function ChunkBox({ chunk, index, children }: { chunk: ChunkBody; index: string | null; children: ComponentChildren }): JSX.Element {
  const { t, number, languageName } = useAdmin();
  return (
    <section class="ad-chunk" aria-label={t.page.openChunk(chunk.position + 1)}>
      <h3 class="ad-chunk-head">
        <a href={address(`chunk/${encodeURIComponent(chunk.id)}`, { index })}>{t.page.chunk(chunk.position + 1, number(chunk.text.length))}</a>
        <span>{chunk.sections[0]?.path.join(" › ")}</span>
        {chunk.translated_from && <Badge tone="calm">{languageName(chunk.language)}, {t.page.translatedFrom(languageName(chunk.translated_from))}</Badge>}
      </h3>
      {children}
    </section>
  );
}

/** The page's Markdown, cut where its chunks begin. Translations and others that aren't in it follow. */
function Source({ found, index }: Shown): JSX.Element {
  const { t } = useAdmin();
  const { markdown, chunks } = found;
  const placed = chunks.filter((chunk) => chunk.start !== null);
  const others = chunks.filter((chunk) => chunk.start === null);
  const before = markdown.slice(0, placed[0]?.start ?? markdown.length);
  return (
    <>
      {before.trim() && <pre class="ad-source ad-box">{before}</pre>}
      {placed.map((chunk, i) => (
        <ChunkBox key={chunk.id} chunk={chunk} index={index}>
          <pre class="ad-source">{markdown.slice(chunk.start!, placed[i + 1]?.start ?? markdown.length).trimEnd()}</pre>
        </ChunkBox>
      ))}
      {others.length > 0 && <h2>{t.page.translations}</h2>}
      {others.map((chunk) => <ChunkBox key={chunk.id} chunk={chunk} index={index}><pre class="ad-source">{chunk.text}</pre></ChunkBox>)}
    </>
  );
}
