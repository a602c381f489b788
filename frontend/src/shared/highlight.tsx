/** Colours of code: highlight.js' tree as Preact nodes; and what one types of it. A part of its own, loaded with the first code. */
import hljs from "highlight.js/lib/common";
import django from "highlight.js/lib/languages/django";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import nginx from "highlight.js/lib/languages/nginx";
import powershell from "highlight.js/lib/languages/powershell";
import type { ComponentChildren } from "preact";

interface Node {
  scope?: string;
  children: (Node | string)[];
}

const PROMPT = /^(?:\([\w.-]+\) ?)?(?:(?:\[[^\]]*\]|[\w.@:~/-]*)\$|PS [^>]*>|>>>) /;
const CONTINUED = /^(?:>|\.\.\.)(?: |$)/;
const LONGEST = 50_000; // characters
const GUESSED = ["bash", "css", "ini", "javascript", "json", "python", "sql", "xml", "yaml"]; // what it can be, where the page doesn't say
const LONGEST_GUESSED = 5_000; // characters
const SURE = 5; // relevance, in the measure of highlight.js
const ALIASES = {
  django: ["jinja2", "liquid", "nunjucks", "twig"],
  ini: ["cfg", "conf", "dotenv", "editorconfig", "env", "properties"],
  json: ["json5"],
  markdown: ["mdx"],
  shell: ["sh-session", "shell-session", "terminal"],
  xml: ["astro", "svelte", "vue"],
};

const COLOURS = {
  keyword: ["keyword", "literal", "selector-tag", "meta", "template-tag"],
  string: ["string", "regexp", "addition", "symbol"],
  number: ["number", "attr", "attribute", "variable", "template-variable", "property", "bullet"],
  comment: ["comment", "quote", "deletion"],
  title: ["title", "section", "name", "built_in", "type", "class"],
};
const BY_SCOPE = new Map(Object.entries(COLOURS).flatMap(([colour, scopes]) => scopes.map((scope) => [scope, colour])));

for (const [name, language] of Object.entries({ django, dockerfile, nginx, powershell })) hljs.registerLanguage(name, language);
for (const [languageName, names] of Object.entries(ALIASES)) hljs.registerAliases(names, { languageName });

export function highlight(code: string, language: string): ComponentChildren {
  if (code.length > LONGEST) return code;
  const known = named(code, language);
  const guess = !language && code.length <= LONGEST_GUESSED;
  if (!known && !guess) return code;
  const result = known ? hljs.highlight(code, { language: known, ignoreIllegals: true }) : hljs.highlightAuto(code, GUESSED);
  if (!known && result.relevance < SURE) return code;
  return nodes((result._emitter as unknown as { rootNode: Node }).rootNode);
}

/** The name by which highlight.js knows the language: of `html+jinja` that of the templates, of a session with prompts `shell`. */
function named(code: string, language: string): string | undefined {
  const session = typed(code) !== code;
  if (/^(?:bash|sh|shell|zsh)$/i.test(language) || (session && !language)) return session ? "shell" : "bash";
  return [language, ...language.split("+").reverse()].find((one) => one && hljs.getLanguage(one));
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

function nodes(node: Node): ComponentChildren {
  return node.children.map((child) => {
    if (typeof child === "string") return child;
    const colour = child.scope === "meta.prompt" ? "prompt" : BY_SCOPE.get(child.scope?.split(".")[0] ?? "");
    return colour ? <span class={`hl-${colour}`}>{nodes(child)}</span> : nodes(child);
  });
}
