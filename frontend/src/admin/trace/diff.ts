/** What is different between two texts, by words. */

export interface Part {
  text: string;
  kind: "same" | "removed" | "added";
}

const MOST_CELLS = 4_000_000; // of the table; texts beyond it are shown as wholly different between their equal ends

export function wordDiff(before: string, after: string): Part[] {
  return joined(diff(words(before), words(after)));
}

function words(text: string): string[] {
  return text.match(/\s*[\p{L}\p{N}_]+|\s*[^\s\p{L}\p{N}_]|\s+$/gu) ?? [];
}

function diff(a: string[], b: string[]): Part[] {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const parts = (list: string[], kind: Part["kind"]) => list.map((text) => ({ text, kind }));
  const [before, after] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const middle = before.length * after.length > MOST_CELLS
    ? [...parts(before, "removed"), ...parts(after, "added")]
    : between(before, after);
  return [...parts(a.slice(0, start), "same"), ...middle, ...parts(a.slice(a.length - end), "same")];
}

/** By the longest common subsequence. */
function between(a: string[], b: string[]): Part[] {
  const width = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = a[i] === b[j]
        ? longest[(i + 1) * width + j + 1]! + 1
        : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const parts: Part[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      parts.push({ text: a[i]!, kind: "same" });
      [i, j] = [i + 1, j + 1];
    } else if (j >= b.length || (i < a.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) {
      parts.push({ text: a[i]!, kind: "removed" });
      i += 1;
    } else {
      parts.push({ text: b[j]!, kind: "added" });
      j += 1;
    }
  }
  return parts;
}

function joined(parts: Part[]): Part[] {
  const found: Part[] = [];
  for (const part of parts) {
    const last = found.at(-1);
    if (last?.kind === part.kind) last.text += part.text;
    else found.push({ ...part });
  }
  return found;
}
