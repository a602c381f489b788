/** The stream of an answer: `v1/chat/completions` as server-sent events. */
import type { ChatCompletionChunk, Source } from "../../api";
import { type Api, ApiError, apiError } from "./api";
import type { Ended } from "./types";

/** The fields of a request besides the messages. */
export interface Options {
  model: string;
  persona?: string;
  language?: string;
  /** The page that the reader looks at. */
  page?: string;
  filters?: Record<string, string[]>;
  [field: string]: unknown;
}

export interface Message {
  role: "user" | "assistant";
  content: string;
}

interface ChatRequest extends Options {
  messages: Message[];
}

export type ChatEvent =
  | { kind: "id"; id: string }
  | { kind: "text"; text: string }
  | { kind: "status"; text: string; found?: Source[] }
  | ({ kind: "done"; trace?: unknown } & Ended);

/** The events of an answer, which end with `done`; not a repeated one if `fresh`. Raises `ApiError`; aborting raises the signal's reason. */
export async function* chat(api: Api, request: ChatRequest, signal: AbortSignal, fresh = false): AsyncGenerator<ChatEvent> {
  const body = { ...request, stream: true, events: true };
  const response = await api.fetch("v1/chat/completions", { method: "POST", body, signal, fresh });
  let known = false;
  for await (const data of events(response, signal)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data) as ChatCompletionChunk & { error?: unknown };
    if (chunk.error) throw apiError(chunk);
    if (!known && chunk.id) {
      known = true;
      yield { kind: "id", id: chunk.id };
    }
    yield* eventsOf(chunk);
  }
  throw new ApiError("cut", "");
}

function* eventsOf(chunk: ChatCompletionChunk): Generator<ChatEvent> {
  const choice = chunk.choices[0];
  const event = chunk.event as { type: string; data: { description?: string; sections?: Source[] } } | undefined;
  if (event?.type === "status") yield { kind: "status", text: event.data.description ?? "", found: event.data.sections };
  if (choice?.delta.content) yield { kind: "text", text: choice.delta.content };
  if (choice?.finish_reason) {
    const { sources = [], refused, unsupported, verbatim, follow_ups, trace } = chunk;
    yield { kind: "done", sources, cut: choice.finish_reason === "length", refused, unsupported, verbatim, follow_ups, trace };
  }
}

/** The data of each event. */
async function* events(response: Response, signal: AbortSignal): AsyncGenerator<string> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    while (true) {
      const { done, value } = await reader.read();
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop()!;
      for (const line of lines) if (line.startsWith("data: ")) yield line.slice(6).trimEnd();
    }
  } catch (error) {
    if (signal.aborted) throw error;
    throw new ApiError("cut", String(error));
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
