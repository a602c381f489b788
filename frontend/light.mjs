// What keeps the widget small: only the texts and icons that it shows, texts only in the language of the page; styles without those of
// other pages; of marked the lexer alone, for GitHub's dialect.
import { transform } from "esbuild";
import { readFile } from "node:fs/promises";

const TEXTS = ["chat", "doubts", "sources", "feedback", "problems", "search", "widget"];
const OTHER_TEXTS = new RegExp(`^  (?!(?:${TEXTS.join("|")}):)\\w+: \\{\\n[^]*?^  \\},\\n`, "gm");
const LANGUAGES = /^import \{ (?:type Texts, )?(\w\w) \} from "\.\/\1";\n/gm;
const OTHER_ICONS = /^  (?:edit|link|menu|save|settings|trash): ".*",\n/gm;
const OTHER_STYLES = /^(?:@media print \{ \.|\.da-(?:key\b|primary\b|scroll \{ --edge)).*\n/gm;
const ROOT_FONT_SIZE = 16; // pixels; a site may have set that of its root to anything
const OVERRIDDEN = /\b(?:lheading|paragraph|table|_backpedal|del|delLDelim|delRDelim|emStrongLDelim|emStrongRDelimAst|url):\w+,?/g;
/** What is replaced in marked, so that esbuild finds what is never used. */
const CUTS = [
  [/var \w+=new \w+;function \w+\(\w+,\w+\)\{return \w+\.parse\([^]*?(?=export\{)/g, ""], // the object that holds parser and renderer
  [/export\{.*?(\w+) as Lexer\b.*?\}/g, "export{$1 as Lexer}"],
  [/(?<=\bvar \w=)(?=\w\(\);)/, "/* @__PURE__ */"], // the options by default
  [/let (\w)="Infinite loop.*?else throw new Error\(\1\)/, "throw new Error"],
  [/static get rules\(.*?\}\}static lex\([^}]*\}static lexInline\([^}]*\}/, ""],
  [/(this\.options=\w+)\|\|\w+/g, "$1"], // there are none by default, and no other tokenizer
  [/this\.options\.tokenizer=this\.options\.tokenizer\|\|new (\w+),.*?this\.tokenizer\.options=this\.options,/, "this.tokenizer=new $1,"],
  [/this\.tokenizer\.lexer=this;/g, ""],
  [/\|\|this\.tokenizer\.\w+!==\w+\.prototype\.\w+/g, ""],
  [/this\.tokenizer\.\w+===\w+\.prototype\.\w+/g, "!0"],
  [/this\.options\.(?:pedantic|breaks)\b/g, "!1"],
  [/this\.options\.gfm\b/g, "!0"],
  [/this\.options\.(?:extensions|hooks)\b/g, "null"],
  [/=\{normal:\w+,gfm:(\w+),(?:breaks:\w+,)?pedantic:\w+\}/g, "={gfm:$1}"],
  [/(?<==)\(\(\w+=""\)=>\{try\{return!!new RegExp\(.*?\}\}\)\(\)/g, "!0"], // whether the browser can look behind
  [/(?<=[, ]\w+=)(?=g\()/g, "/* @__PURE__ */"], // g builds one regular expression from others
  [/(?<==)\{(?:\w+:\w+,?){9,}\}/g, (rules) => rules.replace(OVERRIDDEN, "")], // what GitHub's dialect builds on
];
const DIALECT = /,(\w+)=\{\.\.\.\w+,(?:(?!getRegex\(\)\}).)*getRegex\(\)\}(?=,\w+=)/gs;
/** A regular expression of an object, with the name that it has there. */
const RULE = /\b(\w+):\/(?:[^/\\\n[]|\\.|\[(?:[^\]\\]|\\.)*\])+\/\w*,/g;
const CAMEL_CASE = /[a-z][A-Z]/; // the fields of tokens are lower case
const BUILT_IN = [Array, Math, Number, Object, RegExp, String, WeakMap]
  .flatMap((kind) => [kind, kind.prototype ?? {}].flatMap(Object.getOwnPropertyNames))
  .concat("lastIndex")
  .filter((name) => CAMEL_CASE.test(name));

export const light = {
  name: "light",
  setup({ onLoad }) {
    onLoad({ filter: /shared\/texts\/\w\w\.ts$/ }, async ({ path }) => {
      return { contents: (await readFile(path, "utf8")).replace(OTHER_TEXTS, ""), loader: "ts" };
    });
    // src/widget/language.ts loads them
    onLoad({ filter: /shared\/texts\/index\.ts$/ }, async ({ path }) => {
      const text = (await readFile(path, "utf8")).replace(LANGUAGES, "").replace(/(ALL: Record<.*> = )\{.*\}/, "$1{}");
      return { contents: text, loader: "ts" };
    });
    onLoad({ filter: /shared\/icons\.tsx$/ }, async ({ path }) => {
      return { contents: (await readFile(path, "utf8")).replace(OTHER_ICONS, ""), loader: "tsx" };
    });
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform((await readFile(path, "utf8")).replace(OTHER_STYLES, "").replace(/:root\S*, /g, ""), { loader: "css", minify: true });
      return { contents: code.replace(/(\d*\.?\d+)rem\b/g, (_, size) => `${Math.round(size * ROOT_FONT_SIZE)}px`), loader: "text" };
    });
    onLoad({ filter: /marked\.esm\.js$/ }, async ({ path }) => ({ contents: await lexer(await readFile(path, "utf8"), path) }));
  },
};

/** The lexer as `new Lexer({ gfm: true })` uses it, with short names of its own properties. */
export async function lexer(text, path) {
  let cut = text;
  for (const [pattern, by] of CUTS) {
    const before = cut;
    cut = cut.replace(pattern, by);
    if (cut === before) throw new Error(`${path} has another form than ${pattern} expects`);
  }
  cut = cut.replace(DIALECT, (rules, name) => (cut.split(new RegExp(`\\b${name}\\b`)).length > 2 ? rules : ""));
  const reserveProps = new RegExp(`^(?:${BUILT_IN.join("|")})$`);
  const options = { minify: true, treeShaking: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none" };
  const { code } = await transform(cut, { ...options, mangleProps: CAMEL_CASE, reserveProps });
  return code.replace(RULE, (rule, name) => (new RegExp(`\\.${name}\\b`).test(code) ? rule : ""));
}
