/** Conversations kept in the browser: one entry of its storage each, so that two tabs don't overwrite each other. */
import type { Api } from "./api";
import { Conversation, settled } from "./conversation";
import { folded } from "./quotes";
import { type Storage, namesIn } from "./storage";
import type { Exchange } from "./types";

export const LONGEST_TITLE = 80; // characters
const MOST_KEPT = 100; // conversations

export interface Kept {
  id: string;
  title: string;
  /** When it was last asked something, in milliseconds. */
  at: number;
}

interface Entry extends Kept {
  name?: string;
  exchanges: Exchange[];
}

/** A conversation of the list, which the reader can name and other tabs go on with. */
export class KeptConversation extends Conversation {
  /** What the reader calls it; empty for its first question. */
  name = "";

  get title(): string {
    if (this.name) return this.name;
    const question = this.exchanges[0]?.question.replace(/\s+/g, " ").trim() ?? "";
    return question.length > LONGEST_TITLE ? `${question.slice(0, LONGEST_TITLE)}…` : question;
  }

  rename(name: string): void {
    this.name = name.trim().slice(0, LONGEST_TITLE);
    this.notify();
  }

  /** Go on from these exchanges, which another tab has asked. */
  replace(exchanges: Exchange[], at: number): void {
    Object.assign(this, { exchanges, at });
    this.notify();
  }
}

export class History {
  /** Those of this page, which may still be answering. */
  private readonly open = new Map<string, KeptConversation>();
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly api: Api,
    private readonly storage: Storage,
  ) {
    window.addEventListener("storage", () => this.refresh());
  }

  /** Takes over what other tabs have asked in the conversations of this one. */
  private refresh(): void {
    for (const conversation of this.open.values()) {
      const entry = this.read(`chat:${conversation.id}`);
      if (!entry || entry.at < conversation.at || conversation.busy) continue;
      const { state, text } = entry.exchanges.at(-1)!.answer;
      if (state === "interrupted" && !text) continue; // it is being answered there
      const own = JSON.stringify(conversation.exchanges.map(settled));
      if (own !== JSON.stringify(entry.exchanges)) conversation.replace(entry.exchanges, entry.at);
    }
  }

  /** The kept conversations, the newest first; with words, those that have all of them, in any case and without accents. */
  list(words = ""): Kept[] {
    const wanted = folded(words).split(/\s+/).filter(Boolean);
    const entries = namesIn(this.storage, "chat:").flatMap((name) => this.read(name) ?? []).filter(({ title, exchanges }) => {
      const text = wanted.length ? folded([title, ...exchanges.flatMap(({ question, answer }) => [question, answer.text])].join("\n")) : "";
      return wanted.every((word) => text.includes(word));
    });
    return entries.map(({ id, title, at }) => ({ id, title, at })).sort((a, b) => b.at - a.at);
  }

  /** The conversation; null if it was deleted. */
  get(id: string): KeptConversation | null {
    const known = this.open.get(id);
    if (known) return known;
    const entry = this.read(`chat:${id}`);
    if (!entry) return null;
    const { exchanges, at, name = "" } = entry;
    return this.opened(Object.assign(new KeptConversation(this.api, exchanges, id, at), { name }));
  }

  /** A new one, which is kept from its first question on. */
  begin(): KeptConversation {
    return this.opened(new KeptConversation(this.api));
  }

  /** Calls the function when the list has changed, in any tab; returns how to end that. */
  onChange(listener: () => void): () => void {
    this.listeners.add(listener);
    window.addEventListener("storage", listener);
    return () => {
      this.listeners.delete(listener);
      window.removeEventListener("storage", listener);
    };
  }

  private keep(conversation: KeptConversation): void {
    const { id, title, at, name } = conversation;
    // not at each word
    if (conversation.exchanges.at(-1)?.answer.state === "writing" && conversation.busy) return;
    if (!conversation.exchanges.length || !this.open.has(id)) return;
    const exchanges = conversation.exchanges.map(settled);
    const text = JSON.stringify({ id, title, at, name, exchanges } satisfies Entry);
    const others = this.list().filter((one) => one.id !== id);
    for (const old of others.splice(MOST_KEPT - 1)) this.remove(old.id);
    // when the browser's storage is full, the oldest make room
    while (!this.storage.set(`chat:${id}`, text) && others.length) this.remove(others.pop()!.id);
    this.changed();
  }

  remove(id: string): void {
    this.open.get(id)?.stop();
    this.open.delete(id);
    this.storage.set(`chat:${id}`, "");
    this.changed();
  }

  private changed(): void {
    for (const listener of this.listeners) listener();
  }

  private opened(conversation: KeptConversation): KeptConversation {
    this.open.set(conversation.id, conversation);
    conversation.onChange(() => this.keep(conversation));
    window.addEventListener("pagehide", () => conversation.stop("interrupted"));
    return conversation;
  }

  private read(name: string): Entry | null {
    try {
      const entry = JSON.parse(this.storage.get(name)) as Entry;
      return Array.isArray(entry.exchanges) && typeof entry.title === "string" ? entry : null;
    } catch {
      return null; // removed, or not ours
    }
  }
}
