/** The form for the admin key. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useAdmin } from "./data";

/** `refused` says why the last key didn't open. */
export function KeyForm({ refused, onKey }: { refused: "" | "wrong" | "blocked"; onKey: (key: string) => void }): JSX.Element {
  const { t } = useAdmin();
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const send = (event: Event) => {
    event.preventDefault();
    const key = field.current!.value.trim();
    if (key) onKey(key);
  };
  return (
    <form class="da-key" onSubmit={send}>
      <h1>{t.key.heading}</h1>
      {refused ? <p class="ad-refused" role="alert">{t.key[refused]}</p> : <p class="da-muted">{t.key.text}</p>}
      <label>{t.key.label}<input ref={field} type="password" autocomplete="current-password" required aria-invalid={refused !== ""} /></label>
      <p class="da-muted">{t.key.note}</p>
      <button class="da-button da-primary">{t.key.send}</button>
    </form>
  );
}
