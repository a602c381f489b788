/** What went wrong, in plain words, with what a reader can do about it. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "./api";
import { Icon } from "./icons";
import type { Texts } from "./texts";
import { useUi } from "./ui";

/** The title of the problem and a sentence about it. */
export function words(problem: ApiError, t: Texts): [string, string] {
  const [title, text] = t.problems.kinds[problem.kind];
  return [title, ["invalid", "refused", "reading"].includes(problem.kind) ? `${text} ${problem.message}`.trim() : text];
}

interface Props {
  problem: ApiError;
  /** The title, and the sentence about it; those of its kind by default. */
  said?: readonly [string, string];
  onRetry?: (() => void) | undefined;
}

export function Problem({ problem, said, onRetry }: Props): JSX.Element {
  const { t } = useUi();
  const [title, text] = said ?? words(problem, t);
  const waits = problem.kind === "reading" || problem.kind === "no_index"; // nothing is wrong
  const [left, setLeft] = useState(problem.retryAfter);
  useEffect(() => {
    if (left <= 0) return;
    const timer = window.setTimeout(() => setLeft(left - 1), 1000);
    return () => window.clearTimeout(timer);
  }, [left]);
  return (
    <div class={waits ? "da-problem da-calm" : "da-problem"}>
      {!waits && <Icon name="warning" />}
      <div>
        <div role="alert"><strong>{title}</strong>{text && <p>{text}</p>}</div>
        {onRetry && (
          <button type="button" class="da-button" disabled={left > 0} onClick={onRetry}>
            {left > 0 ? t.problems.wait(left) : t.problems.retry}
          </button>
        )}
      </div>
    </div>
  );
}

interface KeyFormProps {
  said: readonly ComponentChildren[];
  /** Whether the last key was wrong. */
  wrong: boolean;
  /** Whether people can sign in, too. */
  signIn: boolean;
  /** How long the key is kept; without it, the reader chooses. */
  note?: string;
  onKey: (key: string, remember: boolean) => void;
}

/** The way to the provider, which leads back to this page, and why it didn't open the last time. */
export function SignIn(): JSX.Element {
  const { t } = useUi();
  const asked = new URLSearchParams(location.search);
  const problem = asked.get("sign_in");
  asked.delete("sign_in");
  const here = `${location.pathname.slice(new URL(document.baseURI).pathname.length - 1)}${asked.size ? `?${asked}` : ""}`;
  return (
    <>
      {problem && <p class="da-muted" role="alert">{t.page.signIn[problem === "refused" ? "refused" : "failed"]}</p>}
      <a class="da-button da-primary" href={`sign-in/?next=${encodeURIComponent(here)}`}>{t.page.signIn.send}</a>
    </>
  );
}

/** Forgets who has signed in, and opens the page where readers ask. */
export function SignOut({ person }: { person: string }): JSX.Element {
  const { t } = useUi();
  const out = () => void fetch("sign-in/out", { method: "POST", redirect: "manual" }).finally(() => location.assign("./"));
  return <button type="button" class="da-button da-plain" onClick={out}>{t.page.signOut(person)}</button>;
}

/** Asks for the key of a service that needs one. */
export function KeyForm({ said: [title, text], wrong, signIn, note, onKey }: KeyFormProps): JSX.Element {
  const { t } = useUi();
  const field = useRef<HTMLInputElement>(null);
  const remember = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const send = (event: Event) => {
    event.preventDefault();
    const key = field.current!.value.trim();
    if (key) onKey(key, remember.current?.checked ?? false);
  };
  return (
    <form class="da-key" onSubmit={send}>
      {signIn && <SignIn />}
      <div role={wrong ? "alert" : undefined}><h1>{title}</h1><p class="da-muted">{text}</p></div>
      <label>{t.page.keyLabel}<input ref={field} type="password" autocomplete="current-password" required aria-invalid={wrong} /></label>
      {note ? <p class="da-muted">{note}</p> : <label class="da-check"><input ref={remember} type="checkbox" /> {t.page.keyRemember}</label>}
      <button class={signIn ? "da-button" : "da-button da-primary"}>{t.page.keySend}</button>
    </form>
  );
}
