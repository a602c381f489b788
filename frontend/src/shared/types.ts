/** What the API answers, as far as the front end reads it, and what the front end makes of it. */
import type { ApiError } from "./api";

export interface Source {
  number: number;
  title: string;
  url: string;
  section: string;
  language: string;
  snippet: string;
  score: number;
  translated_from: string;
  /** The id of its passage, for `v1/passages/{id}`. */
  chunk: string;
}

/** The text of a source with what stands around it on its page, all Markdown. */
export interface Passage {
  id: string;
  title: string;
  url: string;
  headings: string[];
  collection: string;
  language: string;
  modified: string;
  published: string;
  before: string;
  text: string;
  after: string;
}

export type ByLanguage<T> = Record<string, T>;

export interface Persona {
  id: string;
  name: ByLanguage<string>;
}

export interface AssistantInfo {
  id: string;
  name: ByLanguage<string>;
  description: ByLanguage<string>;
  suggestions: ByLanguage<string[]>;
  personas: Persona[];
  collections: string[];
}

/** `v1/interface`; without a valid key only what a form for the key needs. */
export interface Interface {
  title: string;
  key_required: boolean;
  version: string;
  languages?: string[];
  default_language?: string;
  assistants?: AssistantInfo[];
  model?: boolean;
  /** First questions are still being made of the index. */
  preparing?: boolean;
  index?: { generation: number; pages: number; built_at: string } | null;
  keeps?: { days: number; feedback: boolean };
}

/** An answer with its question, as it is shown and kept. */
export interface Exchange {
  id: string;
  question: string;
  answer: Answer;
}

/** The reader has `stopped` it; what else has ended it, such as leaving the page, has `interrupted` it. */
export type AnswerState = "waiting" | "writing" | "done" | "stopped" | "interrupted" | "failed";

export interface Answer {
  /** The id of the response, which feedback is about; empty until the first event. */
  id: string;
  state: AnswerState;
  text: string;
  /** What the service is doing. */
  status: string;
  sources: Source[];
  /** No language model wrote it. */
  extractive: boolean;
  /** It ends where it had reached its longest length. */
  cut: boolean;
  rating?: Rating | undefined;
  problem?: ApiError;
}

export type Rating = "up" | "down";
