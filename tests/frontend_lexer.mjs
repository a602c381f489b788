// Reads each text of a JSON list (on standard input) with marked as it is and with the widget's part of it; prints those read otherwise.
import { readFileSync } from "node:fs";
import { lexer } from "../frontend/light.mjs";
import { Lexer } from "../frontend/node_modules/marked/lib/marked.esm.js";

const path = new URL("../frontend/node_modules/marked/lib/marked.esm.js", import.meta.url).pathname;
const code = await lexer(readFileSync(path, "utf8"), path);
const { Lexer: Part } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
const FIELDS = "type raw text tokens href title lang depth items ordered start loose task checked header rows align block escaped tag".split(" ");

const read = (Kind, text) => JSON.stringify(new Kind({ gfm: true }).lex(text), FIELDS);
const texts = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(texts.filter((text) => read(Lexer, text) !== read(Part, text))));
