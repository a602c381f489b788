/** What the front end makes of what the API answers. */
import type { ChatCompletionChunk, Source } from "../../api";
import type { ApiError } from "./api";

/** An answer with its question, as it is shown and kept. */
export interface Exchange {
  id: string;
  question: string;
  answer: Answer;
}

/** The reader has `stopped` it; what else has ended it, such as leaving the page, has `interrupted` it. */
type AnswerState = "waiting" | "writing" | "done" | "stopped" | "interrupted" | "failed";

/** What is known of an answer at its end. */
export interface Ended extends Pick<ChatCompletionChunk, "refused" | "unsupported" | "verbatim" | "follow_ups"> {
  sources: Source[];
  /** It ends where it had reached its longest length. */
  cut: boolean;
}

export interface Answer extends Ended {
  /** The id of the response, which feedback is about; empty until the first event. */
  id: string;
  state: AnswerState;
  text: string;
  /** What the service is doing. */
  status: string;
  /** Sections that were found before the answer was written. */
  found?: Source[] | undefined;
  rating?: Rating | undefined;
  problem?: ApiError;
}

export type Rating = "up" | "down";
