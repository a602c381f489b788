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
    } catch {
      // forbidden by the browser's settings
    }
    return memory.get(this.prefix + name) ?? "";
  }

  /** Whether the browser keeps the value. An empty one is removed. */
  set(name: string, value: string): boolean {
    if (!value) return this.remove(name);
    try {
      window[this.kind].setItem(this.prefix + name, value);
      memory.delete(this.prefix + name);
      return true;
    } catch {
      memory.set(this.prefix + name, value); // full, or forbidden
      return false;
    }
  }

  private remove(name: string): boolean {
    memory.delete(this.prefix + name);
    try {
      window[this.kind].removeItem(this.prefix + name);
      return true;
    } catch {
      return false;
    }
  }
}

/** The names that begin so. A function, so that the widget, which needs none, doesn't have it. */
export function namesIn({ prefix, kind }: Storage, beginning: string): string[] {
  let kept: string[] = [];
  try {
    kept = Object.keys(window[kind]);
  } catch {
    // forbidden
  }
  const all = [...new Set([...kept, ...memory.keys()])];
  return all.filter((name) => name.startsWith(prefix + beginning)).map((name) => name.slice(prefix.length));
}
