/** A button that copies a text and says whether it did. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./icons";
import { useUi } from "./ui";

const SHOWN = 2000; // milliseconds

export function CopyButton({ text, label, icon = "copy", children }: { text: string; label: string; icon?: IconName; children?: string }): JSX.Element {
  const { t } = useUi();
  const button = useRef<HTMLButtonElement>(null);
  const [outcome, setOutcome] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => setOutcome(""), SHOWN);
    return () => window.clearTimeout(timer);
  }, [outcome]);
  const copy = async () => setOutcome((await copied(text, button.current!)) ? t.chat.copied : t.chat.notCopied);
  return (
    <>
      <button ref={button} type="button" class="da-icon-button" title={label} aria-label={label} onClick={copy}>
        <Icon name={outcome === t.chat.copied ? "check" : icon} />{children}
      </button>
      <span class={outcome === t.chat.notCopied ? "da-muted" : "da-hidden"} role="status">{outcome}</span>
    </>
  );
}

/** Whether the browser copied the text. */
export async function copied(text: string, near: HTMLElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copiedBySelection(text, near); // no https
  }
}

function copiedBySelection(text: string, near: HTMLElement): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "da-hidden";
  near.parentElement!.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  near.focus();
  return done;
}
