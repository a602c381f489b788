/** Statements that no passage proves: the service writes a sign behind them, which is a button with the reason here. */
import type { ComponentChildren, JSX } from "preact";
import { useId } from "preact/hooks";
import type { Unsupported } from "../../api";
import type { Ranges } from "./markdown";
import { split } from "./quotes";
import type { Answer } from "./types";
import { useUi } from "./ui";

export const SIGN = /\(⚠[^()\n]{0,100}\)/g; // `unproven` in the texts of each language

export interface Doubts {
  mark: (plain: string) => Ranges;
  doubt: (before: string) => ComponentChildren;
}

/** How to show them; null if the answer has none, and only quotes such a sign. */
export function doubtsOf({ state, unsupported }: Answer): Doubts | null {
  if (state === "done" && !unsupported) return null;
  return { mark: doubted, doubt: (before) => <Doubt kind={kindOf(before, unsupported ?? [])} /> };
}

/** The sentence before each sign; the code behind one that a block begins with. */
function doubted(plain: string): Ranges {
  const signs = [...plain.matchAll(SIGN)].map((sign) => [sign.index, sign.index + sign[0].length] as const);
  return signs.map(([start, end], i) => {
    const from = signs[i - 1]?.[1] ?? 0;
    const before = split(plain.slice(from, start), "").filter(({ segment }) => segment.trim()).at(-1);
    if (!before) return [end + 1, signs[i + 1]?.[0] ?? plain.length];
    const blank = before.segment.length - before.segment.trimStart().length;
    return [from + before.index + blank, from + before.index + before.segment.trimEnd().length];
  });
}

/** What isn't proved of the statement that ends here; known when the answer is complete. */
function kindOf(before: string, unsupported: Unsupported[]): Unsupported["kind"] {
  if (!before.trim()) return "code";
  return unsupported.find(({ text }) => letters(before).endsWith(letters(text)))?.kind ?? "statement";
}

function letters(text: string): string {
  return text.replace(/\[\d[^[\]]*\]|[^\p{L}\p{N}]/gu, "");
}

function Doubt({ kind }: { kind: Unsupported["kind"] }): JSX.Element {
  const { t } = useUi();
  const reason = kind === "statement" ? kind : "literal";
  const id = useId();
  return (
    <span class="da-doubt">
      {/* Safari doesn't focus what is clicked */}
      <button type="button" class="da-cite" aria-label={t.doubts.label} aria-describedby={id}
        onClick={(event) => event.currentTarget.focus()} onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}>?</button>
      <span role="tooltip" id={id}><strong>{t.doubts.label}.</strong> {t.doubts.kinds[reason]}</span>
    </span>
  );
}
