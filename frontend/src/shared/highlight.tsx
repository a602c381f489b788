/** Colours of code: highlight.js' tree as Preact nodes. A part of its own, loaded with the first code. */
import hljs from "highlight.js/lib/common";
import type { ComponentChildren } from "preact";

interface Node {
  scope?: string;
  children: (Node | string)[];
}

const LONGEST = 50_000; // characters

export function highlight(code: string, language: string): ComponentChildren {
  if (code.length > LONGEST || !hljs.getLanguage(language)) return code;
  const { _emitter: emitter } = hljs.highlight(code, { language, ignoreIllegals: true });
  return nodes((emitter as unknown as { rootNode: Node }).rootNode);
}

function nodes(node: Node): ComponentChildren {
  return node.children.map((child) =>
    typeof child === "string" ? child : <span class={`hl-${child.scope?.split(".")[0] ?? ""}`}>{nodes(child)}</span>,
  );
}
