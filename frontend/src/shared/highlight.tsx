/** Colours of code: highlight.js' tree as Preact nodes. A part of its own, loaded with the first code. */
import hljs from "highlight.js/lib/common";
import django from "highlight.js/lib/languages/django";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import nginx from "highlight.js/lib/languages/nginx";
import powershell from "highlight.js/lib/languages/powershell";
import type { ComponentChildren } from "preact";
import { typed } from "./code";

interface Node {
  scope?: string;
  children: (Node | string)[];
}

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

function nodes(node: Node): ComponentChildren {
  return node.children.map((child) => {
    if (typeof child === "string") return child;
    const scope = child.scope === "meta.prompt" ? "prompt" : child.scope?.split(".")[0];
    return scope ? <span class={`hl-${scope}`}>{nodes(child)}</span> : nodes(child);
  });
}
