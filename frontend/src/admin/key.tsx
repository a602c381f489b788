/** The form for the admin key. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { InterfaceBody } from "../../api";
import { SignIn } from "../shared/problems";
import { useAdmin } from "./data";

export type People = Pick<InterfaceBody, "sign_in" | "person">;

/** Whether people can sign in, and who has: asked without a key, which may be a wrong one. */
export function usePeople(): People {
  const [people, set] = useState<People>({ sign_in: false, person: "" });
  useEffect(() => void fetch("v1/interface").then((response) => response.json()).then(set, () => undefined), []);
  return people;
}

/** `refused` says why the last key didn't open. */
export function KeyForm({ refused, people, onKey }: { refused: "" | "wrong" | "blocked"; people: People; onKey: (key: string) => void }): JSX.Element {
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
      {people.person ? <p role="alert">{t.key.reader(people.person)}</p> : people.sign_in && <SignIn />}
      <h1>{t.key.heading}</h1>
      {refused ? <p class="ad-refused" role="alert">{t.key[refused]}</p> : <p class="da-muted">{t.key.text}</p>}
      <label>{t.key.label}<input ref={field} type="password" autocomplete="current-password" required aria-invalid={refused !== ""} /></label>
      <p class="da-muted">{t.key.note}</p>
      <button class="da-button da-primary">{t.key.send}</button>
    </form>
  );
}
