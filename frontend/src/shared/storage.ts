/** Values that outlive the page. In a browser that keeps nothing, they last as long as the page does. */

const memory = new Map<string, string>();

export class Storage {
  constructor(
    /** Tells apart several services on one host. */
    readonly prefix: string,
    readonly kind: "localStorage" | "sessionStorage" = "localStorage",
  ) {}

  get(name: string): string {
    try {
      const found = window[this.kind].getItem(this.prefix + name);
      if (found !== null) return found;
    } catch { /* forbidden by the browser's settings */ }
    return memory.get(this.prefix + name) ?? "";
  }

  /** Whether the browser keeps the value. An empty one is removed. */
  set(name: string, value: string): boolean {
    const key = this.prefix + name;
    memory.delete(key);
    try {
      if (value) window[this.kind].setItem(key, value);
      else window[this.kind].removeItem(key);
      return true;
    } catch {
      if (value) memory.set(key, value); // full, or forbidden
      return false;
    }
  }
}

/** The names that begin so. A function, so that the widget, which needs none, doesn't have it. */
export function namesIn({ prefix, kind }: Storage, beginning: string): string[] {
  let kept: string[] = [];
  try {
    kept = Object.keys(window[kind]);
  } catch { /* forbidden */ }
  const all = [...new Set([...kept, ...memory.keys()])];
  return all.filter((name) => name.startsWith(prefix + beginning)).map((name) => name.slice(prefix.length));
}
