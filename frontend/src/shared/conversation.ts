/** A conversation: its questions and answers. An answer goes on while another conversation is shown. */
import { useEffect, useState } from "preact/hooks";
import { type Api, asApiError } from "./api";
import { type ChatEvent, type Message, type Options, chat } from "./chat";
import type { Answer, Exchange } from "./types";

const MOST_SENT = 12; // earlier exchanges; the service reads the last messages only
const INTERVAL = 40; // milliseconds between two updates of the screen

const EMPTY: Answer = { id: "", state: "waiting", text: "", status: "", sources: [], cut: false };

let made = 0;
/** A name that no other has; `crypto.randomUUID` needs https. */
function newId(): string {
  return `${Date.now().toString(36)}${(made++).toString(36)}${Math.random().toString(36).slice(2, 6)}`;
}

export class Conversation {
  private listeners = new Set<() => void>();
  private stopper: AbortController | null = null;
  private timer = 0;

  constructor(
    private readonly api: Api,
    public exchanges: Exchange[] = [],
    readonly id = newId(),
    /** When it was last asked something, in milliseconds. */
    public at = Date.now(),
  ) {}

  get busy(): boolean {
    return this.stopper !== null;
  }

  /** Calls the function after each change; returns how to end that. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Ask, after the exchanges before `at` (all by default); those from there on are replaced. Resolves at the end. */
  async ask(question: string, options: Options, at = this.exchanges.length): Promise<void> {
    this.stop();
    const stopper = (this.stopper = new AbortController());
    const earlier = this.exchanges.slice(0, at);
    const fresh = this.exchanges[at]?.question === question; // another answer is wanted
    const exchange: Exchange = { id: newId(), question, answer: EMPTY };
    this.exchanges = [...earlier, exchange];
    this.at = Date.now();
    this.notify();
    try {
      const request = { ...options, messages: [...messages(earlier), { role: "user" as const, content: question }] };
      for await (const event of chat(this.api, request, stopper.signal, fresh)) {
        this.update(exchange.id, (answer) => changed(answer, event), event.kind === "done");
      }
    } catch (error) {
      const end = stopper.signal.aborted
        ? { state: stopper.signal.reason as "stopped" | "interrupted" }
        : { state: "failed" as const, problem: asApiError(error) };
      this.update(exchange.id, (answer) => ({ ...answer, ...end }), true);
    } finally {
      if (this.stopper === stopper) this.stopper = null;
      this.notify();
    }
  }

  /** End the answer that is being written. */
  stop(as: "stopped" | "interrupted" = "stopped"): void {
    this.stopper?.abort(as);
    this.stopper = null;
  }

  /** Change an answer, for example its rating. */
  change(id: string, fields: Partial<Answer>): void {
    this.update(id, (answer) => ({ ...answer, ...fields }), true);
  }

  private update(id: string, change: (answer: Answer) => Answer, now: boolean): void {
    const index = this.exchanges.findIndex((one) => one.id === id);
    const exchange = this.exchanges[index];
    if (!exchange) return;
    this.exchanges = this.exchanges.with(index, { ...exchange, answer: change(exchange.answer) });
    if (now) this.notify();
    else this.timer ||= window.setTimeout(() => this.notify(), INTERVAL);
  }

  protected notify(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
    for (const listener of this.listeners) listener();
  }
}

function changed(answer: Answer, event: ChatEvent): Answer {
  switch (event.kind) {
    case "id":
      return { ...answer, id: event.id };
    case "status":
      return { ...answer, status: event.text, found: event.found ?? answer.found };
    case "text":
      return { ...answer, state: "writing", text: answer.text + event.text };
    case "done": {
      const { kind: _, trace: __, ...said } = event;
      return { ...answer, state: "done", found: undefined, ...said };
    }
  }
}

/** As it is kept: an answer that isn't complete when the page is left is an interrupted one. */
export function settled({ id, question, answer }: Exchange): Exchange {
  const { problem: _, found: __, state, ...kept } = answer;
  const ended = state === "done" || state === "stopped";
  return { id, question, answer: { ...kept, status: "", state: ended ? state : "interrupted" } };
}

function messages(exchanges: Exchange[]): Message[] {
  return exchanges
    .filter(({ answer }) => answer.text)
    .slice(-MOST_SENT)
    .flatMap(({ question, answer }) => [
      { role: "user" as const, content: question },
      { role: "assistant" as const, content: answer.text },
    ]);
}

/** Renders again after each change of the conversation. */
export function useConversation(conversation: Conversation): Exchange[] {
  const [, render] = useState({});
  useEffect(() => conversation.onChange(() => render({})), [conversation]);
  return conversation.exchanges;
}
