/** What the reader has selected in the site's text, and where a button about it has room. */
import { useEffect, useState } from "preact/hooks";

const LENGTHS = [3, 300]; // characters of a text that one asks about
const ROOM = { width: 180, height: 48 }; // pixels of the button

type Selected = { text: string; x: number; y: number };

export function useSelected(wanted: boolean): [Selected | null, () => void] {
  const [selected, select] = useState<Selected | null>(null);
  const none = (): void => select(null);
  useEffect(() => {
    if (!wanted) return;
    const ended = (event: Event): void => {
      if (event.target instanceof Element && event.target.closest("docs-assistant, input, textarea, [contenteditable]")) return;
      window.setTimeout(() => select(current())); // a click that ends the selection ends it after this event
    };
    const until = new AbortController();
    for (const kind of ["pointerup", "keyup"]) document.addEventListener(kind, ended, until);
    document.addEventListener("scroll", none, { signal: until.signal, capture: true });
    return () => until.abort();
  }, [wanted]);
  return [selected, none];
}

function current(): Selected | null {
  const selection = getSelection();
  const text = selection?.toString().replace(/\s+/g, " ").trim() ?? "";
  if (!selection?.rangeCount || text.length < LENGTHS[0]! || text.length > LENGTHS[1]!) return null;
  const { left, bottom } = selection.getRangeAt(0).getBoundingClientRect();
  return { text, x: Math.min(left, innerWidth - ROOM.width), y: Math.min(bottom + 6, innerHeight - ROOM.height) };
}
