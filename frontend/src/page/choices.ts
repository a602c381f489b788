/** What a reader chose: language, appearance, assistant and tone. Kept in the browser. */
import { useState } from "preact/hooks";
import type { Storage } from "../shared/storage";

export interface Choices {
  language: string;
  theme: string;
  assistant: string;
  tone: string;
}

const NAMES = ["language", "theme", "assistant", "tone"] as const;

export function useChoices(storage: Storage): [Choices, (change: Partial<Choices>) => void] {
  const [choices, set] = useState(() => Object.fromEntries(NAMES.map((name) => [name, storage.get(name)])) as unknown as Choices);
  const change = (changed: Partial<Choices>) => {
    for (const [name, value] of Object.entries(changed)) storage.set(name, value);
    set({ ...choices, ...changed });
  };
  return [choices, change];
}
