/** A block of code: the name of its language, a button that copies what one types of it, and colours once the highlighter is there. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CopyButton } from "./copy";
import { useUi } from "./ui";

export type Highlight = (code: string, language: string) => ComponentChildren;

/** Who wants colours sets `load` before rendering; it is called when the first code appears. */
export const highlighter: { load: (() => Promise<Highlight>) | null } = { load: null };

const PROMPT = /^(?:\([\w.-]+\) ?)?(?:(?:\[[^\]]*\]|[\w.@:~/-]*)\$|PS [^>]*>|>>>) /;
const CONTINUED = /^(?:>|\.\.\.)(?: |$)/;

let ready: Highlight | null = null;

export function CodeBlock({ code, language }: { code: string; language?: string | undefined }): JSX.Element {
  const { t } = useUi();
  const name = language?.trim().split(/[\s,{]/)[0] ?? "";
  const highlight = useHighlight();
  return (
    <div class="da-code">
      {name && <div class="da-code-head">{name}</div>}
      <pre tabIndex={0} role="region" aria-label={name || t.chat.code}>
        <code>{highlight ? highlight(code, name) : code}</code>
      </pre>
      <CopyButton text={typed(code)} label={t.chat.copyCode} />
    </div>
  );
}

/** The code as one types it: of a session, the lines with a prompt, without it. */
export function typed(code: string): string {
  const lines = code.split("\n");
  if (!lines.some((line) => PROMPT.test(line))) return code;
  let goes = false; // the line before goes on
  return lines.flatMap((line) => {
    const prompt = PROMPT.exec(line) ?? (line.startsWith("...") || goes ? CONTINUED.exec(line) : null);
    if (!prompt && !goes) return [];
    goes = line.endsWith("\\");
    return [line.slice(prompt?.[0].length ?? 0)];
  }).join("\n");
}

function useHighlight(): Highlight | null {
  const [, render] = useState({});
  useEffect(() => {
    if (ready || !highlighter.load) return;
    let gone = false;
    highlighter.load().then(
      (loaded) => {
        ready = loaded;
        if (!gone) render({});
      },
      (error: unknown) => console.warn("code stays without colours:", error),
    );
    return () => {
      gone = true;
    };
  }, []);
  return ready;
}
