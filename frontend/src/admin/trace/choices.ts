/** What is asked for a trace: an assistant, settings and prompts, and the address that has them. */
import type { Trace } from "../../../api";

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

const OVERRIDES: readonly string[] = [...Object.keys(NUMBERS), "fusion"];
const AGAIN = "again.";

/** The choices in an address, the first ones or those to ask again with, or in a form. */
export function choicesIn(query: URLSearchParams | FormData, prompts: Record<string, string>, again: boolean): Choices {
  const prefix = again ? AGAIN : "";
  const value = (name: string) => String(query.get(prefix + name) ?? "");
  const settings = Object.fromEntries(OVERRIDES.map((name) => [name, value(name)]).filter(([, one]) => one));
  return { model: value("model"), settings, prompts };
}

/** The parameters of an address that has these choices. */
export function parameters({ model, settings }: Choices, again: boolean): Record<string, string> {
  const prefix = again ? AGAIN : "";
  const all = Object.entries({ ...(model && { model }), ...settings });
  return Object.fromEntries(all.map(([name, value]) => [prefix + name, value]));
}

export function isAgain(query: URLSearchParams): boolean {
  return [...query.keys()].some((name) => name.startsWith(AGAIN));
}
