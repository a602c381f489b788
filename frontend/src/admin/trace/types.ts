/** A trace as /openapi.json describes it, and what is asked for one. */

export interface Message {
  role: string;
  content: string;
}

export interface Call {
  kind: "chat" | "embedding" | "rerank";
  model: string;
  start: number;
  end: number;
  first_text: number | null;
  prompt_tokens: number;
  completion_tokens: number;
  error: string;
  temperature: number | null;
  max_tokens: number | null;
  messages: Message[];
  texts: string[];
  reply: string;
}

export interface Step {
  step: string;
  group: number;
  start: number;
  end: number;
  input: Record<string, unknown>;
  output: Record<string, unknown>;
  calls: Call[];
  error: string;
}

export interface LegPlace {
  chunk: string;
  rank: number;
  score: number;
}

export interface Search {
  step: string;
  start: number;
  end: number;
  texts: { language: string; text: string; weight: number }[];
  vector: boolean;
  words: LegPlace[];
  vectors: LegPlace[];
}

export interface Fusion {
  fusion: string;
  words_weight: number;
  vector_weight: number;
  words_weight_used: number;
  vector_weight_used: number;
  other_language: number;
  language_offsets: Record<string, number>;
  depth: number;
  top_k: number;
  per_page: number;
  filters: Record<string, string[]>;
}

export interface Dropped {
  step: string;
  reason: string;
  detail: string;
}

export interface Candidate {
  chunk: string;
  url: string;
  title: string;
  section: string;
  language: string;
  found_by: string[];
  words: LegPlace | null;
  vectors: LegPlace | null;
  words_share: number;
  vectors_share: number;
  language_factor: number;
  boost: number;
  fused: number | null;
  rerank: number | null;
  found_in: string;
  place: number | null;
  passage: number | null;
  dropped: Dropped | null;
}

export interface TracePassage {
  number: number;
  url: string;
  title: string;
  language: string;
  chunks: string[];
  text: string;
}

export interface TraceLink {
  number: number | null;
  passage: number | null;
  chunk: string;
  url: string;
  section: string;
  reason: string;
  score: number;
}

export interface Trace {
  question: string;
  language: string;
  generation: number | null;
  ms: number;
  first_text: number | null;
  steps: Step[];
  searches: Search[];
  fusion: Fusion | null;
  candidates: Candidate[];
  evidence: { found: number; needed: number; enough: boolean } | null;
  passages: TracePassage[];
  links: TraceLink[];
  removed: { kind: string; text: string; reason: string }[];
  end: { finish_reason: string; extractive: boolean; refused: boolean; language: string; failure: string };
  problem: string;
}

export interface TracedAnswer {
  text: string;
  trace: Trace;
}

/** The settings that an address may name. */
export const NUMBERS = {
  top_k: { min: 1, max: 50, step: 1 },
  per_page: { min: 1, max: 50, step: 1 },
  vector_weight: { min: 0, max: 1, step: 0.05 },
  min_evidence: { min: 0, max: 1, step: 0.01 },
  temperature: { min: 0, max: 2, step: 0.1 },
} as const;
export type NumberName = keyof typeof NUMBERS;
export const FUSIONS = ["weighted", "rrf"];

/** What one answer is asked with, besides the question; empty values are those of the service. */
export interface Choices {
  model: string;
  settings: Record<string, string>;
  /** Texts of prompts by file. */
  prompts: Record<string, string>;
}

export const OVERRIDES: readonly string[] = [...Object.keys(NUMBERS), "fusion"];
const AGAIN = "again.";

/** The choices in an address: the first ones, or those to ask again with. */
export function choicesIn(query: URLSearchParams, prompts: Record<string, string>, again: boolean): Choices {
  const prefix = again ? AGAIN : "";
  const settings: Record<string, string> = {};
  for (const name of OVERRIDES) {
    const value = query.get(prefix + name);
    if (value) settings[name] = value;
  }
  return { model: query.get(`${prefix}model`) ?? "", settings, prompts };
}

/** The parameters of an address that has these choices. */
export function parameters({ model, settings }: Choices, again: boolean): Record<string, string> {
  const prefix = again ? AGAIN : "";
  const all: Record<string, string> = { model, ...settings };
  return Object.fromEntries(Object.entries(all).map(([name, value]) => [prefix + name, value]));
}

export function isAgain(query: URLSearchParams): boolean {
  return [...query.keys()].some((name) => name.startsWith(AGAIN));
}
