/** What /v1/admin and /v1/ingest answer, as far as these pages read it. */

export type Counts = Record<string, number>;

export interface Recipe {
  embedder: string;
  dimension: number;
  splitter: string;
  analyzer: string;
  summaries: string;
  questions: string;
}

export interface SourceRecord {
  url: string;
  collection: string;
  roots: string[];
  unreadable: string;
  demo: boolean;
}

export interface Generation {
  id: number;
  live: boolean;
  built_at: string;
  languages: string[];
  pages: number;
  chunks: number;
  recipe: Recipe;
  sources: SourceRecord[];
}

export type Severity = "error" | "warning" | "info";

export interface Problem {
  code: string;
  severity: Severity;
  index: string | null;
  message: string;
  to_do: string;
}

export interface Part {
  name: string;
  state: "ok" | "failing" | "unknown";
  last_success: string | null;
  last_failure: { at: string; error: string } | null;
  latency_ms: number | null;
  others: Part[];
}

export interface IndexState {
  name: string;
  ok: boolean;
  embedder: string;
  generation: Generation | null;
  pages_by_language: Counts;
  pages_by_collection: Counts;
  pages_by_source: Counts;
  pages_by_state: Counts;
  runs: { counts: Counts; ended: Record<string, string>; last: string; seconds: number };
}

export interface AdminIndex {
  state: "ok" | "attention" | "broken";
  problems: Problem[];
  version: string;
  model: string | null;
  parts: Record<string, Part | null>;
  sites: { configured: string[]; indexed: string[] };
  indexes: IndexState[];
}

export interface PageRow {
  url: string;
  title: string;
  language: string;
  collection: string;
  source: string;
  state: string;
  age: string;
  chunks: number;
  status: number;
  published: string;
  modified: string;
  last_ok: string;
  stale_since: string;
}

export interface PageList {
  generation: number;
  pages: number;
  total: number;
  counts: Record<string, Counts>;
  data: PageRow[];
  next: string | null;
}

export interface Section {
  offset: number;
  path: string[];
  anchor: string;
}

export interface Chunk {
  id: string;
  position: number;
  language: string;
  translated_from: string;
  link: string;
  text: string;
  sections: Section[];
  questions: [string, string][];
  start: number | null;
}

export interface OnePage {
  generation: number;
  page: PageRow;
  record: Record<string, unknown>;
  markdown: string;
  chunks: Chunk[];
}

export interface OneChunk {
  generation: number;
  chunk: Chunk;
  embedded_text: string;
  tokens: string[];
  page: PageRow;
  chunks_of_page: string[];
}

export interface Neighbour {
  id: string;
  url: string;
  title: string;
  path: string[];
  language: string;
  begins: string;
  cosine: number;
  overlap: number;
  near_duplicate: boolean;
}

export interface Setting {
  name: string;
  value: unknown;
  from: string;
  default: unknown;
  description: string;
}

export interface ErrorRow {
  level: string;
  logger: string;
  message: string;
  exception: string;
  request_id: string;
  first_at: string;
  last_at: string;
  count: number;
}

export interface PageReport {
  url: string;
  outcome: string;
  reason: string;
  note: string;
}

export interface Report {
  counts: Counts;
  warnings: string[];
  failed_sources: string[];
  refused: string[];
  seconds: number;
  changed: boolean;
  pages: PageReport[];
}

export interface Run {
  id: string;
  state: "queued" | "running" | "done" | "failed";
  sites: string[];
  by: string;
  queued_at: string;
  started_at: string | null;
  finished_at: string | null;
  progress: string;
  stage: string;
  done: number | null;
  total: number | null;
  error: string;
  counts: Counts | null;
  report?: Report | null;
}

export interface GapCluster {
  name: string;
  to_do: "write" | "extend" | "correct";
  failed: number;
  failed_before: number | null;
  count: number;
  different: number;
  refused: number;
  weak: number;
  down: number;
  languages: Counts;
  nearest: { url: string; title: string; section: string; language: string; share: number; clear: boolean } | null;
  examples: { text: string; language: string; count: number }[];
  first: string;
  last: string;
}

export interface GapReport {
  since: string;
  until: string;
  retention_days: number;
  log: "off" | "hashed" | "text";
  log_from: string;
  weak_below: number;
  totals: {
    questions: number;
    different: number;
    failed: number;
    refused: number;
    weak: number;
    down: number;
    questions_before: number | null;
    failed_before: number | null;
    outcomes: { outcome: string; language: string; count: number; failed: number }[];
  };
  clusters: GapCluster[];
  smaller: number;
  clustered: number;
  failed_different: number;
  untranslated: { language: string; url: string; title: string; page_language: string; count: number }[];
  unused: { url: string; title: string; language: string }[];
  unused_count: number;
  pages: number;
  index_problem: string;
}

/** A view that a plugin of the service brings. */
export interface PluginView {
  path: string;
  titles: Record<string, string>;
  /** The address of its script; empty for a view of ours. */
  script: string;
}
