/** All chunks that were found: their places in both legs, how their scores came about, and why they were kept or dropped. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LegPlace, Trace, TraceCandidate, TraceFusion, TraceSearch } from "../../../api";
import { Badge, Table, useAdmin } from "../data";
import { address } from "../location";

const SHOWN = 15;
type Part = "all" | "kept" | "dropped";

/** A bar whose place and length are shares of its track. */
export function Bar({ from, to, kind }: { from: number; to: number; kind: string }): JSX.Element {
  return <span class={`tr-bar tr-${kind}`} style={{ "--from": from, "--to": to }} />;
}

export function Candidates({ trace }: { trace: Trace }): JSX.Element {
  const { trace: t } = useAdmin();
  const [part, setPart] = useState<Part>("all");
  const [all, setAll] = useState(false);
  const rows: Record<Part, TraceCandidate[]> = {
    all: trace.candidates,
    kept: trace.candidates.filter((one) => !one.dropped),
    dropped: trace.candidates.filter((one) => one.dropped),
  };
  const shown = all ? rows[part] : rows[part].slice(0, SHOWN);
  const names = namesOf(trace);
  const reranked = trace.candidates.some((one) => one.rerank !== null);
  if (!trace.candidates.length) return <p>{t.noCandidates}</p>;
  return (
    <>
      {trace.fusion && <FusionText fusion={trace.fusion} />}
      {trace.evidence && <EvidenceText evidence={trace.evidence} />}
      <div class="ad-row" role="group" aria-label={t.show}>
        {(["all", "kept", "dropped"] as const).map((name) => (
          <button key={name} type="button" class="da-button" aria-pressed={part === name} onClick={() => setPart(name)}>{t[name](rows[name].length)}</button>
        ))}
      </div>
      <div class="tr-found">
        <Table name={t.candidates} head={t.columns.filter((_, i) => reranked || i !== 5)}>
          {shown.map((one) => <Row key={one.chunk} one={one} names={names} reranked={reranked} />)}
        </Table>
      </div>
      {rows[part].length > shown.length && (
        <button type="button" class="da-button" onClick={() => setAll(true)}>{t.more(rows[part].length - shown.length)}</button>
      )}
    </>
  );
}

function FusionText({ fusion }: { fusion: TraceFusion }): JSX.Element {
  const { trace: t, score } = useAdmin();
  const filters = Object.entries(fusion.filters).map(([name, values]) => `${name} = ${values.join(" ")}`);
  const weights = [fusion.words_weight_used, fusion.vector_weight_used, fusion.words_weight, fusion.vector_weight].map(score);
  const parts = [
    t.fused(fusion.fusion, weights[0]!, weights[1]!, weights[2]!, weights[3]!),
    t.otherLanguage(score(fusion.other_language)),
    t.limits(fusion.top_k, fusion.per_page),
    ...(filters.length ? [`${t.filters}: ${filters.join(", ")}`] : []),
  ];
  return <p>{parts.join(" · ")}</p>;
}

function EvidenceText({ evidence }: { evidence: NonNullable<Trace["evidence"]> }): JSX.Element {
  const { trace: t, score } = useAdmin();
  return (
    <p>
      {t.evidence(score(evidence.found), score(evidence.needed))}{" "}
      <Badge tone={evidence.enough ? "good" : "bad"}>{evidence.enough ? t.enough : t.tooLittle}</Badge>
    </p>
  );
}

/** The chunks that were found by title and heading: nobody knows them by their ids. */
export function namesOf(trace: Trace): Map<string, string> {
  return new Map(trace.candidates.map(({ chunk, title, section }) => [chunk, [...new Set([title, section])].filter(Boolean).join(" › ") || chunk]));
}

export function ChunkLink({ id, names }: { id: string; names: Map<string, string> }): JSX.Element {
  return <a href={address(`chunk/${encodeURIComponent(id)}`)}>{names.get(id) ?? id}</a>;
}

function Row({ one, names, reranked }: { one: TraceCandidate; names: Map<string, string>; reranked: boolean }): JSX.Element {
  const { trace: t, score } = useAdmin();
  return (
    <tr class={one.dropped ? "tr-dropped" : ""}>
      <td class="ad-number">{one.place && !one.dropped ? t.rank(one.place) : "–"}</td>
      <td class="ad-page">
        <ChunkLink id={one.chunk} names={names} />
        <span class="da-muted ad-break">{one.url} · {one.language}{one.found_in && ` · ${t.foundIn(one.found_in)}`}</span>
        <span class="da-muted">{one.found_by.join(", ")}</span>
      </td>
      <Leg place={one.words} />
      <Leg place={one.vectors} />
      <td class="tr-fused">{one.fused !== null && <Score one={one} />}</td>
      {reranked && <td class="ad-number">{one.rerank === null ? "–" : score(one.rerank)}</td>}
      <td class="tr-outcome"><Outcome one={one} /></td>
    </tr>
  );
}

function Leg({ place }: { place: LegPlace | null }): JSX.Element {
  const { trace: t, score } = useAdmin();
  return <td class="ad-number">{place ? <><strong>{t.rank(place.rank)}</strong> {score(place.score)}</> : "–"}</td>;
}

function Score({ one }: { one: TraceCandidate }): JSX.Element {
  const { trace: t, score } = useAdmin();
  const total = Math.max(one.words_share + one.vectors_share, 1);
  const factors = [
    one.language_factor !== 1 && `${t.factors.language} ${score(one.language_factor)}`,
    one.boost !== 1 && `${t.factors.boost} ${score(one.boost)}`,
  ].filter(Boolean);
  return (
    <>
      <strong>{score(one.fused!)}</strong>
      <span class="tr-track tr-small" title={t.share(score(one.words_share), score(one.vectors_share))}>
        <Bar from={0} to={one.words_share / total} kind="words" />
        <Bar from={one.words_share / total} to={(one.words_share + one.vectors_share) / total} kind="vectors" />
      </span>
      <span class="da-muted">{score(one.words_share)} + {score(one.vectors_share)}{factors.length > 0 && `, ${factors.join(", ")}`}</span>
    </>
  );
}

export function Outcome({ one }: { one: TraceCandidate }): JSX.Element {
  const { trace: t } = useAdmin();
  if (!one.dropped) return <Badge tone="good">{one.passage ? t.inPassage(one.passage) : t.keptAs}</Badge>;
  const { step, reason, detail } = one.dropped;
  return <span title={detail}>{t.reasons[reason] ?? reason} <span class="da-muted">{t.droppedBy(step)}</span></span>;
}

export function Searches({ trace }: { trace: Trace }): JSX.Element | null {
  const { trace: t } = useAdmin();
  if (!trace.searches.length) return null;
  const names = namesOf(trace);
  return <section><h3>{t.searches}</h3>{trace.searches.map((search, i) => <SearchDetails key={i} search={search} names={names} />)}</section>;
}

function SearchDetails({ search, names }: { search: TraceSearch; names: Map<string, string> }): JSX.Element {
  const { trace: t, ms, score } = useAdmin();
  const legs: [string, LegPlace[]][] = [[t.byWords(search.words.length), search.words]];
  legs.push([search.vector ? t.byVectors(search.vectors.length) : t.noVectors, search.vectors]);
  return (
    <details class="tr-search">
      <summary>{t.searched(search.step, ms(search.end - search.start))} <span class="da-muted">{search.texts.map((one) => `${one.language}: ${one.text}`).join(" · ")}</span></summary>
      <div class="tr-legs">
        {legs.map(([name, places]) => (
          <div key={name}>
            <p class="da-label">{name}</p>
            <ol>
              {places.slice(0, SHOWN).map((place) => <li key={place.chunk}><ChunkLink id={place.chunk} names={names} /> <span class="da-muted">{score(place.score)}</span></li>)}
            </ol>
          </div>
        ))}
      </div>
    </details>
  );
}
