/** A block of code: the name of its language, a button that copies what one types of it, and colours once the highlighter is there. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CopyButton } from "./copy";
import { useUi } from "./ui";

interface Highlighter {
  highlight: (code: string, language: string) => ComponentChildren;
  /** The code as one types it. */
  typed: (code: string) => string;
}

/** Who wants colours sets `load` before rendering; it is called when the first code appears. */
export const highlighter: { load: (() => Promise<Highlighter>) | null } = { load: null };

let ready: Highlighter | null = null;

export function CodeBlock({ code, language }: { code: string; language?: string | undefined }): JSX.Element {
  const { t } = useUi();
  const name = language?.trim().split(/[\s,{]/)[0] ?? "";
  const loaded = useHighlighter();
  return (
    <div class="da-code">
      {name && <div class="da-code-head">{name}</div>}
      <pre tabIndex={0} role="group" aria-label={name || t.chat.code}>
        <code>{loaded ? loaded.highlight(code, name) : code}</code>
      </pre>
      <CopyButton text={loaded?.typed(code) ?? code} label={t.chat.copyCode} />
    </div>
  );
}

function useHighlighter(): Highlighter | null {
  const [, render] = useState({});
  useEffect(() => {
    if (ready) return;
    highlighter.load?.().then((loaded) => render((ready = loaded)), console.warn);
  }, []);
  return ready;
}
