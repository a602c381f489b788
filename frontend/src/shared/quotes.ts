/** Finds in a passage what an answer took from it: the sentences that share most words with what the answer says. */
import type { Ranges } from "./markdown";

const STEM = 5; // letters; endings usually begin after them
const MOST = 3; // marked sentences of a statement
const ENOUGH = 0.4; // share of the statement's weight that a sentence must hold
const NEAR = 0.75; // a further sentence is marked if it holds this share of what the best one does
const FEWEST = 4; // words of a statement
const LONGEST = 1000; // characters of a quotation
const SENTENCES = /(?<=[.!?:])\s+|\n+/;
const CITATION = /(?:\s?\[\d{1,3}\])+/g;
const WORDS = /[\p{L}\p{N}][\p{L}\p{N}_.:/-]*/gu;

/** What an answer says with a citation of the source. */
export function statements(answer: string, number: number): string[] {
  const marks = [...answer.matchAll(CITATION)];
  return marks.flatMap((mark, i) => {
    if (!mark[0].includes(`[${number}]`)) return [];
    const behind = answer.slice(mark.index + mark[0].length, marks[i + 1]?.index).slice(0, LONGEST);
    const before = answer.slice(marks[i - 1] ? marks[i - 1]!.index + marks[i - 1]![0].length : 0, mark.index);
    // a heading or label comes before what it announces
    return [words(before).size >= FEWEST ? last(before) : `${before} ${behind.slice(0, 300)}`];
  });
}

function last(text: string): string {
  const parts = text.trim().split(SENTENCES);
  const sentence = parts.at(-1) ?? "";
  return words(sentence).size >= FEWEST ? sentence : parts.slice(-2).join(" ");
}

/** The cells of a row as it is quoted; they are marked one by one. Parts of a sentence lie in the same sentence. */
export function cells(sentence: string): string[] {
  return sentence.split(" – ");
}

/** The text in small letters without accents. */
export function folded(text: string): string {
  return text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
}

/** Words by their beginnings, each with its weight: numbers and names of code are copied, words are reworded. */
function words(text: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const [word] of folded(text).matchAll(WORDS)) {
    const whole = word.replace(/[.:/-]+$/, "");
    if (/[\d_./:-]/.test(whole)) found.set(whole, 2);
    else if (whole.length > 3) found.set(whole.slice(0, STEM), 1);
  }
  return found;
}

/** For blocks of the passage: the parts that hold one of the statements. `texts` are the texts of the whole passage. */
export function marker(said: string[], texts: string[], language: string): (plain: string) => Ranges {
  const sentences = new Map<string, ReturnType<typeof words>>();
  for (const text of texts) for (const one of split(text, language)) sentences.set(one.segment.trim(), words(one.segment));
  const quoted = new Set<string>();
  for (const statement of said) for (const sentence of best(words(statement), sentences)) quoted.add(sentence);
  return (plain) => {
    const ranges: Ranges = [];
    for (const { index, segment } of split(plain, language)) {
      if (!quoted.has(segment.trim())) continue;
      const before = ranges.at(-1);
      const end = index + segment.trimEnd().length;
      if (before && !plain.slice(before[1], index).trim()) before[1] = end;
      else ranges.push([index, end]);
    }
    return ranges;
  };
}

function best(said: Map<string, number>, sentences: Map<string, Map<string, number>>): string[] {
  const total = [...said.values()].reduce((sum, weight) => sum + weight, 0);
  const scored = [...sentences].map(([sentence, own]): [string, number] => {
    let held = 0;
    for (const [word, weight] of said) if (own.has(word)) held += weight;
    return [sentence, held];
  });
  scored.sort((a, b) => b[1] - a[1]);
  const top = scored[0]?.[1] ?? 0;
  if (!total || top < 2 || top / total < ENOUGH) return [];
  return scored.filter(([, held]) => held >= NEAR * top).slice(0, MOST).map(([sentence]) => sentence);
}

export function split(lines: string, language: string): { segment: string; index: number }[] {
  const text = lines.replaceAll("\n", " "); // lines are broken anywhere
  try {
    return [...new Intl.Segmenter(language || "en", { granularity: "sentence" }).segment(text)];
  } catch {
    return [{ segment: text, index: 0 }];
  }
}
