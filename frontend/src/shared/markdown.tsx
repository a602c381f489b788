/** Markdown as Preact nodes, straight from marked's tokens: no text ever becomes HTML.
 *
 * HTML in it shows as text, links lead to web and mail addresses only, and an image is a link with its description.
 */
import { Lexer, type Token, type Tokens } from "marked";
import { Component, type ComponentChildren, type JSX, createContext } from "preact";
import { useContext, useMemo, useState } from "preact/hooks";
import { CodeBlock } from "./code";
import { SIGN } from "./doubt";
import { Link } from "./link";
import { useUi } from "./ui";

/** Parts of a block's plain text, from start to end, that are shown as marked. */
export type Ranges = [number, number][];

export interface Reading {
  /** What stands for the citation `[n]`; null leaves it as text. */
  cite?: (number: number) => ComponentChildren | null;
  /** Which parts of a block to mark. */
  mark?: (plain: string) => Ranges;
  /** What stands for the sign of a statement that isn't proved, behind this text of its block; such statements are what is marked then. */
  doubt?: (before: string) => ComponentChildren;
  /** The address that relative links are relative to. */
  base?: string;
  /** Folds quotations around what is marked, or code that has this line; if it is empty, from there on. */
  fold?: string | undefined;
  /** What isn't shown of a folded quotation. */
  rest?: Set<unknown>;
}

const Context = createContext<Reading>({});
const SIGNS = new RegExp(`\\[(\\d{1,3})\\]|${SIGN.source}`, "g");
const DEEPEST = 20; // levels; deeper ones show as text
const LINES = 14; // of a quotation that are shown at first, with the gaps between its blocks
const FEW = 3; // lines that aren't worth a button

export function Markdown({ text, reading }: { text: string; reading: Reading }): JSX.Element {
  const tokens = useMemo(() => lexed(text), [text]);
  return (
    <Context.Provider value={reading}>
      <div class="da-markdown" dir="auto">{tokens.map((token, i) => <Block key={i} token={token} reading={reading} />)}</div>
    </Context.Provider>
  );
}

function lexed(text: string): Token[] {
  try {
    return new Lexer({ gfm: true }).lex(text);
  } catch {
    return [{ type: "code", raw: text, text }]; // nested deeper than the parser can follow
  }
}

// while an answer is written, only its last block changes; a class, because preact/compat's memo weighs 3 kB
class Block extends Component<{ token: Token; reading: Reading }> {
  override shouldComponentUpdate({ token, reading }: Readonly<{ token: Token; reading: Reading }>): boolean {
    return token.raw !== this.props.token.raw || reading !== this.props.reading;
  }

  override render(): JSX.Element {
    return <Blocks tokens={[this.props.token]} level={0} />;
  }
}

function Blocks({ tokens, level }: { tokens: Token[]; level: number }): JSX.Element {
  const { rest } = useContext(Context);
  const block = (token: Token, i: number) => <BlockToken key={i} token={token} level={level} />;
  return <>{tokens.map((token, i) => (rest?.has(token) ? <div key={i} class="da-rest">{block(token, i)}</div> : block(token, i)))}</>;
}

/** The part that answers; a button shows the rest, which is always printed. */
function Quotation({ tokens, reading }: { tokens: Token[]; reading: Reading }): JSX.Element {
  const { t } = useUi();
  const [open, setOpen] = useState(false);
  const rest = useMemo(() => restOf(tokens, reading), [tokens, reading]);
  return (
    <Context.Provider value={{ ...reading, rest }}>
      <blockquote class={open ? "" : "da-folded"}>
        <Blocks tokens={tokens} level={1} />
        {rest.size > 0 && <button type="button" class="da-button da-all" aria-expanded={open} onClick={() => setOpen(!open)}>{t.chat.all}</button>}
      </blockquote>
    </Context.Provider>
  );
}

/** The blocks, items and rows that don't fit around those that are marked, and the other rows of a table that has such. */
function restOf(tokens: Token[], { mark, fold }: Reading): Set<unknown> {
  const wide = Math.min(90, innerWidth / 9); // characters of a line
  const groups: { of: unknown[]; text: string; answers: unknown }[] = [];
  const aside: unknown[] = [];
  const add = (of: unknown, text: string, answers: unknown) => {
    const led = /:\W*$/.test(groups.at(-1)?.text ?? "") ? groups.pop() : null; // what is introduced stands with that
    groups.push({ of: [...(led?.of ?? []), of], text: (led?.text ?? "") + text, answers: led?.answers || answers });
  };
  const answers = (texts: string[]) => texts.some((one) => mark?.(one).length);
  for (const token of tokens as Tokens.Generic[]) {
    const rows = ((token["rows"] ?? []) as Tokens.TableCell[][]).map((row) => ({ row, texts: row.map((cell) => plain(cell.tokens)) }));
    const some = rows.some(({ texts }) => answers(texts));
    for (const { row, texts } of rows) {
      if (some && !answers(texts)) aside.push(row);
      else add(row, texts.join().padEnd(0.7 * texts.length * Math.max(...texts.map(({ length }) => length))), some); // the longest cell wraps
    }
    for (const item of (token["items"] ?? []) as Tokens.ListItem[]) add(item, item.raw, answers(textsOf(item.tokens)));
    if (token.type === "code") add(token, token["text"].replace(/\n/g, " ".repeat(wide)), fold && token["text"].includes(fold.replaceAll("`", "")));
    else if (!token["rows"] && !token["items"] && token.type !== "space") add(token, token.raw, answers(textsOf([token])));
  }
  const lines = (some: Iterable<(typeof groups)[0]>) => [...some].reduce((sum, { text }) => sum + Math.ceil(text.length / wide) + 0.5, 0);
  const shown = new Set(groups.filter((one) => one.answers));
  if (!shown.size) shown.add(groups[0]!);
  const show = (some: typeof groups) => some.every((one) => (lines(shown) < LINES / 2 || lines(new Set([...shown, one])) <= LINES) && shown.add(one));
  const at = groups.findIndex((one) => shown.has(one));
  const before = groups.slice(0, at);
  if (fold && lines([...before, ...shown]) <= LINES) show(before); // a section says first what to do
  show(groups.slice(at));
  if (fold) show(before.reverse());
  const left = groups.filter((one) => !shown.has(one));
  const rest = new Set(lines(left) > FEW ? [...aside, ...left.flatMap(({ of }) => of)] : aside);
  for (const token of tokens as Tokens.Generic[]) if ((token["rows"] ?? token["items"])?.every((one: unknown) => rest.has(one))) rest.add(token);
  return rest;
}

function BlockToken({ token: generic, level }: { token: Token; level: number }): JSX.Element | null {
  const token = generic as Tokens.Generic;
  const reading = useContext(Context);
  if (level > DEEPEST) return <p>{token.raw}</p>;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      return <Heading depth={token["depth"]}><Inline tokens={token.tokens!} /></Heading>;
    case "paragraph":
      return <p><Inline tokens={token.tokens!} /></p>;
    case "text":
      return token.tokens ? <Inline tokens={token.tokens} /> : <Inline tokens={[token]} />;
    case "code":
      return <CodeBlock code={token["text"]} language={token["lang"]} />;
    case "blockquote":
      if (!level && reading.fold !== undefined) return <Quotation tokens={token.tokens!} reading={reading} />;
      return <blockquote><Blocks tokens={token.tokens!} level={level + 1} /></blockquote>;
    case "list":
      return <List list={generic as Tokens.List} level={level} />;
    case "table":
      return <Table table={generic as Tokens.Table} />;
    case "hr":
      return <hr />;
    case "checkbox":
      return <Checkbox checked={token["checked"]} />;
    default:
      return <p class="da-raw">{token.raw.trim()}</p>; // HTML
  }
}

/** The headings of an answer are below that of the answer itself. */
function Heading({ depth, children }: { depth: number; children: ComponentChildren }): JSX.Element {
  const Tag = `h${Math.min(depth + 2, 6)}` as "h3";
  return <Tag class={`da-h${depth}`}>{children}</Tag>;
}

function Checkbox({ checked }: { checked: boolean }): JSX.Element {
  const { t } = useUi();
  return <span class="da-task" role="img" aria-label={t.chat.task(checked)}>{checked ? "☑" : "☐"} </span>;
}

function List({ list, level }: { list: Tokens.List; level: number }): JSX.Element {
  const { rest } = useContext(Context);
  const items = list.items.map((item, i) => (
    <li key={i} class={(item.task ? "da-task-item" : "") + (rest?.has(item) ? " da-rest" : "")} value={list.ordered ? (Number(list.start) || 1) + i : undefined}>
      <Blocks tokens={item.tokens} level={level + 1} />
    </li>
  ));
  return list.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table }: { table: Tokens.Table }): JSX.Element {
  const { t } = useUi();
  const { rest } = useContext(Context);
  const { header, rows } = table;
  const cell = (Tag: "th" | "td") => (one: Tokens.TableCell, i: number) => (
    <Tag key={i} {...(Tag === "td" && { role: "cell", "data-name": plain(header[i]!.tokens) })} {...(one.align && { style: { textAlign: one.align } })}>
      <Inline tokens={one.tokens} />
    </Tag>
  );
  return (
    // the keyboard reaches what is scrolled; the roles stay where rows become blocks
    <div class={`da-table da-scroll${header.length > 2 ? " da-wide" : ""}`} role="group" aria-label={t.chat.table} tabIndex={0}>
      <table role="table">
        <thead><tr role="row">{header.map(cell("th"))}</tr></thead>
        <tbody>{rows.map((row, i) => <tr key={i} role="row" class={rest?.has(row) ? "da-rest" : ""}>{row.map(cell("td"))}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** The tokens of one block. */
function Inline({ tokens }: { tokens: Token[] }): JSX.Element {
  const reading = useContext(Context);
  const place = { at: 0 };
  const whole = reading.mark ? plain(tokens) : "";
  const ranges = reading.mark?.(whole) ?? [];
  return <>{tokens.map((token) => inline(token, { ...reading, whole, ranges, place }))}</>;
}

interface InlineReading extends Reading {
  /** The plain text of the block. */
  whole: string;
  ranges: Ranges;
  /** How much of the block's plain text has been shown. */
  place: { at: number };
}

function inline(generic: Token, reading: InlineReading): ComponentChildren {
  const token = generic as Tokens.Generic;
  const children = () => token.tokens?.map((child) => inline(child, reading)) ?? marked(token["text"], reading);
  switch (token.type) {
    case "strong":
      return <strong>{children()}</strong>;
    case "em":
      return <em>{children()}</em>;
    case "del":
      return <del>{children()}</del>;
    case "codespan":
      return <code>{marked(token["text"], reading)}</code>;
    case "br":
      reading.place.at += 1;
      return <br />;
    case "link":
      return <Link href={token["href"]} base={reading.base}>{children()}</Link>;
    case "image":
      return <Link href={token["href"]} base={reading.base}>{marked(shown(token), reading)}</Link>;
    case "escape":
      return marked(token["text"], reading);
    case "checkbox":
      return <Checkbox checked={token["checked"]} />;
    case "text":
      return token.tokens ? children() : cited(unescaped(token["text"]), reading);
    default:
      return marked(token.raw, reading);
  }
}

function cited(text: string, reading: InlineReading): ComponentChildren {
  if (!reading.cite) return marked(text, reading);
  const parts: ComponentChildren[] = [];
  let end = 0;
  const from = reading.place.at;
  for (const found of text.matchAll(SIGNS)) {
    const mark = found[1] ? reading.cite(Number(found[1])) : (reading.doubt?.(reading.whole.slice(0, from + found.index)) ?? null);
    if (mark === null) continue;
    parts.push(marked(text.slice(end, found.index).replace(/ $/, "\u00a0"), reading), mark);
    reading.place.at += found[0].length;
    end = found.index + found[0].length;
  }
  return [...parts, marked(text.slice(end), reading)];
}

/** The text, with the ranges of its block that lie in it marked. */
function marked(text: string, { ranges, place, doubt }: InlineReading): ComponentChildren {
  const from = place.at;
  place.at += text.length;
  if (!ranges.length) return text;
  const parts: ComponentChildren[] = [];
  const Tag = doubt ? "u" : "mark";
  let end = 0;
  for (const range of ranges) {
    const start = Math.max(range[0] - from, end);
    const stop = Math.min(range[1] - from, text.length);
    if (start >= stop) continue;
    parts.push(text.slice(end, start), <Tag>{text.slice(start, stop)}</Tag>);
    end = stop;
  }
  return [...parts, text.slice(end)];
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0", "#39": "'" };

/** marked leaves entities to the browser's reading of HTML, which never happens here. */
function unescaped(text: string): string {
  return text.replace(/&(#\d{1,7}|#x[\da-f]{1,6}|\w{2,8});/gi, (whole: string, name: string) => {
    if (Object.hasOwn(ENTITIES, name)) return ENTITIES[name]!;
    if (name[0] !== "#") return whole;
    const code = name[1]!.toLowerCase() === "x" ? parseInt(name.slice(2), 16) : Number(name.slice(1));
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

function shown(image: Tokens.Generic): string {
  return image["text"] || image["href"];
}

/** The plain text of each block of words, as `Reading.mark` gets it. */
export function blockTexts(text: string): string[] {
  return textsOf(lexed(text));
}

function textsOf(tokens: Token[]): string[] {
  return tokens.flatMap((generic) => {
    const token = generic as Tokens.Generic;
    if (token.type === "list") return (generic as Tokens.List).items.flatMap((item) => textsOf(item.tokens));
    if (token.type === "blockquote") return textsOf(token.tokens!);
    if (token.type === "table") {
      const { header, rows } = generic as Tokens.Table;
      return [header, ...rows].flat().map((cell) => plain(cell.tokens));
    }
    if (token.type === "text") return [plain(token.tokens ?? [token])];
    return token.type === "heading" || token.type === "paragraph" ? [plain(token.tokens!)] : [];
  });
}

/** The text below this heading, up to the next one; empty without such a heading. */
export function below(heading: string, text: string): string {
  const blocks = lexed(text);
  const at = blocks.findIndex((block) => isHeading(block) && plain((block as Tokens.Heading).tokens) === heading);
  const end = blocks.findIndex((block, i) => i > at && isHeading(block));
  return at < 0 ? "" : blocks.slice(at + 1, end < 0 ? blocks.length : end).map(({ raw }) => raw).join("");
}

const isHeading = ({ type }: Token) => type === "heading";

/** The text of the tokens as it is shown. */
function plain(tokens: Token[]): string {
  return tokens.map((generic) => {
    const token = generic as Tokens.Generic;
    if (token.type === "image") return shown(token);
    if (token.type === "br") return "\n";
    if (token.type === "checkbox") return "";
    if (token.tokens) return plain(token.tokens);
    if (token.type === "text") return unescaped(token["text"]);
    return token.type === "html" ? token.raw : token["text"] ?? token.raw;
  }).join("");
}
