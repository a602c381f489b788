/** Keys that open the panel, unless the site's own script handles them. */

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const TYPED = "input, textarea, select, [contenteditable]:not([contenteditable=false])";

interface Keys {
  key: string;
  ctrl: boolean;
  meta: boolean;
  alt: boolean;
  shift: boolean;
}

/** Calls the function when the keys are pressed, such as `Mod+K`; returns how to end that. */
export function onShortcut(shortcut: string, pressed: () => void): () => void {
  const keys = read(shortcut);
  if (!keys) return () => undefined;
  const listen = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.isComposing || !matches(keys, event)) return;
    if (!keys.ctrl && !keys.meta && !keys.alt && isTyping(event)) return;
    event.preventDefault();
    pressed();
  };
  // The last listener of the window, whenever the site adds its own: it sees what others have handled
  const stayLast = (): void => {
    window.removeEventListener("keydown", listen);
    window.addEventListener("keydown", listen);
  };
  window.addEventListener("keydown", stayLast, true);
  return () => {
    window.removeEventListener("keydown", stayLast, true);
    window.removeEventListener("keydown", listen);
  };
}

/** The keys as people write them, for example Ctrl+K or ⌘K; empty if there are none. */
export function shownKeys(shortcut: string): string {
  const keys = read(shortcut);
  if (!keys) return "";
  const key = keys.key === " " ? "Space" : keys.key.length === 1 ? keys.key.toUpperCase() : keys.key;
  const names = MAC ? ["⌃", "⌥", "⇧", "⌘"] : ["Ctrl+", "Alt+", "Shift+", "Meta+"];
  return [keys.ctrl, keys.alt, keys.shift, keys.meta].map((on, i) => (on ? names[i] : "")).join("") + key;
}

function read(shortcut: string): Keys | null {
  const parts = shortcut.toLowerCase().split("+").map((part) => part.trim());
  const key = parts.pop() ?? "";
  if (!key || key === "none") return null;
  const has = (...names: string[]): boolean => parts.some((part) => names.includes(part));
  return {
    key: key === "space" ? " " : key,
    ctrl: has("ctrl", "control") || (!MAC && has("mod")),
    meta: has("meta", "cmd", "command") || (MAC && has("mod")),
    alt: has("alt", "option"),
    shift: has("shift"),
  };
}

function matches(keys: Keys, event: KeyboardEvent): boolean {
  // a character such as "?" or "/" may need Shift on some keyboards
  const shift = event.shiftKey === keys.shift || (keys.key.length === 1 && !/[a-z0-9 ]/.test(keys.key));
  return (
    event.key.toLowerCase() === keys.key &&
    event.ctrlKey === keys.ctrl &&
    event.metaKey === keys.meta &&
    event.altKey === keys.alt &&
    shift
  );
}

function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  return target instanceof Element && target.closest(TYPED) !== null;
}
