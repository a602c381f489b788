/** What the front end makes of what the API answers. */
import type { Source, Unsupported } from "../../api";
import type { ApiError } from "./api";

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
  /** What no passage proves of the text. */
  unsupported?: Unsupported[];
  support?: Support;
  /** It ends where it had reached its longest length. */
  cut: boolean;
  rating?: Rating | undefined;
  problem?: ApiError;
}

/** How sure the answer is, in words. */
export type Support = "well supported" | "partly" | "not in the documentation";

export type Rating = "up" | "down";
