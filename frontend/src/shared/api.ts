/** Calls of the service. Every failure is an `ApiError` whose `kind` says what a reader can do about it. */

/** What a reader can do about a failure, with the codes of the service that mean it. */
const KINDS = {
  key: ["invalid_api_key"], // a key is missing or wrong
  blocked: ["wrong_keys"], // too many wrong keys; `retryAfter` says how long to wait
  limit: ["rate_limit_exceeded"], // too many requests; `retryAfter` says how long to wait
  busy: ["overloaded"], // the service has too much to do
  no_index: ["no_index"], // nothing is indexed yet
  reading: ["still_reading"], // the first run reads the pages; `message` says how long it takes
  index: ["store_unavailable", "store_error", "index_mismatch"], // the index can't be read
  model: ["timeout", "model_timeout", "model_unavailable", "model_error"], // the language model failed
  offline: [], // no connection to the service
  cut: [], // the connection ended within an answer
  missing: [], // there is no such thing
  refused: [], // this page or key may not do that
  invalid: [], // the request is wrong; `message` says why
  server: [],
};
export type ProblemKind = keyof typeof KINDS;

const BY_STATUS: Record<number, ProblemKind> = { 401: "key", 403: "refused", 404: "missing", 421: "refused", 429: "limit" };

export class ApiError extends Error {
  constructor(
    readonly kind: ProblemKind,
    message: string,
    readonly code = "",
    /** Seconds; 0 if the service doesn't say. */
    readonly retryAfter = 0,
    readonly status = 0,
    /** How the answer that failed was made, if that was asked for. */
    readonly trace: unknown = undefined,
  ) {
    super(message);
  }
}

/** The error that this body of a response, or event of a stream, describes. */
export function apiError(body: unknown, status = 0, retryAfter = 0): ApiError {
  const error = (body as { error?: { message?: string; code?: string | null; retry_after?: number } } | null)?.error;
  const code = error?.code ?? "";
  const known = (Object.keys(KINDS) as ProblemKind[]).find((one) => (KINDS[one] as string[]).includes(code));
  const kind = known ?? BY_STATUS[status] ?? (status >= 400 && status < 500 ? "invalid" : "server");
  const { trace } = (body ?? {}) as { trace?: unknown };
  const wait = retryAfter || (error?.retry_after ?? 0);
  return new ApiError(kind, error?.message ?? `HTTP ${status}`, code, wait, status, trace);
}

export interface Call {
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
  /** Whether the service is to make an answer anew that it could repeat. */
  fresh?: boolean;
}

/** The path of what the service says to who reads the page that is shown: its language, and questions that it answers. */
export const interfaceHere = (): string => `v1/interface?page=${encodeURIComponent(location.href)}`;

export class Api {
  constructor(
    /** The address that paths are relative to, with a slash at its end. */
    readonly base: string,
    public key = "",
    /** Language of the reader, sent with each question. */
    public language = "",
  ) {}

  url(path: string): string {
    return new URL(path, this.base).href;
  }

  /** The response, if its status is a success. Aborting raises the signal's reason. */
  async fetch(path: string, { method = "GET", body, signal, fresh = false }: Call = {}): Promise<Response> {
    const headers: Record<string, string> = {};
    if (body !== undefined) headers["content-type"] = "application/json";
    // headers are bytes, and keys are UTF-8
    if (this.key) headers["authorization"] = `Bearer ${String.fromCharCode(...new TextEncoder().encode(this.key))}`;
    let response: Response;
    try {
      const sent = body === undefined ? null : JSON.stringify(body);
      // the browser sends Cache-Control: no-cache for "reload", without asking another origin for leave
      const cache = fresh ? "reload" : "default";
      response = await fetch(this.url(path), { method, headers, body: sent, signal: signal ?? null, cache });
    } catch (error) {
      if (signal?.aborted) throw error;
      // the browser tells a service that answers no pages of this origin from no connection only so
      const there = await fetch(this.url("health/live"), { mode: "no-cors" }).catch(() => null);
      throw new ApiError(there?.type === "opaque" ? "refused" : "offline", `DOCS_ORIGINS: ${location.origin}`);
    }
    if (response.ok) return response;
    const retryAfter = Number(response.headers.get("retry-after")) || 0;
    throw apiError(await response.json().catch(() => null), response.status, retryAfter);
  }

  async json<T>(path: string, call: Call = {}): Promise<T> {
    const response = await this.fetch(path, call);
    try {
      return (await response.json()) as T;
    } catch (error) {
      if (call.signal?.aborted) throw error;
      throw new ApiError("server", String(error), "", 0, response.status);
    }
  }
}

/** Any error as ours; a mistake of our own stays visible in the console. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  console.error(error);
  return new ApiError("server", String(error));
}
