/** The script of the tag: small, because every page of a site loads it. The button and the panel come from the service. */
import { type Given, options, serviceOf } from "./options";
import type { Widget } from "./widget";

const NAME = "static/widget.js";
const script = (document.currentScript ?? document.querySelector(`script[src*="${NAME}"]`)) as HTMLScriptElement | null;
const service = script ? serviceOf(script.src) : "";
let widget: Promise<Widget> | null = null;

/** Puts the widget into the page, in place of an earlier one. */
function mount(given: Given = {}): void {
  const chosen = options({ ...script?.dataset, ...given }, service);
  const earlier = widget;
  widget = (async () => {
    const [made] = await Promise.all([import(`${chosen.service}static/widget/widget.js`), ready()]);
    (await earlier)?.remove();
    return new (made as typeof import("./widget")).Widget(chosen);
  })();
}

/** Opens the panel, and asks the question if there is one. */
function open(question = ""): void {
  if (!widget) mount();
  void widget?.then((one) => one.open(question));
}

function close(): void {
  void widget?.then((one) => one.close());
}

async function ready(): Promise<void> {
  if (!document.body) await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
}

const api = { mount, open, close };

declare global {
  interface Window {
    DocsAssistant?: typeof api;
  }
}

// a page that has the script twice gets one widget
if (!window.DocsAssistant) {
  window.DocsAssistant = api;
  if (script) mount();
}
